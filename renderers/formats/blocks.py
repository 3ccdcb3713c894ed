"""The short way to write a format: a function that reads a whole block; and what blocks of several calls share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from renderers.formats.json_text import CallFaultError
from renderers.formats.typed_values import Parameter, ToolSchemas, typed_call
from renderers.parsed import CallStatus
from renderers.parsing.protocol import BlockFactory, CallProgress, ReadCall, Tools


class ReadBlock(Protocol):
    """Reads the calls of a body."""

    def __call__(self, body: str, *, complete: bool, schemas: ToolSchemas) -> Sequence[ReadCall]:
        """The calls; where `complete` is False the block was cut, and its last call must not have status `ok`."""


@dataclass(frozen=True, slots=True)
class WholeBlocks:
    """What a format's `bind` returns whose calls are read when their block closes."""

    read: ReadBlock

    def reader(self, tools: Tools | None) -> BlockFactory:
        """A reader for each block; the tools' schemas are looked up once a reply."""
        schemas = ToolSchemas(tools)
        return lambda: _WholeBlock(self.read, schemas)


@dataclass(frozen=True, slots=True)
class _WholeBlock:
    read_block: ReadBlock
    schemas: ToolSchemas

    def progress(self, text: str) -> Sequence[CallProgress]:
        """Nothing is certain before the end."""
        return ()

    def read(self, body: str, *, complete: bool) -> Sequence[ReadCall]:
        """The calls of the whole block."""
        return self.read_block(body, complete=complete, schemas=self.schemas)


# Several calls in a block, each between tags -------------------------------------------------------------------------

_SHOWN = 40
_SPACE = re.compile(r"\s*")


class TaggedCall(NamedTuple):
    """A call's name and parameters, as far as they could be read, and where it ends: None where it breaks the format."""

    name: str
    parameters: list[Parameter]
    end: int | None


def read_calls(
    body: str,
    read_call: Callable[[int], TaggedCall],
    opening: str,
    schemas: ToolSchemas,
    text: Callable[[str], str],
    *,
    complete: bool,
) -> list[ReadCall]:
    """The calls of a block, with their faults. What is malformed reaches to the next call's opening tag.

    Args:
        body: the block's body.
        read_call: reads the call that should begin at a place of it.
        opening: how a call's opening tag begins.
        schemas: what types the values.
        text: a piece of the body as the sampled text.
        complete: whether the block was closed; otherwise its last call was cut.
    """
    calls: list[ReadCall] = []
    start = _skip_space(body, 0)
    while start < len(body) or not calls:
        name, parameters, end = read_call(start)
        fault = None
        if end is None:
            shown = text(body[start : start + _SHOWN])
            fault = CallFaultError(CallStatus.MALFORMED, f"the call that begins {shown!r} breaks the format")
            end = body.find(opening, start + 1)
            end = end if end >= 0 else len(body)
        following = _skip_space(body, end)
        is_call = body.startswith(opening, start)
        if following == len(body) and not complete:
            fault = CallFaultError(CallStatus.INCOMPLETE, "the block was cut before its end")
            if calls and not is_call:  # what was begun after the last call
                name, start, is_call = calls[-1].name, calls.pop().start or 0, True
        call = typed_call(name, parameters, schemas, fault=fault)
        if is_call or calls or following < len(body):  # otherwise the block as a whole is the call's raw text
            call = replace(call, start=start, end=start + len(body[start:end].rstrip()))
        calls.append(call)
        start = following
    return calls


def _skip_space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position
