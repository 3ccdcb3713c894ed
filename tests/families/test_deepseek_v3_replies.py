"""Replies of DeepSeek V3, R1 and V3.1: bridges over them, what each refusal needs, and parsing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from deepseek_support import (
    ASSISTANT,
    BEGIN,
    CALLS,
    CALLS_END,
    END,
    MODELS,
    OUTPUTS,
    OUTPUTS_END,
    QUESTION,
    R1,
    TOOL,
    USER,
    V3,
    V31,
    answer,
    bridged,
    call,
    calling,
    ids_of,
    make,
    output,
    printed,
    render,
    result,
    text_of,
)

pytestmark = pytest.mark.needs_assets

# Bridges ----------------------------------------------------------------------------------------------------------------

SECTION = f"{CALLS}{printed('f')}{CALLS_END}{END}"


@pytest.mark.parametrize("model", [V3, R1])
def test_exception_the_close_of_a_single_call(model: str) -> None:
    """V3's template writes none; what the model sampled stays."""
    start = "</think>\n\n" if model == R1 else ""
    tail = bridged(make(model), [QUESTION], start + SECTION, [result()])
    assert tail == f"{OUTPUTS}{output()}{OUTPUTS_END}"
    whole = text_of(make(model), [QUESTION, calling(call()), result()])
    assert whole.endswith(tail)
    assert (CALLS_END in whole) == (model == R1)


@pytest.mark.parametrize("model", [V3, R1])
def test_exception_a_second_round(model: str) -> None:
    """The templates write neither the close of the results before nor the opener; the results come without theirs."""
    messages = [QUESTION, calling(call()), result()]
    tail = bridged(make(model), messages, SECTION, [result("two")])
    line = "\n" if model == V3 else ""
    assert tail == f"{line}{output('two')}{OUTPUTS_END}"
    whole = text_of(make(model), [*messages, calling(call()), result("two")])
    assert whole.endswith(f"{output()}\n{printed('f')}{CALLS_END}{END}{tail}")


def test_exception_an_empty_think_block() -> None:
    """V3.1's template writes its end alone."""
    renderer = make(V31, {"thinking": True})
    assert bridged(renderer, [QUESTION], f"</think>a{END}", [QUESTION]) == f"{USER}q{ASSISTANT}<think>"
    assert text_of(renderer, [QUESTION, answer("a"), QUESTION]) == f"{BEGIN}{USER}q{ASSISTANT}</think>a{END}{USER}q"


@pytest.mark.parametrize("model", MODELS)
def test_a_rollout_of_rounds_is_one_stream(model: str) -> None:
    renderer = make(model)
    prompt = render(renderer, [QUESTION], add_generation_prompt=True)
    one = printed("f") if model != V31 else '<｜tool▁call▁begin｜>f<｜tool▁sep｜>{"x": 1}<｜tool▁call▁end｜>'
    tails = []
    for _ in range(5):
        completion = ids_of(renderer, f"{CALLS}{one}{CALLS_END}{END}")
        if model == R1 and not tails:
            completion = ids_of(renderer, "\n</think>\n\n") + completion
        following = renderer.bridge(prompt, completion, [result()])
        again = renderer.bridge(prompt.token_ids, completion, [result()])
        assert following.token_ids == [*prompt.token_ids, *completion, *following.extension_ids] == again.token_ids
        tails.append(renderer.decode(following.extension_ids))
        prompt = following
    later = {V3: "\n" + output() + OUTPUTS_END, R1: output() + OUTPUTS_END, V31: output()}[model]
    first = later if model == V31 else OUTPUTS + output() + OUTPUTS_END
    assert tails == [first, *[later] * 4]


@pytest.mark.parametrize("model", MODELS)
def test_refusals(model: str) -> None:
    renderer = make(model)
    start = "</think>" if model == R1 else ""
    system = {"role": "system", "content": "s"}
    assert bridged(renderer, [QUESTION], f"{start}a{END}", [system, QUESTION]) == "history_rewrite"
    assert bridged(renderer, [QUESTION], f"{start}a{END}", [{"role": "tool", "content": None}]) == "unsupported_message"
    assert bridged(renderer, [QUESTION], f"{start}a{END}x", [QUESTION]) == "tokens_after_close"
    assert bridged(renderer, [QUESTION], f"{start}{CALLS}", [QUESTION]) == "open_tool_call"
    assert bridged(renderer, [QUESTION], f"{start}{CALLS}<｜tool▁call▁begin｜>f", [QUESTION]) == "open_tool_call"
    assert bridged(renderer, [QUESTION], f"{start}a{END}", [answer("b")]) == "assistant_message"


@pytest.mark.parametrize("model", MODELS)
def test_a_prompt_must_open_the_turn(model: str) -> None:
    renderer = make(model)
    for messages in ([QUESTION], [QUESTION, answer("a"), QUESTION]):
        prompt = renderer.render(messages)
        for previous in (prompt, prompt.token_ids):
            assert renderer.bridge(previous, ids_of(renderer, f"a{END}"), [QUESTION]).reason == "unknown_history"


@pytest.mark.parametrize("model", MODELS)
def test_tools_do_not_matter_to_a_bridge_from_plain_ids(model: str) -> None:
    start = "</think>" if model == R1 else ""
    for tools in ([TOOL], [], None):
        assert bridged(make(model), [QUESTION], f"{start}a{END}", [QUESTION], tools=tools).startswith(USER)


@pytest.mark.parametrize("model", [V3, R1])
def test_results_marker_in_a_text_makes_the_history_unknown(model: str) -> None:
    renderer = make(model)
    prompt = render(renderer, [{"role": "user", "content": OUTPUTS}], add_generation_prompt=True)
    completion = ids_of(renderer, f"</think>a{END}" if model == R1 else f"a{END}")
    assert renderer.bridge(prompt.token_ids, completion, [result()]).reason == "unknown_history"
    assert renderer.decode(renderer.bridge(prompt, completion, [result()]).extension_ids).startswith(OUTPUTS)


# Parsing ----------------------------------------------------------------------------------------------------------------


def section(model: str, *arguments: str) -> str:
    """A section of calls of `f` with these arguments."""
    if model == V31:
        calls = [f"<｜tool▁call▁begin｜>f<｜tool▁sep｜>{text}<｜tool▁call▁end｜>" for text in arguments]
        return CALLS + "".join(calls) + CALLS_END + END
    form = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{}\n```<｜tool▁call▁end｜>"
    return CALLS + "\n".join([form.replace("{}", text) for text in arguments]) + CALLS_END + END


def parsed(model: str, completion: str, **asked: Any) -> Any:
    renderer = make(model, thinking_retention="all")
    prompt = ids_of(renderer, ASSISTANT + ("<think>\n" if asked.pop("thinks", False) else ""))
    return renderer.parse_response(ids_of(renderer, completion), prompt_ids=prompt, **asked)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"x": "line\nline\n\n  <b>&amp;</b> \t"},
        {"x": "```json\n{}\n```", "y": "\n```"},
        {"x": 2**70, "y": -0.5, "z": [None, True, {"k": "é\u2028"}]},
        {"x": "5", "y": 5},
        {"x": "spelled <think> and </think>"},
    ],
)
def test_arguments_come_back(model: str, arguments: dict[str, Any]) -> None:
    for indent in (None, 2):
        text = json.dumps(arguments, ensure_ascii=False, indent=indent)
        renderer = make(model)
        found = renderer.parse_response(
            [*ids_of(renderer, section(model, "\0").split("\0")[0]), *renderer.tokenizer.encode_ordinary(text),
             *ids_of(renderer, section(model, "\0").split("\0")[1])],
            prompt_ids=ids_of(renderer, ASSISTANT),
        )  # fmt: skip
        assert [(one.name, one.arguments, one.status) for one in found.tool_calls] == [("f", arguments, "ok")]
        assert found.tool_calls[0].arguments_text == text


@pytest.mark.parametrize("model", MODELS)
def test_one_bad_call_does_not_spoil_its_neighbours(model: str) -> None:
    bad = ['{"x": 1', "{'x': None}", '{"x": True}', '{"x": 1, "x": 2}', '{"x": NaN}', "[1]", "null", ""]
    found = parsed(model, "Look:" + section(model, '{"a": 1}', *bad, '{"b": 2}'))
    statuses = (
        ["invalid_json"] * 3 + ["duplicate_key", "non_finite_number"] + ["invalid_arguments"] * 2 + ["invalid_json"]
    )
    assert [str(one.status) for one in found.tool_calls] == ["ok", *statuses, "ok"]
    assert [one.arguments for one in found.valid_tool_calls] == [{"a": 1}, {"b": 2}]
    assert found.content == "Look:"
    assert found.tool_calls[1].raw.count("<｜tool▁call▁begin｜>") == 1


@pytest.mark.parametrize(
    ("model", "body", "status"),
    [
        (V3, "function<｜tool▁sep｜>f\n{}", "malformed"),
        (V3, "f\n```json\n{}\n```", "malformed"),
        (V3, "function<｜tool▁sep｜>f\n```json\n{}```", "malformed"),
        (V3, "function<｜tool▁sep｜>\n```json\n{}\n```", "missing_name"),
        (R1, "tool<｜tool▁sep｜>f\n```json\n{}\n```", "malformed"),
        (V31, "f{}", "malformed"),
        (V31, "<｜tool▁sep｜>{}", "missing_name"),
        (V31, 'f<｜tool▁sep｜>{"x": "<｜tool▁sep｜>"}', "ok"),
        (V3, 'function<｜tool▁sep｜>f\n```json\n{"x": "<｜tool▁sep｜>"}\n```', "ok"),
    ],
)
def test_calls_that_break_the_format(model: str, body: str, status: str) -> None:
    found = parsed(model, f"{CALLS}<｜tool▁call▁begin｜>{body}<｜tool▁call▁end｜>{CALLS_END}{END}")
    assert [(str(one.status), one.raw) for one in found.tool_calls] == [
        (status, f"<｜tool▁call▁begin｜>{body}<｜tool▁call▁end｜>")
    ]


@pytest.mark.parametrize("model", MODELS)
def test_cut_anywhere(model: str) -> None:
    renderer = make(model)
    ids = ids_of(renderer, "Look:" + section(model, '{"x": "a\\nb"}', "{}"))
    prompt = ids_of(renderer, ASSISTANT)
    for end in range(len(ids) + 1):
        found = renderer.parse_response(ids[:end], prompt_ids=prompt)
        assert [one.arguments for one in found.valid_tool_calls] == [{"x": "a\nb"}, {}][: len(found.valid_tool_calls)]
        assert len(found.tool_calls) - len(found.valid_tool_calls) <= 1
        assert found.stop == (END if end == len(ids) else None)
        assert bool(found.unclosed) == (
            CALLS in renderer.decode(ids[:end]) and CALLS_END not in renderer.decode(ids[:end])
        )


@pytest.mark.parametrize("model", [R1, V31])
def test_calls_and_reasoning(model: str) -> None:
    calls = section(model, "{}")
    found = parsed(model, f"r\n</think>\n\nc{calls}", thinks=True)
    assert (found.reasoning_content.strip(), found.content.strip(), len(found.valid_tool_calls)) == ("r", "c", 1)
    drafted = parsed(model, f"maybe {calls.removesuffix(END)} no\n</think>\n\nDone.{END}", thinks=True)
    assert (drafted.tool_calls, drafted.content.strip()) == ([], "Done.")
    assert "<｜tool▁sep｜>" in drafted.reasoning_content
    unclosed = parsed(model, f"now {calls}", thinks=True)
    assert (len(unclosed.valid_tool_calls), unclosed.reasoning_complete) == (1, False)
    cut = parsed(model, f"now {calls.removesuffix(END)}", thinks=True)
    assert (cut.tool_calls, cut.reasoning_complete, cut.content) == ([], False, "")


def test_v3_reads_reasoning_only_under_a_policy() -> None:
    """Its tokenizer has no such tokens: a policy that keeps reasoning writes the tags as text, and reads them so."""
    text = "<think>\nr\n</think>\n\na"
    renderer = make(V3)
    plain = renderer.parse_response(ids_of(renderer, text + END))
    assert (plain.content, plain.reasoning_content, plain.reasoning_complete) == (text, None, None)
    kept = parsed(V3, text + END)
    assert (kept.content, kept.reasoning_content, kept.reasoning_complete) == ("a", "r", True)


@pytest.mark.parametrize("model", MODELS)
def test_calls_are_streamed(model: str) -> None:
    """The name comes as soon as it is whole, the arguments as they come, and never a part of the closing fence."""
    renderer = make(model)
    stream = renderer.stream(prompt_ids=ids_of(renderer, ASSISTANT))
    text = '{"x": "``` and\\n``` and more"}'
    told, early = "", 0
    for token_id in ids_of(renderer, section(model, text)):
        for delta in stream.feed(token_id):
            assert delta.name in {None, "f"}
            told += delta.arguments or ""
        early += told not in {"", text}
    assert stream.finish().tool_calls[0].arguments_text == told == text
    assert early > 5
