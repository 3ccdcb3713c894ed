"""Decisions read from bytes: what turns a byte string drawn by Hypothesis into a conversation.

Drawing one byte string a message and deciding everything else by hand is many times faster than one Hypothesis
strategy a field, and still shrinks: Hypothesis shortens the list of messages and lowers bytes, and lower bytes mean
simpler choices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")


class Choices:
    """A sequence of decisions, one byte each. A zero byte, and everything after the end, is the simplest decision."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def __repr__(self) -> str:
        return f"Choices({self._data.rstrip(bytes(1))!r})"

    def _next(self) -> int:
        position = self._position
        if position >= len(self._data):
            return 0
        self._position = position + 1
        return self._data[position]

    @property
    def exhausted(self) -> bool:
        """Whether all bytes are used, so that only the simplest decisions follow."""
        return self._position >= len(self._data)

    def below(self, bound: int) -> int:
        """A number from 0 to `bound` - 1; up to 256 values from one byte, up to 65536 from two."""
        if bound <= 256:
            return self._next() * bound >> 8
        return (self._next() << 8 | self._next()) * bound >> 16

    def pick(self, options: Sequence[T]) -> T:
        """One of the options; the first is the simplest."""
        return options[self.below(len(options))]

    def chance(self, percent: float) -> bool:
        """True in about `percent` of a hundred cases; False is the simpler answer."""
        return self._next() >= 256 - percent * 2.56

    def subset(self, options: Sequence[T], percent: float) -> list[T]:
        """Each option with the given chance, in order."""
        return [option for option in options if self.chance(percent)]

    def shuffled(self, options: Sequence[T]) -> list[T]:
        """The options, in some order; usually, and most simply, their own."""
        shuffled = list(options)
        if self.chance(30):
            for position in range(len(shuffled) - 1):
                other = position + self.below(len(shuffled) - position)
                shuffled[position], shuffled[other] = shuffled[other], shuffled[position]
        return shuffled
