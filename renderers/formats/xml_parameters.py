"""Calls whose parameters stand between XML-like tags, as Qwen3-Coder and Qwen3.5 write them.

    <tool_call>
    <function=get_weather>
    <parameter=city>
    Ulm
    </parameter>
    </function>
    </tool_call>

Only `<tool_call>` and `</tool_call>` are special tokens; the other tags are plain text and count by position. A value is
what stands between the line feed after its opening tag and the one before its closing tag, byte for byte. A string is
written bare, and reading goes by the tool's schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from renderers.conversation import Turn
from renderers.formats.json_text import CallFaultError
from renderers.formats.open_values import OpenValue
from renderers.formats.spelling import Spelling
from renderers.formats.typed_values import Parameter, ToolSchemas, typed_call
from renderers.parsed import CallStatus
from renderers.parsing.markers import Marker, MarkerTable
from renderers.parsing.protocol import BlockFactory, CallProgress, Frame, ReadCall, Tools
from renderers.writer import Writer

_SHOWN = 40
_LINES = "This is the value for the second parameter\nthat can span\nmultiple lines"
_NESTED = "an inner <function=...></function> block must be nested within <tool_call></tool_call> XML tags"


def instructions(*, noun: str = "function", value: str = _LINES, rule: str = _NESTED) -> str:
    """How to call, as these templates say it after the tools: what is called, a value, what a call must look like."""
    return (
        f"\n\nIf you choose to call a {noun} ONLY reply in the following format with NO suffix:\n\n"
        "<tool_call>\n<function=example_function_name>\n<parameter=example_parameter_1>\nvalue_1\n</parameter>\n"
        f"<parameter=example_parameter_2>\n{value}\n</parameter>\n</function>\n</tool_call>\n\n"
        f"<IMPORTANT>\nReminder:\n- Function calls MUST follow the specified format: {rule}\n"
        "- Required parameters MUST be specified\n"
        "- You may provide optional reasoning for your function call in natural language BEFORE the function call, but "
        "NOT after\n"
        "- If there is no function call available, answer the question like normal with your current knowledge and do "
        "not tell the user about function calls\n</IMPORTANT>"
    )


@dataclass(frozen=True, slots=True)
class XmlParameters:
    """The dialect, written and read.

    Attributes:
        spelling: how the template writes values that are no strings, and so how they are read.
        open: the marker before a call.
        close: the marker after it.
    """

    spelling: Spelling = Spelling.JSON
    open: str | Marker = "<tool_call>"
    close: str | Marker = "</tool_call>"

    @property
    def frame(self) -> Frame:
        """One block is one call, after an empty line where text comes before it."""
        return Frame(self.open, self.close, before="\n\n", between="\n")

    def bind(self, markers: MarkerTable) -> _Bound:
        """A call is read when it closes: only then is it known where each value ends."""
        return _Bound(markers, self.spelling)

    def write_calls(self, out: Writer, turn: Turn) -> None:
        """The calls of an assistant's message."""
        separator = "\n\n" if turn.content else ""
        for call in turn.message.tool_calls or ():
            out.scaffold(f"{separator}<tool_call>\n<function=")
            out.body(call.function.name)
            out.scaffold(">\n")
            arguments = call.function.arguments_object if call.function.arguments else {}
            for key, value in arguments.items():
                out.scaffold("<parameter=")
                out.body(key)
                out.scaffold(">\n")
                out.body(self.spelling.write(value))
                out.scaffold("\n</parameter>\n")
            out.scaffold("</function>\n</tool_call>")
            separator = "\n"


@dataclass(frozen=True, slots=True)
class _Bound:
    """The dialect for one tokenizer. Special tokens inside a value stand in a body as codes."""

    markers: MarkerTable
    spelling: Spelling

    def reader(self, tools: Tools | None) -> BlockFactory:
        """A reader for each call; the tools' schemas are looked up once a reply."""
        schemas = ToolSchemas(tools)
        return lambda: _CallReader(self.markers, schemas, self.spelling)


_HEAD = re.compile(r"\s*<function=([^<>\n]*)>")
_END = re.compile(r"\s*</function>\s*\Z")
_OPENING = re.compile(r"\s*<parameter=([^<>\n]*)>")
_TAG = re.compile(r"(?P<opens><parameter=[^<>\n]*>)|(?P<closes></parameter>)")
_FOLLOWS = re.compile(rf"{_OPENING.pattern}|{_END.pattern}")
_ANY_TAG = re.compile(r"(<parameter=[^<>\n]*>|</parameter>|</function>)")
_NAME = re.compile(r'[^\s<>{}"]+')


class _CallReader:
    """Reads one call.

    A value ends at a closing tag that another parameter or the call's end follows, unless a tag is open that the value
    quotes. If no closing tag is such a one, the first that is followed so ends it.
    """

    def __init__(self, markers: MarkerTable, schemas: ToolSchemas, spelling: Spelling) -> None:
        self._text = markers.text
        self._schemas = schemas
        self._spelling = spelling
        self._nests = True
        self._open_value = OpenValue(_ANY_TAG, "<parameter=", "</parameter>")

    def progress(self, text: str) -> Sequence[CallProgress]:
        """Nothing is certain before the end."""
        return ()

    def in_value(self, text: str) -> bool:
        """Whether a value is open after this text."""
        return self._open_value.after(text)

    def read(self, body: str, *, complete: bool) -> Sequence[ReadCall]:
        """The call, with its faults."""
        fault: CallFaultError | None = None
        parameters: list[Parameter] = []
        head = _HEAD.match(body)
        name = self._text(head.group(1)) if head else ""
        try:
            if head is None or not _NAME.fullmatch(name):
                name = ""
                raise _broken("the head of a call", self._text(body.lstrip()))
            parameters += self._parameters(body, head.end())
        except CallFaultError as problem:
            fault = problem
        if not complete:
            fault = CallFaultError(CallStatus.INCOMPLETE, "the call was cut before its end")
        return [typed_call(name, parameters, self._schemas, fault=fault, spelling=self._spelling)]

    def _parameters(self, body: str, position: int) -> Iterator[Parameter]:
        while not _END.match(body, position):
            opening = _OPENING.match(body, position)
            if opening is None:
                raise _broken("a parameter or the call's end", self._text(body[position:]))
            closing = self._closing(body, opening.end())
            if closing is None:
                raise _broken("a parameter that is closed", self._text(opening.group().lstrip()))
            value = body[opening.end() : closing.start()].removeprefix("\n").removesuffix("\n")
            yield Parameter(self._text(opening.group(1)), self._text(value))
            position = closing.end()

    def _closing(self, body: str, start: int) -> re.Match[str] | None:
        """The closing tag of the value that begins at `start`."""
        depth, first = 0, None
        for tag in _TAG.finditer(body, start):
            if tag["opens"]:
                depth += self._nests
                continue
            ends = _FOLLOWS.match(body, tag.end()) is not None
            if ends and not depth:
                return tag
            first = tag if ends and first is None else first
            depth = max(0, depth - 1)
        self._nests = False  # a tag that is quoted alone: from here on, so that each value is searched once
        return first


def _broken(expected: str, found: str) -> CallFaultError:
    return CallFaultError(CallStatus.MALFORMED, f"{found[:_SHOWN]!r} is not {expected}")
