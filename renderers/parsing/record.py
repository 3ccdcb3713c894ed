"""What is known of a reply so far: its fields, its calls, the deltas that say so, and the region of every unit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from renderers.parsed import Delta, ParsedToolCall, Region
from renderers.parsing.protocol import CallProgress, ReadCall
from renderers.parsing.spans import Run


class _Announced:
    """What deltas have said of a call so far."""

    __slots__ = ("arguments", "named")

    def __init__(self) -> None:
        self.named = False
        self.arguments = 0


class ReplyRecord:
    """Collects a reply. While `silent`, which is while the prompt's tokens are read, nothing is kept of it.

    A block of calls that the prompt left open is the exception: it is the reply's, and its deltas come when the
    completion begins.
    """

    def __init__(self) -> None:
        self.silent = False
        self.deltas: list[Delta] = []
        self.runs: list[Run] = []
        self.content: list[str] = []
        self.reasoning: list[str] | None = None
        self.calls: list[ParsedToolCall] = []
        self._calls_before = 0
        self._announced: list[_Announced] = []
        self.units = 0

    def begin_completion(self) -> None:
        """The prompt's tokens are over."""
        self.silent = False
        before = len(self.calls)
        self._calls_before += before
        self.calls = []
        if before:
            self.deltas = [replace(delta, call=(delta.call or 0) - before) for delta in self.deltas]

    def mark(self, region: Region, units: int, call: int | None = None) -> None:
        """The next units are in this region. Every unit is marked once, in order."""
        if self.silent or not units:
            return
        self.units += units
        runs = self.runs
        if runs and runs[-1].region is region and runs[-1].call == call:
            runs[-1] = Run(self.units, region, call)
        else:
            runs.append(Run(self.units, region, call))

    def add_content(self, text: str, units: int) -> None:
        """A piece of the answer."""
        if self.silent:
            return
        self.content.append(text)
        self.deltas.append(Delta(content=text))
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
        self.deltas.append(Delta(reasoning=text))
        self.mark(Region.REASONING, units)

    def begin_block(self) -> int:
        """A block of calls begins; returns the index that its first call will have."""
        self._announced = []
        return len(self.calls)

    def progress(self, events: Iterable[CallProgress]) -> None:
        """What became certain of the open block's calls."""
        for event in events:
            self._announce(event.call, event.name, event.call_id, event.arguments)

    def end_block(self, calls: Sequence[ReadCall], raws: Sequence[str]) -> None:
        """The open block ends with these calls. Deltas say of each what they have not said yet."""
        if self.silent:
            self.deltas = []
        else:
            for index, call in enumerate(calls):
                said = self._announced[index].arguments if index < len(self._announced) else 0
                self._announce(index, call.name, call.call_id, call.arguments_text[said:])
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

    def _announce(self, index: int, name: str | None, call_id: str | None, arguments: str) -> None:
        while len(self._announced) <= index:
            self._announced.append(_Announced())
        announced = self._announced[index]
        call = len(self.calls) + index
        if name is not None and not announced.named:
            announced.named = True
            self.deltas.append(Delta(call=call, call_id=call_id or self._made_id(call), name=name))
        if arguments:
            announced.arguments += len(arguments)
            self.deltas.append(Delta(call=call, arguments=arguments))
