"""The short way to write a format: a function that reads a whole block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from renderers.formats.typed_values import ToolSchemas
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
