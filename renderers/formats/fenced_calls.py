"""Calls whose arguments stand in a fenced block of JSON, as DeepSeek V3 and R1 write them.

<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather
```json
{"city": "Ulm"}
```<｜tool▁call▁end｜>
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from renderers.formats.json_text import CallFaultError, json_call
from renderers.messages import ToolCall
from renderers.parsed import CallStatus
from renderers.parsing.markers import Identity, Marker, MarkerTable
from renderers.parsing.protocol import BlockFactory, CallProgress, Frame, ReadCall, Tools
from renderers.writer import Writer

FENCE, FENCE_END = "\n```json\n", "\n```"
KIND = "function"
#: A call is streamed if its fence opens within so many characters.
_HEAD = 1024


@dataclass(frozen=True, slots=True)
class FencedJsonCalls:
    """Calls of the form `open`, the word `function`, `separator`, name, a fence, JSON, a fence, `close`; in a section.

    The fences are found by position: those that stand in a value belong to it. Name and arguments are streamed as they
    arrive. `identity` is how the markers are told from text.
    """

    open: str
    separator: str
    close: str
    section_open: str
    section_close: str
    identity: Identity = Identity.TOKEN

    @property
    def tokens(self) -> tuple[str, ...]:
        """The special tokens of the format."""
        return self.open, self.separator, self.close, self.section_open, self.section_close

    @property
    def frame(self) -> Frame:
        """One block is one call."""
        opener, separator, closer, *section = (Marker(text, self.identity) for text in self.tokens)
        return Frame(opener, closer, section[0], section[1], inner=(separator,), between="\n")

    def write_section(self, out: Writer, calls: Sequence[ToolCall]) -> None:
        """Calls in a section, a line each."""
        for position, call in enumerate(calls):
            out.scaffold("\n" if position else self.section_open)
            self.write(out, call)
        out.scaffold(self.section_close)

    def write(self, out: Writer, call: ToolCall) -> None:
        """One call."""
        out.scaffold(self.open)
        out.body(call.type or KIND)
        out.scaffold(self.separator)
        out.body(call.function.name)
        out.scaffold(FENCE)
        out.body(call.function.arguments_text)
        out.scaffold(FENCE_END + self.close)

    def bind(self, markers: MarkerTable) -> _BoundFencedCalls:
        """Look the separator up."""
        return _BoundFencedCalls(markers, KIND + markers.spelled(Marker(self.separator, self.identity)))


@dataclass(frozen=True, slots=True)
class _BoundFencedCalls:
    markers: MarkerTable
    before_name: str

    def reader(self, tools: Tools | None) -> BlockFactory:
        """A reader for each call."""
        return lambda: _FencedCallReader(self)

    def head(self, body: str) -> tuple[str, int] | None:
        """The name, and where the arguments begin; None as long as the body does not say."""
        start = len(self.before_name)
        end = body.find(FENCE, start) if body.startswith(self.before_name) else -1
        return None if end < 0 else (self.markers.text(body[start:end]), end + len(FENCE))

    def read(self, body: str, *, complete: bool) -> ReadCall:
        """The call that a body holds, with its faults."""
        head = self.head(body)
        name, start = head or ("", len(body))
        text = body[start:]
        fault = None
        if not complete:
            fault = CallFaultError(CallStatus.INCOMPLETE, "the call was cut before its end")
        elif head is None:
            expected = self.markers.text(f"{self.before_name}NAME{FENCE}")
            fault = CallFaultError(CallStatus.MALFORMED, f"the call does not begin with {expected!r}")
        elif not text.endswith(FENCE_END):
            fault = CallFaultError(CallStatus.MALFORMED, f"the call does not end in {FENCE_END!r}")
        return json_call(name, self.markers.text(text.removesuffix(FENCE_END)), fault)


class _FencedCallReader:
    """Reads one call, and streams it once its fence opens."""

    def __init__(self, bound: _BoundFencedCalls) -> None:
        self._bound = bound
        self._head = ""
        self._named = False
        #: The last characters so far, where they may begin the closing fence.
        self._held = ""

    def progress(self, text: str) -> Sequence[CallProgress]:
        """The name when the fence opens, then the arguments as they come."""
        if self._named:
            return (CallProgress(None, certain),) if (certain := self._certain(text)) else ()
        if len(self._head) >= _HEAD:
            return ()
        self._head += text
        name, start = self._bound.head(self._head) or ("", 0)
        self._named = bool(name)
        return (CallProgress(name, self._certain(self._head[start:])),) if name else ()

    def _certain(self, text: str) -> str:
        text = self._held + text
        longest = min(len(FENCE_END), len(text))
        held = next(size for size in range(longest, -1, -1) if FENCE_END.startswith(text[len(text) - size :]))
        self._held = text[len(text) - held :]
        return self._bound.markers.text(text[: len(text) - held])

    def read(self, body: str, *, complete: bool) -> list[ReadCall]:
        """The call."""
        return [self._bound.read(body, complete=complete)]
