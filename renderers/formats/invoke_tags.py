"""Calls between XML-like tags with names in quotes, several in a block, as MiniMax M2 writes them.

    <minimax:tool_call>
    <invoke name="get_weather">
    <parameter name="city">Ulm</parameter>
    <parameter name="days">3</parameter>
    </invoke>
    </minimax:tool_call>

Only the outer two are special tokens; the other tags are plain text and count by position. A value is what stands
between its tags, byte for byte. A string is written bare, any other value as JSON, and reading goes by the tool's schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from renderers.formats.blocks import TaggedCall, read_calls
from renderers.formats.open_values import OpenValue
from renderers.formats.typed_values import Parameter, ToolSchemas
from renderers.parsing.markers import Marker, MarkerTable
from renderers.parsing.protocol import BlockFactory, CallProgress, Frame, ReadCall, Tools


@dataclass(frozen=True, slots=True)
class InvokeCalls:
    """The dialect.

    Attributes:
        open: the marker before the calls of a reply.
        close: the marker after them.
    """

    open: str | Marker = "<minimax:tool_call>"
    close: str | Marker = "</minimax:tool_call>"

    @property
    def frame(self) -> Frame:
        """One block holds all calls of a reply, on a line of its own."""
        return Frame(self.open, self.close, before="\n")

    def bind(self, markers: MarkerTable) -> _Bound:
        """Calls are read when their block closes: only then is it known where each value ends."""
        return _Bound(markers)


@dataclass(frozen=True, slots=True)
class _Bound:
    """The dialect for one tokenizer. Special tokens inside a value stand in a body as codes."""

    markers: MarkerTable

    def reader(self, tools: Tools | None) -> BlockFactory:
        """A reader for each block; the tools' schemas are looked up once a reply."""
        schemas = ToolSchemas(tools)
        return lambda: _BlockReader(self.markers, schemas)


_OPENING = '<invoke name="'
_CALL = re.compile(r'<invoke name="([^"\n]*)">')
_CALL_END = re.compile(r"\s*</invoke>")
_PARAMETER = re.compile(r'\s*<parameter name="([^"\n]*)">')
_VALUE_END = re.compile(rf"</parameter>(?={_PARAMETER.pattern}|{_CALL_END.pattern})")
#: What no value goes beyond that quotes a tag without its counterpart: another call begins, or the block ends.
_BORDER = re.compile(rf"</(?:invoke|parameter)>\s*(?:{_OPENING}|\Z)")
_TAG = re.compile(r'(?P<opens><parameter name="[^"\n]*">)|</parameter>')
_ANY_TAG = re.compile(r'(<parameter name="[^"\n]*">|</parameter>|</invoke>)')
_NAME = re.compile(r'[^\s<>{}"]+')


class _BlockReader:
    """Reads a block's calls."""

    def __init__(self, markers: MarkerTable, schemas: ToolSchemas) -> None:
        self._text = markers.text
        self._schemas = schemas
        self._open_value = OpenValue(_ANY_TAG, "<parameter name=", "</parameter>")

    def progress(self, text: str) -> Sequence[CallProgress]:
        """Nothing is certain before the end."""
        return ()

    def in_value(self, text: str) -> bool:
        """Whether a value is open after this text."""
        return self._open_value.after(text)

    def read(self, body: str, *, complete: bool) -> list[ReadCall]:
        """The calls with their faults."""
        read_call = _Body(body, self._text).read_call
        return read_calls(body, read_call, _OPENING, self._schemas, self._text, complete=complete)


class _Body:
    """A block's body, whose calls are read in order.

    A value ends at a closing tag that another parameter or the call's end follows, unless a tag is open that the value
    quotes. If no closing tag is such a one, the first of this call that is followed so ends it.
    """

    def __init__(self, body: str, text: Callable[[str], str]) -> None:
        self._body = body
        self._text = text
        self._nests = True
        self._borders, self._ends = _Places(_BORDER, body), _Places(_VALUE_END, body)

    def read_call(self, start: int) -> TaggedCall:
        """The call that should begin at `start`."""
        body, parameters = self._body, list[Parameter]()
        call = _CALL.match(body, start)
        name = self._text(call.group(1)) if call else ""
        if call is None or not _NAME.fullmatch(name):
            return TaggedCall("", parameters, None)
        end = call.end()
        while opening := _PARAMETER.match(body, end):
            value_end = self._value_end(opening.end())
            if value_end is None:
                return TaggedCall(name, parameters, None)
            parameters.append(Parameter(self._text(opening.group(1)), self._text(body[opening.end() : value_end])))
            end = value_end + len("</parameter>")
        closing = _CALL_END.match(body, end)
        return TaggedCall(name, parameters, closing.end() if closing else None)

    def _value_end(self, start: int) -> int | None:
        """Where the closing tag of the value stands that begins at `start`."""
        depth = 0
        for tag in _TAG.finditer(self._body, start) if self._nests else ():
            if tag["opens"]:
                depth += 1
            elif depth:
                depth -= 1
            elif _VALUE_END.match(self._body, tag.start()):
                return tag.start()
        self._nests = False  # a tag that is quoted alone: from here on, so that each value is searched once
        end = self._ends.after(start)
        return end if end < self._borders.after(start) else None


class _Places:
    """Where a pattern is found, asked for at places that only grow: the body is searched once."""

    def __init__(self, pattern: re.Pattern[str], body: str) -> None:
        self._pattern = pattern
        self._body = body
        self._found = -1

    def after(self, position: int) -> int:
        """The first place at or after `position`; the body's length if there is none."""
        if self._found < position:
            found = self._pattern.search(self._body, position)
            self._found = found.start() if found else len(self._body)
        return self._found
