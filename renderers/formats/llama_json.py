"""Calls that are a whole reply, as Llama 3.1 and 3.2 write them.

    {"name": "get_weather", "parameters": {"city": "Ulm"}}
    <|python_tag|>brave_search.call(query="Ulm")

JSON stands with the tag before it or, mostly, without: then a reply is calls if the model ended it and it is nothing
else from the first character to the last. Prose that holds JSON is prose, and so is a reply that was cut. Several calls
are separated by `; `. The tools that the model was trained with are called in the second form, with the tag always.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from renderers.formats.hermes import Members
from renderers.formats.json_text import WHITESPACE, CallFaultError, ValueScanner
from renderers.formats.typed_values import Parameter, ToolSchemas, typed_call
from renderers.parsed import CallStatus
from renderers.parsing.markers import Marker, MarkerTable
from renderers.parsing.protocol import BlockFactory, CallProgress, Frame, ReadCall, Tools

PYTHON_TAG = "<|python_tag|>"
#: Under which keys the arguments may stand. The template says `parameters`.
_KEYS = ("parameters", "arguments")
_FIRST_KEYS = tuple(f'"{key}"' for key in ("name", "type", *_KEYS))
#: What may follow a call's object, and the white space that may stand in it.
_NEXT, _NO_SPACE = ";{", dict.fromkeys(map(ord, WHITESPACE))
#: By so many characters it is clear what the first key is.
_HEAD = 256
_SPACE = r"[ \t\n\r]*"
_BEGINNING = re.compile(
    rf'{_SPACE}\{{{_SPACE}(?:"type"{_SPACE}:{_SPACE}"function"{_SPACE},{_SPACE})?'
    rf'"name"{_SPACE}:{_SPACE}("(?:[^"\\]|\\.)+"){_SPACE},{_SPACE}"(?:{"|".join(_KEYS)})"{_SPACE}:{_SPACE}\{{'
)
_SEPARATOR = re.compile(rf"{_SPACE}(?:;{_SPACE}|\Z)")
_BUILTIN = re.compile(r"\s*([^\s.(){}\"]+(?:\.[^\s.(){}\"]+)*)\.call\((.*)\)\s*", re.DOTALL)
_ARGUMENT = re.compile(r'([^\s"=,()]+)="')
_ARGUMENT_END = re.compile(r'"(?=\Z|, [^\s"=,()]+=")')


@dataclass(frozen=True, slots=True)
class LlamaJsonCalls:
    """The dialect: objects with the keys `name` and `parameters` or `arguments`, and calls of built-in tools."""

    @property
    def frame(self) -> Frame:
        """A block goes on to the end of the turn."""
        return Frame(Marker.either(PYTHON_TAG), None, bare=True)

    def bind(self, markers: MarkerTable) -> LlamaJsonCalls:
        """The format needs nothing from the tokenizer."""
        return self

    def reader(self, tools: Tools | None) -> BlockFactory:
        """A reader for each block."""
        return LlamaCallReader


class LlamaCallReader:
    """Reads the calls of one reply, at its end: until then it may be prose."""

    def __init__(self) -> None:
        self._head = ""
        self._first = ValueScanner()
        self._after = ""

    def progress(self, text: str) -> Sequence[CallProgress]:
        """Nothing is certain before the end."""
        return ()

    def may_be_calls(self, text: str) -> bool:
        """Whether the answer so far may be calls: it begins with an object, whose first key is that of a call, and after
        it nothing comes but another one."""
        if len(self._head) < _HEAD:
            self._head = (self._head + text).lstrip(WHITESPACE)[:_HEAD]
            if not _may_begin(self._head):
                return False
        if len(self._after) < len(_NEXT):
            rest = text[self._first.take(text) :]
            self._after = (self._after + rest.translate(_NO_SPACE))[: len(_NEXT)]
        return _NEXT.startswith(self._after)

    def are_calls(self, answer: str) -> bool:
        """Whether each object is a call, or begins like one and is malformed."""
        return all(call.status is CallStatus.OK or _BEGINNING.match(answer, call.start or 0) for call in _read(answer))

    def read(self, body: str, *, complete: bool) -> list[ReadCall]:
        """The calls with their faults. What is malformed reaches to the end."""
        builtin = _BUILTIN.fullmatch(body)
        calls = list(_read(body)) if builtin is None else [_builtin_call(*builtin.groups())]
        if not complete:
            error = "the call was cut before its end"
            calls[-1] = replace(calls[-1], arguments=None, status=CallStatus.INCOMPLETE, error=error)
        return calls if len(calls) > 1 else [replace(calls[0], start=None, end=None)]


def _may_begin(text: str) -> bool:
    """Whether more text can make a call of this."""
    key = text[1:].lstrip(WHITESPACE)
    return not text or (text[0] == "{" and any(key.startswith(first) or first.startswith(key) for first in _FIRST_KEYS))


def _read(body: str) -> Iterator[ReadCall]:
    """The calls of a body, one at least."""
    start, size = 0, len(body.rstrip(WHITESPACE))
    while True:
        found = Members(body, start, keys=_KEYS, alone=False)
        fault = found.fault
        separator = _SEPARATOR.match(body, found.end) if found.end is not None else None
        if found.end is not None and separator is None:
            fault = CallFaultError(CallStatus.MALFORMED, "what follows the call's object is neither `;` nor the end")
        end = found.end if found.end is not None and separator is not None else size
        if fault is None:
            yield ReadCall(found.name, found.arguments, found.arguments_text, start=start, end=end)
        else:
            name = found.name or _name(body, start)
            yield ReadCall(name, None, found.arguments_text, fault.status, str(fault), start=start, end=end)
        if separator is None or separator.end() >= size:
            return
        start = separator.end()


def _name(body: str, start: int) -> str:
    """The name of a call whose JSON cannot be read."""
    found = _BEGINNING.match(body, start)
    try:
        return str(json.loads(found.group(1))) if found else ""
    except ValueError:
        return ""


def _builtin_call(name: str, text: str) -> ReadCall:
    """A call as Python writes it, whose values are all strings, without escapes: one ends where another may begin."""
    parameters: list[Parameter] = []
    position = 0
    while position < len(text):
        argument = _ARGUMENT.match(text, position)
        end = _ARGUMENT_END.search(text, argument.end()) if argument else None
        if argument is None or end is None:
            fault = CallFaultError(CallStatus.MALFORMED, f'{text[position : position + 40]!r} is not name="value"')
            return typed_call(name, (), ToolSchemas(), fault=fault)
        parameters.append(Parameter(argument.group(1), text[argument.end() : end.start()], is_string=True))
        position = end.end() + len(", ")
    return typed_call(name, parameters, ToolSchemas())
