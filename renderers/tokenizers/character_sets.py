"""What a pattern's character sets mean to the two regex engines, found by asking them about every character.

`tokenizers` and `tiktoken` bring different regex engines with Unicode tables of different years: with tokenizers 0.21,
some 9,000 letters of Unicode 15 and 16 are letters for one of them only. A set that both read alike can stay as it is
written; any other is written out, range by range.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from typing import TYPE_CHECKING

from renderers.tokenizers.patterns import UnsupportedPatternError

if TYPE_CHECKING:
    from collections.abc import Iterable

CharacterSet = int
"""One byte a code point, 1 for a member, as one large integer: intersections of sets of a million are instant."""

EMPTY: CharacterSet = 0

_ANY_CHARACTER = r"[\s\S]"

_SINGLE_BYTES = {bytes([value]): value for value in range(256)}
_CODE_POINTS = 0x110000


@cache
def every_character() -> str:
    """Every character that UTF-8 can write, in order."""
    return "".join(map(chr, (*range(0xD800), *range(0xE000, _CODE_POINTS))))


def set_of(characters: str) -> CharacterSet:
    """The set of some characters, given in order."""
    codes = memoryview(characters.encode(f"utf-32-{sys.byteorder[0]}e")).cast("I")
    members = bytearray(_CODE_POINTS)
    start = 0
    while start < len(codes):
        # The end of the run of consecutive characters from here: gallop, then halve.
        step = 1
        while start + step < len(codes) and codes[start + step] - codes[start] == step:
            step *= 2
        low, high = start + step // 2, min(start + step, len(codes))
        while low + 1 < high:
            middle = (low + high) // 2
            if codes[middle] - codes[start] == middle - start:
                low = middle
            else:
                high = middle
        members[codes[start] : codes[low] + 1] = b"\x01" * (low - start + 1)
        start = low + 1
    return int.from_bytes(members, "little")


def ranges_of(characters: CharacterSet) -> list[tuple[int, int]]:
    """First and last code point of each run of consecutive members."""
    members = characters.to_bytes(_CODE_POINTS, "little")
    return [(run.start(), run.end() - 1) for run in re.finditer(b"\x01+", members)]


@cache
def _everything() -> CharacterSet:
    return set_of(every_character())


def characters_of_set(characters: CharacterSet) -> str:
    """The members of a set, in order."""
    return "".join(chr(code) for low, high in ranges_of(characters) for code in range(low, high + 1))


def in_tokenizers(source: str, among: str | None = None) -> CharacterSet:
    """The characters (of all, or among some in order) that a set matches in the engine of `tokenizers`.

    Raises UnsupportedPatternError.
    """
    from tokenizers import Regex, decoders

    text = every_character() if among is None else among
    try:
        # Decoders work on plain texts, which is ten times faster here than a pre-tokenizer.
        others = decoders.Replace(Regex(f"(?:{source})+"), "").decode([text])
    except Exception as error:
        raise UnsupportedPatternError(f"tokenizers cannot compile {source!r}") from error
    return (_everything() if among is None else set_of(among)) & ~set_of(others)


def in_tiktoken(source: str, among: str | None = None) -> CharacterSet:
    """The characters (of all, or among some in order) that a set matches in the engine of `tiktoken`.

    Raises UnsupportedPatternError.
    """
    # tiktoken writes down what matches: of a large set, the few others are read sooner.
    if among is None and (source.startswith("[^") or source in (r"\S", r"\D", r"\W")):
        return _everything() & ~_matched_by_tiktoken(f"[^{source}]", every_character())
    return _matched_by_tiktoken(source, every_character() if among is None else among)


def _matched_by_tiktoken(source: str, text: str) -> CharacterSet:
    from tiktoken import Encoding

    try:
        # A vocabulary of single bytes, and tiktoken drops what the pattern does not match.
        encoding = Encoding("probe", pat_str=f"(?:{source})+", mergeable_ranks=_SINGLE_BYTES, special_tokens={})
    except ValueError as error:
        raise UnsupportedPatternError(f"tiktoken cannot compile {source!r}") from error
    return set_of(bytes(encoding.encode_ordinary(text)).decode())


def folds_single_characters(texts: Iterable[str]) -> bool:
    """Whether the engine of `tokenizers` takes one character for one of the texts of several, without regard to case."""
    from tokenizers import Regex, decoders

    pattern = "|".join(texts)
    if not pattern:
        return False
    remove = decoders.Replace(Regex(f"(?i:{pattern})"), "")
    if remove.decode([every_character()]) == every_character():
        return False
    # Perhaps two neighbours spell one of the texts: once more, with nothing side by side.
    spaced = " ".join(every_character())
    return bool(remove.decode([spaced]) != spaced)


def write_set(characters: CharacterSet) -> str:
    """A set as a class of explicit ranges, for tiktoken."""
    ranges = ranges_of(characters)
    if not ranges:
        return r"[^\x{0}-\x{10FFFF}]"
    return "[" + "".join(f"\\x{{{low:X}}}-\\x{{{high:X}}}" for low, high in ranges) + "]"


class SetTable:
    """Character sets by how they are written, as `tokenizers` reads them, and a writing that tiktoken reads alike."""

    def __init__(self, sources: Iterable[str]) -> None:
        self._sets: dict[str, CharacterSet] = {_ANY_CHARACTER: _everything()}
        self._checked: set[str] = set()
        # Of the letters whose case is ignored, each matches two or three characters. All of Unicode is searched once,
        # for those that any of them matches.
        folded = "|".join(sorted({source for source in sources if source.startswith("(?i:")}))
        self._folded = ""
        if folded:
            self._folded = characters_of_set(in_tokenizers(folded) | in_tiktoken(folded))
            if any(len(character.casefold()) > 1 for character in self._folded):
                raise UnsupportedPatternError("the case of a character is ignored that folds to several")

    def read(self, source: str) -> CharacterSet:
        """The characters of a set that stands in a tokenizer's pattern. Raises UnsupportedPatternError."""
        found = self._sets.get(source)
        if found is None:
            if len(source) == 1 and source != ".":
                found = set_of(source)
                self._checked.add(source)
            else:
                found = in_tokenizers(source, self._among(source))
            self._sets[source] = found
        return found

    def _among(self, source: str) -> str | None:
        return self._folded if source.startswith("(?i:") else None

    def write(self, source: str) -> str:
        """The set in a writing that means the same to tiktoken."""
        return self._written(source, self.read(source))

    def narrow(self, source: str, universe: str, *, inside: bool) -> str:
        """The characters of a set inside (or outside) another: its writing, known to `read` from then on."""
        one, other = self.read(source), self.read(universe)
        characters = one & other if inside else one & ~other
        if characters == one:
            return source
        if inside and characters == other:
            return universe
        if _is_class(source) and _is_class(universe):
            writing = f"[{source}&&{universe}]" if inside else f"[{source}&&[^{universe}]]"
        else:
            writing = write_set(characters)
        self._sets[writing] = characters
        return writing

    def _written(self, source: str, characters: CharacterSet) -> str:
        if source in self._checked:
            return source
        try:
            if in_tiktoken(source, self._among(source)) == characters:
                self._checked.add(source)
                return source
        except UnsupportedPatternError:
            pass
        writing = write_set(characters)
        if in_tiktoken(writing) != characters:
            raise UnsupportedPatternError(f"tiktoken reads {source!r} otherwise")
        self._checked.add(writing)
        self._sets[writing] = characters
        return writing


def _is_class(source: str) -> bool:
    """Whether a set can stand inside brackets."""
    return re.fullmatch(r"\[.*\]|\\[pPsSdDwW].*", source, re.DOTALL) is not None
