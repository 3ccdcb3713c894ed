"""What an engine keeps of requests: a tree of token sequences that holds once what they begin with alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

_STRIDE = 4096


@dataclass(slots=True)
class _Node:
    """Tokens, and what was seen to follow them, by its first token."""

    ids: list[int] = field(default_factory=list)
    children: dict[int, _Node] = field(default_factory=dict)


class PrefixCache:
    """A prefix cache that forgets nothing.

    >>> cache = PrefixCache(block_size=2)
    >>> cache.add([1, 2, 3, 4, 5])
    >>> cache.hits([1, 2, 3, 9, 9]), cache.hits([1, 2, 3, 4])
    (2, 2)

    Args:
        block_size: only whole blocks of so many tokens are found again.
    """

    def __init__(self, block_size: int) -> None:
        self._block_size = block_size
        self._root = _Node()

    def hits(self, prompt: Sequence[int]) -> int:
        """How many tokens of a prompt need not be run over. The last one always is: it gives the first sampled token."""
        node, found = self._root, 0
        while found < len(prompt) and (child := node.children.get(prompt[found])) is not None:
            shared = _shared(prompt, found, child.ids)
            found += shared
            if shared < len(child.ids):
                break
            node = child
        found = min(found, len(prompt) - 1)
        return found - found % self._block_size

    def add(self, ids: Sequence[int]) -> None:
        """Keep the tokens of a request that were run over."""
        node, done = self._root, 0
        while done < len(ids):
            child = node.children.get(ids[done])
            if child is None:
                node.children[ids[done]] = _Node(list(ids[done:]))
                return
            shared = _shared(ids, done, child.ids)
            if shared < len(child.ids):
                upper = _Node(child.ids[:shared], {child.ids[shared]: child})
                node.children[ids[done]], child.ids = upper, child.ids[shared:]
                child = upper
            node, done = child, done + shared


def _shared(ids: Sequence[int], start: int, edge: Sequence[int]) -> int:
    """How many tokens from `start` on are those of an edge."""
    length = min(len(ids) - start, len(edge))
    for left in range(0, length, _STRIDE):  # lists are compared much faster than their items one by one
        right = min(left + _STRIDE, length)
        if ids[start + left : start + right] != edge[left:right]:
            return next(place for place in range(left, right) if ids[start + place] != edge[place])
    return length
