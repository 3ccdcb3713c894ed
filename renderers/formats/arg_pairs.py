"""Calls of a name and pairs of key and value, each between special tokens, as GLM writes them.

<tool_call>get_weather<arg_key>city</arg_key><arg_value>Ulm</arg_value></tool_call>

A string is written bare, any other value as JSON; reading goes by the tool's schema. The values hold any text, and a
model that quotes a tag in one samples the tag's own token. What is a value's end is therefore told by position.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from renderers.conversation import Turn
from renderers.formats.json_text import CallFaultError
from renderers.formats.typed_values import Parameter, ToolSchemas, typed_call
from renderers.messages import to_json
from renderers.parsed import CallStatus
from renderers.parsing.markers import MarkerTable
from renderers.parsing.protocol import BlockFactory, CallProgress, Frame, ReadCall, Tools
from renderers.writer import Writer

_TAGS = ("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")
_NAME = re.compile(r'[^\s<>{}"]+')


@dataclass(frozen=True, slots=True)
class ArgPairs:
    """The dialect, written and read.

    Attributes:
        line: what stands between two tags: a line feed where each has a line of its own, else nothing.
    """

    line: str = ""

    @property
    def frame(self) -> Frame:
        """One block is one call."""
        return Frame("<tool_call>", "</tool_call>", inner=_TAGS, before=self.line, between=self.line)

    def bind(self, markers: MarkerTable) -> _Pairs:
        """A call is read when it closes: only then is it known where each value ends."""
        return _Pairs(markers)

    def write_tools(self, out: Writer, tools: Iterable[str]) -> None:
        """The tools' schemas, and how to call them."""
        out.scaffold(
            "<|system|>\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
            "You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n"
        )
        for tool in tools:
            out.schema(tool)
            out.scaffold("\n")
        pairs = [
            f"<arg_key>{{arg-key-{n}}}</arg_key>{self.line}<arg_value>{{arg-value-{n}}}</arg_value>" for n in (1, 2)
        ]
        out.scaffold(
            "</tools>\n\nFor each function call, output the function name and arguments within the following XML format:\n"
            + self.line.join(["<tool_call>{function-name}", *pairs, "...", "</tool_call>"])
        )

    def write_calls(self, out: Writer, turn: Turn) -> None:
        """The calls of an assistant's message."""
        for call in turn.message.tool_calls or ():
            out.scaffold(f"{self.line}<tool_call>")
            out.body(call.function.name)
            out.scaffold(self.line)
            for key, value in call.function.arguments_object.items():
                out.scaffold("<arg_key>")
                out.body(key)
                out.scaffold(f"</arg_key>{self.line}<arg_value>")
                out.body(value if isinstance(value, str) else to_json(value))
                out.scaffold(f"</arg_value>{self.line}")
            out.scaffold("</tool_call>")

    def write_result(self, out: Writer, turn: Turn, *, loops_over_content: bool) -> None:
        """A tool's result; results that follow each other share a turn.

        Where the template loops over a content that is no text, without content there is a turn
        of its own, and nothing in it.
        """
        has_block = turn.message.content is not None or not loops_over_content
        if turn.previous_role != "tool" or not has_block:
            out.scaffold("<|observation|>")
        if has_block:
            out.scaffold(f"{self.line}<tool_response>{self.line}")
            out.body(turn.content)
            out.scaffold(f"{self.line}</tool_response>")
        else:
            out.damage(
                "dropped_result",
                turn.index,
                "the template prints no tool response for a tool message without content, so the model sees fewer "
                'results than calls; give it the content ""',
            )


class _Pairs:
    """The dialect for one tokenizer: special tokens stand in a body as codes."""

    def __init__(self, markers: MarkerTable) -> None:
        self.text = markers.text
        key_open, key_close, self.value_open, self.value_close = map(markers.code, _TAGS)
        self.key_open = key_open
        codes = key_open + key_close + self.value_open + self.value_close
        self.head = re.compile(f"[^{codes}]*")
        self.opening = re.compile(rf"\s*{key_open}([^{codes}]*){key_close}\s*{self.value_open}")
        self.end = re.compile(rf"\s*(?:\Z|{self.opening.pattern})")
        self.value_tag = re.compile(f"[{self.value_open}{self.value_close}]")
        self.tag = re.compile(f"([{codes}])")

    def reader(self, tools: Tools | None) -> BlockFactory:
        """A reader for each call; the tools' schemas are looked up once a reply."""
        schemas = ToolSchemas(tools)
        return lambda: _CallReader(self, schemas)


class _CallReader:
    """Reads one call.

    A value ends at a closing tag that another pair or the call's end follows, unless a tag is open that the value
    quotes. If no closing tag is such a one, the first that is followed so ends it.
    """

    def __init__(self, pairs: _Pairs, schemas: ToolSchemas) -> None:
        self._pairs = pairs
        self._schemas = schemas
        self._nests = True
        self._depth = 0  # of value tags that are open
        self._may_end = False  # since the last closing tag came only white space

    def progress(self, text: str) -> Sequence[CallProgress]:
        """Nothing is certain before the end."""
        return ()

    def in_value(self, text: str) -> bool:
        """Whether a value is open after this text."""
        for part in self._pairs.tag.split(text):
            if part == self._pairs.value_close and self._depth == 1:
                self._may_end = True
            elif part == self._pairs.value_close:
                self._depth = max(0, self._depth - 1)
            elif part == self._pairs.key_open and self._may_end:
                self._depth, self._may_end = 0, False
            elif part.strip():
                self._may_end = False
                self._depth += part == self._pairs.value_open
        return self._depth > 0 and not self._may_end

    def read(self, body: str, *, complete: bool) -> Sequence[ReadCall]:
        """The call, with its faults."""
        head = self._pairs.head.match(body)
        assert head is not None  # noqa: S101 - it may be empty
        name = head.group().strip()
        fault: CallFaultError | None = None
        parameters: list[Parameter] = []
        try:
            parameters += self._parameters(body, head.end())
        except CallFaultError as problem:
            fault = problem
        if not complete:
            fault = CallFaultError(CallStatus.INCOMPLETE, "the call was cut before its end")
            name = name if head.end() < len(body) else ""  # more of it may have been about to come
        if name and not _NAME.fullmatch(name):
            fault = fault or CallFaultError(CallStatus.MALFORMED, f"a tool cannot be named {name!r}")
            name = ""
        return [typed_call(name, parameters, self._schemas, fault=fault)]

    def _parameters(self, body: str, position: int) -> Iterator[Parameter]:
        while True:
            opening = self._pairs.opening.match(body, position)
            if opening is None and not body[position:].strip():
                return
            closing = self._closing(body, opening.end()) if opening is not None else None
            if opening is None or closing is None:
                rest = self._pairs.text(body[position : position + 40])
                raise CallFaultError(CallStatus.MALFORMED, f"{rest!r} is no pair of <arg_key> and <arg_value>")
            yield Parameter(opening.group(1), self._pairs.text(body[opening.end() : closing.start()]))
            position = closing.end()

    def _closing(self, body: str, start: int) -> re.Match[str] | None:
        """The closing tag of the value that begins at `start`."""
        depth, first = 0, None
        pairs = self._pairs
        for tag in pairs.value_tag.finditer(body, start):
            if tag.group() == pairs.value_open:
                depth += self._nests
                continue
            ends = pairs.end.match(body, tag.end()) is not None
            if ends and not depth:
                return tag
            first = tag if ends and first is None else first
            depth = max(0, depth - 1)
        self._nests = False  # a tag that is quoted alone: from here on, so that each value is searched once
        return first
