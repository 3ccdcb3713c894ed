"""Prefix preservation and the delta of a tool's result: known answers, argument forms, and typed errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from chat_templates import ARGUMENTS, BY_POSITION, BY_QUERY, KEEPING, LOSING, NULL_ONLY, REFUSING

from renderers.errors import ConfigError, MessageError, PrefixError, TemplateError, TokenizerError
from renderers.template import is_prefix_preserving, tool_response_delta
from renderers.template.bound import BoundTemplate
from renderers.template.prefix import PrefixVerdict, check_prefix, require_prefix_preserving

TOKENIZER = "golden:qwen3"
RESULT = {"role": "tool", "content": "4"}


def preserves(template: str, **settings: Any) -> bool:
    """The answer for a template of our own."""
    return is_prefix_preserving(TOKENIZER, chat_template=template, **settings)


def verdict(template: str) -> PrefixVerdict:
    """The verdict on a template of our own."""
    return check_prefix(BoundTemplate.of(TOKENIZER, chat_template=template), tool_name="f").verdict


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (KEEPING, PrefixVerdict.PRESERVED),
        (BY_QUERY, PrefixVerdict.PRESERVED),
        (BY_POSITION, PrefixVerdict.REWRITTEN),
        (LOSING, PrefixVerdict.CALL_LOST),
        (NULL_ONLY, PrefixVerdict.CALL_LOST),
        (REFUSING, PrefixVerdict.REFUSED),
    ],
)
def test_only_what_is_printed_and_stays_is_preserved(template: str, expected: PrefixVerdict) -> None:
    assert verdict(template) is expected
    assert preserves(template) is (expected is PrefixVerdict.PRESERVED)


def test_arguments_are_tried_as_a_dict_and_as_text() -> None:
    as_dict = KEEPING.replace(ARGUMENTS, "given.items() | list | string")
    as_text = KEEPING.replace(ARGUMENTS, "'' + given")
    assert preserves(as_dict)
    assert preserves(as_text)
    # A template that breaks in one of the two forms breaks for whoever uses that form.
    for kind in ("string", "mapping"):
        broken = KEEPING.replace(
            "m.content or ''",
            f"'x' if loop.last and m.tool_calls and m.tool_calls[0].function.arguments is {kind} else ''",
        )
        assert verdict(broken) is PrefixVerdict.REWRITTEN


def test_the_name_must_be_that_of_the_call_and_not_of_the_list_of_tools() -> None:
    names_tools = "{{ tools }}" + LOSING
    tools = [{"type": "function", "function": {"name": "f"}}]
    template = BoundTemplate.of(TOKENIZER, chat_template=names_tools)
    assert check_prefix(template, tool_name="f", tools=tools).verdict is PrefixVerdict.CALL_LOST


def test_the_tools_name_and_the_switches_count() -> None:
    by_name = KEEPING.replace("m.content or ''", "'x' if loop.last and m.tool_calls[0].function.name == 'bad' else ''")
    assert preserves(by_name, tool_name="good")
    assert not preserves(by_name, tool_name="bad")
    by_switch = KEEPING.replace("m.content or ''", "'x' if loop.last and odd else ''")
    assert preserves(by_switch)
    assert not preserves(by_switch, template_kwargs={"odd": True})


def test_tokens_count_and_not_only_texts() -> None:
    """The text stays, but its last token takes in what follows."""
    template = (
        "{% for m in messages %}{% if m.role == 'tool' %}{{ '\\n' + m.content }}{% else %}{{ m.content }}"
        "{% for c in m.tool_calls or [] %}{{ c.function.name + '\\n' }}{% endfor %}{% endif %}{% endfor %}"
    )
    assert verdict(template) is PrefixVerdict.REWRITTEN


def test_the_delta_begins_after_the_stop_token() -> None:
    ids = tool_response_delta(TOKENIZER, [RESULT], tool_name="f", chat_template=KEEPING)
    text = "\n<|im_start|>user\n<tool_response>4</tool_response><|im_end|>\n<|im_start|>assistant\n"
    template = BoundTemplate.of(TOKENIZER, chat_template=KEEPING)
    assert ids == template.token_ids(text)
    two = tool_response_delta(TOKENIZER, [RESULT, RESULT], tool_name="f", chat_template=KEEPING)
    assert two == template.token_ids(text.replace("<|im_start|>assistant\n", "") + text[1:])


def test_the_delta_names_the_real_tool() -> None:
    template = KEEPING.replace("<tool_response>'", "' + m.name + m.tool_call_id + '<tool_response>'")
    bound = BoundTemplate.of(TOKENIZER, chat_template=template)
    for result in ({**RESULT, "tool_call_id": "c7"}, {**RESULT, "tool_call_id": "c7", "name": "find"}):
        ids = tool_response_delta(TOKENIZER, [result], tool_name="find", chat_template=template)
        assert ids == bound.token_ids(
            "\n<|im_start|>user\nfindc7<tool_response>4</tool_response><|im_end|>\n<|im_start|>assistant\n"
        )


def test_content_that_spells_a_stop_token_is_no_stop() -> None:
    spelled = {**RESULT, "content": "<|im_end|>4"}
    with_stop, without = (
        tool_response_delta(TOKENIZER, [one], tool_name="f", chat_template=KEEPING) for one in (spelled, RESULT)
    )
    assert with_stop[:5] == without[:5]
    assert len(with_stop) == len(without) + 1


@pytest.mark.parametrize(
    ("template", "words"),
    [(BY_POSITION, "`loop.last` was true and is false"), (LOSING, "call is lost"), (REFUSING, "No tools here.")],
)
def test_where_the_property_fails_it_is_an_error_that_says_why(template: str, words: str) -> None:
    with pytest.raises(PrefixError, match="not prefix-preserving") as caught:
        tool_response_delta(TOKENIZER, [RESULT], tool_name="f", chat_template=template)
    assert words in str(caught.value)
    with pytest.raises(PrefixError) as same:
        require_prefix_preserving(BoundTemplate.of(TOKENIZER, chat_template=template), tool_name="f")
    assert words in str(same.value)


def test_a_template_that_keeps_its_prefix_passes_the_gate() -> None:
    require_prefix_preserving(BoundTemplate.of(TOKENIZER, chat_template=KEEPING), tool_name="f")


def test_an_unknown_end_of_sampling_is_an_error() -> None:
    silent = KEEPING.replace("{{- '<|im_end|>\\n' }}", "{{- '\\n' }}")
    with pytest.raises(PrefixError, match=r"no stop token.*give `stop_tokens=`"):
        tool_response_delta(TOKENIZER, [RESULT], tool_name="f", chat_template=silent)
    ids = tool_response_delta(TOKENIZER, [RESULT], tool_name="f", chat_template=silent, stop_tokens=["<|im_start|>"])
    assert ids[:2] == BoundTemplate.of(TOKENIZER, chat_template=KEEPING).token_ids("user\n")
    with pytest.raises(TokenizerError, match="<nothing>"):
        tool_response_delta(TOKENIZER, [RESULT], tool_name="f", chat_template=KEEPING, stop_tokens=["<nothing>"])


def test_the_text_parts_of_a_result_are_joined() -> None:
    parts = {**RESULT, "content": [{"type": "text", "text": "4"}, {"type": "text", "text": "5"}]}
    ids = tool_response_delta(TOKENIZER, [parts], tool_name="f", chat_template=KEEPING)
    assert ids == tool_response_delta(TOKENIZER, [{**RESULT, "content": "4\n5"}], tool_name="f", chat_template=KEEPING)


@pytest.mark.parametrize("results", [[], [{"role": "user", "content": "4"}], ["4"], [{"role": "tool", "content": 4}]])
def test_what_is_no_result_is_an_error(results: Any) -> None:
    with pytest.raises(MessageError):
        tool_response_delta(TOKENIZER, results, tool_name="f", chat_template=KEEPING)


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{{ x | nonsense }}", "No filter named 'nonsense'"),
        ("{% if x is nonsense %}{% endif %}", "No test named 'nonsense'"),
        ("{% include 'other' %}", "no loader"),
        ("{% import 'other' as other %}", "no loader"),
        ("{% if %}", "Expected an expression"),
        ("{{ raise_exception('Never.') }}", "Never."),
    ],
)
def test_a_template_that_cannot_be_rendered_is_an_error(template: str, words: str) -> None:
    with pytest.raises(TemplateError, match=words):
        preserves(template)


def test_without_a_template_there_is_no_answer() -> None:
    with pytest.raises(ConfigError, match="no chat template"):
        is_prefix_preserving(TOKENIZER)


@pytest.mark.needs_assets
@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("Qwen/Qwen3-8B", PrefixVerdict.REWRITTEN),
        ("Qwen/Qwen3-4B-Instruct-2507", PrefixVerdict.PRESERVED),
        ("Qwen/Qwen3.5-35B-A3B", PrefixVerdict.PRESERVED),
        ("Qwen/Qwen3.6-35B-A3B", PrefixVerdict.PRESERVED),
        ("meta-llama/Llama-3.1-8B-Instruct", PrefixVerdict.PRESERVED),
        ("deepseek-ai/DeepSeek-V3", PrefixVerdict.CALL_LOST),
    ],
)
def test_known_answers(model: str, expected: PrefixVerdict, official_tokenizer: Callable[[str], Any]) -> None:
    tokenizer = official_tokenizer(model)
    assert check_prefix(BoundTemplate.of(tokenizer), tool_name="get_weather").verdict is expected
    assert is_prefix_preserving(tokenizer, tool_name="get_weather") is (expected is PrefixVerdict.PRESERVED)


def test_the_known_delta(official_tokenizer: Callable[[str], Any]) -> None:
    ids = tool_response_delta(official_tokenizer("Qwen/Qwen3-4B-Instruct-2507"), [RESULT], tool_name="get_weather")
    assert ids == [198, 151644, 872, 198, 151665, 198, 19, 198, 151666, 151645, 198, 151644, 77091, 198]
    with pytest.raises(PrefixError, match=r"line 44: `loop\.last` was true and is false"):
        tool_response_delta(official_tokenizer("Qwen/Qwen3-8B"), [RESULT], tool_name="get_weather")
    with pytest.raises(PrefixError, match="call is lost"):
        tool_response_delta(official_tokenizer("deepseek-ai/DeepSeek-V3"), [RESULT], tool_name="get_weather")


def test_the_delta_follows_the_stop_tokens_of_a_model(official_tokenizer: Callable[[str], Any]) -> None:
    """GLM samples the opener of the next message."""
    tokenizer = official_tokenizer("zai-org/GLM-4.5")
    stops = ["<|endoftext|>", "<|user|>", "<|observation|>"]
    ids = tool_response_delta(tokenizer, [RESULT], tool_name="get_weather", stop_tokens=stops)
    assert tokenizer.decode(ids) == "\n<tool_response>\n4\n</tool_response><|assistant|>"


@pytest.mark.parametrize(
    ("model", "stops"),
    [
        ("Qwen/Qwen3-4B-Instruct-2507", ("<|im_end|>",)),
        ("Qwen/Qwen3.5-35B-A3B", ("<|im_end|>",)),
        ("zai-org/GLM-4.5", ("<|user|>", "<|observation|>")),
        ("openai/gpt-oss-20b", ("<|return|>", "<|call|>")),
        ("moonshotai/Kimi-K2-Thinking", ("<|im_end|>",)),
        ("meta-llama/Llama-3.1-8B-Instruct", ("<|eot_id|>", "<|eom_id|>")),
    ],
)
def test_the_delta_ends_the_render_of_another_conversation(
    model: str, stops: tuple[str, ...], official_tokenizer: Callable[[str], Any]
) -> None:
    tokenizer = official_tokenizer(model)
    template = BoundTemplate.of(tokenizer, stop_tokens=stops)
    call = {"id": "call77777", "type": "function", "function": {"name": "find", "arguments": {"city": "Ulm"}}}
    result = {"role": "tool", "name": "find", "tool_call_id": "call77777", "content": "It is\n sunny."}
    messages = [
        {"role": "user", "content": "Hello."},
        {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": "And now?"},
        {"role": "assistant", "content": "", "reasoning_content": "Look.", "tool_calls": [call]},
        result,
    ]
    ids = tool_response_delta(tokenizer, [result], tool_name="find", stop_tokens=stops)
    whole = template.token_ids(template.render(messages, add_generation_prompt=True).text)
    assert whole[-len(ids) :] == ids
    assert template.token_text(whole[-len(ids) - 1]) in stops
