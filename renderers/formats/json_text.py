"""JSON as a model samples it: read with the standard json module, the exact text of a value kept."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from renderers.parsed import CallStatus
from renderers.parsing.protocol import ReadCall

#: JSON's own whitespace, which is less than what `str.strip` removes.
WHITESPACE = " \t\n\r"
_SKIP = re.compile(r"[ \t\n\r]*")


class CallFaultError(Exception):
    """What is wrong with a call. Formats raise it inside and report it: it never reaches a user."""

    def __init__(self, status: CallStatus, problem: str) -> None:
        super().__init__(problem)
        self.status = status


@dataclass(slots=True)
class _Flaws:
    """What the decoder met that JSON, or a call, must not have. The first one counts."""

    first: CallFaultError | None = None

    def add(self, status: CallStatus, problem: str) -> None:
        if self.first is None:
            self.first = CallFaultError(status, problem)

    def constant(self, text: str) -> float:
        self.add(CallStatus.NON_FINITE_NUMBER, f"{text} is no JSON number")
        return math.nan

    def number(self, text: str) -> float:
        value = float(text)
        if math.isinf(value):
            self.add(CallStatus.NON_FINITE_NUMBER, f"{text} is beyond the range of floating-point numbers")
        return value

    def pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for index, key in enumerate(keys) if key in keys[:index])
            self.add(CallStatus.DUPLICATE_KEY, f"the key {twice!r} stands twice in one object")
        return value


class JsonReader:
    """Reads JSON values at places of a text. Raises `CallFaultError` and nothing else.

    Flaws that do not hinder reading (a key that stands twice, NaN) are collected in `flaw`.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._flaws = _Flaws()
        self._decode = json.JSONDecoder(
            object_pairs_hook=self._flaws.pairs,
            parse_constant=self._flaws.constant,
            parse_float=self._flaws.number,
        ).raw_decode

    @property
    def flaw(self) -> CallFaultError | None:
        """The first flaw so far."""
        return self._flaws.first

    def add_flaw(self, status: CallStatus, problem: str) -> None:
        """Note a flaw that the caller found."""
        self._flaws.add(status, problem)

    def skip(self, position: int) -> int:
        """The place of the next character that is no whitespace."""
        found = _SKIP.match(self.text, position)
        return found.end() if found is not None else position

    def value(self, position: int) -> tuple[Any, int]:
        """The value that begins at `position`, and where it ends."""
        try:
            return self._decode(self.text, position)
        except json.JSONDecodeError as error:
            self.fail(error.msg, error.pos)
        except RecursionError:
            self.fail("nested too deeply", position)
        except ValueError as error:  # an integer of more digits than Python converts
            self.fail(str(error).split(";", 1)[0], position)

    def fail(self, problem: str, position: int) -> NoReturn:
        """Raise what stands at `position`."""
        found = repr(self.text[position : position + 20]) if position < len(self.text) else "the end"
        raise CallFaultError(CallStatus.INVALID_JSON, f"not JSON at character {position} ({found}): {problem}")

    def end(self, position: int) -> None:
        """Nothing but whitespace follows."""
        position = self.skip(position)
        if position < len(self.text):
            self.fail("extra text", position)

    def members(self, take: Callable[[Any, Any, int, int], None], start: int = 0) -> int:
        """Read the object at `start` and give `take` each key, value, and where the value begins and ends; returns the end."""
        position = self.skip(start)
        if not self.text.startswith("{", position):
            self.value(position)  # says what is wrong if it is no JSON at all
            raise CallFaultError(CallStatus.MALFORMED, "not a JSON object")
        position = self.skip(position + 1)
        if self.text.startswith("}", position):
            return position + 1
        while True:
            if not self.text.startswith('"', position):
                self.fail("expecting a key in double quotes", position)
            key, position = self.value(position)
            position = self.skip(position)
            if not self.text.startswith(":", position):
                self.fail("expecting ':'", position)
            start = self.skip(position + 1)
            value, position = self.value(start)
            take(key, value, start, position)
            position = self.skip(position)
            if self.text.startswith("}", position):
                return position + 1
            if not self.text.startswith(",", position):
                self.fail("expecting ',' or '}'", position)
            position = self.skip(position + 1)


def read_json(text: str) -> Any:
    """The JSON value that `text` is, whitespace around it aside.

    Raises:
        CallFaultError: it is none, or holds a key twice or a number that is not finite.
    """
    reader = JsonReader(text)
    value, end = reader.value(reader.skip(0))
    reader.end(end)
    if reader.flaw is not None:
        raise reader.flaw
    return value


def json_call(
    name: str, arguments_text: str, fault: CallFaultError | None = None, *, call_id: str | None = None
) -> ReadCall:
    """The call of a format whose arguments are JSON text.

    Args:
        name: the tool's name, as it was read.
        arguments_text: the arguments, as they were sampled.
        fault: what is wrong with the call's own grammar, or that it was cut; it comes before faults of the arguments.
        call_id: the call's ID, where the format writes one.
    """
    if fault is None and not name:
        fault = CallFaultError(CallStatus.MISSING_NAME, "the call has no name")
    if fault is None:
        try:
            arguments = read_json(arguments_text)
        except CallFaultError as problem:
            fault = problem
        else:
            if isinstance(arguments, dict):
                return ReadCall(name, arguments, arguments_text, call_id=call_id)
            found = f"arguments of type {type(arguments).__name__}, not an object"
            fault = CallFaultError(CallStatus.INVALID_ARGUMENTS, f"the call has {found}")
    return ReadCall(name, None, arguments_text, fault.status, str(fault), call_id)


@dataclass(slots=True)
class ValueScanner:
    """Finds the end of a JSON object or array that arrives in pieces, by its brackets and quotes."""

    depth: int = 0
    done: bool = False
    _in_string: bool = field(default=False, init=False)
    _escaped: bool = field(default=False, init=False)

    def take(self, text: str) -> int:
        """How many characters of this next piece belong to the value."""
        if self.done:
            return 0
        position = 0
        if self._in_string:
            position = self._rest_of_string(text)
            if self._in_string:
                return position
        for found in _STRUCTURAL.finditer(text, position):
            kind = found.lastindex
            if kind == _OPENS:
                self.depth += 1
            elif kind in {_CLOSES, _FLAT}:
                self.depth -= kind == _CLOSES
                if self.depth <= 0:
                    self.done = True
                    return found.end()
            elif (end := found.group(_STRING_END)) != '"':
                self._in_string = True
                self._escaped = end == "\\"
        return len(text)

    def _rest_of_string(self, text: str) -> int:
        """The end of the string that an earlier piece began, or of the text."""
        found = _STRING_REST.match(text, 1 if self._escaped else 0)
        if found is None:
            return len(text)
        end = found.group(_STRING_END)
        self._in_string = end != '"'
        self._escaped = end == "\\"
        return found.end()


_STRING_END, _FLAT, _OPENS, _CLOSES = 1, 2, 3, 4
_IN_STRING = r'[^"\\]*+(?:\\.[^"\\]*+)*+'
_NO_BRACKET = r'[^"{}\[\]]*+'
#: A string, perhaps cut; a whole object or array that holds no other one, taken at once; a bracket. The quantifiers
#: give nothing back, so that text which turns out to be no flat object is looked at twice and no more.
_STRUCTURAL = re.compile(
    rf'"{_IN_STRING}("|\\?\Z)|([{{\[]{_NO_BRACKET}(?:"{_IN_STRING}"{_NO_BRACKET})*+[}}\]])|([{{\[])|([}}\]])', re.DOTALL
)
_STRING_REST = re.compile(rf'{_IN_STRING}("|\\?\Z)', re.DOTALL)
