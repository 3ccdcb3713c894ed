"""Calls that are a whole reply: what is one, what is prose, what was cut; and what the official templates print."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any

import pytest
from byte_renderers import byte_renderer, ids, outcomes, parser
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from golden.profiles import LLAMA3
from renderers import DefaultRendererConfig, ParsedResponse, Region, create_renderer
from renderers.testing import Conversation, replies
from renderers.testing.checks import check_stream_equals_batch, joined_deltas
from renderers.testing.parse_checks import reply_tokens

END, MESSAGE_END, TAG = "<|eot_id|>", "<|eom_id|>", "<|python_tag|>"
CALL = '{"name": "f", "parameters": {"a": 1}}'
OTHER = '{"name": "g", "arguments": {}}'
MODELS = ("meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.2-3B-Instruct")
EXAMPLES = settings().max_examples // (1 if "FUZZ_EXAMPLES" in os.environ else 4)
RENDERER = byte_renderer((TAG, "<think>", "</think>"), (END, MESSAGE_END), tool_parser="llama3_json")
THINKING = byte_renderer(
    (TAG, "<think>", "</think>"), (END, MESSAGE_END), tool_parser="llama3_json", reasoning_parser="deepseek_r1"
)
parse, parse_thinking = parser(RENDERER), parser(THINKING)


@pytest.mark.parametrize("stop", [END, MESSAGE_END])
@pytest.mark.parametrize("tag", ["", TAG])
@pytest.mark.parametrize(
    ("text", "calls"),
    [
        (CALL, [("f", {"a": 1})]),
        (OTHER, [("g", {})]),
        (f"{CALL}; {OTHER}", [("f", {"a": 1}), ("g", {})]),
        (f"{CALL};{OTHER} ; {CALL}", [("f", {"a": 1}), ("g", {}), ("f", {"a": 1})]),
        (f"{CALL};", [("f", {"a": 1})]),
        (f" \n{CALL}\n", [("f", {"a": 1})]),
        (" " * 300 + CALL, [("f", {"a": 1})]),
        ('{"type": "function", "name": "f", "parameters": {}}', [("f", {})]),
        ('{"parameters": {"q": "}; {"}, "name": "f"}', [("f", {"q": "}; {"})]),
        ('{ "name" : "été" , "parameters" : { "x" : [ {} ] } }', [("été", {"x": [{}]})]),
        ('{"name": "f", "parameters": {"n": 123456789012345678901234567890}}', [("f", {"n": 123456789012345678901234567890})]),
    ],
)  # fmt: skip
def test_replies_that_are_calls(text: str, calls: list[Any], tag: str, stop: str) -> None:
    parsed = parse(tag + text + stop)
    assert outcomes(parsed) == [(name, arguments, "ok") for name, arguments in calls]
    assert (parsed.content, parsed.stop) == ("", stop)


@pytest.mark.parametrize(
    "text",
    [
        f"I call {CALL}",
        f"{CALL} is what I would call",
        f"{CALL}. {OTHER}",
        f"{CALL}\n{OTHER}",
        f"{CALL}; and then",
        f"{CALL}; {{x}} is a set",
        f"```json\n{CALL}\n```",
        f"[{CALL}]",
        f"{{{CALL}}}",
        f"\u00a0{CALL}",
        '{"answer": 4}',
        '{"name": "Bob", "age": 4}',
        '{"name": "Bob"}',
        '{"name": "", "parameters": {}}',
        '{"name": 5, "parameters": {}}',
        '{"name": "f", "parameters": "x"}',
        '{"name',
        "{",
        "{}",
        " \n",
        "",
    ],
)
def test_everything_else_is_text(text: str) -> None:
    parsed = parse(text + END)
    assert (parsed.content, parsed.tool_calls) == (text, [])


@pytest.mark.parametrize("text", ["The answer", '{"answer": 4', f"{CALL} is", f"{CALL};x", "\n{x"])
def test_what_cannot_become_a_call_is_streamed(text: str) -> None:
    stream = RENDERER.stream()
    assert joined_deltas(stream.feed(ids(RENDERER, text)))["content"] == text


def test_what_may_be_a_call_is_held_back() -> None:
    stream = RENDERER.stream()
    for token in ids(RENDERER, f"{CALL}; {OTHER}"):
        assert stream.feed(token) == []
    assert [delta.name for delta in stream.feed(ids(RENDERER, END)) if delta.name] == ["f", "g"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"name": "f", "parameters": {"a": True}}', [("f", None, "invalid_json")]),
        ('{"name": "f", "parameters": {"a": 1}', [("f", None, "invalid_json")]),
        ('{"name": "f", "parameters": {"a": 1, "a": 2}}', [("f", None, "duplicate_key")]),
        ('{"name": "f", "parameters": {"a": NaN}}', [("f", None, "non_finite_number")]),
        ('{"name": "f", "parameters": {}, "arguments": {}}', [("f", None, "duplicate_key")]),
        (f'{CALL}; {{"name": "g", "parameters": {{"x": y}}}}', [("f", {"a": 1}, "ok"), ("g", None, "invalid_json")]),
        (f"{CALL}; {OTHER} and", [("f", {"a": 1}, "ok"), ("g", None, "malformed")]),
    ],
)  # fmt: skip
def test_what_begins_as_a_call_and_is_malformed(text: str, expected: list[Any]) -> None:
    parsed = parse(text + END)
    assert outcomes(parsed) == expected
    assert parsed.content == ""
    assert "; ".join(call.raw for call in parsed.tool_calls) == text
    assert outcomes(parse(TAG + text + END)) == expected


def test_a_reply_that_was_cut_is_text() -> None:
    for end in range(len(CALL) + 1):
        parsed = parse(CALL[:end], step=7)
        assert (parsed.content, parsed.tool_calls, parsed.stop) == (CALL[:end], [], None)


def test_the_engines_word_ends_a_turn() -> None:
    assert outcomes(parse(CALL, stopped=True)) == [("f", {"a": 1}, "ok")]
    assert outcomes(parse(TAG + CALL, stopped=True)) == [("f", {"a": 1}, "ok")]
    assert parse(CALL, stopped=False).content == CALL


def test_after_its_tag_a_cut_call_is_incomplete() -> None:
    for end in range(len(CALL) + 1):
        parsed = parse(TAG + CALL[:end], step=7)
        assert [call.status.value for call in parsed.tool_calls] == ["incomplete"]
        assert parsed.tool_calls[0].raw == TAG + CALL[:end]
        assert parsed.content == ""


def test_text_before_the_tag_stays_text() -> None:
    parsed = parse(f"{CALL} so\n{TAG}{OTHER}{MESSAGE_END}")
    assert (parsed.content, outcomes(parsed)) == (f"{CALL} so\n", [("g", {}, "ok")])


def test_each_tag_begins_calls() -> None:
    assert outcomes(parse(f"{TAG}{CALL}{TAG}{OTHER}{END}")) == [("f", {"a": 1}, "ok"), ("g", {}, "ok")]
    assert outcomes(parse(f"{TAG}{CALL}{TAG}{OTHER}")) == [("f", {"a": 1}, "ok"), ("g", None, "incomplete")]


def test_the_tag_may_be_plain_text() -> None:
    parsed = parser(byte_renderer((), (END,), tool_parser="llama3_json"))(f"{TAG}{CALL}{END}")
    assert outcomes(parsed) == [("f", {"a": 1}, "ok")]


@pytest.mark.parametrize(
    ("text", "name", "arguments", "status"),
    [
        ('brave_search.call(query="Ulm")', "brave_search", {"query": "Ulm"}, "ok"),
        ('wolfram_alpha.call(query="a "b", c", unit="")', "wolfram_alpha", {"query": 'a "b", c', "unit": ""}, "ok"),
        ("now.call()", "now", {}, "ok"),
        ('a.b.call(x="1")', "a.b", {"x": "1"}, "ok"),
        ('f.call(x="line\nfeed \\n")', "f", {"x": "line\nfeed \\n"}, "ok"),
        ("f.call(x=1)", "f", None, "malformed"),
        ('f.call(x="1", x="2")', "f", None, "duplicate_key"),
        ('f.call(x="1"', "", None, "invalid_json"),
        ("print(1)", "", None, "invalid_json"),
        ("", "", None, "invalid_json"),
    ],
)
def test_calls_of_built_in_tools(text: str, name: str, arguments: Any, status: str) -> None:
    parsed = parse(TAG + text + MESSAGE_END)
    assert outcomes(parsed) == [(name, arguments, status)]
    assert parsed.tool_calls[0].raw == TAG + text
    assert outcomes(parse(TAG + text))[0][1:] == (None, "incomplete")


def test_the_answer_begins_after_the_reasoning() -> None:
    parsed = parse_thinking(f"I call {CALL}\n</think>\n\n{CALL}{END}", prompt="<think>\n")
    assert (parsed.reasoning_content, outcomes(parsed)) == (f"I call {CALL}", [("f", {"a": 1}, "ok")])
    regions = [span.region for span in parsed.spans]
    assert regions == [Region.REASONING, Region.STRUCTURE, Region.TOOL_CALL, Region.STRUCTURE]


@pytest.mark.parametrize("text", [CALL, f"{CALL}\n", f"{CALL} <think>"])
def test_a_call_in_reasoning_that_does_not_close_is_reasoning(text: str) -> None:
    parsed = parse_thinking(text + END, prompt="<think>\n")
    assert (parsed.content, parsed.tool_calls, parsed.reasoning_complete) == ("", [], False)


def test_a_tagged_call_ends_reasoning_that_does_not_close() -> None:
    parsed = parse_thinking(f"so{TAG}{CALL}{END}", prompt="<think>\n")
    assert (parsed.reasoning_content, outcomes(parsed)) == ("so", [("f", {"a": 1}, "ok")])
    assert parse_thinking(f"so{TAG}{CALL}", prompt="<think>\n").tool_calls == []
    assert parse_thinking(f"so{TAG}{CALL}</think>no{END}", prompt="<think>\n").tool_calls == []


@pytest.mark.parametrize(
    ("prompt", "calls"), [("<think>x</think>So: ", 0), ("<think>x</think>\n\n", 1), (f"<think>x</think>{CALL}{END}", 1)]
)
def test_an_answer_that_the_prompt_began_is_text(prompt: str, calls: int) -> None:
    parsed = parse_thinking(CALL + END, prompt=prompt)
    assert (len(parsed.tool_calls), parsed.content) == (calls, "" if calls else CALL)


@pytest.mark.parametrize("piece", [f"{CALL};", '{"name": "f", "parameters": {"a": ', "{};", " ", "\n{", '"', 'x="1", '])
@pytest.mark.parametrize("start", ["", TAG, f"{CALL};", f'{TAG}f.call(x="'])
def test_time_is_linear(start: str, piece: str) -> None:
    def seconds(count: int) -> float:
        sampled = ids(RENDERER, start) + ids(RENDERER, piece) * count + ids(RENDERER, END)
        begin = time.process_time()
        RENDERER.parse_response(sampled)
        return time.process_time() - begin

    few, many = (min(seconds(count), seconds(count)) for count in (100, 1000))
    assert many < 40 * max(few, 0.002)


FRAGMENTS = (
    CALL,
    OTHER,
    "; ",
    ";",
    " ",
    "\n",
    "{",
    "}",
    '{"name": "f"',
    TAG,
    "<think>",
    "</think>",
    "x",
    END,
    ".call(",
)


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12), st.booleans())
def test_any_order_of_pieces(fragments: list[str], thinking: bool) -> None:
    text = "".join(fragments)
    parsed = (parse_thinking if thinking else parse)(text, prompt="<think>\n" if thinking else None, step=5)
    for call in parsed.tool_calls:
        assert call.raw in text
        assert call.status.value != "ok" or parsed.stop or TAG in text


@pytest.fixture(scope="module", params=MODELS)
def official(request: Any, official_tokenizer: Callable[[str], Any]) -> Any:
    config = DefaultRendererConfig(tool_parser="llama3_json", stop_tokens=(END, MESSAGE_END))
    return create_renderer(official_tokenizer(request.param), config)


@pytest.mark.needs_assets
@settings(max_examples=EXAMPLES)
@given(replies(LLAMA3))
def test_what_the_template_prints_comes_back(official: Any, case: tuple[Conversation, dict[str, Any]]) -> None:
    prompt, message = case
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    assume(functions or not (message.get("content") or "").lstrip().startswith('{"name"'))  # then it is a call
    tokens = reply_tokens(official, prompt, message)
    assert tokens is not None
    parsed: ParsedResponse = check_stream_equals_batch(
        official, tokens[1], (), prompt_ids=tokens[0], tools=prompt.tools
    )
    assert [(call.name, json.dumps(call.arguments)) for call in parsed.valid_tool_calls] == [
        (function["name"], json.dumps(function["arguments"])) for function in functions
    ]
    assert parsed.content == ("" if functions else (message.get("content") or "").strip())


@pytest.mark.needs_assets
def test_a_built_in_tool_as_the_template_prints_it(official_tokenizer: Callable[[str], Any]) -> None:
    builtin = {"builtin_tools": ["brave_search"]}
    config = DefaultRendererConfig(tool_parser="llama3_json", stop_tokens=(END, MESSAGE_END), template_kwargs=builtin)
    renderer = create_renderer(official_tokenizer(MODELS[0]), config)
    question = {"role": "user", "content": "Where?"}
    function = {"name": "brave_search", "arguments": {"query": 'the "Ulmer Münster"', "n": "3"}}
    message = {"role": "assistant", "tool_calls": [{"type": "function", "function": function}]}
    prompt = renderer.render([question], add_generation_prompt=True).token_ids
    whole = renderer.render([question, message]).token_ids
    parsed = renderer.parse_response(whole[len(prompt) :], prompt_ids=prompt)
    assert outcomes(parsed) == [("brave_search", function["arguments"], "ok")]
    assert parsed.stop == MESSAGE_END
