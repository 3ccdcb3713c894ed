"""What is known of a reply so far: its fields, its calls, the deltas that say so, and the region of every unit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from renderers.parsed import Delta, ParsedToolCall, Region
from renderers.parsing.protocol import CallProgress, ReadCall
from renderers.parsing.spans import Run


class ReplyRecord:
    """Collects a reply. While `silent`, which is while the prompt's tokens are read, nothing is kept of it.

    A block of calls that the prompt left open is the exception: it is the reply's, and its deltas come when the
    completion begins.
    """

    def __init__(self) -> None:
        self.silent = False
        self.deltas: list[Delta] = []
        self.content: list[str] = []
        self.reasoning: list[str] | None = None
        self.calls: list[ParsedToolCall] = []
        self._calls_before = 0
        #: How much of each call's arguments deltas have told, for the calls of the open block that were named.
        self._announced: list[int] = []
        self.units = 0
        self._runs: list[Run] = []
        self._run_start = 0
        self._region = Region.STRUCTURE
        self._call: int | None = None

    def begin_completion(self) -> None:
        """The prompt's tokens are over."""
        self.silent = False
        before = len(self.calls)
        self._calls_before += before
        self.calls = []
        if before:
            self.deltas = [delta._replace(call=(delta.call or 0) - before) for delta in self.deltas]

    def mark(self, region: Region, units: int, call: int | None = None) -> None:
        """The next units are in this region. Every unit is marked once, in order."""
        if self.silent or not units:
            return
        if region is not self._region or call != self._call:
            self._end_run()
            self._region, self._call = region, call
        self.units += units

    def all_runs(self) -> list[Run]:
        """The regions of all units marked so far."""
        self._end_run()
        return self._runs

    def _end_run(self) -> None:
        if self.units > self._run_start:
            self._runs.append(Run(self.units, self._region, self._call))
            self._run_start = self.units

    def add_content(self, text: str, units: int) -> None:
        """A piece of the answer."""
        if self.silent:
            return
        self.content.append(text)
        self.deltas.append(Delta(None, text))
        self.mark(Region.CONTENT, units)

    def begin_reasoning(self) -> None:
        """The reply has reasoning, be it empty."""
        if self.reasoning is None and not self.silent:
            self.reasoning = []

    def add_reasoning(self, text: str, units: int) -> None:
        """A piece of the reasoning."""
        if self.silent:
            return
        if self.reasoning is None:
            self.reasoning = []
        self.reasoning.append(text)
        self.deltas.append(Delta(text))
        self.mark(Region.REASONING, units)

    def begin_block(self) -> int:
        """A block of calls begins; returns the index that its first call will have."""
        self._announced = []
        return len(self.calls)

    def progress(self, events: Iterable[CallProgress]) -> None:
        """What became certain of the open block's calls."""
        for name, arguments, call_id, call in events:
            if name is not None:
                self._announce(call, name, call_id)
            if arguments:
                self._add_arguments(call, arguments)

    def end_block(self, calls: Sequence[ReadCall], raws: Sequence[str]) -> None:
        """The open block ends with these calls. Deltas say of each what they have not said yet."""
        if self.silent:
            self.deltas = []
        else:
            for index, call in enumerate(calls):
                if index == len(self._announced):
                    self._announce(index, call.name, call.call_id)
                if rest := call.arguments_text[self._announced[index] :]:
                    self._add_arguments(index, rest)
        for call, raw in zip(calls, raws, strict=True):
            self.calls.append(
                ParsedToolCall(
                    id=call.call_id or self._made_id(len(self.calls)),
                    name=call.name,
                    arguments=call.arguments,
                    raw=raw,
                    arguments_text=call.arguments_text,
                    status=call.status,
                    error=call.error,
                )
            )

    def _made_id(self, index: int) -> str:
        return f"call_{self._calls_before + index}"

    def _announce(self, index: int, name: str, call_id: str | None) -> None:
        call = len(self.calls) + index
        self._announced.append(0)
        self.deltas.append(Delta(call=call, call_id=call_id or self._made_id(call), name=name))

    def _add_arguments(self, index: int, text: str) -> None:
        self._announced[index] += len(text)
        self.deltas.append(Delta(None, None, len(self.calls) + index, None, None, text))
