"""Blocks of calls between plain tags: typed, quoting their own tags, malformed, cut, neighbours; and MiniMax's template."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any

import pytest
from byte_renderers import byte_renderer, ids, outcomes, parser
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from golden.profiles import MINIMAX_M2
from renderers import DefaultRendererConfig, create_renderer
from renderers.testing import Conversation, replies
from renderers.testing.checks import check_stream_equals_batch
from renderers.testing.parse_checks import reply_tokens

OPEN, CLOSE, STOP = "<minimax:tool_call>", "</minimax:tool_call>", "[e~["
MODEL = "MiniMaxAI/MiniMax-M2.7"
EXAMPLES = settings().max_examples // (1 if "FUZZ_EXAMPLES" in os.environ else 4)
NAMES: dict[str, Any] = {"tool_parser": "minimax_m2", "reasoning_parser": "minimax_m2"}
RENDERER = byte_renderer((OPEN, CLOSE, "<think>", "</think>"), (STOP,), **NAMES)
parse_reply = parser(RENDERER)
TYPES = {
    "text": {"type": "string"},
    "count": {"type": "integer"},
    "flag": {"type": "boolean"},
    "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    "list": {"type": "array"},
}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": TYPES}}}]


def parse(text: str, stop: str = STOP, **given: Any) -> Any:
    """Parses what follows closed reasoning."""
    return parse_reply(text + stop, prompt="]~b]ai\n<think>\n</think>\n\n", **given)


def invoke(*parameters: tuple[str, str], name: str = "f") -> str:
    """A call in the form in which the template writes it."""
    lines = [f'<parameter name="{key}">{value}</parameter>\n' for key, value in parameters]
    return f'<invoke name="{name}">\n{"".join(lines)}</invoke>'


def block(*calls: str) -> str:
    return "\n".join([OPEN, *calls, CLOSE])


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("text", "Ulm", "Ulm"),
        ("text", "007", "007"),
        ("text", "", ""),
        ("text", "\n two\n\nlines \n", "\n two\n\nlines \n"),
        ("text", "5 &lt; 6 <b>x</b>", "5 &lt; 6 <b>x</b>"),
        ("text", '{"a": 1}', '{"a": 1}'),
        ("count", "3", 3),
        ("count", str(2**70), 2**70),
        ("flag", "false", False),
        ("maybe", "null", None),
        ("maybe", "nothing", "nothing"),
        ("list", '["a", {"b": null}]', ["a", {"b": None}]),
        ("unknown", "5", 5),
        ("unknown", "Ulm", "Ulm"),
    ],
)
def test_values_are_typed_by_the_schema(key: str, text: str, value: Any) -> None:
    parsed = parse(block(invoke((key, text))), tools=TOOLS)
    assert outcomes(parsed) == [("f", {key: value}, "ok")]
    assert parsed.tool_calls[0].raw == invoke((key, text))
    assert parsed.content == ""


@pytest.mark.parametrize(("text", "status"), [("three", "invalid_arguments"), ('{"a": 1, "a": 2}', "duplicate_key")])
def test_what_is_not_of_the_type_is_reported(text: str, status: str) -> None:
    assert outcomes(parse(block(invoke(("count", text))), tools=TOOLS)) == [("f", None, status)]


@pytest.mark.parametrize(
    "value",
    [
        "a </parameter> b",
        '<parameter name="x">',
        '<parameter name="x">1</parameter>',
        "</invoke>",
        f"write {OPEN} and {CLOSE}",
        "</think>",
        block(invoke(("x", "1"))),
        block(invoke(("x", "1")), invoke(("y", "2"), name="g")),
    ],
)
def test_values_may_quote_tags(value: str) -> None:
    calls = invoke(("text", value), ("count", "3")), invoke(name="g")
    parsed = parse(block(*calls), tools=TOOLS)
    assert outcomes(parsed) == [("f", {"text": value, "count": 3}, "ok"), ("g", {}, "ok")]
    assert [call.raw for call in parsed.tool_calls] == [*calls]


@pytest.mark.parametrize(
    ("broken", "name"),
    [
        ('<invoke name="f"><parameter name="a">1</invoke>', "f"),
        ('<invoke name="f"><parameter name="a">1</parameter>', "f"),
        ('<invoke name="f">\nprose\n</invoke>', "f"),
        ('<invoke name="f"><parameter=a>1</parameter></invoke>', "f"),
        ('<invoke name="">\n</invoke>', ""),
        ('<invoke name="a b">\n</invoke>', ""),
        ("<invoke=f>\n</invoke>", ""),
        ("prose", ""),
    ],
)
def test_malformed_calls_do_not_spoil_their_neighbours(broken: str, name: str) -> None:
    parsed = parse(block(invoke(("a", "x"), name="g"), broken, invoke(("b", "y"), name="h")))
    assert outcomes(parsed) == [("g", {"a": "x"}, "ok"), (name, None, "malformed"), ("h", {"b": "y"}, "ok")]
    assert parsed.tool_calls[1].raw == broken


def test_parameters_of_one_name_are_reported() -> None:
    assert outcomes(parse(block(invoke(("a", "1"), ("a", "2"))))) == [("f", None, "duplicate_key")]


@pytest.mark.parametrize("body", ["", "\n", "prose"])
def test_a_block_without_calls_is_one_malformed_call(body: str) -> None:
    parsed = parse(f"{OPEN}{body}{CLOSE}")
    assert outcomes(parsed) == [("", None, "malformed")]
    assert parsed.tool_calls[0].raw == f"{OPEN}{body}{CLOSE}"


def test_a_cut_block_yields_no_last_call() -> None:
    calls = invoke(("a", "x")), invoke(("b", "y"), name="g")
    text = block(*calls)
    second = text.index(calls[1]) + len('<invoke name="')
    for end in range(len(OPEN), len(text) - len(CLOSE) + 1):
        parsed = parse(text[:end], stop="", step=11)
        statuses = [call.status.value for call in parsed.tool_calls]
        assert statuses == (["incomplete"] if end < second else ["ok", "incomplete"])
        assert "".join(call.raw for call in parsed.tool_calls)
        assert parsed.content == ""


def test_content_and_the_line_feed_before_the_block() -> None:
    parsed = parse(f"Look.\n\n{block(invoke())}")
    assert (parsed.content, outcomes(parsed)) == ("Look.\n", [("f", {}, "ok")])
    assert parse(f"{invoke()}").content == invoke()


def test_reasoning_is_assumed_and_its_calls_are_thoughts() -> None:
    parsed = parse_reply(f"try {block(invoke())}\n</think>\n\n\n{block(invoke(name='g'))}{STOP}")
    assert (parsed.reasoning_content, outcomes(parsed)) == (f"try {block(invoke())}", [("g", {}, "ok")])


@pytest.mark.parametrize(
    "piece", ['<parameter name="a">', "</parameter>", '<invoke name="f">\n<parameter name="a">', "</parameter>\n</invoke>\n", '<parameter name="', " ", "</invoke>", f"{OPEN}<"]
)  # fmt: skip
def test_time_is_linear(piece: str) -> None:
    def seconds(count: int) -> float:
        text = f'{OPEN}\n<invoke name="f">\n<parameter name="a">'
        sampled = ids(RENDERER, "</think>" + text) + ids(RENDERER, piece) * count + ids(RENDERER, CLOSE + STOP)
        begin = time.process_time()
        RENDERER.parse_response(sampled)
        return time.process_time() - begin

    few, many = (min(seconds(count), seconds(count)) for count in (100, 1000))
    assert many < 40 * max(few, 0.002)


FRAGMENTS = (
    OPEN, CLOSE, '<invoke name="f">\n', "</invoke>", "\n", '<parameter name="text">', '<parameter name="count">',
    "</parameter>", "x", "5", " ", "<think>", "</think>", '<parameter name="', STOP,
)  # fmt: skip


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=16))
def test_any_order_of_tags(fragments: list[str]) -> None:
    text = "x</think>" + "".join(fragments)
    for call in parse_reply(text, step=7, tools=TOOLS).tool_calls:
        assert call.raw in text


@pytest.fixture(scope="module")
def official(official_tokenizer: Callable[[str], Any]) -> Any:
    return create_renderer(official_tokenizer(MODEL), DefaultRendererConfig(stop_tokens=(STOP,), **NAMES))


@pytest.mark.needs_assets
@settings(max_examples=EXAMPLES)
@given(replies(MINIMAX_M2))
def test_what_the_template_prints_comes_back(official: Any, case: tuple[Conversation, dict[str, Any]]) -> None:
    """The prompt opens the reasoning; a history without any does not, so the reply is taken from the history."""
    prompt, message = case
    normalize = official.tokenizer.normalize
    tokens = reply_tokens(official, prompt, message)
    prompt_ids, reply = tokens or ([], _last_reply(official, prompt, message))
    reply = reply if tokens else [official.tokenizer.special_tokens["</think>"], *reply]
    parsed = check_stream_equals_batch(official, reply, (), prompt_ids=prompt_ids, tools=prompt.tools)
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    assert [(call.name, json.dumps(call.arguments)) for call in parsed.valid_tool_calls] == [
        (function["name"], json.dumps(_normalized(official, function["arguments"]))) for function in functions
    ]
    assert parsed.content.strip() == normalize(message.get("content") or "").strip()
    assert (parsed.reasoning_content or "").strip() == normalize(message.get("reasoning_content") or "").strip()


def _normalized(renderer: Any, arguments: dict[str, Any]) -> Any:
    """What is left of arguments after the tokenizer's normalizer, which may break JSON: NFC joins `n` and an accent."""
    try:
        return json.loads(renderer.tokenizer.normalize(json.dumps(arguments, ensure_ascii=False)))
    except ValueError:
        reject()


def _last_reply(renderer: Any, prompt: Conversation, message: dict[str, Any]) -> list[int]:
    """What the template prints for a message, after its header."""
    whole = prompt.followed_by([message], add_generation_prompt=False)
    text = renderer.decode(renderer.render(whole.messages, tools=whole.tools).token_ids)
    return ids(renderer, text[text.rindex("]~b]ai\n") + len("]~b]ai\n") :])
