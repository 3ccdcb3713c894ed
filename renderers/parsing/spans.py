"""From runs of units to spans of tokens: every completion token in exactly one region."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from renderers.parsed import Region, Span
from renderers.parsing.lexer import Chunk, Utf8
from renderers.tokenizers.protocol import TokenizerAdapter


class Run(NamedTuple):
    """Units up to `end` (from where the run before ends) that are in one region."""

    end: int
    region: Region
    call: int | None


#: Where a token is that stands for nothing.
_NOTHING = Run(0, Region.STRUCTURE, None)


class _Placer:
    """Places tokens, in order, by the units (or bytes) that each covers.

    A token is in the region of its first unit that is not structure, and structure if there is none.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = runs
        self._at = 0

    def place(self, start: int, reach: int) -> Run | None:
        """The run of what covers `start` to `reach`; None where it covers nothing. `start` never decreases."""
        runs = self._runs
        while self._at < len(runs) and runs[self._at].end <= start:
            self._at += 1
        if reach <= start or self._at == len(runs):
            return None
        position = self._at
        while runs[position].region is Region.STRUCTURE:
            if runs[position].end >= reach or position + 1 == len(runs):
                return runs[self._at]
            position += 1
        return runs[position]

    def whole(self, start: int, reach: int) -> Run | None:
        """The run that holds all of `start` to `reach`, or None where several do."""
        found = self.place(start, reach)
        return found if found is not None and found is self._runs[self._at] and found.end >= reach else None

    def within(self, start: int, reach: int) -> list[Run]:
        """The runs that hold `start` to `reach`, the last one cut at `reach`."""
        self.place(start, reach)
        position, inside = self._at, []
        while position < len(self._runs):
            run = self._runs[position]
            if run.end >= reach:
                inside.append(Run(reach, run.region, run.call))
                break
            inside.append(run)
            position += 1
        return inside


def make_spans(
    adapter: TokenizerAdapter, token_ids: Sequence[int], chunks: Iterable[Chunk], runs: Sequence[Run]
) -> list[Span]:
    """Spans of all tokens, neighbours of one region and call joined."""
    spans: list[Span] = []
    start, current = 0, _NOTHING
    token = 0
    for count, found in _place_tokens(adapter, token_ids, chunks, runs):
        if found is not current:
            placed = found or _NOTHING
            if placed.region is not current.region or placed.call != current.call:
                if token > start:
                    spans.append(Span(start, token, current.region, current.call))
                start = token
            current = placed
        token += count
    if token > start:
        spans.append(Span(start, token, current.region, current.call))
    return spans


def _place_tokens(
    adapter: TokenizerAdapter, token_ids: Sequence[int], chunks: Iterable[Chunk], runs: Sequence[Run]
) -> Iterator[tuple[int, Run | None]]:
    """How many tokens follow, and the run that they are in. Tokens are looked at one by one only at borders."""
    placer = _Placer(runs)
    token, unit = 0, 0
    for token_end, unit_end, reach, text, pending in chunks:
        size = token_end - token
        if size == 1:
            yield 1, placer.place(unit, reach)
        elif size and (run := placer.whole(unit, reach)) is not None:
            yield size, run
        elif size:
            ids = token_ids[token:token_end]
            inside = placer.within(unit, reach)
            if text is None:
                yield from _by_token(adapter, ids, pending, unit, inside)
            else:
                yield from _by_bytes(adapter, ids, text, unit, inside)
        token, unit = token_end, unit_end


#: Borders this near to an end of a run are found by walking from there: most stand beside a marker.
_NEAR = 64


class _TokenBorders:
    """The places, in bytes, where tokens end; asked for with rising places."""

    def __init__(self, adapter: TokenizerAdapter, ids: Sequence[int], size: int) -> None:
        self._token_bytes = adapter.token_bytes
        self._ids = ids
        self._size = size
        self._ends: list[int] | None = None
        self.token = 0
        self.start = 0

    def step(self) -> int:
        """Go on by one token; returns its end."""
        self.start += len(self._token_bytes(self._ids[self.token]))
        self.token += 1
        return self.start

    def go_to(self, place: int) -> None:
        """Go on to the last token border that is not after `place`."""
        if self._ends is None and place - self.start <= _NEAR:
            while self.token < len(self._ids):
                end = self.start + len(self._token_bytes(self._ids[self.token]))
                if end > place:
                    return
                self.start = end
                self.token += 1
        elif self._ends is None and self._size - place <= _NEAR:
            self.token, self.start = len(self._ids), self._size
            while self.start > place:
                self.token -= 1
                self.start -= len(self._token_bytes(self._ids[self.token]))
        else:
            if self._ends is None:
                self._ends = list(accumulate(map(len, map(self._token_bytes, self._ids))))
            self.token = bisect_right(self._ends, place, lo=self.token)
            self.start = self._ends[self.token - 1] if self.token else 0


def _by_bytes(
    adapter: TokenizerAdapter, ids: Sequence[int], text: str, unit: int, runs: Sequence[Run]
) -> Iterator[tuple[int, Run | None]]:
    """How many tokens, and the run that they are in; for tokens whose bytes are whole characters."""
    in_bytes, start, size = [], 0, 0
    for run in runs:
        size += len(text[start : run.end - unit].encode())
        start = run.end - unit
        in_bytes.append(Run(size, run.region, run.call))
    placer = _Placer(in_bytes)
    borders = _TokenBorders(adapter, ids, size)
    for run in in_bytes:
        if run.end <= borders.start:
            continue
        before = borders.token
        borders.go_to(run.end)
        if borders.token > before:
            yield borders.token - before, run
        if borders.start < run.end:  # a token that goes beyond the run
            start = borders.start
            yield 1, placer.place(start, borders.step())


def _by_token(
    adapter: TokenizerAdapter, ids: Sequence[int], pending: bytes, unit: int, runs: Sequence[Run]
) -> Iterator[tuple[int, Run | None]]:
    """The run of each token, decoded one by one; for characters that go over borders, and bytes that are no UTF-8."""
    utf8 = Utf8(pending)
    placer = _Placer(runs)
    for token_id in ids:
        end = unit + len(utf8.decode(adapter.token_bytes(token_id)))
        yield 1, placer.place(unit, end + bool(utf8.pending))
        unit = end
