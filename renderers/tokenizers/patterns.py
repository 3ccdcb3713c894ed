"""Splitting patterns as syntax trees, so that several splits can be written as one pattern.

Only what splitting patterns use is understood: alternatives, groups, lookaheads, repeats and single characters. What a
single character may be (`\\p{L}`, `[^\\r\\n]`, `a`, `(?i:s)`) stays the text that it is: its meaning is taken from the
regex engines themselves, see `character_sets`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class UnsupportedPatternError(Exception):
    """The pattern holds something that this module does not understand. Never leaves the package."""


@dataclass(frozen=True, slots=True)
class Character:
    """One character out of a set, as written in the pattern."""

    source: str


@dataclass(frozen=True, slots=True)
class Repeat:
    """Something repeated; `source` is the quantifier as written, `most` is None without a limit."""

    item: Item
    source: str
    least: int
    most: int | None

    @property
    def possessive(self) -> bool:
        """Whether it gives nothing back once it has matched."""
        return len(self.source) > 1 and self.source.endswith("+")


@dataclass(frozen=True, slots=True)
class Group:
    """Alternatives in parentheses; `opener` is `(?:`, `(?=` or `(?!`."""

    opener: str
    branches: tuple[Branch, ...]

    @property
    def is_lookahead(self) -> bool:
        """Whether it takes no characters."""
        return self.opener != "(?:"


Item = Character | Repeat | Group
Branch = tuple[Item, ...]

_OPENERS = {"(?:": "(?:", "(?=": "(?=", "(?!": "(?!", "(?i:": "(?:", "(": "(?:"}
_QUANTIFIER = re.compile(r"[?*+]\+?|\{(\d+)(,(\d*))?\}")
_ESCAPE = re.compile(r"\\(?:[pP]\{\^?[A-Za-z_]+\}|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[sSdDwWrntfv]|[^\w\s])")


def parse_pattern(source: str) -> tuple[Branch, ...]:
    """The alternatives of a pattern. Raises UnsupportedPatternError."""
    parser = _Parser(source)
    branches = parser.branches(fold=False)
    if parser.position != len(source):
        raise UnsupportedPatternError(f"unexpected {source[parser.position]!r} at {parser.position}")
    return branches


class _Parser:
    def __init__(self, source: str) -> None:
        self.source = source
        self.position = 0

    def branches(self, *, fold: bool) -> tuple[Branch, ...]:
        found = [self.branch(fold=fold)]
        while self._take("|"):
            found.append(self.branch(fold=fold))
        return tuple(found)

    def branch(self, *, fold: bool) -> Branch:
        items: list[Item] = []
        while self.position < len(self.source) and self.source[self.position] not in "|)":
            items.append(self.quantified(self.item(fold=fold)))
        return tuple(items)

    def item(self, *, fold: bool) -> Item:
        for opener, meaning in _OPENERS.items():
            if opener == "(" and self.source.startswith("(?", self.position):
                break
            if self._take(opener):
                branches = self.branches(fold=fold or opener == "(?i:")
                if not self._take(")"):
                    raise UnsupportedPatternError("a group does not end")
                only = branches[0][0] if len(branches) == 1 and len(branches[0]) == 1 else None
                return only if meaning == "(?:" and isinstance(only, Character) else Group(meaning, branches)
        source = self.character()
        # Folding what has no case would only make the pattern longer.
        has_case = source.startswith(("[", "\\")) or source.lower() != source.upper()
        return Character(f"(?i:{source})" if fold and has_case else source)

    def character(self) -> str:
        start = self.position
        first = self.source[start]
        if first == "[":
            return self.character_class()
        if first == "\\":
            escape = _ESCAPE.match(self.source, start)
            if escape is None:
                raise UnsupportedPatternError(f"unknown escape {self.source[start : start + 2]!r}")
            self.position = escape.end()
            return escape[0]
        if first in "^$?*+{}()]":
            raise UnsupportedPatternError(f"unexpected {first!r} at {start}")
        self.position += 1
        return first

    def character_class(self) -> str:
        """A class in brackets, its closing bracket found by counting."""
        start = self.position
        depth = 0
        while self.position < len(self.source):
            character = self.source[self.position]
            self.position += 2 if character == "\\" else 1
            depth += {"[": 1, "]": -1}.get(character, 0)
            if depth == 0:
                return self.source[start : self.position]
        raise UnsupportedPatternError("a class does not end")

    def quantified(self, item: Item) -> Item:
        quantifier = _QUANTIFIER.match(self.source, self.position)
        if quantifier is None:
            return item
        self.position = quantifier.end()
        # A second quantifier would make it lazy, possessive or nested, and the engines read those differently.
        if self.position < len(self.source) and self.source[self.position] in "?*+{":
            raise UnsupportedPatternError(f"unknown quantifier at {quantifier.start()}")
        text = quantifier[0]
        if text[0] != "{":
            least, most = {"?": (0, 1), "*": (0, None), "+": (1, None)}[text[0]]
        else:
            least = int(quantifier[1])
            most = least if quantifier[2] is None else int(quantifier[3]) if quantifier[3] else None
            if most is not None and most < least:
                raise UnsupportedPatternError(f"a quantifier with swapped bounds at {quantifier.start()}")
        return Repeat(item, text, least, most)

    def _take(self, text: str) -> bool:
        if not self.source.startswith(text, self.position):
            return False
        self.position += len(text)
        return True


def items_of(branches: tuple[Branch, ...]) -> Iterator[Item]:
    """Every item of the alternatives, and what they hold."""
    for branch in branches:
        for item in branch:
            yield item
            if isinstance(item, Repeat):
                yield from items_of(((item.item,),))
            elif isinstance(item, Group):
                yield from items_of(item.branches)


def characters_of(branches: tuple[Branch, ...]) -> Iterator[Character]:
    """Every single-character item of the alternatives."""
    for branch in branches:
        for item in branch:
            yield from _characters_of_item(item)


def _characters_of_item(item: Item) -> Iterator[Character]:
    if isinstance(item, Character):
        yield item
    elif isinstance(item, Repeat):
        yield from _characters_of_item(item.item)
    else:
        yield from characters_of(item.branches)


def folded_texts(branches: tuple[Branch, ...]) -> Iterator[str]:
    """Texts of two or more letters that the alternatives match without regard to case.

    Some engines fold one character to several (`ß` to `ss`), which no item of one character shows.
    """
    for branch in branches:
        for start in range(len(branch)):
            for end in range(start + 2, len(branch) + 1):
                part = branch[start:end]
                if all(isinstance(item, Character) for item in part) and any("(?i:" in _write_item(i) for i in part):
                    yield "".join(_write_item(item).removeprefix("(?i:").removesuffix(")") for item in part)
        for item in branch:
            inner = item.item if isinstance(item, Repeat) else item
            if isinstance(inner, Group):
                yield from folded_texts(inner.branches)


def map_characters(branches: tuple[Branch, ...], change: Callable[[Character], Character]) -> tuple[Branch, ...]:
    """The same alternatives with every single-character item changed."""
    return tuple(tuple(_map_item(item, change) for item in branch) for branch in branches)


def _map_item(item: Item, change: Callable[[Character], Character]) -> Item:
    if isinstance(item, Character):
        return change(item)
    if isinstance(item, Repeat):
        return Repeat(_map_item(item.item, change), item.source, item.least, item.most)
    return Group(item.opener, map_characters(item.branches, change))


def least_length(item: Item) -> int:
    """The least number of characters that an item takes."""
    if isinstance(item, Character):
        return 1
    if isinstance(item, Repeat):
        return item.least * least_length(item.item)
    if item.is_lookahead:
        return 0
    return min(branch_least_length(branch) for branch in item.branches)


def branch_least_length(branch: Branch) -> int:
    """The least number of characters that an alternative takes."""
    return sum(least_length(item) for item in branch)


def takes_without_return(item: Item) -> bool:
    """Whether an item looks ahead or is possessive, so that it can stop a match that its neighbours allow."""
    if isinstance(item, Group):
        return item.is_lookahead or any(takes_without_return(inner) for branch in item.branches for inner in branch)
    return isinstance(item, Repeat) and (item.possessive or takes_without_return(item.item))


def write_pattern(branches: tuple[Branch, ...]) -> str:
    """The alternatives as a pattern."""
    return "|".join("".join(_write_item(item) for item in branch) for branch in branches)


def _write_item(item: Item) -> str:
    if isinstance(item, Character):
        return item.source
    if isinstance(item, Repeat):
        return _write_item(item.item) + item.source
    return f"{item.opener}{write_pattern(item.branches)})"
