"""JSON calls between two markers, as Hermes models write them and Qwen's after them.

<tool_call>
{"name": "get_weather", "arguments": {"city": "Ulm"}}
</tool_call>
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from renderers.formats.json_text import CallFaultError, JsonReader, ValueScanner
from renderers.parsed import CallStatus
from renderers.parsing.markers import Marker, MarkerTable
from renderers.parsing.protocol import BlockFactory, CallProgress, Frame, ReadCall, Tools

_SPACE = r"[ \t\n\r]*"
_NAME = re.compile(rf'{_SPACE}\{{{_SPACE}"name"{_SPACE}:{_SPACE}("(?:[^"\\]|\\.)+")')
_ARGUMENTS = re.compile(rf'{_SPACE},{_SPACE}"arguments"{_SPACE}:{_SPACE}(?=\{{)')
#: A call is streamed if its name and the key of its arguments stand within so many characters.
_HEAD = 1024


@dataclass(frozen=True, slots=True)
class JsonToolCalls:
    """Calls that are one JSON object each, with the keys `name` and `arguments`, in any order.

    The arguments' text is kept as sampled. Arguments that are JSON text inside a string, or stand under another key,
    are reported, not guessed. Where the name comes first, name and arguments are streamed as they arrive.
    """

    open: str | Marker = "<tool_call>"
    close: str | Marker = "</tool_call>"
    before: str = "\n"
    between: str = "\n"

    @property
    def frame(self) -> Frame:
        """One block is one call."""
        return Frame(self.open, self.close, before=self.before, between=self.between)

    def bind(self, markers: MarkerTable) -> JsonToolCalls:
        """The format needs nothing from the tokenizer."""
        return self

    def reader(self, tools: Tools | None) -> BlockFactory:
        """A reader for each call."""
        return JsonCallReader


class JsonCallReader:
    """Reads one call, and streams it where its name comes first."""

    def __init__(self) -> None:
        self._head = ""
        self._named = False
        self._arguments: _Arguments | None = None

    def progress(self, text: str) -> Sequence[CallProgress]:
        """The name as soon as it is whole, then the arguments as they come."""
        if self._arguments is not None:
            return self._arguments.progress(text)
        if len(self._head) >= _HEAD:
            return ()
        self._head += text
        head = _Head(self._head)
        events: list[CallProgress] = []
        if head.name and not self._named:
            self._named = True
            events.append(CallProgress(head.name))
        if head.arguments_start is not None:
            self._arguments = _Arguments(head.arguments_start)
            events += self._arguments.progress(self._head[head.arguments_start :])
        return events

    def read(self, body: str, *, complete: bool) -> list[ReadCall]:
        """The call."""
        return [read_json_call(body, self._arguments, complete=complete)]


class _Arguments:
    """The arguments' text, found by its brackets: what is streamed, whether or not it turns out to be JSON."""

    def __init__(self, start: int) -> None:
        self._start = start
        self._end = start
        self._scanner = ValueScanner()

    def progress(self, text: str) -> Sequence[CallProgress]:
        """The part of the body's next piece that belongs to the arguments."""
        taken = self._scanner.take(text)
        self._end += taken
        if taken == len(text):
            return (CallProgress(None, text),)
        return (CallProgress(None, text[:taken]),) if taken else ()

    def text(self, body: str) -> str:
        """The arguments' text in the whole body."""
        self.progress(body[self._end :])
        return body[self._start : self._end]


class _Head:
    """What the beginning of a body says for certain, whatever follows: it looks at no more than `_HEAD` characters."""

    __slots__ = ("arguments_start", "name")

    def __init__(self, body: str) -> None:
        self.name = ""
        self.arguments_start: int | None = None
        found = _NAME.match(body, 0, _HEAD)
        if found is None:
            return
        try:
            self.name = json.loads(found.group(1))
        except ValueError:
            return
        begun = _ARGUMENTS.match(body, found.end(), _HEAD)
        if begun is not None:
            self.arguments_start = begun.end()


def read_json_call(body: str, arguments: _Arguments | None = None, *, complete: bool) -> ReadCall:
    """The call that a body holds, with its faults; `arguments` is what was read of them so far."""
    head = _Head(body)
    if not complete:
        fault = CallFaultError(CallStatus.INCOMPLETE, "the call was cut before its end")
        name, text = head.name, ""
    else:
        members = Members(body)
        if members.fault is None:
            return ReadCall(members.name, members.arguments, members.arguments_text)
        fault, name, text = members.fault, head.name or members.name, members.arguments_text
    if head.arguments_start is not None:
        text = (arguments or _Arguments(head.arguments_start)).text(body)
    return ReadCall(name, None, text, fault.status, str(fault))


class Members:
    """Name and arguments of the call at `start` of a body, as far as it can be read.

    The arguments stand under one of `keys`. `end` is where the call ends, None where its JSON cannot be read; where the
    call is `alone`, nothing may follow.
    """

    def __init__(self, body: str, start: int = 0, *, keys: Sequence[str] = ("arguments",), alone: bool = True) -> None:
        self.name = ""
        self.end: int | None = None
        self.arguments: dict[str, Any] | None = None
        self.arguments_text = ""
        self._keys = keys
        self._found: dict[str, Any] = {}
        self._reader = JsonReader(body)
        self.fault: CallFaultError | None = None
        try:
            self.end = self._reader.members(self._take, start)
            if alone:
                self._reader.end(self.end)
        except CallFaultError as problem:
            self.fault = problem
        else:
            self.fault = self._reader.flaw or self._check()

    def _take(self, key: str, value: Any, start: int, end: int) -> None:
        if key in self._found:
            self._reader.add_flaw(CallStatus.DUPLICATE_KEY, f"the call has two keys {key!r}")
            return
        self._found[key] = value
        if key == "name" and isinstance(value, str):
            self.name = value
        elif key in self._keys:
            self.arguments_text = self._reader.text[start:end]

    def _check(self) -> CallFaultError | None:
        """The fault of a call whose JSON is sound."""
        name, given = self._found.get("name"), [key for key in self._keys if key in self._found]
        if not isinstance(name, str) or not name:
            found = "no name" if "name" not in self._found else f"the name {name!r}"
            return CallFaultError(CallStatus.MISSING_NAME, f"the call has {found}")
        if len(given) > 1:
            return CallFaultError(CallStatus.DUPLICATE_KEY, f"the call has both {' and '.join(map(repr, given))}")
        arguments = self._found[given[0]] if given else None
        if isinstance(arguments, dict):
            self.arguments = arguments
            return None
        if not given:
            keys = ", ".join(repr(key) for key in self._found if key != "name")
            wanted = " or ".join(map(repr, self._keys))
            found = f"no key {wanted} (it has {keys})" if keys else "no arguments"
        else:
            found = f"arguments of type {type(arguments).__name__}, not an object"
        return CallFaultError(CallStatus.INVALID_ARGUMENTS, f"the call has {found}")
