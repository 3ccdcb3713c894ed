"""A bound grammar as the parser of replies wants it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from renderers.parsing.markers import Marker


class Role(Enum):
    """What a marker does."""

    STOP = auto()
    REASONING_OPEN = auto()
    REASONING_CLOSE = auto()
    CALL_OPEN = auto()
    CALL_CLOSE = auto()
    SECTION_OPEN = auto()
    SECTION_CLOSE = auto()
    INNER = auto()


@dataclass(frozen=True, slots=True)
class Rules:
    """What each marker does, and how many line feeds the format writes around them.

    `by_token` are the markers that are special tokens, or hold one: no ordinary text can be mistaken for them. Blocks
    of calls that are `open_ended` have no closing marker.
    """

    roles: Mapping[Marker, Role]
    by_token: frozenset[Marker]
    has_reasoning: bool
    open_ended: bool
    stop: str | None
    stop_after_calls: str | None
    section_close: str
    before_reasoning: int
    after_reasoning_open: int
    before_reasoning_close: int
    after_reasoning: int
    before_calls: int
    between_calls: int
