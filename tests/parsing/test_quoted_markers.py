"""Formats whose values may quote markers by their own tokens: a marker counts only where no value is open."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from parsing_support import encode, feed_in_groups, parse_ids, small_adapter

from renderers.formats.json_text import CallFaultError
from renderers.formats.typed_values import Parameter, ToolSchemas, typed_call
from renderers.parsed import CallStatus
from renderers.parsing import BlockFactory, CallProgress, Frame, MarkerTable, ReadCall, Reasoning, ReplyGrammar, Tools

_CUT = CallFaultError(CallStatus.INCOMPLETE, "cut")


@dataclass(frozen=True)
class QuotingCalls:
    """`<tool_call>name<arg_key>value</arg_key></tool_call>`, where a value may quote `</tool_call>` and the like."""

    @property
    def frame(self) -> Frame:
        return Frame("<tool_call>", "</tool_call>", "<|section|>", "<|/section|>", ("<arg_key>", "</arg_key>"))

    def bind(self, markers: MarkerTable) -> QuotingCalls.Bound:
        return QuotingCalls.Bound(markers)

    @dataclass(frozen=True)
    class Bound:
        markers: MarkerTable

        def reader(self, tools: Tools | None) -> BlockFactory:
            return lambda: _Reader(self.markers)


class _Reader:
    def __init__(self, markers: MarkerTable) -> None:
        self._markers = markers
        self._open, self._close = markers.code("<arg_key>"), markers.code("</arg_key>")
        self._in_value = False

    def progress(self, text: str) -> Sequence[CallProgress]:
        return ()

    def in_value(self, text: str) -> bool:
        last = max(text.rfind(self._open), text.rfind(self._close))
        if last >= 0:
            self._in_value = text[last] == self._open
        return self._in_value

    def read(self, body: str, *, complete: bool) -> Sequence[ReadCall]:
        name, _, rest = body.partition(self._open)
        parameters = (
            [Parameter("v", self._markers.text(rest.removesuffix(self._close)), is_string=True)] if rest else []
        )
        return [typed_call(name, parameters, ToolSchemas(), fault=None if complete else _CUT)]


GRAMMAR = ReplyGrammar(("<|im_end|>",), Reasoning("<think>", "</think>"), QuotingCalls())


def parse(text: str, **options: Any) -> Any:
    adapter = small_adapter()
    return parse_ids(GRAMMAR.bind(adapter), encode(adapter, text), **options)


def test_a_marker_inside_a_value_is_the_values() -> None:
    for quoted in ("</tool_call>", "<tool_call>", "<think>", "</think>a", "<|section|><|/section|>"):
        parsed = parse(f"<tool_call>go<arg_key>a{quoted}b</arg_key></tool_call>c<|im_end|>")
        assert [call.arguments for call in parsed.tool_calls] == [{"v": f"a{quoted}b"}]
        assert (parsed.content, parsed.reasoning_content) == ("c", None)


def test_where_the_value_is_never_closed_the_markers_count() -> None:
    good = "<tool_call>go<arg_key>x</arg_key></tool_call>"
    parsed = parse("<tool_call>go<arg_key>a</tool_call>b<tool_call>go</tool_call><|im_end|>")
    assert [call.name for call in parsed.tool_calls] == ["go", "go"]
    assert parsed.content == "b"
    # A later call closes its value, and with it, by position, the first one's.
    parsed = parse(f"<tool_call>go<arg_key>a</tool_call>{good}<|im_end|>")
    assert len(parsed.tool_calls) == 1


def test_a_stop_token_is_never_quoted() -> None:
    parsed = parse("<tool_call>go<arg_key>a<|im_end|>b</arg_key></tool_call>")
    assert [call.status for call in parsed.tool_calls] == ["incomplete"]
    assert parsed.stop == "<|im_end|>"


def test_cut_inside_a_value_that_quotes() -> None:
    parsed = parse("<tool_call>go<arg_key>a</tool_call>b")
    assert [(call.status, call.raw) for call in parsed.tool_calls] == [
        ("incomplete", "<tool_call>go<arg_key>a</tool_call>b")
    ]


def test_reasoning_that_opens_in_an_unclosed_value() -> None:
    parsed = parse("<tool_call>go<arg_key>a<think>b<tool_call>go</tool_call><|im_end|>")
    assert [call.status for call in parsed.tool_calls] == ["incomplete", "ok"]
    assert (parsed.reasoning_content, parsed.reasoning_complete) == ("b", False)


_PIECES = ("<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<think>", "</think>", "<|section|>", "<|/section|>", "a", "\n", "é", "<|im_end|>")  # fmt: skip


@given(
    st.lists(st.sampled_from(_PIECES)),
    st.sampled_from((None, True, False)),
    st.sampled_from(
        ("", "<think>", "<tool_call>go", "<tool_call>go<arg_key>a</tool_call>", "<think><tool_call>go<arg_key>")
    ),
)
def test_any_grouping(pieces: list[str], stopped: bool | None, opening: str) -> None:
    parse("".join(pieces), stopped=stopped, opening_ids=encode(small_adapter(), opening))


def test_time_is_linear() -> None:
    """Also where all that was quoted must be read again."""
    adapter = small_adapter()
    bound = GRAMMAR.bind(adapter)

    def seconds(count: int, unit: str) -> float:
        ids = encode(adapter, "<tool_call>go<arg_key>" + unit * count + "<|im_end|>")
        best = float("inf")
        for _ in range(3):
            begin = time.process_time()
            feed_in_groups(bound, ids)
            best = min(best, time.process_time() - begin)
        return best

    for unit in (
        "</tool_call>",
        "<tool_call>",
        "<think>",
        "</tool_call><tool_call>go<arg_key>",
        "<think><tool_call>go</tool_call>",
    ):
        assert seconds(4_000, unit) < 8 * 3 * max(seconds(500, unit), 0.001), unit
