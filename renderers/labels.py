"""Labels of tokens, and runs of equally labelled tokens.

A label says which message a token belongs to and whose it is, packed into one integer so that a run costs a few bytes.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple


class Owner(StrEnum):
    """Whose a token is."""

    #: The template wrote it: headers, wrappers, separators, the tools preamble, the generation prompt.
    TEMPLATE = "template"
    #: Content of a message that is neither the assistant's nor a tool's.
    PROMPT = "prompt"
    #: Content of a tool message.
    TOOL = "tool"
    #: The model sampled it, or would have.
    POLICY = "policy"


TEMPLATE, PROMPT, TOOL, POLICY = range(4)
_OWNERS = (Owner.TEMPLATE, Owner.PROMPT, Owner.TOOL, Owner.POLICY)
_OWNER_MASK = 3
_MESSAGE_SHIFT = 2


def make_label(message_index: int, owner: int) -> int:
    """The label of a token of message `message_index` (-1: outside any message)."""
    return (message_index + 1) << _MESSAGE_SHIFT | owner


def message_of(label: int) -> int:
    """The message index in a label."""
    return (label >> _MESSAGE_SHIFT) - 1


def owner_of(label: int) -> Owner:
    """The owner in a label."""
    return _OWNERS[label & _OWNER_MASK]


def with_owner(label: int, owner: int) -> int:
    """The same message, another owner."""
    return label & ~_OWNER_MASK | owner


def with_message(label: int, message_index: int) -> int:
    """The same owner, another message."""
    return make_label(message_index, label & _OWNER_MASK)


def is_sampled(label: int) -> bool:
    """Whether the model sampled it, or would have."""
    return label & _OWNER_MASK == POLICY


def is_content(label: int) -> bool:
    """Whether it is the caller's text, or sampled."""
    return label & _OWNER_MASK != TEMPLATE


class Run(NamedTuple):
    """Tokens `start` to `end` (exclusive) of one message and one owner."""

    start: int
    end: int
    message_index: int
    owner: Owner


class Runs:
    """Labels of a token sequence, stored as runs."""

    __slots__ = ("_build", "_counts", "_labels", "length")

    def __init__(self) -> None:
        self._counts = array("q")
        self._labels = array("q")
        self._build: Callable[[], Runs] | None = None
        self.length = 0

    @classmethod
    def deferred(cls, length: int, build: Callable[[], Runs]) -> Runs:
        """Labels of `length` tokens that are made when they are first asked for. They cannot be added to."""
        runs = cls()
        runs.length = length
        runs._build = build
        return runs

    def add(self, count: int, label: int) -> None:
        """Label the next `count` tokens."""
        if count:
            if self._labels and self._labels[-1] == label:
                self._counts[-1] += count
            else:
                self._counts.append(count)
                self._labels.append(label)
            self.length += count

    def extend(self, other: Runs) -> None:
        """Append the runs of another sequence."""
        if not other.length:
            return
        other._make()
        border = len(self._counts)
        self._counts += other._counts
        self._labels += other._labels
        self.length += other.length
        if border and self._labels[border - 1] == self._labels[border]:
            self._counts[border - 1] += self._counts.pop(border)
            self._labels.pop(border)

    def items(self) -> Iterator[tuple[int, int]]:
        """Each run as (number of tokens, label)."""
        self._make()
        return zip(self._counts, self._labels, strict=True)

    def without_first(self) -> Runs:
        """The labels of all tokens but the first."""
        shorter = Runs()
        for position, (count, label) in enumerate(self.items()):
            shorter.add(count - 1 if position == 0 else count, label)
        return shorter

    def _make(self) -> None:
        build = self._build
        if build is not None:
            made = build()
            self._counts, self._labels = made._counts, made._labels  # noqa: SLF001 - of its own class
            self._build = None

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild_runs, (list(self.items()),))


def _rebuild_runs(items: Iterable[tuple[int, int]]) -> Runs:
    runs = Runs()
    for count, label in items:
        runs.add(count, label)
    return runs
