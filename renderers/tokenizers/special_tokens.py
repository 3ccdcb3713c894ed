"""Finding special tokens in text, exactly as the tokenizers library finds its added tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
        tokens = list(tokens)
        self._ids = {token.text: token.token_id for token in tokens}
        stages = ([t.text for t in tokens if not t.normalized], [t.text for t in tokens if t.normalized])
        self._stages = [longest_match_pattern(texts) for texts in stages if texts]

    def find(self, text: str) -> list[SpecialSpan]:
        """Start, end and ID of each special token in the text, from left to right."""
        if not self._stages:
            return []
        spans = self._find_in(self._stages[0], text, 0, len(text))
        if len(self._stages) == 1:
            return spans
        merged: list[SpecialSpan] = []
        position = 0
        for span in spans:
            merged += self._find_in(self._stages[1], text, position, span[0])
            merged.append(span)
            position = span[1]
        merged += self._find_in(self._stages[1], text, position, len(text))
        return merged

    def _find_in(self, pattern: re.Pattern[str], text: str, start: int, end: int) -> list[SpecialSpan]:
        ids = self._ids
        return [(match.start(), match.end(), ids[match[0]]) for match in pattern.finditer(text, start, end)]


@lru_cache(maxsize=32)
def matcher_of(tokens: tuple[AddedToken, ...]) -> SpecialTokenMatcher:
    """The matcher of these tokens; with a thousand of them it takes longer to make than an adapter should."""
    return SpecialTokenMatcher(tokens)


def longest_match_pattern(texts: Sequence[str]) -> re.Pattern[str]:
    """A pattern that matches the longest of the texts that stands at a place.

    Common beginnings are shared, as in a trie: in a plain alternation of a thousand tokens, each `<` of an HTML page
    would be compared with all of them.
    """
    return re.compile(_alternatives(sorted({text for text in texts if text})))


def _alternatives(texts: list[str]) -> str:
    """Source of an expression for non-empty texts, sorted."""
    branches = []
    start = 0
    while start < len(texts):
        end = start + 1
        while end < len(texts) and texts[end][0] == texts[start][0]:
            end += 1
        group = texts[start:end]
        prefix = _common_prefix(group[0], group[-1])
        tails = [text[len(prefix) :] for text in group]
        branch = re.escape(prefix)
        if tails != [""]:
            # The group's own end is optional and greedy, so that the longer text wins.
            branch += f"(?:{_alternatives([tail for tail in tails if tail])})" + ("" if tails[0] else "?")
        branches.append(branch)
        start = end
    return "|".join(branches)


def _common_prefix(first: str, last: str) -> str:
    """What two texts, and all that sort between them, begin with."""
    length = 0
    for one, other in zip(first, last, strict=False):
        if one != other:
            break
        length += 1
    return first[:length]


@lru_cache(maxsize=32)
def overlapping_special_tokens(texts: tuple[str, ...]) -> tuple[str, str] | None:
    """Two special tokens (perhaps the same one twice) that can overlap in a text, or None.

    A renderer that writes a special token knows where it stands and splits the text there. The tokenizer, which sees
    only the text, finds the same places if no occurrence of another special token can overlap the one that was written:
    an earlier one whose end is its beginning, or a longer one that contains it. Where neither exists, every written
    token is found at its place whatever stands around it.
    """
    tokens = [text for text in texts if text]
    known = set(tokens)
    beginnings: dict[str, str] = {}
    for token in tokens:
        for length in range(1, len(token)):
            beginnings.setdefault(token[:length], token)
    pattern = longest_match_pattern(tokens) if tokens else None
    for token in tokens:
        for start in range(1, len(token)):
            if token[start:] in beginnings:
                return token, beginnings[token[start:]]
        for length in range(1, len(token)):
            if token[:length] in known:
                return token, token[:length]
        inside = pattern.search(token, 1) if pattern else None
        if inside is not None:
            return token, inside[0]
    return None
