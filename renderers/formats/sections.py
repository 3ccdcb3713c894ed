"""Calls in a section of their own: each names its tool and gives JSON arguments, set apart by fixed text.

DeepSeek V3.1 writes the name, a separator and the arguments:

<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Ulm"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>

DeepSeek V3 and R1 write the word `function` before the name, and fence the arguments:

<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather
```json
{"city": "Ulm"}
```<｜tool▁call▁end｜><｜tool▁calls▁end｜>
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from renderers.formats.json_text import CallFaultError, read_json
from renderers.parsed import CallStatus
from renderers.parsing.markers import MarkerTable
from renderers.parsing.protocol import BlockFactory, CallProgress, Frame, ReadCall, Tools

#: A call is streamed if its name and what follows that stand within so many characters.
_HEAD = 1024


@dataclass(frozen=True, slots=True)
class SectionCalls:
    """Calls of the form `before_name`, name, `after_name`, arguments, `after_arguments`.

    Attributes:
        section: the markers around all calls.
        call: the markers around one call.
        before_name, after_name, after_arguments: the fixed text in a call; `inner` lists the special tokens in it.
        between: the line feeds between two calls.
    """

    section: tuple[str, str]
    call: tuple[str, str]
    after_name: str
    before_name: str = ""
    after_arguments: str = ""
    inner: tuple[str, ...] = ()
    between: str = ""

    @property
    def frame(self) -> Frame:
        """One block is one call."""
        return Frame(*self.call, *self.section, inner=self.inner, between=self.between)

    def bind(self, markers: MarkerTable) -> _BoundSectionCalls:
        """Look up the special tokens of the fixed text."""
        fixed = []
        for text in (self.before_name, self.after_name, self.after_arguments):
            for token in self.inner:
                text = text.replace(token, markers.code(token))
            fixed.append(text)
        return _BoundSectionCalls(markers, *fixed)


@dataclass(frozen=True, slots=True)
class _BoundSectionCalls:
    """The format for one tokenizer; its texts are coded."""

    markers: MarkerTable
    before_name: str
    after_name: str
    after_arguments: str

    def reader(self, tools: Tools | None) -> BlockFactory:  # noqa: ARG002 - JSON has types
        """A reader for each call."""
        return lambda: _CallReader(self)

    def head(self, body: str) -> tuple[str, int] | None:
        """The name, and where the arguments begin; None while the body does not say."""
        start = len(self.before_name)
        end = body.find(self.after_name, start) if body.startswith(self.before_name) else -1
        return None if end < 0 else (self.markers.text(body[start:end]), end + len(self.after_name))

    def read(self, body: str, *, complete: bool) -> ReadCall:
        """The call that a body holds."""
        name, text, fault = "", "", None
        head = self.head(body)
        if head is None:
            fault = CallFaultError(CallStatus.MALFORMED, "the call is not written as a name and arguments")
        else:
            name, start = head
            rest = body[start:]
            text = self.markers.text(rest.removesuffix(self.after_arguments))
            if not rest.endswith(self.after_arguments):
                expected = self.markers.text(self.after_arguments)
                fault = CallFaultError(CallStatus.MALFORMED, f"the arguments do not end in {expected!r}")
        if not complete:
            fault = CallFaultError(CallStatus.INCOMPLETE, "the call was cut before its end")
        return json_call(name, text, fault)


class _CallReader:
    """Reads one call, and streams it: the name as soon as it is whole, then the arguments as they come."""

    def __init__(self, wire: _BoundSectionCalls) -> None:
        self._wire = wire
        self._head = ""
        self._named = False
        #: The end of the arguments so far that may be the beginning of what stands after them.
        self._held = ""

    def progress(self, text: str) -> Sequence[CallProgress]:
        """What the next piece makes certain."""
        if self._named:
            return self._arguments(text)
        if len(self._head) >= _HEAD:
            return ()
        self._head += text
        head = self._wire.head(self._head)
        if head is None or not head[0]:
            return ()
        self._named = True
        name, start = head
        return [CallProgress(name), *self._arguments(self._head[start:])]

    def _arguments(self, text: str) -> Sequence[CallProgress]:
        text = self._held + text
        after = self._wire.after_arguments
        longest = min(len(after), len(text))
        certain = len(text) - next(size for size in range(longest, -1, -1) if after.startswith(text[len(text) - size :]))
        self._held = text[certain:]
        said = self._wire.markers.text(text[:certain])
        return (CallProgress(None, said),) if said else ()

    def read(self, body: str, *, complete: bool) -> list[ReadCall]:
        """The call."""
        return [self._wire.read(body, complete=complete)]


def json_call(name: str, arguments_text: str, fault: CallFaultError | None = None) -> ReadCall:
    """The call of a format whose arguments are one JSON object; `fault` is what is wrong with its own grammar."""
    if fault is None and not name:
        fault = CallFaultError(CallStatus.MISSING_NAME, "the call has no name")
    if fault is None:
        try:
            arguments = read_json(arguments_text)
        except CallFaultError as problem:
            fault = problem
        else:
            if isinstance(arguments, dict):
                return ReadCall(name, arguments, arguments_text)
            found = f"arguments of type {type(arguments).__name__}, not an object"
            fault = CallFaultError(CallStatus.INVALID_ARGUMENTS, f"the call has {found}")
    return ReadCall(name, None, arguments_text, fault.status, str(fault))
