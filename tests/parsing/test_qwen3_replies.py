"""Replies in Qwen3's format, one behaviour a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from parsing_support import encode_parts, parse_ids

from renderers.errors import RendererError, TokenIdsError, TokenIdsTypeError
from renderers.parsed import CallStatus, Delta, ParsedResponse
from renderers.parsing import BoundReplyGrammar

Parse = Callable[..., ParsedResponse]

RUN = '<tool_call>\n{"name": "run", "arguments": {"code": "x"}}\n</tool_call>'
NOW = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
THINKING, NO_THINKING = "<think>\n", "<think>\n\n</think>\n\n"


def statuses(parsed: ParsedResponse) -> list[str]:
    return [str(call.status) for call in parsed.tool_calls]


@pytest.mark.parametrize("reasoning", [None, "", "a thought", "two\n\nlines"])
@pytest.mark.parametrize("content", ["", "answer", " spaced ", "ends\n", "ends\n\n"])
@pytest.mark.parametrize("calls", [[], [RUN], [RUN, NOW]])
def test_parts_in_every_combination(parse: Parse, reasoning: str | None, content: str, calls: list[str]) -> None:
    text = "" if reasoning is None else f"<think>\n{reasoning}\n</think>\n\n"
    text += "\n".join([content, *calls] if content else calls)
    parsed = parse(text + "<|im_end|>")
    assert parsed.reasoning_content == reasoning
    assert parsed.content == content
    assert [call.raw for call in parsed.tool_calls] == calls
    assert parsed.stop == "<|im_end|>"
    assert parsed.reasoning_complete is True


class TestWhitespace:
    def test_only_what_the_format_writes_is_stripped(self, parse: Parse) -> None:
        parsed = parse("<think>\n\n a \n\n</think>\n\n\n b \n\n" + RUN + "\n\n c \n<|im_end|>")
        assert parsed.reasoning_content == "\n a \n"
        assert parsed.content == "\n b \n\n c \n"

    def test_fewer_line_feeds_than_the_format_writes(self, parse: Parse) -> None:
        parsed = parse("<think>a</think>\nb" + RUN + NOW + "<|im_end|>")
        assert (parsed.reasoning_content, parsed.content) == ("a", "b")
        assert statuses(parsed) == ["ok", "ok"]

    def test_text_around_calls_is_content(self, parse: Parse) -> None:
        parsed = parse(f"one\n{RUN}\ntwo\n{NOW}\nthree<|im_end|>")
        assert parsed.content == "onetwothree"
        assert statuses(parsed) == ["ok", "ok"]

    def test_line_feeds_at_the_end_stay(self, parse: Parse) -> None:
        assert parse("a\n\n<|im_end|>").content == "a\n\n"
        assert parse("a\n\n").content == "a\n\n"
        assert parse("<think>\na\n").reasoning_content == "a\n"


class TestReasoning:
    def test_cut_reasoning_is_no_content(self, parse: Parse) -> None:
        parsed = parse("<think>\nFirst, count the apples")
        assert (parsed.reasoning_content, parsed.content) == ("First, count the apples", "")
        assert parsed.reasoning_complete is False
        assert parsed.stop is None

    def test_opened_by_the_prompt(self, parse: Parse) -> None:
        parsed = parse("Easy.\n</think>\n\n4<|im_end|>", THINKING)
        assert (parsed.reasoning_content, parsed.content) == ("Easy.", "4")

    def test_closed_by_the_prompt(self, parse: Parse) -> None:
        parsed = parse("\nHi<|im_end|>", NO_THINKING)
        assert (parsed.reasoning_content, parsed.content) == (None, "\nHi")
        assert parsed.reasoning_complete is True

    def test_empty_block(self, parse: Parse) -> None:
        assert parse(NO_THINKING + "Hi<|im_end|>").reasoning_content == ""
        assert parse("Hi<|im_end|>").reasoning_content is None

    def test_opened_twice(self, parse: Parse) -> None:
        assert parse("<think>\nmore\n</think>\n\nx", THINKING).reasoning_content == "more"

    def test_several_blocks_are_one_text(self, parse: Parse) -> None:
        parsed = parse(f"<think>\na\n</think>\n\nb\n{RUN}\n<think>\nc\n</think>\n\nd<|im_end|>")
        assert (parsed.reasoning_content, parsed.content) == ("ac", "bd")
        assert parsed.reasoning_complete is True

    def test_stray_close_is_structure(self, parse: Parse) -> None:
        assert parse("a</think>\n\nb").content == "ab"

    def test_stop_inside(self, parse: Parse) -> None:
        parsed = parse("<think>\nso<|im_end|>")
        assert (parsed.reasoning_content, parsed.stop, parsed.reasoning_complete) == ("so", "<|im_end|>", False)

    def test_markers_spelled_from_ordinary_tokens_are_text(self, bound: BoundReplyGrammar, adapter: Any) -> None:
        parts = [
            "<think>\nno ",
            ("</think>",),
            " and no ",
            ("<tool_call>",),
            "\n</think>\n\nsee ",
            ("<think>",),
            "<|im_end|>",
        ]
        parsed = parse_ids(bound, encode_parts(adapter, parts))
        assert parsed.reasoning_content == "no </think> and no <tool_call>"
        assert parsed.content == "see <think>"

    def test_told_by_the_caller(self, bound: BoundReplyGrammar, adapter: Any) -> None:
        ids = encode_parts(adapter, ["a\n</think>\n\nb"])
        assert parse_ids(bound, ids, opening_reasoning=True).reasoning_content == "a"
        opening = encode_parts(adapter, ["<think>\n"])
        parsed = parse_ids(bound, ids, opening_ids=opening, opening_reasoning=False)
        assert (parsed.reasoning_content, parsed.content) == (None, "a\nb")


class TestCallsInReasoning:
    def test_closed_later(self, parse: Parse) -> None:
        parsed = parse(f"<think>\nmaybe\n{RUN}\nno\n</think>\n\nok<|im_end|>")
        assert parsed.reasoning_content == f"maybe\n{RUN}\nno"
        assert (parsed.content, parsed.tool_calls, parsed.reasoning_complete) == ("ok", [], True)

    def test_never_closed_and_ended(self, parse: Parse) -> None:
        parsed = parse(f"<think>\nso\n{RUN}\n{NOW}<|im_end|>")
        assert (parsed.reasoning_content, parsed.content, parsed.reasoning_complete) == ("so", "", False)
        assert statuses(parsed) == ["ok", "ok"]

    def test_engine_stripped_the_stop_token(self, parse: Parse) -> None:
        parsed = parse(f"so\n{RUN}", THINKING, stopped=True)
        assert (parsed.reasoning_content, statuses(parsed), parsed.stop) == ("so", ["ok"], "<|im_end|>")

    @pytest.mark.parametrize("stopped", [None, False])
    def test_never_closed_and_cut(self, parse: Parse, stopped: bool | None) -> None:
        parsed = parse(f"<think>\nso\n{RUN}\n", stopped=stopped)
        assert (parsed.reasoning_content, parsed.tool_calls) == (f"so\n{RUN}\n", [])

    def test_malformed(self, parse: Parse) -> None:
        text = "so\n<tool_call>\n{oops}\n</tool_call>"
        parsed = parse(f"<think>\n{text}<|im_end|>")
        assert (parsed.reasoning_content, parsed.tool_calls) == (text, [])

    def test_cut_inside_the_call(self, parse: Parse) -> None:
        parsed = parse(f"<think>\nso\n{RUN[:-12]}<|im_end|>")
        assert (parsed.reasoning_content, parsed.tool_calls) == (f"so\n{RUN[:-12]}", [])

    def test_first_one_malformed(self, parse: Parse) -> None:
        bad = "<tool_call>\n{oops}\n</tool_call>"
        parsed = parse(f"<think>\nso\n{bad}\nor\n{RUN}\n{bad}<|im_end|>")
        assert parsed.reasoning_content == f"so\n{bad}\nor"
        assert statuses(parsed) == ["ok", "invalid_json"]

    def test_unclosed_one_before_a_well_formed_one(self, parse: Parse) -> None:
        parsed = parse(f"<think>\nso <tool_call> or\n{RUN}<|im_end|>")
        assert parsed.reasoning_content == "so <tool_call> or"
        assert statuses(parsed) == ["ok"]

    def test_nothing_is_streamed_until_it_is_decided(self, bound: BoundReplyGrammar, adapter: Any) -> None:
        stream = bound.stream()
        head = stream.feed(encode_parts(adapter, ["<think>\nso\n"]))
        assert "".join(delta.reasoning or "" for delta in head) == "so"
        assert stream.feed(encode_parts(adapter, [RUN, " hm"])) == []
        tail = stream.feed(encode_parts(adapter, ["\n</think>\n\n"]))
        assert "".join(delta.reasoning or "" for delta in tail) == f"\n{RUN} hm"

    def test_opener_of_ordinary_tokens_is_a_thought(self, bound: BoundReplyGrammar, adapter: Any) -> None:
        parsed = parse_ids(bound, encode_parts(adapter, ["<think>\n", (RUN,), "<|im_end|>"]))
        assert (parsed.reasoning_content, parsed.tool_calls) == (RUN, [])

    def test_reasoning_opened_again_among_calls(self, parse: Parse) -> None:
        parsed = parse(f"<think>a{RUN}<think>b{NOW}<think>c<|im_end|>")
        assert (parsed.reasoning_content, parsed.content) == ("abc", "")
        assert statuses(parsed) == ["ok", "ok"]
        assert parsed.reasoning_complete is False


class TestCutCalls:
    def test_cut_is_never_repaired(self, parse: Parse) -> None:
        parsed = parse('<tool_call>\n{"name": "run", "arguments": {"code": "rm build/tm')
        (call,) = parsed.tool_calls
        assert (call.status, call.name, call.arguments) == (CallStatus.INCOMPLETE, "run", None)
        assert call.arguments_text == '{"code": "rm build/tm'
        assert parsed.to_message() == {"role": "assistant", "content": ""}

    def test_whole_json_without_the_close(self, parse: Parse) -> None:
        parsed = parse(RUN.removesuffix("</tool_call>"), stopped=True)
        assert statuses(parsed) == ["incomplete"]

    @pytest.mark.parametrize("marker", ["<tool_call>", "<think>", "</think>", "<|im_end|>"])
    def test_another_marker_inside(self, parse: Parse, marker: str) -> None:
        parsed = parse(f'<tool_call>\n{{"name": "run", "arguments": {{"a": 1}}}}{marker}\n')
        assert parsed.tool_calls[0].status is CallStatus.INCOMPLETE
        assert parsed.tool_calls[0].raw == '<tool_call>\n{"name": "run", "arguments": {"a": 1}}'

    def test_neighbours_stay_whole(self, parse: Parse) -> None:
        parsed = parse(f"{RUN}\n<tool_call>\n{{\n{NOW}\n<tool_call>\n[]\n</tool_call><|im_end|>")
        assert statuses(parsed) == ["ok", "incomplete", "ok", "malformed"]
        assert [call.id for call in parsed.tool_calls] == ["call_0", "call_1", "call_2", "call_3"]

    def test_stray_close(self, parse: Parse) -> None:
        parsed = parse("a</tool_call>\nb<|im_end|>")
        assert (parsed.content, parsed.tool_calls) == ("ab", [])


class TestStop:
    def test_tokens_after_the_stop_belong_nowhere(self, bound: BoundReplyGrammar, adapter: Any) -> None:
        reply, rest = encode_parts(adapter, ["Hi<|im_end|>"]), encode_parts(adapter, ["\n<think>more", RUN, "🧿"])
        parsed = parse_ids(bound, [*reply, *rest[:-1]])
        assert (parsed.content, parsed.reasoning_content, parsed.tool_calls) == ("Hi", None, [])
        assert parsed.closed_at == len(reply)
        assert (parsed.spans[-1].end, parsed.spans[-1].region) == (len(reply) + len(rest) - 1, "structure")

    def test_the_other_stop_token(self, parse: Parse) -> None:
        assert parse("Hi<|endoftext|>").stop == "<|endoftext|>"

    def test_the_engines_word(self, parse: Parse) -> None:
        assert parse("Hi", stopped=True).stop == "<|im_end|>"
        assert parse("Hi", stopped=False).stop is None
        assert parse("Hi<|im_end|>", stopped=False).stop == "<|im_end|>"

    def test_nothing_at_all(self, parse: Parse) -> None:
        parsed = parse("")
        assert parsed == ParsedResponse(content="", reasoning_content=None, reasoning_complete=True)


class TestText:
    def test_cut_inside_a_character(self, bound: BoundReplyGrammar, adapter: Any) -> None:
        ids = adapter.encode_ordinary("Hi 🧿")[:-1]
        stream = bound.stream()
        shown = "".join(delta.content or "" for delta in stream.feed(ids))
        assert shown == "Hi "
        assert stream.finish().content == "Hi \ufffd"
        assert stream.drain() == [Delta(content="\ufffd")]

    def test_broken_character_before_a_marker(self, bound: BoundReplyGrammar, adapter: Any) -> None:
        ids = [*adapter.encode_ordinary("a 🧿")[:-1], *encode_parts(adapter, ["<think>\nb\n</think>\n\nc"])]
        parsed = parse_ids(bound, ids)
        assert (parsed.content, parsed.reasoning_content) == ("a \ufffdc", "b")

    def test_special_tokens_of_no_meaning_are_text(self, parse: Parse) -> None:
        parsed = parse("<think>\na<|vision_start|>\n</think>\n\n<|im_start|>b<|im_end|>")
        assert (parsed.reasoning_content, parsed.content) == ("a<|vision_start|>", "<|im_start|>b")

    def test_unknown_ids_are_nothing(self, bound: BoundReplyGrammar, adapter: Any) -> None:
        ids = encode_parts(adapter, ["a", ("🧿",), "b"])
        strange = [adapter.vocabulary_size, adapter.vocabulary_size + 7, 2**70]
        mixed = [strange[0], *ids[:2], strange[1], *ids[2:], strange[2]]
        parsed = parse_ids(bound, mixed)
        assert parsed.content == "a🧿b"
        assert [span.region for span in parsed.spans] == ["structure", "content", "structure", "content", "structure"]


class TestBadInput:
    @pytest.mark.parametrize("bad", [[-1], [5, -3], -1])
    def test_negative(self, bound: BoundReplyGrammar, bad: Any) -> None:
        with pytest.raises(TokenIdsError, match="negative"):
            bound.stream().feed(bad)

    @pytest.mark.parametrize(
        "bad", ["abc", [1.0], ["1"], [None], None, 1.5, [[1]], [True], b"ab", {1, 2}, {"input_ids": [1]}]
    )
    def test_no_integers(self, bound: BoundReplyGrammar, bad: Any) -> None:
        stream = bound.stream()
        with pytest.raises(TokenIdsTypeError):
            stream.feed(bad)
        assert stream.finish().spans == []

    def test_feeding_a_finished_reply(self, bound: BoundReplyGrammar) -> None:
        stream = bound.stream()
        stream.finish()
        with pytest.raises(RendererError, match="finished"):
            stream.feed([1])
