"""From token IDs to text and markers, in order, keeping count of which token each character came from.

Everything after this step counts in *units*: a character of text is one unit, and so is a special token that the
grammar knows. A `Chunk` says which run of tokens gave which units, so that spans can be made at the end.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from itertools import filterfalse

from renderers.parsing.markers import Found, Marker, MarkerTable
from renderers.tokenizers.protocol import TokenizerAdapter

#: Coded text without markers, or a marker.
Piece = str | Found


#: A run of tokens and the units that they gave: `token_end`, `unit_end`, `reach`, `text`, `pending`. `unit_end` counts
#: the units that are complete after the run, `reach` also one that its last token only began; an ID that stands for
#: nothing reaches nowhere. `text` is the run's text where its bytes are whole characters, else None, and `pending` is
#: what the tokens before it left of a character. A plain tuple, because streaming makes one for every token.
Chunk = tuple[int, int, int, str | None, bytes]


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
        #: The characters with which markers begin.
        self.first = frozenset(text[0] for text in by_text)
        self._longest = len(longest_first[0])

    def split(self, text: str, pieces: list[Piece], *, last: bool = False) -> str:
        """Append what is certain to `pieces`, and return the rest: the beginning of what may become a marker.

        With `last`, nothing follows that could end a marker: everything is certain.
        """
        done = 0
        begun = len(text) if last else self._begun(text, 0)
        for match in self._pattern.finditer(text):
            start, end = match.span()
            if begun <= start:  # a longer marker may be about to stand here
                break
            if start > done:
                pieces.append(text[done:start])
            pieces.append(self._found[match.group()])
            done = end
            if not last:
                begun = self._begun(text, done)
        if begun > done:
            pieces.append(text[done:begun])
        return text[begun:]

    def _begun(self, text: str, done: int) -> int:
        """Where the longest beginning of a marker stands that reaches to the end of the text; its length if none."""
        size = len(text)
        begun = size
        for character in self.first:
            start = text.find(character, max(done, size - self._longest + 1))
            while 0 <= start < begun:
                if text[start:] in self._prefixes:
                    begun = start
                    break
                start = text.find(character, start + 1)
        return begun


class Lexer:
    """Turns token IDs into pieces. One per reply.

    `plain` is shared by all replies of a grammar: the IDs that are known to be text. It grows as they are seen, and
    makes finding the others one set test a token.
    """

    def __init__(
        self, adapter: TokenizerAdapter, markers: MarkerTable, text_markers: TextMarkers | None, plain: set[int]
    ) -> None:
        self._adapter = adapter
        self._code_of_id = markers.code_of_id
        self._found_of_id = markers.found_of_id
        self._text_markers = text_markers
        self._plain = plain
        self._utf8 = Utf8()
        self._tail = ""
        self._units = 0
        self.token_ids: list[int] = []
        self.chunks: list[Chunk] = []

    def begin_completion(self) -> None:
        """Forget the tokens that came so far: they were the prompt's. What they began, an incomplete character or the
        beginning of a text marker, goes on; the latter has no token of the completion.
        """
        begun = len(self._tail)
        self.token_ids, self._units = [], begun
        self.chunks = [(0, begun, begun, None, b"")] if begun else []

    def feed_one(self, token_id: int) -> str | None:
        """The text of one token in the plain case, which is most of streaming; else None, and nothing was taken."""
        if token_id not in self._plain or self._utf8.pending or self._tail:
            return None
        try:
            text = self._adapter.token_bytes(token_id).decode()
        except UnicodeDecodeError:
            return None
        if self._text_markers is not None and not self._text_markers.first.isdisjoint(text):
            return None
        token_ids = self.token_ids
        token_ids.append(token_id)
        self._units = units = self._units + len(text)
        self.chunks.append((len(token_ids), units, units, text, b""))
        return text

    def feed(self, ids: list[int]) -> list[Piece]:
        """The pieces that these tokens complete."""
        start = len(self.token_ids)
        self.token_ids += ids
        pieces: list[Piece] = []
        done, index = 0, -1
        for token_id in filterfalse(self._plain.__contains__, ids):
            index = ids.index(token_id, index + 1)
            if token_id not in self._code_of_id and self._adapter.token_bytes(token_id):
                self._plain.add(token_id)
                continue
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
        self.chunks.append((len(self.token_ids), self._units, self._units, None, b""))
        return len(ids)

    def finish(self) -> list[Piece]:
        """What was held back: the beginnings of a character and of a text marker that were not completed."""
        pieces: list[Piece] = []
        self._flush(len(self.token_ids), pieces)
        return pieces

    def _ordinary(self, ids: list[int], token_end: int, pieces: list[Piece]) -> None:
        """A run of tokens that are text."""
        utf8 = self._utf8
        before = utf8.pending
        data = self._adapter.decode_bytes(ids)
        text = utf8.decode(data)
        self._units += len(text)
        pending = bool(utf8.pending)
        whole = None if before or pending or "\ufffd" in text else text
        self.chunks.append((token_end, self._units, self._units + pending, whole, before))
        if text:
            self._text(text, pieces)

    def _special(self, token_id: int, index: int, pieces: list[Piece]) -> None:
        """A special token that the grammar knows, or an ID that stands for nothing."""
        code = self._code_of_id.get(token_id)
        if code is None:
            self.chunks.append((index + 1, self._units, self._units, None, b""))
            return
        found = self._found_of_id.get(token_id)
        if found is None:  # a part of text markers
            self._flush_character(index, pieces)
            self._text(code, pieces)
        else:
            self._flush(index, pieces)
            pieces.append(found)
        self._units += 1
        self.chunks.append((index + 1, self._units, self._units, None, b""))

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
        self.chunks.append((token_end, self._units, self._units, None, b""))
        self._text(text, pieces)

    def _flush(self, token_end: int, pieces: list[Piece]) -> None:
        """End what was begun: no character and no text marker goes on beyond a special token."""
        self._flush_character(token_end, pieces)
        if self._tail and self._text_markers is not None:
            self._tail = self._text_markers.split(self._tail, pieces, last=True)
