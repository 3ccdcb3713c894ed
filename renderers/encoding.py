"""Pieces of text to token IDs and labels, exactly as the tokenizer encodes the whole text.

What stands between two special tokens always encodes alone. So the text of a message is encoded once, from its first
special token to its last, and kept as a *fragment*; a conversation is its fragments, joined by the short texts between
them. Labels are made when they are first asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from renderers.assembly import Assembly, ReplyState
from renderers.cache import GenerationCache
from renderers.errors import MessageError, TokenizerError, ToolsError
from renderers.labels import Runs, message_of
from renderers.rendered import Ids
from renderers.tokenizers.protocol import TokenizerAdapter
from renderers.tokenizers.special_tokens import Beginnings, beginnings_of
from renderers.writer import Piece

CACHE_BYTES = 64 << 20
BYTES_PER_TOKEN = 40  # a list's pointer and an int object
_NO_TEXT = ("", "")
_LONG_HEAD = 200  # characters: declarations of tools stand after the system message's text, and stay the same

#: A text, and the text of the same length in which special tokens are searched: where the caller's must not match, its
#: characters are masked.
Text: TypeAlias = tuple[str, str]
#: A special token that the template wrote, as ID and label, and the pieces of text after it.
Section: TypeAlias = tuple[int, int, list[Piece]]


@dataclass(slots=True, eq=False)
class Fragment:
    """Pieces, encoded as far as nothing that stands before or after them can change it.

    Attributes:
        pieces: all the pieces.
        head: the text before the first special token that the template wrote, or before a line's end at which a long
            text is cut; all of it, where there is no special token.
        closed: the text from there to the last special token, until it is encoded; empty, where there is none.
        ids: its tokens, once it is encoded.
        tail: the text after that.
        is_doubtful: the tokenizer, which sees only the text, may find other special tokens than those that were written.
        labelled: the labels, once they were asked for.
    """

    pieces: Sequence[Piece]
    head: Text = _NO_TEXT
    closed: Text = _NO_TEXT
    ids: Ids = ()
    tail: Text = _NO_TEXT
    is_doubtful: bool = False
    labelled: Labelled | None = None


#: Stands behind the last fragment.
_END = Fragment(())


class Labelled(NamedTuple):
    """The labels of a fragment.

    Attributes:
        head: the pieces of its head.
        lead: the pieces between its head and its first special token.
        start: the place of that token.
        sections: its special tokens, each with the pieces of text after it.
        entry, reply: what labels depend on, after the first special token and after the last.
        runs: the labels of the tokens between these places, for this `entry`.
    """

    head: Sequence[Piece]
    lead: Sequence[Piece]
    start: int
    sections: Sequence[Section]
    entry: ReplyState
    reply: ReplyState
    runs: Runs


class Encoder:
    """Encodes pieces for one tokenizer."""

    def __init__(
        self,
        tokenizer: TokenizerAdapter,
        *,
        stop_ids: Collection[int],
        sanitize: bool,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        self._tokenizer = tokenizer
        self._stop_ids = frozenset(stop_ids)
        self._sanitize = sanitize
        #: Stands for the caller's characters where only the template's may match: in no special token.
        self._nobody = next(
            one for one in map(chr, range(0x110000)) if not any(one in text for text in tokenizer.special_tokens)
        )
        self._by_chunk = tokenizer.splits_at_special_tokens
        if sanitize and not self._by_chunk:
            raise TokenizerError(
                "sanitize_control_tokens needs a tokenizer whose text splits at special tokens, and this one has special "
                "tokens that take the space around them, or prepends something to a text"
            )
        # A tokenizer class that cuts long texts at fixed places has no sanitized form to be equal to.
        self._may_cut = tokenizer.cuts_long_texts and not sanitize
        self._doubtful_endings = tokenizer.doubtful_endings
        self._encoded: GenerationCache[Text, Ids] = GenerationCache(cache_bytes)
        #: The special tokens in a piece of scaffolding.
        self._written_in = lru_cache(maxsize=1000)(tokenizer.find_special_tokens)

    def encode(self, pieces: Sequence[Piece]) -> tuple[list[Ids], Runs]:
        """IDs, in parts that must not be changed, and the label of each.

        Raises:
            MessageError: where a text cannot be encoded (lone surrogates), naming the message.
        """
        fragment = Fragment(pieces)
        self.cut(fragment)
        return self.join([fragment])

    # Fragments -----------------------------------------------------------------------------------------------------

    def cut(self, fragment: Fragment) -> None:
        """Cut a new fragment at its special tokens. Its text is encoded when it is joined, all at once.

        Raises:
            MessageError: see `encode`.
        """
        if not self._by_chunk:
            return
        pieces = fragment.pieces
        try:
            self._cut(fragment)
            if self._doubtful_endings:
                fragment.is_doubtful = self._is_doubtful(pieces)
        except TokenizerError:
            _raise_for_surrogates(pieces)
            raise

    def _cut(self, fragment: Fragment) -> None:
        pieces = fragment.pieces
        text, searched = self._text(pieces)
        position, start = 0, -1
        for piece, _, from_caller in pieces:
            if not from_caller and (found := self._written_in(piece)):
                start = position + found[0][0]
                break
            position += len(piece)
        if start < 0:
            fragment.head = text, searched
            return
        end = len(text)
        for piece, _, from_caller in reversed(pieces):
            end -= len(piece)
            if not from_caller and (found := self._written_in(piece)):
                end += found[-1][1]
                break
        if start > _LONG_HEAD:
            start = self._line_start(text, start)
        if start:
            fragment.head = text[:start], searched[:start]
        closed = text[start:end]
        fragment.closed = closed, closed if searched is text else searched[start:end]
        if end < len(text):
            fragment.tail = text[end:], searched[end:]

    def _line_start(self, text: str, end: int) -> int:
        """The first place before `end` where the text may be cut, or `end`."""
        line_starts = self._tokenizer.line_starts
        if not line_starts:
            return end
        found = _line_start_pattern(line_starts).search(text, 0, end)
        return end if found is None else found.end()

    def _encode(self, texts: Sequence[Text]) -> list[Ids]:
        """The IDs of texts that encode alone: from the cache, or encoded, all in one batch."""
        known = [self._encoded.get(text) for text in texts]
        missing: dict[Text, Ids] = {text: () for text, ids in zip(texts, known, strict=True) if ids is None}
        if missing:
            searched = [one[1] for one in missing] if self._sanitize else None
            batch = self._tokenizer.encode_batch([one[0] for one in missing], searched)
            # As tuples at once, so that no list of integers is left to the garbage collector.
            for text, ids in zip(missing, map(tuple, batch), strict=True):
                missing[text] = ids
                self._encoded.put(text, ids, 200 + 2 * len(text[0]) + BYTES_PER_TOKEN * len(ids))
        return [missing[text] if ids is None else ids for text, ids in zip(texts, known, strict=True)]

    def _searched(self, pieces: Sequence[Piece]) -> str:
        """The text of some pieces in which special tokens are searched."""
        return self._text(pieces)[1]

    def _text(self, pieces: Sequence[Piece]) -> Text:
        text = _text_of(pieces)
        return text, text if not self._sanitize or self._spells_no_token(pieces) else self._masked(pieces)

    def _masked(self, pieces: Sequence[Piece]) -> str:
        return "".join([self._nobody * len(text) if from_caller else text for text, _, from_caller in pieces])

    @cached_property
    def _beginnings(self) -> Beginnings:
        return beginnings_of(tuple(self._tokenizer.special_tokens))

    @cached_property
    def _is_begun_in(self) -> Callable[[str], bool]:
        """Whether a piece of scaffolding ends in a special token that is only begun."""
        return lru_cache(maxsize=1000)(self._beginnings.end)

    def _spells_no_token(self, pieces: Sequence[Piece]) -> bool:
        """Whether surely no special token that begins in these pieces has a character in a caller's text.

        Then there is nothing to mask, unless one begins before them; see `_join`.
        """
        for text, _, from_caller in pieces:
            if self._beginnings.are_in(text) if from_caller else self._is_begun_in(text):
                return False
        return True

    # Conversations -------------------------------------------------------------------------------------------------

    def join(self, fragments: Sequence[Fragment]) -> tuple[list[Ids], Runs]:
        """IDs and labels of the fragments' pieces, as of one text; see `encode`.

        Raises:
            MessageError: see `encode`.
        """
        try:
            if not self._by_chunk or self._is_cut(fragments):
                pieces = _pieces_of(fragments)
                ids, offsets = self._tokenizer.encode_with_offsets(_text_of(pieces))
                assembly = Assembly(self._tokenizer, self._stop_ids)
                assembly.whole(pieces, ids, offsets)
                return [tuple(ids)], assembly.runs
            parts = self._join(fragments)
            if not self._surely_finds_written_tokens(fragments) and not self._finds_written_tokens(fragments):
                pieces = _pieces_of(fragments)  # one text, in which the tokenizer finds what it finds
                assembly = Assembly(self._tokenizer, self._stop_ids)
                parts = [self._ids(self._text(pieces))]
                assembly.text(pieces, parts[0])
                return parts, assembly.runs
        except TokenizerError:
            _raise_for_surrogates(_pieces_of(fragments))
            raise
        return parts, Runs.deferred(sum(map(len, parts)), lambda: self._label(fragments))

    def _join(self, fragments: Sequence[Fragment]) -> list[Ids]:
        """The IDs of the fragments and of what stands between them."""
        parts: list[Ids] = []
        missing: list[tuple[int, Text, Fragment | None]] = []
        between: dict[Text, Ids] = {}
        text = searched = ""
        for fragment in (*fragments, _END):
            head, head_searched = fragment.head
            if head:
                # A special token that begins before this fragment must not end in the caller's text.
                if self._sanitize and text and self._is_begun_in(text):
                    head_searched = self._masked(fragment.pieces)[: len(head)]
                text += head
                searched += head_searched
            closed, ids = fragment.closed, fragment.ids
            if not (closed[0] or ids or fragment is _END):
                continue
            if text:
                key = text, searched
                found = between.get(key)
                if found is None:
                    found = self._encoded.get(key)
                    if found is None:
                        missing.append((len(parts), key, None))
                        found = ()
                    else:
                        between[key] = found
                parts.append(found)
            if closed[0]:
                missing.append((len(parts), closed, fragment))
            parts.append(ids)
            text, searched = fragment.tail
        parts.pop()  # that of the end
        if missing:
            self._fill(parts, missing)
        return parts

    def _fill(self, parts: list[Ids], missing: Sequence[tuple[int, Text, Fragment | None]]) -> None:
        """Encode what is missing: its place in `parts`, its text, and the fragment whose text it is."""
        encoded = self._encode([text for _, text, _ in missing])
        for (place, _, fragment), ids in zip(missing, encoded, strict=True):
            parts[place] = ids
            if fragment is not None:
                # First the IDs: another thread may be at this fragment, too.
                fragment.ids = ids
                fragment.closed = _NO_TEXT

    def _surely_finds_written_tokens(self, fragments: Iterable[Fragment]) -> bool:
        """Whether no text before a special token that was written is doubtful; see `_finds_written_tokens`."""
        if not self._doubtful_endings:
            return True
        if "" in self._doubtful_endings:
            return False
        searched = ""
        for fragment in fragments:
            searched += fragment.head[1]
            if fragment.ids:
                if fragment.is_doubtful or searched.endswith(self._doubtful_endings):
                    return False
                searched = fragment.tail[1]
        return True

    def _ids(self, text: Text) -> Ids:
        """The IDs of a text that encodes alone."""
        ids = self._encoded.get(text)
        return self._encode([text])[0] if ids is None else ids

    def _is_cut(self, fragments: Sequence[Fragment]) -> bool:
        return self._may_cut and self._tokenizer.needs_whole_text(_text_of(_pieces_of(fragments)))

    def _is_doubtful(self, pieces: Sequence[Piece]) -> bool:
        """Whether the tokenizer may find another special token in the place of one that was written here.

        Where special tokens can overlap, a caller's text may end in the beginning of one and take the first character
        of the next.
        """
        searched = self._searched(pieces)
        position = 0
        for text, _, from_caller in pieces:
            if not from_caller and any(
                searched.endswith(self._doubtful_endings, 0, position + start) for start, _, _ in self._written_in(text)
            ):
                return True
            position += len(text)
        return False

    def _finds_written_tokens(self, fragments: Sequence[Fragment]) -> bool:
        """Whether the tokenizer, which sees only the text, finds each special token that the template wrote."""
        pieces = _pieces_of(fragments)
        found = {
            (start, token_id) for start, _, token_id in self._tokenizer.find_special_tokens(self._searched(pieces))
        }
        position = 0
        for text, _, from_caller in pieces:
            if not from_caller and any(
                (position + start, token_id) not in found for start, _, token_id in self._written_in(text)
            ):
                return False
            position += len(text)
        return True

    # Labels --------------------------------------------------------------------------------------------------------

    def _label(self, fragments: Sequence[Fragment]) -> Runs:
        """The labels of fragments that were joined."""
        assembly = Assembly(self._tokenizer, self._stop_ids)
        texts: list[Piece] = []
        for fragment in fragments:
            labelled = fragment.labelled
            if labelled is None:
                labelled = fragment.labelled = self._labelled(fragment)
            texts += labelled.head
            if not labelled.sections:
                continue
            if texts:
                assembly.text(texts, self._ids(self._text(texts)))
            if labelled.lead:
                assembly.text(labelled.lead, fragment.ids[: labelled.start])
            assembly.special(*labelled.sections[0][:2])
            if assembly.reply == labelled.entry:
                assembly.append(labelled.runs, labelled.reply)
            else:
                self._label_sections(assembly, labelled.sections, fragment.ids, labelled.start)
            texts = [*labelled.sections[-1][2]]
        if texts:
            assembly.text(texts, self._ids(self._text(texts)))
        return assembly.runs

    def _labelled(self, fragment: Fragment) -> Labelled:
        before, sections = self._split(fragment.pieces)
        head, lead = _cut_pieces(before, len(fragment.head[0]))
        assembly = Assembly(self._tokenizer, self._stop_ids)
        start = 0
        if sections:
            first_id, first_label, _ = sections[0]
            start = self._end_of(lead, first_id, fragment.ids, 0)
            assembly.special(first_id, first_label)
        entry = assembly.reply
        assembly.runs = Runs()
        self._label_sections(assembly, sections, fragment.ids, start)
        return Labelled(head, lead, start, sections, entry, assembly.reply, assembly.runs)

    def _label_sections(self, assembly: Assembly, sections: Sequence[Section], ids: Sequence[int], start: int) -> None:
        """Label what stands after the first special token, which is at `start`, up to the last."""
        # The caller may have spelled the template's special tokens, too.
        written = [token_id for token_id, _, _ in sections]
        is_spelled = {token_id: ids.count(token_id) > written.count(token_id) for token_id in {*written}}
        position = start + 1
        for (_, _, texts), (token_id, label, _) in pairwise(sections):
            if texts:
                end = (
                    self._end_of(texts, token_id, ids, position)
                    if is_spelled[token_id]
                    else ids.index(token_id, position)
                )
                assembly.text(texts, ids[position:end])
                position = end
            assembly.special(token_id, label)
            position += 1

    def _end_of(self, texts: Sequence[Piece], token_id: int, ids: Sequence[int], start: int) -> int:
        """Where the tokens of texts end before a special token that they may hold as well."""
        end = ids.index(token_id, start)
        for _, _, spelled in self._tokenizer.find_special_tokens(self._searched(texts)):
            if spelled == token_id:
                end = ids.index(token_id, end + 1)
        return end

    def _split(self, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Section]]:
        """The pieces of text before the first special token that the template wrote, and each such token with its text."""
        head: list[Piece] = []
        sections: list[Section] = []
        texts = head
        for piece in pieces:
            text, label, from_caller = piece
            found = () if from_caller else self._written_in(text)
            if not found:
                texts.append(piece)
                continue
            position = 0
            for start, end, token_id in found:
                if start > position:
                    texts.append((text[position:start], label, False))
                texts = []
                sections.append((token_id, label, texts))
                position = end
            if position < len(text):
                texts.append((text[position:], label, False))
        return head, sections


@lru_cache
def _line_start_pattern(line_starts: str) -> re.Pattern[str]:
    return re.compile(f"\n(?=[{re.escape(line_starts)}])")


def _cut_pieces(pieces: Sequence[Piece], length: int) -> tuple[list[Piece], list[Piece]]:
    """Pieces cut after so many characters."""
    before: list[Piece] = []
    for place, (text, label, from_caller) in enumerate(pieces):
        if len(text) > length:
            rest = [(text[length:], label, from_caller), *pieces[place + 1 :]]
            return [*before, (text[:length], label, from_caller)] if length else before, rest
        before.append((text, label, from_caller))
        length -= len(text)
    return before, []


def _pieces_of(fragments: Iterable[Fragment]) -> list[Piece]:
    return [piece for fragment in fragments for piece in fragment.pieces]


_TEXT_OF_PIECE = itemgetter(0)


def _text_of(pieces: Iterable[Piece]) -> str:
    return "".join(map(_TEXT_OF_PIECE, pieces))


def _raise_for_surrogates(pieces: Iterable[Piece]) -> None:
    for text, label, from_caller in pieces:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            index = message_of(label)
            problem = (
                f"the text holds a lone surrogate ({text[error.start]!a} at character {error.start}), which no tokenizer "
                "can encode; replace it before rendering"
            )
            if index < 0 and from_caller:
                raise ToolsError(f"tools: {problem}") from None
            raise MessageError(problem, message_index=index if index >= 0 else None) from None
