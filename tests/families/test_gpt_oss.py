"""gpt-oss under both references: the kit, the recorded vectors, the public cases, and what is Harmony's own."""

from __future__ import annotations

import json
import pickle
import warnings
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from hypothesis import settings
from public_cases import cases, check_case

from families.gpt_oss import GptOssConfig
from golden.harmony_library import HAS_LIBRARY
from golden.profiles import GPT_OSS_HARMONY, GPT_OSS_TEMPLATE
from golden.reference import load_tokenizer, reference_ids, vectors
from renderers import (
    BridgeRefusal,
    ConfigError,
    DamageError,
    DamageWarning,
    MessageError,
    TokenizerError,
    create_renderer,
)
from renderers.testing import Conversation
from renderers.testing.suite import check_renderer

MODEL = "openai/gpt-oss-20b"
TEMPLATE = {"reference": "template", "conversation_start_date": "2025-06-28"}
FIRST_FINAL = {"drop_analysis": "before_first_final"}
QUESTION = {"role": "user", "content": "q"}
TOOL = {
    "type": "function",
    "function": {
        "name": "f",
        "description": "d",
        "parameters": {"type": "object", "properties": {"x": {"type": "string"}}},
    },
}
USER = "<|start|>user<|message|>q<|end|>"
ANALYSIS = "<|start|>assistant<|channel|>analysis<|message|>r<|end|>"
CALL = "<|start|>assistant to=functions.f<|channel|>commentary <|constrain|>json<|message|>{}<|call|>"
RESULT = "<|start|>functions.f to=assistant<|channel|>commentary<|message|>x<|end|>"


def make(switches: dict[str, Any] | None = None, **framework: Any) -> Any:
    return create_renderer(load_tokenizer(MODEL), chat_template_kwargs=switches, **framework)


def call(name: str = "f", call_id: str | None = "c1", arguments: Any = None) -> dict[str, Any]:
    made = {"type": "function", "function": {"name": name, "arguments": {} if arguments is None else arguments}}
    return made if call_id is None else {"id": call_id, **made}


def calling(*calls: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "", "tool_calls": list(calls), **fields}


def answer(content: str = "a", reasoning: str | None = "r") -> dict[str, Any]:
    return {"role": "assistant", "content": content, "reasoning_content": reasoning}


def result(content: str = "x", call_id: str | None = "c1", **fields: Any) -> dict[str, Any]:
    return {"role": "tool", "content": content, "tool_call_id": call_id, **fields}


def text_of(renderer: Any, messages: list[dict[str, Any]], **given: Any) -> str:
    """The text after the system message."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        whole = str(renderer.decode(renderer.render_ids(messages, **given)))
    return whole.partition("<|end|>")[2]


def ids_of(text: str) -> list[int]:
    """Special tokens where they are spelled."""
    return list(load_tokenizer(MODEL).backend_tokenizer.encode(text, add_special_tokens=False).ids)


def bridged(
    renderer: Any, messages: list[dict[str, Any]], completion: str, new: list[dict[str, Any]], **given: Any
) -> str:
    """What the bridge appends, or the reason of its refusal; the same from plain IDs."""
    prompt = renderer.render(messages, add_generation_prompt=True, **given)
    ids = ids_of(completion)
    found = renderer.bridge(prompt, ids, new, **given)
    again = renderer.bridge(prompt.token_ids, ids, new, **given)
    if isinstance(found, BridgeRefusal):
        assert isinstance(again, BridgeRefusal)
        return str(found.reason)
    assert isinstance(again, BridgeRefusal) or again.token_ids == found.token_ids
    return str(renderer.decode(found.extension_ids))


# The common properties --------------------------------------------------------------------------------------------------


def reference_for(name: str) -> Callable[[Conversation], list[int]]:
    def reference(conversation: Conversation) -> list[int]:
        kwargs = {**conversation.kwargs, "reference": name}
        return reference_ids(
            MODEL, conversation.messages, conversation.tools, conversation.add_generation_prompt, kwargs
        )

    return reference


@pytest.mark.parametrize(
    ("name", "switches", "profile"), [("harmony", {}, GPT_OSS_HARMONY), ("template", TEMPLATE, GPT_OSS_TEMPLATE)]
)
def test_kit(name: str, switches: dict[str, Any], profile: Any) -> None:
    if name == "harmony" and not HAS_LIBRARY:
        pytest.skip("the package openai-harmony is not installed")
    examples = settings().max_examples
    check_renderer(
        make(switches), profile=profile, reference=reference_for(name), examples=examples, report=lambda _: None
    )


@pytest.mark.parametrize("rule", ["before_last_final", "before_first_final"])
def test_vectors(rule: str) -> None:
    renderers: dict[str, Any] = {}
    recorded = vectors("gpt-oss-harmony")
    assert len(recorded) == 250
    for one in recorded:
        kwargs = {**one["kwargs"], "drop_analysis": rule}
        renderer = renderers.setdefault(json.dumps(kwargs), make(kwargs))
        tokens = renderer.render(
            one["messages"], tools=one["tools"], add_generation_prompt=one["add_generation_prompt"]
        )
        last_final = one.get("token_ids_last_final", one["token_ids"])
        assert tokens.token_ids == (last_final if rule == "before_last_final" else one["token_ids"]), one["id"]


@pytest.mark.parametrize("case", cases(["gpt-oss"]), ids=lambda case: case["id"])
def test_public_case(case: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        check_case(case)


# Resolution and settings ------------------------------------------------------------------------------------------------


def test_resolution(official_tokenizer: Callable[[str], Any]) -> None:
    assert make().config == GptOssConfig()
    bare = official_tokenizer(MODEL).backend_tokenizer
    assert create_renderer(bare, model="openai/gpt-oss-120b").family == "gpt-oss"


def test_missing_special_tokens_are_named(official_tokenizer: Callable[[str], Any]) -> None:
    with pytest.raises(TokenizerError, match=r"<\|channel\|>"):
        create_renderer(official_tokenizer("Qwen/Qwen3-8B"), GptOssConfig())


@pytest.mark.parametrize(
    "setting",
    [
        {"reference": "template"},
        {**TEMPLATE, "drop_analysis": "never"},
        {"drop_analysis": "never", "thinking_retention": "tool_cycle"},
        {"drop_analysis": "before_first_final", "thinking_retention": "all"},
        {"conversation_start_date": "28 June"},
        {"reasoning_effort": "extreme"},
        {"enable_thinking": False},
    ],
)
def test_contradictory_settings(setting: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        GptOssConfig.create(setting)


def test_dates_come_from_the_config_alone() -> None:
    assert "Current date" not in make().decode(make().render_ids([QUESTION]))
    config = GptOssConfig(conversation_start_date="today")
    assert config.conversation_start_date == date.today().isoformat()  # noqa: DTZ011 - as the config does
    assert pickle.loads(pickle.dumps(config)) == config  # noqa: S301 - our own bytes


def test_effort_identity_and_builtin_tools() -> None:
    switches = {"reasoning_effort": "high", "model_identity": "You are M.", "builtin_tools": ["python"]}
    text = make(switches).decode(make(switches).render_ids([QUESTION]))
    assert text.startswith(
        "<|start|>system<|message|>You are M.\nKnowledge cutoff: 2024-06\n\nReasoning: high\n\n# Tools\n\n## python\n"
    )


# What is written --------------------------------------------------------------------------------------------------------


def test_only_the_role_is_prefilled() -> None:
    renderer = make()
    tokens = renderer.render([QUESTION, calling(call(), reasoning_content="r", content="Look."), result()])
    sampled = [one for one, sampled in zip(tokens.token_ids, tokens.sampled_mask, strict=True) if sampled]
    preamble = "<|start|>assistant<|channel|>commentary<|message|>Look.<|end|>"
    assert renderer.decode(sampled) == (ANALYSIS + preamble + CALL).removeprefix("<|start|>assistant")


def test_a_second_call_is_a_turn_that_no_reply_has() -> None:
    """Sampling stops at the first `<|call|>`: what follows of the message is context."""
    renderer = make()
    tokens = renderer.render([QUESTION, calling(call(), call("g", "c2"))])
    second = tokens.token_ids.index(renderer.tokenizer.special_tokens["<|call|>"]) + 1
    assert tokens.sampled_mask[second - 1]
    assert not any(tokens.sampled_mask[second:])
    assert set(tokens.message_indices[second:]) == {1}


def test_instructions_are_message_0_and_tools_are_nobodys() -> None:
    renderer = make()
    tokens = renderer.render([{"role": "system", "content": "Be brief."}, QUESTION], tools=[TOOL])
    own = [one for one, index in zip(tokens.token_ids, tokens.message_indices, strict=True) if index == 0]
    assert renderer.decode(own) == "<|start|>developer<|message|># Instructions\n\nBe brief.\n\n"


def test_the_last_answer_keeps_its_analysis_until_something_follows() -> None:
    renderer = make()
    final = "<|start|>assistant<|channel|>final<|message|>a"
    assert text_of(renderer, [QUESTION, answer()]) == f"{USER}{ANALYSIS}{final}<|return|>"
    assert text_of(renderer, [QUESTION, answer(), QUESTION]) == f"{USER}{final}<|end|>{USER}"
    assert text_of(renderer, [QUESTION, answer()], add_generation_prompt=True).startswith(f"{USER}{final}<|end|>")
    assert text_of(make(FIRST_FINAL), [QUESTION, answer()]) == f"{USER}{final}<|return|>"


def test_prefill() -> None:
    renderer = make()
    assert text_of(renderer, [QUESTION, answer()], continue_final_message=True).endswith("<|message|>a")
    prompt = renderer.render([QUESTION, answer("The", None)], continue_final_message=True)
    parsed = renderer.parse_response(ids_of(" end.<|return|>"), prompt_ids=prompt)
    assert (parsed.content, parsed.stop) == (" end.", "<|return|>")


@pytest.mark.parametrize(
    ("message", "author"),
    [
        (result(name="g"), "functions.g"),
        (result(call_id="c1"), "functions.f"),
        (result(call_id="c2"), "functions.g"),
        (result(call_id=None), "functions.f"),
        (result(call_id="c0"), "functions.earlier"),
    ],
)
def test_results_find_their_tool(message: dict[str, Any], author: str) -> None:
    messages = [
        QUESTION,
        calling(call("earlier", "c0")),
        result(call_id="c0"),
        calling(call(), call("g", "c2")),
        message,
    ]
    assert text_of(make(), messages).endswith(f"<|start|>{author} to=assistant<|channel|>commentary<|message|>x<|end|>")


@pytest.mark.parametrize("switches", [{}, TEMPLATE])
def test_orphan_results_are_an_error(switches: dict[str, Any]) -> None:
    with pytest.raises(MessageError, match=r"messages\[1\].*tool_call_id"):
        make(switches).render([QUESTION, result()])


def test_harmony_encodes_every_text_as_text() -> None:
    renderer = make()
    asked = [{"role": "user", "content": "What is <|end|>?"}]
    end = renderer.tokenizer.special_tokens["<|end|>"]
    assert renderer.render_ids(asked) == make(sanitize_control_tokens=True).render_ids(asked)
    assert renderer.render_ids(asked).count(end) == 2
    assert make(TEMPLATE).render_ids(asked).count(end) == 3
    assert make(TEMPLATE, sanitize_control_tokens=True).render_ids(asked).count(end) == 2


# Damage -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("switches", "messages", "kind", "index"),
    [
        ({}, [QUESTION, {"role": "system", "content": "late"}], "dropped_message", 1),
        (TEMPLATE, [QUESTION, calling(call(), call("g", "c2"))], "dropped_calls", 1),
        (TEMPLATE, [QUESTION, calling(call(), content="Look.")], "content_as_reasoning", 1),
        (TEMPLATE, [QUESTION, calling(call(), call("g", "c2")), result(call_id="c2")], "misattributed_result", 2),
    ],
)
def test_damage(switches: dict[str, Any], messages: list[dict[str, Any]], kind: str, index: int) -> None:
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        found = make(switches).render(messages).warnings
    assert (kind, (index,)) in [(one.kind, one.message_indices) for one in found]
    with pytest.raises(DamageError):
        make(switches, on_damage="raise").render(messages)


@pytest.mark.parametrize(
    "message",
    [
        calling(call(), content="a", reasoning_content="r"),
        answer("<|channel|>final<|message|>a", None),
        answer("a", "<|channel|>analysis<|message|>r"),
    ],
)
def test_what_the_template_refuses(message: dict[str, Any]) -> None:
    with pytest.raises(MessageError, match=r"messages\[1\]"):
        make(TEMPLATE).render([QUESTION, message])
    assert make().render([QUESTION, message])


# Bridges and retention --------------------------------------------------------------------------------------------------

FINAL = "<|channel|>final<|message|>a"
THOUGHT = "<|channel|>analysis<|message|>r<|end|><|start|>assistant"


def test_return_is_no_history() -> None:
    assert bridged(make(), [QUESTION], f"{FINAL}<|return|>", [QUESTION]) == "wrong_stop"
    assert bridged(make(), [QUESTION], f"{FINAL}<|endoftext|>", [QUESTION]) == "wrong_stop"
    assert bridged(make(), [QUESTION], FINAL, [QUESTION]) == f"<|end|>{USER}<|start|>assistant"
    assert bridged(make(), [QUESTION], f"{FINAL}<|call|>", [QUESTION]) == "wrong_stop"


def test_all_keeps_return_where_a_render_writes_end() -> None:
    """The declared exception: what was sampled stays."""
    renderer = make(thinking_retention="all")
    assert bridged(renderer, [QUESTION], f"{THOUGHT}{FINAL}<|return|>", [QUESTION]) == f"{USER}<|start|>assistant"
    assert bridged(renderer, [QUESTION], f"{FINAL}<|endoftext|>", [QUESTION]) == f"<|end|>{USER}<|start|>assistant"
    kept = f"{USER}{ANALYSIS}<|start|>assistant<|channel|>final<|message|>a<|end|>{USER}"
    assert text_of(renderer, [QUESTION, answer(), QUESTION]) == kept


def test_all_keeps_an_empty_analysis_that_the_template_shows_at_the_end_alone() -> None:
    """The declared exception: the last answer's empty reasoning is an empty message, and in a history it is nothing."""
    renderer = make(TEMPLATE, thinking_retention="all")
    empty = THOUGHT.replace("<|message|>r", "<|message|>")
    assert text_of(renderer, [QUESTION, answer("a", "")]) == f"{USER}<|start|>assistant{empty}{FINAL}<|return|>"
    assert bridged(renderer, [QUESTION], f"{empty}{FINAL}<|return|>", [QUESTION]) == f"{USER}<|start|>assistant"
    kept = f"{USER}<|start|>assistant{FINAL}<|end|>{USER}"
    assert text_of(renderer, [QUESTION, answer("a", ""), QUESTION]) == kept


def test_tool_cycle_keeps_an_answers_analysis_until_the_next_question() -> None:
    renderer = make(thinking_retention="tool_cycle")
    messages = [QUESTION, calling(call(), reasoning_content="r"), result(), answer()]
    assert text_of(renderer, messages).count(ANALYSIS) == 2
    assert text_of(renderer, [*messages, QUESTION]).count(ANALYSIS) == 0
    assert bridged(renderer, [QUESTION], f"{THOUGHT}{FINAL}", [QUESTION]) == "retention"


def test_first_final_rule_lets_reasoning_come_back() -> None:
    """Harmony prints reasoning before the first answer again while a later call is open: nothing can be extended then."""
    renderer = make(FIRST_FINAL)
    asked = [QUESTION, answer(), QUESTION]
    call_text = CALL.removeprefix("<|start|>assistant")
    prompt = renderer.render(asked, tools=[TOOL], add_generation_prompt=True)
    refusal = renderer.bridge(prompt, ids_of(call_text), [result()])
    assert isinstance(refusal, BridgeRefusal)
    assert refusal.reason == "retention"
    from_ids = renderer.bridge(prompt.token_ids, ids_of(call_text), [result()])
    assert isinstance(from_ids, BridgeRefusal)
    assert from_ids.reason == "unknown_history"
    assert text_of(renderer, [*asked, calling(call()), result()]).startswith(USER + ANALYSIS)
    without = [QUESTION, answer(reasoning=None), QUESTION]
    prompt = renderer.render(without, tools=[TOOL], add_generation_prompt=True)
    extended = renderer.bridge(prompt, ids_of(call_text), [result()])
    assert not isinstance(extended, BridgeRefusal)


@pytest.mark.parametrize(
    ("cut", "reason"),
    [
        (" to=functions.f", "open_tool_call"),
        ("<|channel|>analysis", "open_reasoning"),
        ("<|channel|>final", "open_tool_call"),
        ("<|channel|>analysis<|message|>r<|end|>", "open_tool_call"),
        ("<|channel|>analysis<|message|>r", "open_reasoning"),
        (CALL.removeprefix("<|start|>assistant").removesuffix("<|call|>"), "open_tool_call"),
    ],
)
def test_a_cut_message_is_not_closed(cut: str, reason: str) -> None:
    assert bridged(make(), [QUESTION], cut, [result()]) == reason


def test_results_of_a_sampled_call() -> None:
    renderer, completion = make(), CALL.removeprefix("<|start|>assistant")
    for message in (result(call_id="any"), result(call_id=None), result(call_id="call_0"), result(name="f")):
        assert bridged(renderer, [QUESTION], completion, [message], tools=[TOOL]) == f"{RESULT}<|start|>assistant"
    assert bridged(renderer, [QUESTION], completion, [result(), result(call_id="other")]) == "unsupported_message"


def test_twelve_messages_are_one_stream() -> None:
    renderer = make(thinking_retention="all")
    tokens = renderer.render([QUESTION], tools=[TOOL], add_generation_prompt=True)
    spelled = '<|channel|>analysis to=functions.f code<|message|>{"x":"1"}<|call|>'
    for completion, new in [(THOUGHT + spelled, result()), (THOUGHT + FINAL + "<|return|>", QUESTION)] * 3:
        ids = ids_of(completion)
        longer = renderer.bridge(tokens, ids, [new], tools=[TOOL])
        assert longer.token_ids[: len(tokens) + len(ids)] == tokens.token_ids + ids
        assert longer.sampled_mask[len(tokens) : len(tokens) + len(ids)] == [True] * len(ids)
        tokens = longer
