"""Pieces of text to token IDs and labels, exactly as the tokenizer encodes the whole text.

What stands between two special tokens, a *chunk*, always encodes alone. So the text is split at special tokens as the
tokenizer does, every chunk is looked up in a cache, and all that are missing are encoded in one batch.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from renderers.cache import GenerationCache
from renderers.errors import MessageError, TokenizerError, ToolsError
from renderers.labels import TEMPLATE, Runs, is_sampled, message_of, with_owner
from renderers.tokenizers.protocol import TokenizerAdapter
from renderers.writer import Piece

CACHE_BYTES = 64 << 20
_BYTES_PER_TOKEN = 40  # a list's pointer and an int object
_NOBODY = "\0"  # stands for the caller's characters where only the template's may match; in no special token


class Chunk(NamedTuple):
    """Encoded text between special tokens that the template wrote."""

    ids: list[int]
    #: Positions of stop tokens, where the caller's text spells some.
    stops: tuple[int, ...]


class _Pending(NamedTuple):
    """A chunk before it is encoded: its key, and its texts with their labels."""

    key: tuple[str, str] | str
    texts: list[tuple[str, int]]


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
        self._by_chunk = tokenizer.splits_at_special_tokens
        if sanitize and not self._by_chunk:
            raise TokenizerError(
                "sanitize_control_tokens needs a tokenizer whose text splits at special tokens, and this one has special "
                "tokens that take the space around them, or prepends something to a text"
            )
        self._chunks: GenerationCache[tuple[str, str] | str, Chunk] = GenerationCache(cache_bytes)
        self._singles: dict[int, list[int]] = {}
        self._scaffolds: GenerationCache[str, tuple[str | int, ...]] = GenerationCache(cache_bytes // 8)

    def encode(self, pieces: Sequence[Piece]) -> tuple[list[list[int]], Runs]:
        """IDs, in parts that must not be changed, and the label of each.

        Raises:
            MessageError: where a text cannot be encoded (lone surrogates), naming the message.
        """
        try:
            whole = "".join([text for text, _, _ in pieces])
            # A tokenizer class that cuts long texts at fixed places has no sanitized form to be equal to.
            if not self._by_chunk or (not self._sanitize and self._tokenizer.needs_whole_text(whole)):
                return self._encode_whole(pieces, whole)
            return self._encode_by_chunk(pieces, whole)
        except TokenizerError:
            _raise_for_surrogates(pieces)
            raise

    # By chunk ------------------------------------------------------------------------------------------------------

    def _encode_by_chunk(self, pieces: Sequence[Piece], whole: str) -> tuple[list[list[int]], Runs]:
        split = self._split
        if self._tokenizer.special_tokens_can_overlap and not self._finds_written_tokens(pieces, whole):
            split = _unsplit  # then the whole text is one chunk, in which the tokenizer finds what it finds
        sequence: list[_Pending | tuple[int, int]] = []  # a chunk, or a special token with its label
        texts: list[tuple[str, int]] = []
        masked: list[str] = []

        def flush() -> None:
            if texts:
                key: tuple[str, str] | str
                text = texts[0][0] if len(texts) == 1 else "".join([text for text, _ in texts])
                key = (text, "".join(masked)) if self._sanitize else text
                sequence.append(_Pending(key, texts.copy()))
                texts.clear()
            masked.clear()

        for text, label, from_caller in pieces:
            if from_caller:
                texts.append((text, label))
                if self._sanitize:
                    masked.append(_NOBODY * len(text))
                continue
            for part in split(text):
                if isinstance(part, int):
                    flush()
                    sequence.append((part, label))
                else:
                    texts.append((part, label))
                    if self._sanitize:
                        masked.append(part)
        flush()
        return self._assemble(sequence, self._encoded({item.key for item in sequence if isinstance(item, _Pending)}))

    def _finds_written_tokens(self, pieces: Sequence[Piece], whole: str) -> bool:
        """Whether the tokenizer finds each special token that the template wrote at its place in the whole text.

        Where special tokens can overlap, a caller's text may end in the beginning of one and take the first character
        of the next.
        """
        if self._sanitize:
            whole = "".join([_NOBODY * len(text) if from_caller else text for text, _, from_caller in pieces])
        found = {start for start, _, _ in self._tokenizer.find_special_tokens(whole)}
        position = 0
        for text, _, from_caller in pieces:
            if not from_caller:
                inner = position
                for part in self._split(text):
                    if isinstance(part, int):
                        if inner not in found:
                            return False
                        inner += len(self._tokenizer.token_bytes(part).decode())
                    else:
                        inner += len(part)
            position += len(text)
        return True

    def _split(self, scaffold: str) -> tuple[str | int, ...]:
        """Scaffolding at its special tokens: texts and IDs."""
        parts = self._scaffolds.get(scaffold)
        if parts is None:
            found: list[str | int] = []
            position = 0
            for start, end, token_id in self._tokenizer.find_special_tokens(scaffold):
                if start > position:
                    found.append(scaffold[position:start])
                found.append(token_id)
                position = end
            if position < len(scaffold):
                found.append(scaffold[position:])
            parts = tuple(found)
            self._scaffolds.put(scaffold, parts, 100 + 4 * len(scaffold))
        return parts

    def _encoded(self, keys: set[tuple[str, str] | str]) -> dict[tuple[str, str] | str, Chunk]:
        """The chunk of each key: from the cache, or encoded, all in one batch."""
        chunks: dict[tuple[str, str] | str, Chunk] = {}
        missing: list[tuple[tuple[str, str] | str, list[str | int]]] = []
        ordinary: list[str] = []
        for key in keys:
            chunk = self._chunks.get(key)
            if chunk is not None:
                chunks[key] = chunk
                continue
            text, searched = (key, key) if isinstance(key, str) else key
            parts: list[str | int] = []
            position = 0
            for start, end, token_id in self._tokenizer.find_special_tokens(searched):
                if start > position:
                    parts.append(text[position:start])
                parts.append(token_id)
                position = end
            if position < len(text):
                parts.append(text[position:])
            missing.append((key, parts))
            ordinary += [part for part in parts if isinstance(part, str)]
        encoded = iter(self._tokenizer.encode_ordinary_batch(ordinary)) if ordinary else iter(())
        for key, parts in missing:
            if len(parts) == 1 and isinstance(parts[0], str):
                chunk = Chunk(next(encoded), ())
            else:
                ids: list[int] = []
                for part in parts:
                    if isinstance(part, int):
                        ids.append(part)
                    else:
                        ids += next(encoded)
                stops = tuple(position for position, token_id in enumerate(ids) if token_id in self._stop_ids)
                chunk = Chunk(ids, stops)
            chunks[key] = chunk
            self._chunks.put(key, chunk, 200 + 2 * len(text) + _BYTES_PER_TOKEN * len(chunk.ids))
        return chunks

    def _assemble(
        self, sequence: Sequence[_Pending | tuple[int, int]], chunks: dict[tuple[str, str] | str, Chunk]
    ) -> tuple[list[list[int]], Runs]:
        parts: list[list[int]] = []
        runs = Runs()
        reply = _Reply(self._stop_ids)
        for item in sequence:
            if isinstance(item, _Pending):
                chunk = chunks[item.key]
                parts.append(chunk.ids)
                for count, label in reply.labels(chunk, self._spread(item.texts, chunk.ids)):
                    runs.add(count, label)
            else:
                token_id, label = item
                parts.append(self._singles.setdefault(token_id, [token_id]))
                runs.add(1, reply.special(token_id, label))
        return parts, runs

    def _spread(self, texts: Sequence[tuple[str, int]], ids: Sequence[int]) -> list[tuple[int, int]]:
        """Labels of a chunk's tokens, as (count, label), from the labels of its texts.

        A token that straddles two texts takes the label of its first character, and is sampled only if all of it is.
        """
        first = texts[0][1]
        if all(label == first for _, label in texts):
            return [(len(ids), first)]
        ends = self._byte_ends([text for text, _ in texts])
        positions = token_borders(ids, ends, self._tokenizer.token_bytes)
        spread: list[tuple[int, int]] = []
        done = 0
        for index, (position, straddles) in enumerate(positions):
            label = texts[index][1]
            if position <= done:
                continue
            if straddles and is_sampled(label) and not self._all_sampled(texts, ends, index, ids, position):
                spread += [(position - 1 - done, label), (1, with_owner(label, TEMPLATE))]
            else:
                spread.append((position - done, label))
            done = position
        return spread

    def _all_sampled(
        self, texts: Sequence[tuple[str, int]], ends: Sequence[int], index: int, ids: Sequence[int], position: int
    ) -> bool:
        """Whether the token before `position`, which begins in text `index`, lies in sampled texts only."""
        start = sum(len(self._tokenizer.token_bytes(token_id)) for token_id in ids[: position - 1])
        end = start + len(self._tokenizer.token_bytes(ids[position - 1]))
        following = index
        while following < len(texts) and (following == 0 or ends[following - 1] < end):
            if not is_sampled(texts[following][1]):
                return False
            following += 1
        return True

    def _byte_ends(self, texts: Sequence[str]) -> list[int]:
        """Where each text ends in the bytes of the normalised chunk.

        A character that normalisation joins over a border belongs to the first text.
        """
        joined = "".join(texts)
        normalized = self._tokenizer.normalize(joined)
        ends: list[int] = []
        if normalized is joined or normalized == joined:
            total = 0
            for text in texts:
                total += _byte_length(text)
                ends.append(total)
            return ends
        characters = 0
        for text in texts:
            characters += len(text)
            border = characters
            while border < len(joined):
                head, tail = self._tokenizer.normalize(joined[:border]), self._tokenizer.normalize(joined[border:])
                if head + tail == normalized:
                    break
                border += 1
                # Marks on a letter normalise together with it. A long run of them would take quadratic time.
                while border < len(joined) and unicodedata.combining(joined[border]):
                    border += 1
            ends.append(_byte_length(self._tokenizer.normalize(joined[:border])))
        return ends

    # The whole text ------------------------------------------------------------------------------------------------

    def _encode_whole(self, pieces: Sequence[Piece], text: str) -> tuple[list[list[int]], Runs]:
        """For tokenizers whose special tokens take part of the text around them, and for texts that a class cuts."""
        ids, offsets = self._tokenizer.encode_with_offsets(text)
        ends: list[int] = []
        total = 0
        for piece, _, _ in pieces:
            total += len(piece)
            ends.append(total)
        runs = Runs()
        reply = _Reply(self._stop_ids)
        specials = frozenset(self._tokenizer.special_tokens.values())
        index = 0
        for token_id, (start, end) in zip(ids, offsets, strict=True):
            while index + 1 < len(ends) and ends[index] <= start:
                index += 1
            label = pieces[index][1] if pieces else TEMPLATE
            last = index
            while last + 1 < len(ends) and ends[last] < end:
                last += 1
            if is_sampled(label) and not all(is_sampled(piece[1]) for piece in pieces[index : last + 1]):
                label = with_owner(label, TEMPLATE)
            if token_id in specials:
                runs.add(1, reply.special(token_id, label))
            else:
                runs.add(1, reply.ordinary(label))
        return [ids], runs


class _Reply:
    """Ends the sampled part of a reply at its first stop token, also where that token opens the next message."""

    def __init__(self, stop_ids: frozenset[int]) -> None:
        self._stop_ids = stop_ids
        self._stopped: int | None = None  # label of the reply that its stop token ended
        self._open: int | None = None  # label of the reply that is not closed yet

    def special(self, token_id: int, label: int) -> int:
        """The label of a special token."""
        stops = token_id in self._stop_ids
        if not is_sampled(label):
            reply, self._open, self._stopped = self._open, None, None
            return reply if stops and reply is not None else label
        label_of_reply = self.ordinary(label)
        if stops:
            self._stopped, self._open = label, None
        return label_of_reply

    def ordinary(self, label: int) -> int:
        """The label of ordinary text."""
        if not is_sampled(label):
            self._open = self._stopped = None
            return label
        if self._stopped == label:
            return with_owner(label, TEMPLATE)
        self._open = label
        return label

    def labels(self, chunk: Chunk, spread: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """The labels of a chunk's tokens."""
        if not chunk.stops:
            return [(count, self.ordinary(label)) for count, label in spread]
        labels: list[tuple[int, int]] = []
        position = 0
        for count, label in spread:
            for token_id in chunk.ids[position : position + count]:
                stops = token_id in self._stop_ids and is_sampled(label)
                labels.append((1, self.special(token_id, label) if stops else self.ordinary(label)))
            position += count
        return labels


def token_borders(
    ids: Sequence[int], ends: Sequence[int], token_bytes: Callable[[int], bytes]
) -> list[tuple[int, bool]]:
    """For each byte position: the number of tokens that begin before it, and whether the last of these goes beyond it.

    Counts from whichever end of the tokens is nearer, so that a long body between short texts is not walked through.
    """
    total = ends[-1]
    near = sum(1 for end in ends if end <= total // 2)
    found: list[tuple[int, bool]] = []
    index = position = 0
    for end in ends[:near]:
        while position < end:
            position += len(token_bytes(ids[index]))
            index += 1
        found.append((index, position > end))
    far: list[tuple[int, bool]] = []
    index, position = len(ids), total
    for end in reversed(ends[near:]):
        while position > end:
            index -= 1
            position -= len(token_bytes(ids[index]))
        far.append((index, False) if position == end else (index + 1, True))
    return found + far[::-1]


def _unsplit(scaffold: str) -> tuple[str | int, ...]:
    return (scaffold,)


def _byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _raise_for_surrogates(pieces: Sequence[Piece]) -> None:
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
