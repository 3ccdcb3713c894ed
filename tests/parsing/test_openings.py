"""Replies that begin inside what the prompt wrote."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from parsing_support import QWEN3, encode, feed_in_groups, parse_ids, small_adapter

from renderers import create_renderer
from renderers.parsed import ParsedResponse, Region, Span
from renderers.parsing import BoundReplyGrammar, Reasoning, ReplyGrammar

Parse = Callable[..., ParsedResponse]
CALL = '<tool_call>\n{"name": "run", "arguments": {"a": 1}}\n</tool_call>'


def test_prefilled_answer_is_no_part_of_the_reply(parse: Parse) -> None:
    parsed = parse(" is 4.<|im_end|>", "The answer")
    assert parsed.content == " is 4."


def test_line_feeds_that_the_prompt_wrote_stay_the_prompts(parse: Parse) -> None:
    assert parse(CALL, "see\n").content == ""
    assert parse("more", "see\n").content == "more"
    assert parse("</think>\n\nx", "<think>\na\n").reasoning_content == ""


def test_line_feeds_that_the_prompt_left_out_are_the_formats(parse: Parse) -> None:
    assert parse("\na\n</think>\n\nb", "<think>").reasoning_content == "a"
    assert parse("\nb", "<think>\n\n</think>\n").content == "b"


def test_a_call_that_the_prompt_began_is_the_replys(bound: BoundReplyGrammar, adapter: Any) -> None:
    opening, ids = encode(adapter, CALL[:30]), encode(adapter, CALL[30:] + "\n" + CALL + "<|im_end|>")
    parsed = parse_ids(bound, ids, opening_ids=opening)
    assert [(call.id, call.name, call.arguments, call.raw) for call in parsed.tool_calls] == [
        ("call_0", "run", {"a": 1}, CALL),
        ("call_1", "run", {"a": 1}, CALL),
    ]
    assert (parsed.spans[0].start, parsed.spans[0].region, parsed.spans[0].call) == (0, Region.TOOL_CALL, 0)


def test_its_deltas_come_with_the_first_feed(bound: BoundReplyGrammar, adapter: Any) -> None:
    cut = CALL.index(": 1")
    stream = bound.stream(opening_ids=encode(adapter, CALL[:cut]))
    deltas = stream.feed(encode(adapter, CALL[cut:]))
    assert (deltas[0].name, deltas[0].call_id) == ("run", "call_0")
    assert "".join(delta.arguments or "" for delta in deltas) == '{"a": 1}'


def test_whole_calls_of_the_prompt_only_count(bound: BoundReplyGrammar, adapter: Any) -> None:
    """A call of the prompt is not the reply's, but two calls of one turn never have one ID."""
    for cut in (0, 11, 40):
        opening, ids = encode(adapter, f"{CALL}\n{CALL[:cut]}"), encode(adapter, CALL[cut:])
        parsed = parse_ids(bound, ids, opening_ids=opening)
        assert [(call.id, call.status) for call in parsed.tool_calls] == [("call_1", "ok")]


def test_a_call_begun_inside_the_prompts_reasoning(bound: BoundReplyGrammar, adapter: Any) -> None:
    for cut in (11, 30, len(CALL)):
        opening, rest = encode(adapter, "<think>\nso\n" + CALL[:cut]), CALL[cut:]
        parsed = parse_ids(bound, encode(adapter, rest + "<|im_end|>"), opening_ids=opening)
        # A call that the prompt closed is the prompt's.
        assert [call.raw for call in parsed.tool_calls] == ([CALL] if rest else [])
        assert (parsed.reasoning_content, parsed.content, parsed.reasoning_complete) == (None, "", False)
        thought = parse_ids(bound, encode(adapter, rest + "\nno\n</think>\n\nx"), opening_ids=opening)
        assert thought.reasoning_content == rest + "\nno"
        assert (thought.content, thought.tool_calls) == ("x", [])


def test_a_character_that_the_prompt_began(bound: BoundReplyGrammar, adapter: Any) -> None:
    ids = adapter.encode_ordinary("a 🧿")
    for cut in range(2, len(ids)):
        parsed = parse_ids(bound, ids[cut:], opening_ids=ids[:cut])
        assert parsed.content.endswith("🧿")


def test_a_text_marker_that_the_prompt_began() -> None:
    renderer = create_renderer("golden:deepseek-v4")  # whose call markers begin with an ordinary `<`
    opening, (stop, *_) = renderer.tokenizer.encode_with_offsets("</think><")[0], renderer.get_stop_token_ids()
    for ids in ([stop], [*renderer.tokenizer.encode_ordinary("a"), stop]):
        parsed = renderer.parse_response(ids, prompt_ids=opening)
        assert (parsed.stop, parsed.closed_at) == ("<｜end▁of▁sentence｜>", len(ids))
        assert parsed.spans[-1] == Span(len(ids) - 1, len(ids), Region.STRUCTURE)


def test_a_stop_token_in_the_opening_is_no_end(parse: Parse) -> None:
    parsed = parse("Hi<|im_end|>", "before<|im_end|>\n")
    assert (parsed.content, parsed.stop) == ("Hi", "<|im_end|>")
    assert parse("Hi", f"<think>{CALL}<|im_end|>\n").content == "Hi"


@pytest.mark.parametrize(("opening_reasoning", "expected"), [(None, "a"), (True, "a"), (False, None)])
def test_a_format_whose_replies_begin_in_reasoning(opening_reasoning: bool | None, expected: str | None) -> None:
    adapter = small_adapter()
    grammar = ReplyGrammar(("<|im_end|>",), Reasoning("<think>", "</think>", assumed_open=True))
    bound, ids = grammar.bind(adapter), encode(adapter, "a</think>b<|im_end|>")
    assert parse_ids(bound, ids, opening_reasoning=opening_reasoning).reasoning_content == expected
    assert parse_ids(bound, ids, opening_ids=encode(adapter, "</think>")).reasoning_content is None


def test_nothing_of_the_opening_is_shown() -> None:
    adapter = small_adapter()
    stream_options = {"opening_ids": encode(adapter, f"<think>\na\n</think>\n\nb\n{CALL}\n")}
    parsed, deltas = feed_in_groups(QWEN3.bind(adapter), [], **stream_options)
    assert parsed == ParsedResponse(content="", reasoning_content=None, reasoning_complete=True)
    assert deltas == []
