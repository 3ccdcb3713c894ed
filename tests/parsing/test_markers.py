"""Markers by token, by text, and both: formats whose calls are plain text, or stand in sections."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from parsing_support import QWEN3, encode, encode_parts, parse_ids, small_adapter

from renderers.errors import ConfigError, TokenizerError
from renderers.formats.blocks import WholeBlocks
from renderers.formats.hermes import JsonToolCalls
from renderers.formats.json_text import CallFaultError
from renderers.formats.typed_values import Parameter, ToolSchemas, typed_call
from renderers.parsed import CallStatus
from renderers.parsing import Frame, Marker, MarkerTable, ReadCall, Reasoning, ReplyGrammar
from renderers.parsing.protocol import BoundToolCalls

CUT = CallFaultError(CallStatus.INCOMPLETE, "cut")


@dataclass(frozen=True)
class SectionedCalls:
    """A section of calls, each a name and pairs: `<tool_call>name<arg_key>k</arg_key>v</tool_call>`."""

    @property
    def frame(self) -> Frame:
        return Frame(
            "<tool_call>", "</tool_call>", "<|section|>", "<|/section|>", ("<arg_key>", "</arg_key>"), between="\n",
            other_markers=(("section_open", Marker.plain("[calls]")),),
        )  # fmt: skip

    def bind(self, markers: MarkerTable) -> BoundToolCalls:
        pair = re.compile(f"{markers.code('<arg_key>')}([^{markers.code('</arg_key>')}]*){markers.code('</arg_key>')}")

        def read(body: str, *, complete: bool, schemas: ToolSchemas) -> list[ReadCall]:
            name, *rest = pair.split(body)
            parameters = [Parameter(key, markers.text(text)) for key, text in zip(rest[::2], rest[1::2], strict=True)]
            return [typed_call(name, parameters, schemas, fault=None if complete else CUT)]

        return WholeBlocks(read)


@dataclass(frozen=True)
class DsmlCalls:
    """Calls of plain text around a special token: `<｜DSML｜calls>` name=value lines `</｜DSML｜calls>`."""

    @property
    def frame(self) -> Frame:
        mark = "｜DSML｜"
        return Frame(Marker.plain(f"<{mark}calls>", mark), Marker.plain(f"</{mark}calls>", mark), before="\n\n")

    def bind(self, markers: MarkerTable) -> BoundToolCalls:
        def read(body: str, *, complete: bool, schemas: ToolSchemas) -> Sequence[ReadCall]:
            calls = []
            for line in re.finditer(r"[^\n]+\n", body):
                name, _, value = markers.text(line.group()).rstrip("\n").partition("=")
                call = typed_call(name, [Parameter("v", value)], schemas)
                calls.append(
                    ReadCall(call.name, call.arguments, call.arguments_text, start=line.start(), end=line.end())
                )
            if not complete:
                calls.append(ReadCall("", status=CUT.status, error=str(CUT), start=len(body), end=len(body)))
            return calls

        return WholeBlocks(read)


SECTIONS = ReplyGrammar(
    ("<|im_end|>", "<|endoftext|>"), Reasoning("<think>", "</think>"), SectionedCalls(), "<|endoftext|>"
)
DSML = ReplyGrammar(("<|im_end|>",), Reasoning("<think>", "</think>"), DsmlCalls())
CALL = "<tool_call>go<arg_key>a</arg_key>1</tool_call>"
STRINGS = [{"function": {"name": "go", "parameters": {"properties": {"a": {"type": "string"}}}}}]


class TestSections:
    def parse(self, *parts: str | tuple[str], **options: Any) -> Any:
        adapter = small_adapter()
        return parse_ids(SECTIONS.bind(adapter), encode_parts(adapter, parts), **options)

    def test_calls_in_a_section(self) -> None:
        parsed = self.parse(f"<think>a</think>b<|section|>{CALL}\n{CALL}<|/section|><|endoftext|>")
        assert [(call.arguments, call.raw) for call in parsed.tool_calls] == [({"a": 1}, CALL)] * 2
        assert (parsed.reasoning_content, parsed.content) == ("a", "b")

    def test_typed_by_the_tools(self) -> None:
        parsed = self.parse(CALL, tools=STRINGS)
        assert parsed.tool_calls[0].arguments == {"a": "1"}

    def test_quoted_markers_are_values(self) -> None:
        parsed = self.parse("<tool_call>go<arg_key>a</arg_key>", ("</tool_call><arg_key>b",), "</tool_call>")
        assert parsed.tool_calls[0].arguments == {"a": "</tool_call><arg_key>b"}

    def test_another_spelling(self) -> None:
        parsed = self.parse(("[calls]",), CALL, "<|/section|>")
        assert (parsed.content, parsed.tool_calls[0].status) == ("", "ok")

    def test_cut_by_the_sections_end(self) -> None:
        parsed = self.parse(f"<|section|>{CALL[:-12]}<|/section|>{CALL}")
        assert [call.status for call in parsed.tool_calls] == ["incomplete", "ok"]

    def test_inner_markers_elsewhere_are_text(self) -> None:
        assert self.parse("a<arg_key>b").content == "a<arg_key>b"

    def test_section_inside_reasoning(self) -> None:
        section = f"<|section|>{CALL}<|/section|>"
        assert self.parse(f"<think>a{section}b</think>c").reasoning_content == f"a{section}b"
        parsed = self.parse(f"<think>a{section}<|endoftext|>")
        assert (parsed.reasoning_content, parsed.content, len(parsed.tool_calls)) == ("a", "", 1)
        assert [span.region for span in parsed.spans].count("reasoning") == 1

    def test_section_with_a_malformed_call_first(self) -> None:
        bad = "<tool_call><arg_key>a</arg_key>1</tool_call>"
        parsed = self.parse(f"<think>a<|section|>{bad}{CALL}<|/section|><|endoftext|>")
        assert parsed.reasoning_content == f"a<|section|>{bad}"
        assert [call.status for call in parsed.tool_calls] == ["ok"]

    def test_the_stop_token_that_an_engine_stripped(self) -> None:
        assert self.parse(CALL, stopped=True).stop == "<|endoftext|>"
        assert self.parse("a", stopped=True).stop == "<|im_end|>"


class TestTextMarkersWithATokenInside:
    def parse(self, *parts: str | tuple[str], **options: Any) -> Any:
        adapter = small_adapter()
        return parse_ids(DSML.bind(adapter), encode_parts(adapter, parts), **options)

    def test_several_calls_in_a_block(self) -> None:
        parsed = self.parse("<think>a</think>b\n\n<｜DSML｜calls>x=1\ny=[2]\n</｜DSML｜calls><|im_end|>")
        assert parsed.content == "b"
        assert [(call.name, call.arguments, call.raw) for call in parsed.tool_calls] == [
            ("x", {"v": 1}, "x=1\n"),
            ("y", {"v": [2]}, "y=[2]\n"),
        ]
        assert [span.call for span in parsed.spans if span.region == "tool_call"] == [0, 1]

    def test_spelled_from_ordinary_tokens(self) -> None:
        text = "<｜DSML｜calls>x=1\n</｜DSML｜calls>"
        parsed = self.parse((text,))
        assert (parsed.content, parsed.tool_calls) == (text, [])

    def test_the_token_elsewhere_is_text(self) -> None:
        assert self.parse("a <｜DSML｜cal ｜DSML｜< b").content == "a <｜DSML｜cal ｜DSML｜< b"
        assert self.parse("a\n\n<｜DSML｜").content == "a\n\n<｜DSML｜"

    def test_a_broken_character_before_the_token(self) -> None:
        adapter = small_adapter()
        ids = [*adapter.encode_ordinary("a 🧿")[:-1], *encode(adapter, "｜DSML｜b")]
        assert parse_ids(DSML.bind(adapter), ids).content == "a \ufffd｜DSML｜b"

    def test_the_token_in_a_value(self) -> None:
        parsed = self.parse("<｜DSML｜calls>x=</｜DSML｜call>\n</｜DSML｜calls>")
        assert parsed.tool_calls[0].arguments == {"v": "</｜DSML｜call>"}

    def test_no_call_inside(self) -> None:
        parsed = self.parse("a\n\n<｜DSML｜calls>\n</｜DSML｜calls>b")
        assert [(call.status, call.raw) for call in parsed.tool_calls] == [
            ("malformed", "<｜DSML｜calls>\n</｜DSML｜calls>")
        ]
        assert parsed.content == "ab"

    def test_cut(self) -> None:
        parsed = self.parse("<｜DSML｜calls>x=1\ny=</｜DSML｜ca<|im_end|>")
        assert [call.status for call in parsed.tool_calls] == ["ok", "incomplete"]

    def test_inside_reasoning(self) -> None:
        text = "<｜DSML｜calls>x=1\n</｜DSML｜calls>"
        parsed = self.parse(f"<think>a\n\n{text}<|im_end|>")
        assert (parsed.reasoning_content, len(parsed.tool_calls)) == ("a", 1)
        assert self.parse(f"<think>a\n\n{text}</think>b").reasoning_content == f"a\n\n{text}"

    @given(
        st.lists(
            st.sampled_from(
                (
                    "<",
                    "/",
                    "｜DSML｜",
                    "calls>",
                    "<｜DSML｜calls>",
                    "</｜DSML｜calls>",
                    "x=1\n",
                    "\n",
                    "é",
                    "<think>",
                    "</think>",
                )
            )
        )
    )
    def test_any_grouping(self, parts: list[str]) -> None:
        self.parse("".join(parts))


class TestEither:
    GRAMMAR = ReplyGrammar(
        ("<|im_end|>",),
        Reasoning(Marker.either("<reason>"), Marker.either("</reason>"), after_open="\n", before_close="\n"),
        JsonToolCalls(Marker.either("<call>"), Marker.either("</call>")),
    )

    def parse(self, text: str, **options: Any) -> Any:
        adapter = small_adapter()
        return parse_ids(self.GRAMMAR.bind(adapter), encode(adapter, text), **options)

    def test_as_text_where_the_tokenizer_has_no_such_token(self) -> None:
        parsed = self.parse('<reason>\na\n</reason>b\n<call>\n{"name": "x", "arguments": {}}\n</call>\n<|im_end|>')
        assert (parsed.reasoning_content, parsed.content) == ("a", "b")
        assert [call.status for call in parsed.tool_calls] == ["ok"]

    def test_beginnings_of_markers_are_text_in_the_end(self) -> None:
        assert self.parse("a\n<cal").content == "a\n<cal"
        assert self.parse("a<cal<|im_end|>").content == "a<cal"
        assert self.parse("a<rea<reason>b").reasoning_content == "b"

    def test_a_text_opener_inside_reasoning_is_a_thought(self) -> None:
        call = '<call>\n{"name": "x", "arguments": {}}\n</call>'
        parsed = self.parse(f"<reason>{call}<|im_end|>")
        assert (parsed.reasoning_content, parsed.tool_calls) == (call, [])
        adapter = small_adapter()
        shown = self.GRAMMAR.bind(adapter).stream().feed(encode(adapter, f"<reason>{call}"))
        assert "".join(delta.reasoning or "" for delta in shown) == call  # nothing to wait for

    @given(
        st.lists(
            st.sampled_from(
                ("<reason>", "</reason>", "<call>", "</call>", "<", "</", "<ca", "{}", "\n", "é", "<|im_end|>")
            )
        )
    )
    def test_any_grouping(self, parts: list[str]) -> None:
        self.parse("".join(parts))


def test_the_longer_of_two_text_markers_wins() -> None:
    calls = JsonToolCalls(Marker.plain("<calls>"), Marker.plain("</calls>"))
    grammar = ReplyGrammar(("<|im_end|>",), Reasoning(Marker.plain("<call"), Marker.plain("</call")), calls)
    adapter = small_adapter()
    parsed = parse_ids(grammar.bind(adapter), adapter.encode_ordinary("<calls></calls><call</call"))
    assert (len(parsed.tool_calls), parsed.reasoning_content) == (1, "")


class TestMistakes:
    def test_missing_special_tokens_are_named(self) -> None:
        grammar = ReplyGrammar(("<|im_end|>", "<|eot|>"), Reasoning("<reason>", "</think>"))
        with pytest.raises(TokenizerError, match=re.escape("'<|eot|>', '<reason>'")):
            grammar.bind(small_adapter())
        with pytest.raises(TokenizerError, match="QUOTE"):
            ReplyGrammar((), Reasoning(Marker.plain("<QUOTE>", "QUOTE"), "</think>")).bind(small_adapter())

    def test_separators_are_line_feeds(self) -> None:
        with pytest.raises(ConfigError, match="after_open"):
            Reasoning("<think>", "</think>", after_open=" ")
        with pytest.raises(ConfigError, match="before"):
            Frame("a", "b", before="x\n")

    def test_markers_that_contradict_themselves(self) -> None:
        with pytest.raises(ConfigError, match="at least one character"):
            Marker("")
        with pytest.raises(ConfigError, match="does not hold"):
            Marker.plain("<a>", "b")
        with pytest.raises(ConfigError, match="no role"):
            Frame("a", "b", other_markers=(("opener", Marker("c")),))
        with pytest.raises(ConfigError, match="none of stop_tokens"):
            ReplyGrammar(("<|im_end|>",), stop_after_calls="<|eot|>")


def test_the_example_of_the_protocol() -> None:
    """The format that the docstring teaches with works as it stands there."""
    import renderers.formats.json_text
    import renderers.formats.typed_values
    from renderers.parsing import protocol

    lines = (protocol.__doc__ or "").split("The smallest one looks like this:\n")[1].split("   `WholeBlocks`")[0]
    names = {**globals(), **vars(renderers.formats.json_text), **vars(renderers.formats.typed_values)}
    exec(textwrap.dedent(lines), names)  # noqa: S102 - our own docstring
    adapter = small_adapter()
    bound = ReplyGrammar(("<|im_end|>",), tool_calls=names["TextCalls"]()).bind(adapter)
    parsed = parse_ids(bound, encode(adapter, "<tool_call>say Good morning</tool_call>\n<tool_call>say"))
    assert [(call.name, call.arguments, call.status) for call in parsed.tool_calls] == [
        ("say", {"text": "Good morning"}, "ok"),
        ("say", None, "incomplete"),
    ]


def test_ids_that_renderers_ask_for() -> None:
    adapter = small_adapter()
    bound = QWEN3.bind(adapter)
    special = adapter.special_tokens
    assert bound.stop_ids == (special["<|im_end|>"], special["<|endoftext|>"])
    assert bound.reasoning_ids == (special["<think>"], special["</think>"])
    assert bound.reasoning_markers == {special["<think>"], special["</think>"]}
    assert ReplyGrammar(("<|im_end|>",)).bind(adapter).reasoning_ids is None
    assert TestEither.GRAMMAR.bind(adapter).reasoning_markers == frozenset()


def test_a_family_without_reasoning_or_calls() -> None:
    adapter = small_adapter()
    bound = ReplyGrammar(("<|im_end|>",)).bind(adapter)
    parsed = parse_ids(
        bound, encode(adapter, "<think>a</think>\n<tool_call>{}</tool_call>\n<|im_end|>"), opening_reasoning=True
    )
    assert parsed.content == "<think>a</think>\n<tool_call>{}</tool_call>\n"
    assert (parsed.reasoning_content, parsed.reasoning_complete) == (None, None)
