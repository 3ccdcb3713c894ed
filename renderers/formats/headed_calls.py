"""Calls that are a head, a marker, and the arguments as JSON, as Kimi writes them.

    <|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Ulm"}<|tool_call_end|>

What the head says differs: a name, or an ID that holds one, which `read_call_id` reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from renderers.formats.json_text import CallFaultError, json_call
from renderers.parsed import CallStatus
from renderers.parsing.markers import Identity, Marker, MarkerTable
from renderers.parsing.protocol import BlockFactory, CallProgress, Frame, ReadCall, Tools


class CallHead(NamedTuple):
    """What a call's head says. The name is empty where it could not be read."""

    name: str
    call_id: str | None = None


#: Reads the text before the separator.
ReadHead: TypeAlias = Callable[[str], CallHead]

#: An ID that holds the name: `functions.get_weather:0`.
CALL_ID = re.compile(r"(?P<prefix>functions\.)?+(?P<name>.+):[0-9]+", re.DOTALL)


def read_call_id(text: str) -> CallHead:
    """The name in a call's ID, `functions.get_weather:0`. Engines take it without `functions.`, too; so do we."""
    found = CALL_ID.fullmatch(text.strip())
    return CallHead(found["name"] if found else "", text or None)


@dataclass(frozen=True, slots=True)
class HeadedJsonCalls:
    """Calls of the form `open` head `separator` JSON `close`, perhaps in a section.

    The arguments' text is all that stands after the separator, as sampled. Name and arguments are streamed as they
    arrive. `identity` is how all its markers are told from text.
    """

    open: str
    separator: str
    close: str
    read_head: ReadHead
    section_open: str | None = None
    section_close: str | None = None
    identity: Identity = Identity.TOKEN

    @property
    def frame(self) -> Frame:
        """One block is one call."""
        opener, separator, closer = (Marker(text, self.identity) for text in (self.open, self.separator, self.close))
        section = [text and Marker(text, self.identity) for text in (self.section_open, self.section_close)]
        return Frame(opener, closer, section[0], section[1], inner=(separator,))

    def bind(self, markers: MarkerTable) -> _BoundHeadedCalls:
        """Look the separator up."""
        return _BoundHeadedCalls(self, markers, markers.spelled(Marker(self.separator, self.identity)))


@dataclass(frozen=True, slots=True)
class _BoundHeadedCalls:
    calls: HeadedJsonCalls
    markers: MarkerTable
    separator: str

    def reader(self, tools: Tools | None) -> BlockFactory:
        """A reader for each call."""
        return lambda: _HeadedCallReader(self)

    def read(self, body: str, *, complete: bool) -> ReadCall:
        """The call that a body holds, with its faults."""
        text, separator, rest = body.partition(self.separator)
        head = self.calls.read_head(text) if separator or complete else CallHead("")
        fault = None
        if not complete:
            fault = CallFaultError(CallStatus.INCOMPLETE, "the call was cut before its end")
        elif not head.name:
            fault = CallFaultError(CallStatus.MISSING_NAME, f"the call's head {text!r} names no tool")
        elif not separator:
            fault = CallFaultError(CallStatus.MALFORMED, f"the call has no {self.calls.separator}")
        # The model may sample the separator again, inside a string: there it is text. Without a name nothing is streamed.
        arguments_text = self.markers.text(rest) if head.name else ""
        return json_call(head.name, arguments_text, fault, call_id=head.call_id)


class _HeadedCallReader:
    """Reads one call, and streams it once its head is whole."""

    def __init__(self, bound: _BoundHeadedCalls) -> None:
        self._bound = bound
        self._head: list[str] = []
        self._streams: bool | None = None  # None while the head is open

    def progress(self, text: str) -> Sequence[CallProgress]:
        """The name when the separator comes, then the arguments as they come."""
        if self._streams is None:
            before, separator, text = text.partition(self._bound.separator)
            self._head.append(before)
            if not separator:
                return ()
            head = self._bound.calls.read_head("".join(self._head))
            self._streams = bool(head.name)
            if head.name:
                return (CallProgress(head.name, self._bound.markers.text(text), head.call_id),)
        return (CallProgress(None, self._bound.markers.text(text)),) if self._streams and text else ()

    def read(self, body: str, *, complete: bool) -> list[ReadCall]:
        """The call."""
        return [self._bound.read(body, complete=complete)]
