"""Which label each token takes: from the texts that were encoded to tokens."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import TypeAlias

from renderers.labels import TEMPLATE, Runs, is_sampled, with_owner
from renderers.tokenizers.protocol import TokenizerAdapter
from renderers.writer import Piece

#: What the labels of the tokens that follow depend on: the label of the reply that is open, and of the one that its stop
#: token ended.
ReplyState: TypeAlias = tuple[int | None, int | None]


class Assembly:
    """Labels tokens from left to right.

    A reply's sampled part ends at its first stop token, also where that token opens the next message.
    """

    def __init__(self, tokenizer: TokenizerAdapter, stop_ids: frozenset[int]) -> None:
        self._tokenizer = tokenizer
        self._stop_ids = stop_ids
        self.runs = Runs()
        self._open: int | None = None
        self._stopped: int | None = None

    @property
    def reply(self) -> ReplyState:
        """What the labels of the tokens that follow depend on."""
        return self._open, self._stopped

    def append(self, runs: Runs, reply: ReplyState) -> None:
        """Labels that another assembly made, up to a place where its `reply` was this."""
        self.runs.extend(runs)
        self._open, self._stopped = reply

    def special(self, token_id: int, label: int) -> None:
        """A special token."""
        self.runs.add(1, self._special(token_id, label))

    def text(self, texts: Sequence[Piece], ids: Sequence[int]) -> None:
        """Texts between two special tokens that the template wrote, and their tokens."""
        spread = self._spread(texts, ids)
        if self._stop_ids.isdisjoint(ids):  # else the caller's text spells one
            for count, label in spread:
                self.runs.add(count, self._ordinary(label))
            return
        position = 0
        for count, label in spread:
            for token_id in ids[position : position + count]:
                is_stop = token_id in self._stop_ids and is_sampled(label)
                self.runs.add(1, self._special(token_id, label) if is_stop else self._ordinary(label))
            position += count

    def whole(self, pieces: Sequence[Piece], ids: Sequence[int], offsets: Sequence[tuple[int, int]]) -> None:
        """All pieces, encoded as one text; the range of characters that each token covers."""
        ends: list[int] = []
        total = 0
        for piece, _, _ in pieces:
            total += len(piece)
            ends.append(total)
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
            self.runs.add(1, self._special(token_id, label) if token_id in specials else self._ordinary(label))

    # The labels of replies -----------------------------------------------------------------------------------------

    def _special(self, token_id: int, label: int) -> int:
        """The label of a special token."""
        stops = token_id in self._stop_ids
        if not is_sampled(label):
            reply, self._open, self._stopped = self._open, None, None
            return reply if stops and reply is not None else label
        label_of_reply = self._ordinary(label)
        if stops:
            self._open, self._stopped = None, label
        return label_of_reply

    def _ordinary(self, label: int) -> int:
        """The label of ordinary text."""
        if not is_sampled(label):
            self._open = self._stopped = None
            return label
        if self._stopped == label:
            return with_owner(label, TEMPLATE)
        self._open = label
        return label

    # The labels of a chunk's tokens --------------------------------------------------------------------------------

    def _spread(self, texts: Sequence[Piece], ids: Sequence[int]) -> list[tuple[int, int]]:
        """Labels of a chunk's tokens, as (count, label), from the labels of its texts.

        A token that straddles two texts takes the label of its first character, and is sampled only if all of it is.
        """
        labels = [label for _, label, _ in texts]
        if labels.count(labels[0]) == len(labels):
            return [(len(ids), labels[0])]
        ends = self._byte_ends([text for text, _, _ in texts])
        positions = token_borders(ids, ends, self._tokenizer.token_bytes)
        spread: list[tuple[int, int]] = []
        done = 0
        for index, (position, straddles) in enumerate(positions):
            label = labels[index]
            if position <= done:
                continue
            if straddles and is_sampled(label) and not self._all_sampled(texts, ends, index, ids, position):
                spread += [(position - 1 - done, label), (1, with_owner(label, TEMPLATE))]
            else:
                spread.append((position - done, label))
            done = position
        return spread

    def _all_sampled(
        self, texts: Sequence[Piece], ends: Sequence[int], index: int, ids: Sequence[int], position: int
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


def _byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
