"""GLM-4.5, 4.7 and 5: the kit, the public cases, and what is GLM's own."""

from __future__ import annotations

import os
import warnings
from typing import Any

import pytest
from hypothesis import settings
from public_cases import cases, check_case

from families.glm import GLM5Config, GLM45Config
from golden.reference import encode, load_tokenizer, profile_of, reference_for, reference_text
from renderers import (
    BridgeRefusal,
    ConfigError,
    DamageError,
    DamageWarning,
    MessageError,
    RenderedTokens,
    ToolsError,
    create_renderer,
)
from renderers.testing.suite import check_renderer

GLM45, FLASH, GLM5, GLM51, GLM52 = MODELS = (
    "zai-org/GLM-4.5",
    "zai-org/GLM-4.7-Flash",
    "zai-org/GLM-5",
    "zai-org/GLM-5.1",
    "zai-org/GLM-5.2",
)
OFF = {"enable_thinking": False}
KEEP = {"clear_thinking": False}
CASES = [*cases(["glm-4.5"]), *cases(["glm-5"])]
#: Five templates share what the other families spend on one.
EXAMPLES = settings().max_examples // (1 if "FUZZ_EXAMPLES" in os.environ else 5)


def user(content: Any = "q") -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any = "", reasoning: str | None = None, *names: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if reasoning is not None:
        message["reasoning_content"] = reasoning
    if names:
        message["tool_calls"] = [{"function": {"name": name, "arguments": {}}} for name in names]
    return message


def tool(content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "content": content}


#: Two questions; the first was answered with the help of a tool.
HISTORY = [user("a"), assistant("", "r1", "f"), tool(), assistant("A", "r2"), user("b"), assistant("B", "r3")]


def make(model: str, switches: dict[str, Any] | None = None, **framework: Any) -> Any:
    """A renderer of a model, with the template's switches and the framework's settings."""
    return create_renderer(load_tokenizer(model), chat_template_kwargs=switches, **framework)


def rendered(renderer: Any, messages: list[dict[str, Any]], **given: Any) -> RenderedTokens:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        tokens: RenderedTokens = renderer.render(messages, **given)
        return tokens


def text_of(renderer: Any, messages: list[dict[str, Any]], **given: Any) -> str:
    return str(renderer.decode(rendered(renderer, messages, **given).token_ids))


def sampled_texts(renderer: Any, messages: list[dict[str, Any]]) -> list[str]:
    """What the model samples of each assistant message."""
    tokens = rendered(renderer, messages)
    texts = []
    for index, message in enumerate(messages):
        if message["role"] == "assistant":
            labels = zip(tokens.token_ids, tokens.message_indices, tokens.sampled_mask, strict=True)
            texts.append(str(renderer.decode([one for one, owner, sampled in labels if owner == index and sampled])))
    return texts


def bridged(renderer: Any, messages: list[dict[str, Any]], completion: str, new: list[dict[str, Any]]) -> str:
    """The text of the extension, or the reason of a refusal; the same from the tokens and from their IDs."""
    prompt = rendered(renderer, messages, add_generation_prompt=True)
    ids = encode(GLM45 if renderer.family == "glm4.5" else GLM5, completion)
    results = []
    for given in (prompt, prompt.token_ids):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamageWarning)
            result = renderer.bridge(given, ids, new)
        if isinstance(result, BridgeRefusal):
            results.append(str(result.reason))
        else:
            assert result.token_ids[: len(prompt) + len(ids)] == [*prompt.token_ids, *ids]
            results.append(renderer.decode(result.extension_ids))
    assert results[0] == results[1]
    return str(results[0])


# The common properties --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_kit(model: str) -> None:
    check_renderer(
        make(model),
        profile=profile_of(model),
        reference=reference_for(model),
        examples=EXAMPLES,
        report=lambda _: None,
    )


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_public_case(case: dict[str, Any]) -> None:
    check_case(case)


# Choice and settings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "config"),
    [
        (GLM45, GLM45Config()),
        ("zai-org/GLM-4.5-Air", GLM45Config()),
        ("zai-org/GLM-4.6", GLM45Config()),
        (FLASH, GLM5Config(revision="4.7")),
        ("zai-org/GLM-4.7", GLM5Config(revision="4.7")),
        (GLM5, GLM5Config(revision="5")),
        (GLM51, GLM5Config(revision="5.1")),
        (GLM52, GLM5Config(revision="5.2")),
    ],
)
def test_models_resolve_by_template_and_by_name(model: str, config: Any) -> None:
    assert make(model, strict=True).config == config
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert create_renderer(load_tokenizer(model).backend_tokenizer, model=model).config == config


def test_47_has_the_tokenizer_of_45() -> None:
    renderer = make("zai-org/GLM-4.7")
    assert renderer.render_ids([user("")], add_generation_prompt=True) == encode(
        GLM45, "[gMASK]<sop><|user|><|assistant|><think>"
    )
    assert renderer.get_stop_token_ids() == encode(GLM45, "<|user|><|observation|><|endoftext|>")


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        (GLM45, {"chat_template_kwargs": {"clear_thinking": True}}),
        (GLM5, {"chat_template_kwargs": {"reasoning_effort": "high"}}),
        (GLM52, {"chat_template_kwargs": {"reasoning_effort": "low"}}),
        (GLM5, {"chat_template_kwargs": {"clear_thinking": True}, "thinking_retention": "all"}),
        (GLM5, {"chat_template_kwargs": KEEP, "thinking_retention": "tool_cycle"}),
    ],
)
def test_settings_that_do_nothing_or_contradict_are_errors(model: str, settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        create_renderer(load_tokenizer(model), **settings)


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        (GLM5, {"chat_template_kwargs": KEEP, "thinking_retention": "all"}),
        (GLM5, {"chat_template_kwargs": {"clear_thinking": True}, "thinking_retention": "tool_cycle"}),
    ],
)
def test_settings_that_agree_are_fine(model: str, settings: dict[str, Any]) -> None:
    create_renderer(load_tokenizer(model), **settings)


# Messages ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", ["", "not JSON", "[1]", "null", '"{}"'])
def test_arguments_that_are_no_object_are_an_error(arguments: str) -> None:
    call = {"function": {"name": "f", "arguments": arguments}}
    with pytest.raises(MessageError) as raised:
        make(GLM5).render([user(), {"role": "assistant", "content": "", "tool_calls": [call]}])
    assert (raised.value.message_index, raised.value.field) == (1, "tool_calls[0].function.arguments")


@pytest.mark.parametrize("model", [GLM51, GLM52])
def test_a_tool_whose_function_is_no_object_is_an_error(model: str) -> None:
    with pytest.raises(ToolsError):
        make(model).render([user()], tools=[{"type": "function", "function": "f"}])


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "tools",
    [
        [{"name": "f", "strict": True, "parameters": {"strict": True}}],
        [{"type": "function", "function": {"name": "f", "defer_loading": True}}],
        [{"type": "function", "function": {"name": "f", "defer_loading": False, 'a"b': [None, "é"]}}],
    ],
)
def test_unusual_tools(model: str, tools: list[dict[str, Any]]) -> None:
    assert text_of(make(model), [user()], tools=tools) == reference_text(model, [user()], tools)


@pytest.mark.parametrize("model", MODELS)
def test_no_tool_call_of_an_earlier_turn_leaks_reasoning_into_a_later_one(model: str) -> None:
    messages = [user(), assistant("x</think>a"), assistant("b"), user(), assistant("c", "r"), assistant("d")]
    for switches in ({}, OFF, KEEP, {**OFF, **KEEP}):
        known = {name: value for name, value in switches.items() if model != GLM45 or name != "clear_thinking"}
        assert text_of(make(model, known), messages) == reference_text(model, messages, kwargs=known)


@pytest.mark.parametrize(
    ("messages", "kind", "index"),
    [
        ([user(), {"role": "developer", "content": "x"}], "dropped_message", 1),
        ([user(), assistant("", None, "f"), tool(None)], "dropped_result", 2),
        ([user(), assistant("a</think>b</think>c")], "dropped_text", 1),
        ([user(), assistant("lost<think>r</think>c")], "dropped_text", 1),
    ],
)
def test_damage(messages: list[dict[str, Any]], kind: str, index: int) -> None:
    renderer = make(GLM5)
    with pytest.warns(DamageWarning, match=kind):
        tokens = renderer.render(messages)
    assert [(damage.kind, damage.message_indices) for damage in tokens.warnings] == [(kind, (index,))]
    with pytest.raises(DamageError):
        make(GLM5, on_damage="raise").render(messages)


def test_what_is_no_damage() -> None:
    messages = [user(), assistant("<think>r</think>c", None, "f"), tool(""), assistant("  stripped  ", " r ")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not make(GLM5).render(messages).warnings
        assert not make(GLM51).render([user(), assistant("", None, "f"), tool(None)]).warnings


def test_damage_in_a_bridge_counts_from_its_own_messages() -> None:
    renderer = make(GLM5)
    prompt = renderer.render([user(), user()], add_generation_prompt=True)
    completion = encode(GLM5, "x</think><tool_call>f</tool_call><|observation|>")
    with pytest.warns(DamageWarning):
        result = renderer.bridge(prompt, completion, [tool(), tool(None)])
    assert [damage.message_indices for damage in result.warnings] == [(1,)]


# What the model samples -------------------------------------------------------------------------------------------------


def test_the_next_marker_is_the_turns_stop() -> None:
    assert sampled_texts(make(GLM5), HISTORY) == [
        "<tool_call>f</tool_call><|observation|>",
        "A<|user|>",
        "r3</think>B",
    ]
    assert sampled_texts(make(GLM45), HISTORY) == [
        "\n<think></think>\n<tool_call>f\n</tool_call><|observation|>",
        "\n<think></think>\nA<|user|>",
        "\n<think>r3</think>\nB",
    ]
    tokens = make(GLM5).render(HISTORY)
    observation, query = (tokens.token_ids.index(one) for one in encode(GLM5, "<|observation|>b"))
    assert tokens.message_indices[observation] == 1
    assert tokens.message_indices[query - 1] == 3


def test_no_marker_of_a_role_that_the_model_does_not_stop_at() -> None:
    messages = [user(), assistant("A"), {"role": "system", "content": "s"}, user(), assistant("B"), assistant("C")]
    assert sampled_texts(make(GLM5), messages) == ["A", "B", "C"]


def test_thinking_off() -> None:
    assert sampled_texts(make(GLM45, OFF), HISTORY)[1:] == ["\nA<|user|>", "\n<think>r3</think>\nB"]
    assert sampled_texts(make(GLM5, OFF), HISTORY)[1:] == ["A<|user|>", "<think>r3</think>B"]
    assert sampled_texts(make(GLM52, OFF), [user(), assistant("A")]) == ["A"]


def test_nothink_is_the_templates() -> None:
    tokens = make(GLM45, OFF).render([user("hi"), user("hi/nothink")])
    [nothink] = encode(GLM45, "/nothink")
    places = [place for place, token_id in enumerate(tokens.token_ids) if token_id == nothink]
    assert [tokens.is_content[place] for place in places] == [False, True]
    sanitised = make(GLM45, OFF, sanitize_control_tokens=True).render([user("hi"), user("hi/nothink")])
    assert sanitised.token_ids.count(nothink) == 1


# Retention --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "policy", "kept"),
    [
        *((model, None, ["r3"]) for model in MODELS),
        *((model, "tool_cycle", ["r3"]) for model in MODELS),
        *((model, "all", ["r1", "r2", "r3"]) for model in MODELS),
    ],
)
def test_policies(model: str, policy: Any, kept: list[str]) -> None:
    text = text_of(make(model, thinking_retention=policy), HISTORY)
    assert [name for name in ("r1", "r2", "r3") if f"<think>{name}</think>" in text] == kept
    if policy == "all" and model != GLM45:  # then it is the template's own switch
        assert text == reference_text(model, HISTORY, kwargs=KEEP)
    elif policy != "all":
        assert text == reference_text(model, HISTORY)


@pytest.mark.parametrize("model", [FLASH, GLM5, GLM51, GLM52])
def test_a_new_question_keeps_the_bridge_without_clear_thinking(model: str) -> None:
    assert bridged(make(model), [user("a")], "r</think>A<|user|>", [user("b")]) == "retention"
    assert bridged(make(model, KEEP), [user("a")], "r</think>A<|user|>", [user("b")]) == "b<|assistant|><think>"
    assert (
        bridged(make(model, thinking_retention="tool_cycle"), [user("a")], "</think>A<|user|>", [user("b")])
        == "retention"
    )


# Bridges ----------------------------------------------------------------------------------------------------------------

CALLS = "x</think><tool_call>f</tool_call>"


@pytest.mark.parametrize(
    ("completion", "new", "expected"),
    [
        (f"{CALLS}<|observation|>", [tool("1"), tool("2")], "<tool_response>1</tool_response><tool_response>2</tool_response><|assistant|><think>"),
        ("</think><tool_call>f</tool_call><|observation|>", [user("stop")], "wrong_stop"),
        (f"{CALLS}<|user|>", [tool()], "wrong_stop"),
        (f"{CALLS}<|observation|>", [{"role": "system", "content": "s"}, tool()], "wrong_stop"),
        (f"{CALLS}<|observation|>", [{"role": "developer", "content": "s"}, tool()], "<tool_response>ok</tool_response><|assistant|><think>"),
        (f"{CALLS}<|observation|>", [{"role": "developer", "content": "s"}], "wrong_stop"),
        (f"{CALLS}<|endoftext|>", [tool()], "wrong_stop"),
        (CALLS, [tool()], "<|observation|><tool_response>ok</tool_response><|assistant|><think>"),
        (f"{CALLS} and", [{"role": "system", "content": "s"}], "<|system|>s<|assistant|><think>"),
        (f"{CALLS}<|observation|>more", [tool()], "tokens_after_close"),
        (f"{CALLS}<|observation|>", [assistant("x")], "assistant_message"),
        ("x</think><tool_call>f<arg_key>", [tool()], "open_tool_call"),
        ("x", [user()], "open_reasoning"),
        ("x<|user|>", [user()], "open_reasoning"),
        ("x<tool_call>f</tool_call><|observation|>", [tool()], "<tool_response>ok</tool_response><|assistant|><think>"),
    ],
)  # fmt: skip
def test_bridge(completion: str, new: list[dict[str, Any]], expected: str) -> None:
    assert bridged(make(GLM5), [user()], completion, new) == expected


@pytest.mark.parametrize("last", [user("b"), tool(), {"role": "system", "content": "s"}])
def test_a_prompt_without_an_open_turn(last: dict[str, Any]) -> None:
    prompt = make(GLM5).render([user(), assistant("A"), last])
    for given in (prompt, prompt.token_ids):
        assert make(GLM5).bridge(given, encode(GLM5, "</think>A<|user|>"), [user()]).reason == "unknown_history"


def test_end_of_text_is_kept_where_everything_is() -> None:
    renderer = make(GLM5, thinking_retention="all")
    assert bridged(renderer, [user()], "x</think>A<|endoftext|>", [user("b")]) == "<|user|>b<|assistant|><think>"


def test_exception_51_bridge_keeps_the_empty_think_block_of_a_turn_without_reasoning() -> None:
    """After the next question the template prints `</think>` alone."""
    assert bridged(make(GLM51), [user("a")], "</think>A<|user|>", [user("b")]) == "b<|assistant|><think>"
    extended = [user("a"), assistant("A"), user("b")]
    assert text_of(make(GLM51), extended) == "[gMASK]<sop><|user|>a<|assistant|></think>A<|user|>b"


@pytest.mark.parametrize("model", [FLASH, GLM5])
@pytest.mark.parametrize("space", ["", " \n"])
def test_exception_bridge_keeps_a_think_block_that_holds_only_white_space(model: str, space: str) -> None:
    """No message gives that prompt again: the template prints `</think>` alone, with `""` at once."""
    assert bridged(make(model), [user("a")], f"{space}</think>A<|user|>", [user("b")]) == "b<|assistant|><think>"
    assert text_of(make(model), [user("a"), assistant("A", "")]).endswith("<|assistant|></think>A")


@pytest.mark.parametrize("model", [GLM51, GLM52])
def test_white_space_is_reasoning_where_the_template_prints_it(model: str) -> None:
    assert bridged(make(model), [user("a")], "\n</think>A<|user|>", [user("b")]) == "retention"


def test_twelve_messages_are_one_stream() -> None:
    """Bridged turn by turn with tokens that no encoder would choose: nothing is ever encoded again."""
    renderer = make(GLM45)
    prompt = renderer.render([user("go")], add_generation_prompt=True)
    for number in range(6):
        text = f"\n<think>step {number}</think>\n<tool_call>f\n<arg_key>n</arg_key>\n<arg_value>{number}</arg_value>\n</tool_call>"
        special = renderer.tokenizer.special_tokens
        completion: list[int] = []
        for token_id in encode(GLM45, text):
            data = renderer.tokenizer.token_bytes(token_id)
            whole = token_id in special.values()
            completion += [token_id] if whole else [renderer.tokenizer.encode_ordinary(chr(byte))[0] for byte in data]
        completion.append(special["<|observation|>"])
        result = renderer.bridge(prompt, completion, [tool(f"result {number}")])
        assert isinstance(result, RenderedTokens)
        given = [*prompt.token_ids, *completion]
        assert result.token_ids[: len(given)] == given
        assert sum(result.sampled_mask) == sum(prompt.sampled_mask) + len(completion)
        prompt = result


# Replies ----------------------------------------------------------------------------------------------------------------


def test_a_reply_is_read_as_the_prompt_left_it() -> None:
    renderer = make(GLM5)
    for opening, reply in (
        ("<think>", "r</think>A"),
        ("</think>", "A"),
        ("<think></think>", "A"),
        ("", "<think>r</think>A"),
    ):
        parsed = renderer.parse_response(
            encode(GLM5, f"{reply}<|user|>"), prompt_ids=encode(GLM5, f"<|assistant|>{opening}")
        )
        assert (parsed.reasoning_content or "", parsed.content) == ("r" if "r" in reply else "", "A")
    assert renderer.parse_response(encode(GLM5, "r</think>A")).reasoning_content == "r"
    assert make(GLM5, OFF).parse_response(encode(GLM5, "A")).reasoning_content is None


@pytest.mark.parametrize(("text", "stop"), [("A", "<|user|>"), ("<tool_call>f</tool_call>", "<|observation|>")])
def test_a_stripped_stop_is_the_one_that_such_a_reply_has(text: str, stop: str) -> None:
    renderer = make(GLM5)
    assert renderer.parse_response(encode(GLM5, f"</think>{text}"), stopped=True).stop == stop
    assert renderer.parse_response(encode(GLM5, f"</think>{text}"), stopped=False).stop is None


def test_the_formats_line_feeds_are_nobodys() -> None:
    renderer = make(GLM45)
    parsed = renderer.parse_response(encode(GLM45, "\n<think>r\n</think>\n\nA\n\n<tool_call>f\n</tool_call>\n<|user|>"))
    assert (parsed.reasoning_content, parsed.content) == ("r\n", "\nA\n")
