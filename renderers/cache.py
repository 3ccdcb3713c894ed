"""A cache bounded in bytes that many threads may use."""

from __future__ import annotations

from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class GenerationCache(Generic[K, V]):
    """Keeps what was used lately, up to a number of bytes.

    Two generations instead of a list in order of use: an entry that is found in the old one moves to the young one,
    and when the young one holds half the bytes, it becomes the old one and the old one goes. Every step is one atomic
    operation on a dict, so there is no lock; a race can only lose an entry, never return a wrong one.
    """

    __slots__ = ("_limit", "_old", "_young", "_young_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes // 2
        self._young: dict[K, tuple[V, int]] = {}
        self._old: dict[K, tuple[V, int]] = {}
        self._young_bytes = 0

    def get(self, key: K) -> V | None:
        """The value, or None."""
        entry = self._young.get(key)
        if entry is not None:
            return entry[0]
        entry = self._old.get(key)
        if entry is None:
            return None
        self._add(key, entry)
        return entry[0]

    def put(self, key: K, value: V, size: int) -> None:
        """Keep a value that takes about `size` bytes, its key included; also one that has grown."""
        if size <= self._limit:
            self._add(key, (value, size))

    def _add(self, key: K, entry: tuple[V, int]) -> None:
        if (earlier := self._young.get(key)) is not None:
            self._young_bytes -= earlier[1]
        if self._young_bytes + entry[1] > self._limit:
            self._old, self._young, self._young_bytes = self._young, {}, 0
        self._young[key] = entry
        self._young_bytes += entry[1]

    def __len__(self) -> int:
        return len(self._young) + len(self._old)
