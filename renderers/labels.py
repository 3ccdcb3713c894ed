"""Labels of tokens, and runs of equally labelled tokens.

A label says which message a token belongs to and whose it is, packed into one integer so that a run costs a few bytes.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
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


def is_sampled(label: int) -> bool:
    """Whether the model sampled it, or would have."""
    return label & _OWNER_MASK == POLICY


class Run(NamedTuple):
    """Tokens `start` to `end` (exclusive) of one message and one owner."""

    start: int
    end: int
    message_index: int
    owner: Owner


class Runs:
    """Labels of a token sequence, stored as runs."""

    __slots__ = ("_labels", "_starts", "length")

    def __init__(self) -> None:
        self._starts = array("q")
        self._labels = array("q")
        self.length = 0

    def add(self, count: int, label: int) -> None:
        """Label the next `count` tokens."""
        if count:
            if not self._labels or self._labels[-1] != label:
                self._starts.append(self.length)
                self._labels.append(label)
            self.length += count

    def extend(self, other: Runs) -> None:
        """Append the runs of another sequence."""
        for count, label in other.items():
            self.add(count, label)

    def items(self) -> Iterator[tuple[int, int]]:
        """Each run as (number of tokens, label)."""
        starts = self._starts
        for position, label in enumerate(self._labels):
            end = starts[position + 1] if position + 1 < len(starts) else self.length
            yield end - starts[position], label

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild_runs, (list(self.items()),))


def _rebuild_runs(items: Iterable[tuple[int, int]]) -> Runs:
    runs = Runs()
    for count, label in items:
        runs.add(count, label)
    return runs
