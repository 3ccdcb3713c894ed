"""What a pattern's character sets mean to the two regex engines, found by asking them about every character.

`tokenizers` and `tiktoken` bring different regex engines with Unicode tables of different years: with tokenizers 0.21,
some 9,000 letters of Unicode 15 and 16 are letters for one of them only. A set that both read alike can stay as it is
written; any other is written out, range by range.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from renderers.tokenizers.patterns import UnsupportedPatternError

if TYPE_CHECKING:
    from collections.abc import Iterable

CharacterSet = frozenset[str]

_SINGLE_BYTES = {bytes([value]): value for value in range(256)}


@cache
def every_character() -> str:
    """Every character that UTF-8 can write, in order."""
    return "".join(map(chr, (*range(0xD800), *range(0xE000, 0x110000))))


@cache
def _every_character_set() -> CharacterSet:
    return frozenset(every_character())


def in_tokenizers(source: str) -> CharacterSet:
    """The characters that a set matches in the engine of `tokenizers`. Raises UnsupportedPatternError."""
    from tokenizers import Regex, decoders  # noqa: PLC0415 - `import renderers` stays light

    try:
        # Decoders work on plain texts, which is ten times faster here than a pre-tokenizer.
        remove = decoders.Replace(Regex(f"(?:{source})+"), "")
        others = remove.decode([every_character()])
    except Exception as error:
        raise UnsupportedPatternError(f"tokenizers cannot compile {source!r}") from error
    return _every_character_set() - frozenset(others)


def in_tiktoken(source: str) -> CharacterSet:
    """The characters that a set matches in the engine of `tiktoken`. Raises UnsupportedPatternError."""
    if source.startswith("[^") or source in (r"\S", r"\D", r"\W"):
        return _every_character_set() - _matched_by_tiktoken(f"[^{source}]")
    return _matched_by_tiktoken(source)


def _matched_by_tiktoken(source: str) -> CharacterSet:
    from tiktoken import Encoding  # noqa: PLC0415

    try:
        # A vocabulary of single bytes, and tiktoken drops what the pattern does not match.
        encoding = Encoding("probe", pat_str=f"(?:{source})+", mergeable_ranks=_SINGLE_BYTES, special_tokens={})
    except ValueError as error:
        raise UnsupportedPatternError(f"tiktoken cannot compile {source!r}") from error
    return frozenset(bytes(encoding.encode_ordinary(every_character())).decode())


def folds_single_characters(texts: Iterable[str]) -> bool:
    """Whether the engine of `tokenizers` takes one character for one of the texts of several, without regard to case."""
    from tokenizers import Regex, decoders  # noqa: PLC0415

    pattern = "|".join(texts)
    if not pattern:
        return False
    # Spaces between the characters, so that no text of two can be found.
    spaced = " ".join(every_character())
    return bool(decoders.Replace(Regex(f"(?i:{pattern})"), "").decode([spaced]) != spaced)


def write_set(characters: CharacterSet) -> str:
    """A set as a class of explicit ranges, for tiktoken."""
    ranges: list[list[int]] = []
    for code in sorted(map(ord, characters)):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    if not ranges:
        return r"[^\x{0}-\x{10FFFF}]"
    return "[" + "".join(f"\\x{{{low:X}}}-\\x{{{high:X}}}" for low, high in ranges) + "]"


class SetTable:
    """Character sets by how they are written, as `tokenizers` reads them, and a writing that tiktoken reads alike."""

    def __init__(self) -> None:
        self._sets: dict[str, CharacterSet] = {}
        self._checked: set[str] = set()

    def read(self, source: str) -> CharacterSet:
        """The characters of a set that stands in a tokenizer's pattern. Raises UnsupportedPatternError."""
        found = self._sets.get(source)
        if found is None:
            found = self._sets[source] = in_tokenizers(source)
        return found

    def write(self, source: str) -> str:
        """The set in a writing that means the same to tiktoken."""
        return self._written(source, self.read(source))

    def narrow(self, source: str, universe: str, *, inside: bool) -> str:
        """The characters of a set inside (or outside) another: its writing, known to `read` from then on."""
        one, other = self.read(source), self.read(universe)
        characters = one & other if inside else one - other
        if characters == one:
            return source
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
            if in_tiktoken(source) == characters:
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
