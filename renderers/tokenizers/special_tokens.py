"""Finding special tokens in text, exactly as the tokenizers library finds its added tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

SpecialSpan = tuple[int, int, int]
"""Start, end and token ID of a special token in a text."""


@dataclass(frozen=True, slots=True)
class AddedToken:
    """One entry of a tokenizer's added tokens; the flags are those of the tokenizers library."""

    text: str
    token_id: int
    special: bool = True
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False
    normalized: bool = False

    @property
    def matches_plainly(self) -> bool:
        """Whether it matches its own characters wherever they stand, and takes nothing beside them."""
        return not (self.lstrip or self.rstrip or self.single_word)


class SpecialTokenMatcher:
    """The places of special tokens in a text: leftmost first, and the longest at each place.

    The tokenizers library looks for added tokens twice: for those that are not `normalized` in the whole text, then for
    the `normalized` ones in what lies between. A token of the first kind therefore wins over one of the second that
    starts before it. This class does the same. It knows nothing of `lstrip`, `rstrip` and `single_word`, nor of
    normalizers: the adapter asks its library where a tokenizer has those.
    """

    def __init__(self, tokens: Iterable[AddedToken]) -> None:
        stages: tuple[dict[str, int], dict[str, int]] = ({}, {})
        for token in tokens:
            if token.text:
                stages[token.normalized][token.text] = token.token_id
        self._stages = [_LongestMatch(ids) for ids in stages if ids]

    def find(self, text: str) -> list[SpecialSpan]:
        """Start, end and ID of each special token in the text, from left to right."""
        if not self._stages:
            return []
        spans = self._stages[0].find(text, 0, len(text))
        if len(self._stages) == 1:
            return spans
        merged: list[SpecialSpan] = []
        position = 0
        for span in spans:
            merged += self._stages[1].find(text, position, span[0])
            merged.append(span)
            position = span[1]
        merged += self._stages[1].find(text, position, len(text))
        return merged

    def finds_no_more(self, text: str, masked: str) -> bool:
        """Whether a text surely holds the special tokens alone that `masked` does.

        `masked` is the text with some characters replaced by others that stand in no special token. Where in both nothing
        begins like a special token but those that stand in `masked` whole, none is found that reaches into these places.
        No special token may be the beginning of another.
        """
        return all(stage.begins_as_often(text, masked) for stage in self._stages)

    def may_stand_in(self, text: str) -> frozenset[str]:
        """All special tokens that a text can hold: those whose beginnings stand in it."""
        return frozenset().union(*[stage.may_stand_in(text) for stage in self._stages])


# How much of a token is searched for. Few other texts begin like a special token for so long, and of a thousand tokens
# that DeepSeek reserves, only one beginning is left.
_BEGINNING = 4


class Beginnings:
    """Where special tokens can begin: what is looked for in texts that are to hold none.

    Args:
        tokens: the texts of the special tokens.
    """

    def __init__(self, tokens: Iterable[str]) -> None:
        texts = [text for text in tokens if text]
        begun = {text[:length] for text in texts for length in range(1, len(text))}
        self._begun = tuple(begun)
        self._begun_shortly = tuple([text for text in begun if len(text) < _BEGINNING])
        self._pattern = re.compile(_trie(sorted({text[:_BEGINNING] for text in texts})) if texts else r"(?!)")

    def are_in(self, text: str) -> bool:
        """Whether a special token may begin in a text, its end included; False is certain."""
        return self._pattern.search(text) is not None or text.endswith(self._begun_shortly)

    def end(self, text: str) -> bool:
        """Whether a text ends in a special token that is begun and not complete."""
        return text.endswith(self._begun)


class _LongestMatch:
    """Finds texts by their beginnings, with a pattern that is made quickly, and then looks them up."""

    def __init__(self, ids: dict[str, int]) -> None:
        self._ids = ids
        begun: dict[str, set[str]] = {}
        for text in ids:
            begun.setdefault(text[:_BEGINNING], set()).add(text)
        for text in ids:
            if len(text) < _BEGINNING:
                for beginning, texts in begun.items():
                    if beginning.startswith(text):
                        texts.add(text)
        self._begun = begun
        self._lengths = {beginning: sorted({*map(len, texts)}, reverse=True) for beginning, texts in begun.items()}
        # Matches the longest beginning at a place; shorter ones are among its lengths.
        self._pattern = re.compile(_trie(sorted(begun)))
        tails = {beginning[place:] for beginning in begun for place in range(1, len(beginning))}
        self._can_overlap = any(
            beginning.startswith(tail) or tail.startswith(beginning) for tail in tails for beginning in begun
        )

    def may_stand_in(self, text: str) -> Iterable[str]:
        """Every token that begins somewhere in a text like one of them does, and perhaps others."""
        if self._can_overlap:  # one beginning may hide another
            return self._ids
        return chain.from_iterable([self._begun[beginning] for beginning in {*self._pattern.findall(text)}])

    def begins_as_often(self, text: str, masked: str) -> bool:
        """Whether surely no token begins in a text at a place where none stands in `masked`."""
        if self._can_overlap:  # one beginning may hide another
            return False
        count = len(self._pattern.findall(masked))
        return count == len(self._whole.findall(masked)) and count == len(self._pattern.findall(text))

    @cached_property
    def _whole(self) -> re.Pattern[str]:
        return re.compile(_trie(sorted(self._ids)))

    def find(self, text: str, start: int, end: int) -> list[SpecialSpan]:
        spans = []
        search, ids = self._pattern.search, self._ids
        while (found := search(text, start, end)) is not None:
            begin = found.start()
            start = begin + 1
            for length in self._lengths[found[0]]:
                token_id = ids.get(text[begin : begin + length])
                if token_id is not None and begin + length <= end:
                    start = begin + length
                    spans.append((begin, start, token_id))
                    break
        return spans


def _trie(texts: list[str]) -> str:
    """A pattern for the longest of some sorted texts that stands at a place.

    What they have in common is written once: in a plain alternation, each `<` of an HTML page would be compared with
    all of them.
    """
    branches = []
    for first, group in groupby(texts, key=itemgetter(0)):
        tails = [text[1:] for text in group]
        branch = re.escape(first)
        if tails != [""]:
            # Where a text ends here, what follows is optional, and greedy so that the longer one wins.
            branch += f"(?:{_trie([tail for tail in tails if tail])})" + ("" if tails[0] else "?")
        branches.append(branch)
    return "|".join(branches)


@lru_cache(maxsize=32)
def matcher_of(tokens: tuple[AddedToken, ...]) -> SpecialTokenMatcher:
    """The matcher of these tokens, made once for all adapters of a tokenizer."""
    return SpecialTokenMatcher(tokens)


@lru_cache(maxsize=32)
def beginnings_of(texts: tuple[str, ...]) -> Beginnings:
    """The beginnings of these special tokens, made once for all renderers of a tokenizer."""
    return Beginnings(texts)


@lru_cache(maxsize=32)
def overlap_endings(texts: tuple[str, ...]) -> tuple[str, ...]:
    """How a text may end so that, before a special token, another one can be read that takes (a part of) its place.

    A renderer that writes a special token knows where it stands and splits the text there. The tokenizer, which sees
    only the text, finds the same places if no occurrence of another special token can overlap the one that was written:
    an earlier one whose end is its beginning, or a longer one that contains it. Where there is none, every written
    token is found at its place whatever stands around it. One that begins with another makes every text doubtful, also
    the empty one.
    """
    tokens = sorted({text for text in texts if text})
    by_first: dict[str, list[str]] = {}
    for token in tokens:
        by_first.setdefault(token[0], []).append(token)
    endings = {"" for token, following in pairwise(tokens) if following.startswith(token)}
    for token in tokens:
        for start in range(1, len(token)):
            tail = token[start:]
            if any(other.startswith(tail) or tail.startswith(other) for other in by_first.get(tail[0], ())):
                endings.add(token[:start])
    return tuple(sorted(endings))
