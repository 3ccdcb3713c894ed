"""Kimi's replies: bridges over them, what each refusal needs, and parsing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kimi_support import (
    HEADER,
    INSTRUCT,
    K25,
    K26,
    MODELS,
    QUESTION,
    REASONING_MODELS,
    THINKING,
    TOOL,
    call,
    calling,
    ids_of,
    make,
    result,
)

from renderers import BridgeRefusal, DamageWarning

# Bridges ----------------------------------------------------------------------------------------------------------------

SECTION = "<|tool_calls_section_begin|>"
CALL = "<|tool_call_begin|>functions.f:{}<|tool_call_argument_begin|>{{}}<|tool_call_end|>"
CLOSE = "<|tool_calls_section_end|><|im_end|>"
PROMPTS = {INSTRUCT: HEADER, THINKING: HEADER, K25: HEADER + "<think>", K26: HEADER + "<think>"}
THOUGHT = {INSTRUCT: "", THINKING: "<think>r</think>", K25: "r</think>", K26: "r</think>"}
NO_THOUGHT = {INSTRUCT: "", THINKING: "<think></think>", K25: "</think>", K26: "</think>"}


def bridged(
    renderer: Any, completion: str, new_messages: list[dict[str, Any]], messages: Any = None, **given: Any
) -> str:
    """The text that a bridge appends, or the reason for which it is refused; alike from tokens and from plain IDs."""
    prompt = renderer.render(
        messages or [QUESTION], add_generation_prompt=True, tools=given.pop("prompt_tools", [TOOL])
    )
    ids = ids_of(renderer, completion)
    found = []
    for previous in (prompt, prompt.token_ids):
        one = renderer.bridge(previous, ids, new_messages, **given)
        if isinstance(one, BridgeRefusal):
            found.append(str(one.reason))
        else:
            assert one.token_ids[: len(prompt) + len(ids)] == [*prompt.token_ids, *ids]
            found.append(renderer.decode(one.extension_ids))
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize("model", MODELS)
def test_bridge_over_several_results(model: str) -> None:
    completion = THOUGHT[model] + SECTION + CALL.format(0) + CALL.format(1) + CLOSE
    expected = (
        "<|im_system|>tool<|im_middle|>## Return of functions.f:0\nx<|im_end|>"
        "<|im_system|>tool<|im_middle|>## Return of functions.f:1\ny<|im_end|>" + PROMPTS[model]
    )
    assert bridged(make(model), completion, [result("x"), result("y", "functions.f:1")]) == expected


@pytest.mark.parametrize("model", MODELS)
def test_bridge_keeps_a_sampled_id_of_any_form(model: str) -> None:
    completion = THOUGHT[model] + SECTION + CALL.format(0).replace("functions.f:0", "f:7") + CLOSE
    with pytest.warns(DamageWarning, match="foreign_tool_call_id"):
        tail = bridged(make(model), completion, [result("x", "f:7")])
    assert tail == f"<|im_system|>tool<|im_middle|>## Return of f:7\nx<|im_end|>{PROMPTS[model]}"


@pytest.mark.parametrize("model", MODELS)
def test_bridge_over_a_late_system_message(model: str) -> None:
    tail = bridged(make(model), f"{NO_THOUGHT[model]}a<|im_end|>", [{"role": "system", "content": "s"}, QUESTION])
    assert tail == (
        f"<|im_system|>system<|im_middle|>s<|im_end|><|im_user|>user<|im_middle|>q<|im_end|>{PROMPTS[model]}"
    )


@pytest.mark.parametrize("model", REASONING_MODELS)
def test_bridge_is_refused_where_an_answer_ends_the_reasoning(model: str) -> None:
    """Any message after the answer: the template prints it as history then."""
    completion = f"{THOUGHT[model]}a<|im_end|>"
    assert bridged(make(model), completion, [QUESTION]) == "retention"
    assert bridged(make(model), completion, [result("x")]) == "retention"
    in_cycle = [QUESTION, calling(call("functions.f:0"), reasoning_content="mid"), result("x")]
    assert bridged(make(model), f"{NO_THOUGHT[model]}a<|im_end|>", [QUESTION], in_cycle) == "retention"
    line_feed = THOUGHT[model].replace("r", "\n")
    assert bridged(make(model), f"{line_feed}a<|im_end|>", [QUESTION]) == "retention"


@pytest.mark.parametrize("model", REASONING_MODELS)
def test_policies_bridge_where_the_template_would_drop(model: str) -> None:
    completion, user = f"{THOUGHT[model]}a<|im_end|>", f"<|im_user|>user<|im_middle|>q<|im_end|>{PROMPTS[model]}"
    assert bridged(make(model, thinking_retention="all"), completion, [QUESTION]) == user
    cycle = make(model, thinking_retention="tool_cycle")
    assert bridged(cycle, completion, [QUESTION]) == "retention"
    system = user.replace("user", "system")
    assert bridged(cycle, completion, [{"role": "system", "content": "q"}]) == system


def test_k26_preserving_bridges_everything() -> None:
    renderer = make(K26, {"preserve_thinking": True})
    tail = bridged(renderer, "r</think>a<|im_end|>", [QUESTION])
    assert tail == f"<|im_user|>user<|im_middle|>q<|im_end|>{PROMPTS[K26]}"


@pytest.mark.parametrize("model", MODELS)
def test_end_of_sequence_as_the_stop(model: str) -> None:
    completion = f"{NO_THOUGHT[model]}a[EOS]"
    assert bridged(make(model), completion, [QUESTION]) == "wrong_stop"
    kept = bridged(make(model, thinking_retention="all"), completion, [QUESTION])
    assert kept == f"<|im_end|><|im_user|>user<|im_middle|>q<|im_end|>{PROMPTS[model]}"


@pytest.mark.parametrize("model", MODELS)
def test_bridge_after_a_cut_reply(model: str) -> None:
    renderer, start = make(model), NO_THOUGHT[model]
    end = f"<|im_end|><|im_user|>user<|im_middle|>q<|im_end|>{PROMPTS[model]}"
    assert bridged(renderer, f"{start}a", [QUESTION]) == end
    assert bridged(renderer, start + SECTION + CALL.format(0), [QUESTION]) == "<|tool_calls_section_end|>" + end
    assert bridged(renderer, start + SECTION + CALL.format(0)[:-20], [QUESTION]) == "open_tool_call"
    assert bridged(renderer, f"{start}a<|im_end|>b", [QUESTION]) == "tokens_after_close"
    if model != INSTRUCT:
        assert bridged(renderer, THOUGHT[model][: -len("</think>")], [QUESTION]) == "open_reasoning"


@pytest.mark.parametrize("model", MODELS)
def test_bridge_with_changed_tools(model: str) -> None:
    renderer, completion = make(model), f"{NO_THOUGHT[model]}a<|im_end|>"
    tail = f"<|im_user|>user<|im_middle|>q<|im_end|>{PROMPTS[model]}"
    other = {"type": "function", "function": {"name": "g"}}
    for prompt_tools in ([TOOL], []):
        for asked in (None, [TOOL], [], [other]):
            same = asked is None or asked == prompt_tools
            found = bridged(renderer, completion, [QUESTION], prompt_tools=prompt_tools, tools=asked)
            assert found == (tail if same else "history_rewrite")


# Parsing ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_calls_are_read_with_their_ids(model: str) -> None:
    renderer = make(model)
    arguments = '{"s": "5", "n": 123456789012345678901234567890, "t": "a\\n</think>", "u": "ü", "l": [1, {"k": null}]}'
    body = f"{THOUGHT[model]}text{SECTION}{CALL.format(0)}{CALL.format(1)}".replace("f:1", "fs.write-all:13")
    start, end = body.rsplit("{}", 1)
    ids = [*ids_of(renderer, start), *renderer.tokenizer.encode_ordinary(arguments), *ids_of(renderer, end + CLOSE)]
    parsed = renderer.parse_response(ids)
    assert parsed.content == "text"
    assert parsed.reasoning_content == (None if model == INSTRUCT else "r")
    assert parsed.reasoning_complete is (None if model == INSTRUCT else True)
    assert [(one.id, one.name) for one in parsed.tool_calls] == [
        ("functions.f:0", "f"),
        ("functions.fs.write-all:13", "fs.write-all"),
    ]
    assert parsed.tool_calls[1].arguments == json.loads(arguments)
    assert parsed.to_message()["tool_calls"][1]["function"]["arguments"] == arguments


def test_think_tokens_are_text_to_instruct() -> None:
    """It has no reasoning: what it samples between such tokens comes back as content, and renders to the same tokens."""
    renderer = make(INSTRUCT)
    ids = ids_of(renderer, "<think>r</think>a<|im_end|>")
    parsed = renderer.parse_response(ids)
    assert (parsed.content, parsed.reasoning_content) == ("<think>r</think>a", None)
    assert renderer.render_ids([QUESTION, parsed.to_message()])[-len(ids) :] == ids


@pytest.mark.parametrize("model", MODELS)
def test_truncated_everywhere(model: str) -> None:
    renderer = make(model)
    ids = ids_of(renderer, THOUGHT[model] + "text" + SECTION + CALL.format(0) + CALL.format(1) + CLOSE)
    closed = [place for place, one in enumerate(ids) if one == renderer.tokenizer.special_tokens["<|tool_call_end|>"]]
    for end in range(len(ids)):
        parsed = renderer.parse_response(ids[:end])
        assert len(parsed.valid_tool_calls) == sum(place < end for place in closed)
        assert parsed.stop is None
        assert "<|" not in parsed.content
