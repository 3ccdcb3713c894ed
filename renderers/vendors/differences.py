"""What a payload does not say of the messages that it was made of: found by reading it back, and put back on request."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from renderers.vendors.payloads import Json, path_text, plain


class Missing(Enum):
    """The value of a field that is not there."""

    MISSING = "missing"

    def __repr__(self) -> str:
        return "MISSING"


MISSING = Missing.MISSING


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where a payload, read back, differs from what was given to be written.

    Attributes:
        path: the place in what was given, `("messages", 3, "name")` or `("tools", 0, "function", "strict")`.
        given: the value that was given; `MISSING` where the payload says something that was not given.
        sent: what the payload says instead; `MISSING` where it says nothing.
    """

    path: tuple[int | str, ...]
    given: Any
    sent: Any

    @property
    def place(self) -> str:
        """The path as text: `messages[3].name`."""
        return path_text(self.path)

    def __str__(self) -> str:
        sent = "not sent" if self.sent is MISSING else f"sent as {self.sent!r}"
        return f"{self.place}: {self.given!r} is {sent}"


def find_differences(
    given: Sequence[Json], sent: Sequence[Json], *, root: str, absent: Collection[int] = ()
) -> list[Difference]:
    """The differences of two lists, item by item.

    Args:
        given: what was written.
        sent: the same, read back from the payload.
        root: what they are, the first step of every path: `messages` or `tools`.
        absent: indices of items of `given` that the payload holds no item for.
    """
    present = [index for index in range(len(given)) if index not in absent]
    if len(present) != len(sent):
        return [Difference((root,), list(given), list(sent))]
    found = {index: list(_compare(given[index], one, (root, index))) for index, one in zip(present, sent, strict=True)}
    found |= {index: [Difference((root, index), given[index], MISSING)] for index in absent}
    return [difference for index in sorted(found) for difference in found[index]]


def _compare(given: Any, sent: Any, path: tuple[int | str, ...]) -> Iterator[Difference]:
    if isinstance(given, dict) and isinstance(sent, dict):
        for key in [*given, *(key for key in sent if key not in given)]:
            yield from _compare(given.get(key, MISSING), sent.get(key, MISSING), (*path, key))
    elif isinstance(given, list) and isinstance(sent, list) and len(given) == len(sent):
        for index, (one, other) in enumerate(zip(given, sent, strict=True)):
            yield from _compare(one, other, (*path, index))
    elif type(given) is not type(sent) or given != sent:  # 1, 1.0 and True are different texts
        yield Difference(path, given, sent)


def restore(items: Sequence[Json], differences: Sequence[Difference], *, root: str = "messages") -> list[Json]:
    """What was given to be written: what the payload says, with the differences undone.

    Args:
        items: messages or tools, read back from a payload.
        differences: what writing it reported.
        root: which of the two.
    """
    own = [difference for difference in differences if difference.path[0] == root]
    tree: dict[str, Any] = {root: plain(items)}
    for difference in own:  # in order: a message that is not in the payload is put in before what follows it
        if len(difference.path) == 2 and difference.sent is MISSING:
            tree[root].insert(difference.path[1], plain(difference.given))
        else:
            _put(tree, difference)
    restored: list[Json] = tree[root]
    return restored


def _put(tree: Any, difference: Difference) -> None:
    *steps, last = difference.path
    for step in steps:
        tree = tree[step]
    if difference.given is MISSING:
        del tree[last]
    else:
        tree[last] = plain(difference.given)
