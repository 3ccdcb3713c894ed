"""From token IDs to text and markers, in order, keeping count of which token each character came from.

Everything after this step counts in *units*: a character of text is one unit, and so is a special token that the
grammar knows. A `Chunk` says which run of tokens gave which units, so that spans can be made at the end.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from renderers.parsing.markers import Found, Marker, MarkerTable
from renderers.tokenizers.protocol import TokenizerAdapter


#: Coded text without markers, or a marker.
Piece = str | Found


class Chunk(NamedTuple):
    """A run of tokens and the units that they gave.

    `unit_end` counts the units that are complete after the run, `reach` also one that its last token only began; an ID
    that stands for nothing reaches nowhere. `clean` tells whether the run's bytes are whole characters, and `pending`
    is what the tokens before it left of one.
    """

    token_end: int
    unit_end: int
    reach: int
    clean: bool
    pending: bytes


class Utf8:
    """An incremental decoder: bytes of an incomplete character wait for the rest."""

    __slots__ = ("pending",)

    def __init__(self, pending: bytes = b"") -> None:
        self.pending = pending

    def decode(self, data: bytes) -> str:
        """The characters that are complete after `data`; what can become none is U+FFFD."""
        if self.pending:
            data = self.pending + data
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text, used = codecs.utf_8_decode(data, "replace", False)
            self.pending = data[used:]
        else:
            self.pending = b""
        return text

    def flush(self) -> str:
        """U+FFFD for a character that was begun and will not be ended."""
        text, self.pending = self.pending.decode("utf-8", "replace"), b""
        return text


class TextMarkers:
    """Finds plain-text markers by position, and the places where one may be about to stand."""

    def __init__(self, by_text: Mapping[str, Marker]) -> None:
        longest_first = sorted(by_text, key=len, reverse=True)
        self._found = {text: Found(marker, text, len(text)) for text, marker in by_text.items()}
        self._pattern = re.compile("|".join(map(re.escape, longest_first)))
        self._prefixes = frozenset(text[:end] for text in by_text for end in range(1, len(text)))
        self._first = frozenset(text[0] for text in by_text)
        self._longest = len(longest_first[0])

    def split(self, text: str, pieces: list[Piece]) -> str:
        """Append what is certain to `pieces`, and return the rest: the beginning of what may become a marker."""
        done = 0
        begun = self._begun(text, 0)
        for match in self._pattern.finditer(text):
            start, end = match.span()
            if begun <= start:  # a longer marker may be about to stand here
                break
            if start > done:
                pieces.append(text[done:start])
            pieces.append(self._found[match.group()])
            done = end
            begun = self._begun(text, done)
        if begun > done:
            pieces.append(text[done:begun])
        return text[begun:]

    def _begun(self, text: str, done: int) -> int:
        """Where the longest beginning of a marker stands that reaches to the end of the text; its length if none."""
        size = len(text)
        begun = size
        for character in self._first:
            start = text.find(character, max(done, size - self._longest + 1))
            while 0 <= start < begun:
                if text[start:] in self._prefixes:
                    begun = start
                    break
                start = text.find(character, start + 1)
        return begun


class Lexer:
    """Turns token IDs into pieces. One per reply."""

    def __init__(
        self, adapter: TokenizerAdapter, markers: MarkerTable, text_markers: TextMarkers | None, known: set[int]
    ) -> None:
        self._adapter = adapter
        self._code_of_id = markers.code_of_id
        self._found_of_id = markers.found_of_id
        self._text_markers = text_markers
        self._known = known
        self._utf8 = Utf8()
        self._tail = ""
        self._units = 0
        self.token_ids: list[int] = []
        self.chunks: list[Chunk] = []

    def begin_completion(self) -> None:
        """Forget the tokens that came so far: they were the prompt's. An incomplete character goes on."""
        self.token_ids, self.chunks, self._units = [], [], 0

    def feed(self, ids: list[int]) -> list[Piece]:
        """The pieces that these tokens complete."""
        start = len(self.token_ids)
        self.token_ids += ids
        pieces: list[Piece] = []
        breaks: AbstractSet[int] = self._code_of_id.keys()
        if not self._known.issuperset(ids) and (unknown := self._find_unknown(ids)):
            breaks = breaks | unknown
        done = 0
        if not breaks.isdisjoint(ids):
            for index, token_id in enumerate(ids):
                if token_id in breaks:
                    if index > done:
                        self._ordinary(ids[done:index], start + index, pieces)
                    self._special(token_id, start + index, pieces)
                    done = index + 1
        if done < len(ids):
            self._ordinary(ids[done:] if done else ids, start + len(ids), pieces)
        return pieces

    def skip(self, ids: list[int]) -> int:
        """Take tokens whose text nobody will ask for, one unit each; returns their number."""
        self.token_ids += ids
        self._units += len(ids)
        self.chunks.append(Chunk(len(self.token_ids), self._units, self._units, False, b""))
        return len(ids)

    def finish(self) -> list[Piece]:
        """What was held back: the beginnings of a character and of a text marker that were not completed."""
        pieces: list[Piece] = []
        self._flush(len(self.token_ids), pieces)
        return pieces

    def _find_unknown(self, ids: list[int]) -> set[int]:
        """The IDs that stand for nothing. The others are remembered, for all replies of the grammar."""
        unknown = set()
        for token_id in set(ids) - self._known:
            if self._adapter.token_bytes(token_id):
                self._known.add(token_id)
            else:
                unknown.add(token_id)
        return unknown

    def _ordinary(self, ids: list[int], token_end: int, pieces: list[Piece]) -> None:
        """A run of tokens that are text."""
        utf8 = self._utf8
        before = utf8.pending
        data = self._adapter.decode_bytes(ids)
        text = utf8.decode(data)
        self._units += len(text)
        pending = bool(utf8.pending)
        clean = not (before or pending or "\ufffd" in text)
        self.chunks.append(Chunk(token_end, self._units, self._units + pending, clean, before))
        if text:
            self._text(text, pieces)

    def _special(self, token_id: int, index: int, pieces: list[Piece]) -> None:
        """A special token that the grammar knows, or an ID that stands for nothing."""
        code = self._code_of_id.get(token_id)
        if code is None:
            self.chunks.append(Chunk(index + 1, self._units, self._units, False, b""))
            return
        found = self._found_of_id.get(token_id)
        if found is None:  # a part of text markers
            self._flush_character(index, pieces)
            self._text(code, pieces)
        else:
            self._flush(index, pieces)
            pieces.append(found)
        self._units += 1
        self.chunks.append(Chunk(index + 1, self._units, self._units, True, b""))

    def _text(self, text: str, pieces: list[Piece]) -> None:
        if self._text_markers is None:
            pieces.append(text)
        else:
            self._tail = self._text_markers.split(self._tail + text, pieces)

    def _flush_character(self, token_end: int, pieces: list[Piece]) -> None:
        if not self._utf8.pending:
            return
        text = self._utf8.flush()
        self._units += len(text)
        self.chunks.append(Chunk(token_end, self._units, self._units, False, b""))
        self._text(text, pieces)

    def _flush(self, token_end: int, pieces: list[Piece]) -> None:
        """End what was begun: no character and no text marker goes on beyond a special token."""
        self._flush_character(token_end, pieces)
        if self._tail:
            pieces.append(self._tail)
            self._tail = ""
