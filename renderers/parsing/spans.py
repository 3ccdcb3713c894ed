"""From runs of units to spans of tokens: every completion token in exactly one region."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
        return found if found is self._runs[self._at] and found.end >= reach else None

    def within(self, start: int, reach: int) -> list[Run]:
        """The runs that hold `start` to `reach`, the last one cut at `reach`."""
        self.place(start, reach)
        position, inside = self._at, []
        while position < len(self._runs):
            run = self._runs[position]
            if run.end >= reach:
                inside.append(run._replace(end=reach))
                break
            inside.append(run)
            position += 1
        return inside


def make_spans(
    adapter: TokenizerAdapter, token_ids: Sequence[int], chunks: Iterable[Chunk], runs: Sequence[Run]
) -> list[Span]:
    """Spans of all tokens, neighbours of one region and call joined."""
    spans: list[Span] = []
    placer = _Placer(runs)
    token, unit = 0, 0

    def append(end: int, run: Run | None) -> None:
        nonlocal token
        region, call = (run.region, run.call) if run is not None else (Region.STRUCTURE, None)
        last = spans[-1] if spans else None
        if last is not None and last.region is region and last.call == call:
            spans[-1] = Span(last.start, end, region, call)
        elif end > token:
            spans.append(Span(token, end, region, call))
        token = end

    for chunk in chunks:
        size = chunk.token_end - token
        if size == 1:
            append(chunk.token_end, placer.place(unit, chunk.reach))
        elif size:
            run = placer.whole(unit, chunk.reach)
            if run is not None:
                append(chunk.token_end, run)
            else:
                ids = token_ids[token : chunk.token_end]
                inside = placer.within(unit, chunk.reach)
                expand = _expand_clean if chunk.clean else _expand
                for one in expand(adapter, ids, chunk, unit, inside):
                    append(token + 1, one)
        unit = chunk.unit_end
    return spans


def _expand_clean(
    adapter: TokenizerAdapter, ids: Sequence[int], chunk: Chunk, unit: int, runs: Sequence[Run]
) -> Iterable[Run | None]:
    """The run of each token, by bytes: the chunk's bytes are whole characters."""
    text = adapter.decode_bytes(ids).decode()
    in_bytes, start, size = [], 0, 0
    for run in runs:
        size += len(text[start : run.end - unit].encode())
        start = run.end - unit
        in_bytes.append(run._replace(end=size))
    placer = _Placer(in_bytes)
    begin = 0
    for end in accumulate(map(len, map(adapter.token_bytes, ids))):
        yield placer.place(begin, end)
        begin = end


def _expand(
    adapter: TokenizerAdapter, ids: Sequence[int], chunk: Chunk, unit: int, runs: Sequence[Run]
) -> Iterable[Run | None]:
    """The run of each token, decoded one by one: characters go over the chunk's borders, or bytes are invalid."""
    utf8 = Utf8(chunk.pending)
    placer = _Placer(runs)
    for token_id in ids:
        end = unit + len(utf8.decode(adapter.token_bytes(token_id)))
        yield placer.place(unit, end + bool(utf8.pending))
        unit = end
