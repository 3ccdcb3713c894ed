"""Streamed replies: events as they come, put together to the reply that would have come in one piece."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from renderers.errors import VendorError, VendorPayloadError, VendorStreamError
from renderers.parsed import ParsedToolCall
from renderers.vendors.api import Reply, VendorApi
from renderers.vendors.payloads import Json, Shape, as_json_object, check

#: What ends a stream of Chat Completions; it says nothing.
_DONE = "[DONE]"
#: Names of lines that say nothing that their data does not say; a comment has an empty one.
_PASSED_OVER = frozenset({"", "data", "event", "id", "retry"})
#: Not `str.splitlines`: JSON may hold the other line ends that it knows.
_LINE_END = re.compile("\r\n|\n|\r")


class ReplyStream(ABC):
    """Puts a reply together from its events.

    Every error names the event, and the line where lines were given, and holds the reply so far as `partial`.

    Args:
        api: the API whose events they are.
    """

    def __init__(self, api: VendorApi) -> None:
        self.api = api
        self.unread: list[Json] = []
        self._events = 0
        self._lines = 0

    def feed(self, event: object) -> None:
        """Take an event, or lines of a stream.

        Args:
            event: a dict, an SDK object, or text: one or more whole lines of server-sent events, as HTTP clients give them
                (`iter_lines`), or of JSON. Comments, names of events and empty lines are passed over.

        Raises:
            VendorPayloadError: for what is no event of this API.
            VendorReplyError: where the event is the API's own error.
        """
        if isinstance(event, bytes | bytearray):
            event = bytes(event).decode("utf-8", "replace")
        if not isinstance(event, str):
            self._take(event)
            return
        for line in _LINE_END.split(event):
            self._lines += 1
            name, _, data = line.partition(":")
            data = line if line.startswith("{") else data.strip()  # an error may come as a bare line of JSON
            if line.startswith("{") or (name == "data" and data not in {"", _DONE}):
                self._take(data)
            elif line.strip() and name not in _PASSED_OVER:
                self._events += 1
                problem = f"neither an event nor a comment: {line[:60]!r}"
                raise VendorPayloadError(self.api.provider, self._place(), problem, partial=self.partial())

    def finish(self) -> Reply:
        """The reply, when no more events come.

        Raises:
            VendorStreamError: the stream was cut: it ended before the reply did.
        """
        missing = self._missing()
        if missing:
            place = f"after {self._place()}" if self._events else "the stream"
            raise VendorStreamError(self.api.provider, place, f"the stream ends {missing}", partial=self.partial())
        return self._reply(cut=False)

    def partial(self) -> Reply | None:
        """The reply so far; None before its first event. A call that is not finished is among its malformed calls."""
        return self._reply(cut=True) if self._began() else None

    def read(self, events: Iterable[object]) -> Reply:
        """Take all events, and give the reply; errors of `feed` and `finish`.

        Raises:
            VendorStreamError: also where the iterable itself raises, as a broken connection does; that error is the cause.
        """
        iterator: Iterator[object] = iter(events)
        while True:
            try:
                event = next(iterator)
            except StopIteration:
                return self.finish()
            except Exception as error:
                problem = f"the stream broke: {type(error).__name__}: {error}"
                place = f"after {self._place()}"
                raise VendorStreamError(self.api.provider, place, problem, partial=self.partial()) from error
            self.feed(event)

    def _take(self, given: object) -> None:
        self._events += 1
        place = self._place()
        try:
            event = as_json_object(given, self.api.provider, place)
            self.api.raise_error(event, place)
            try:
                self._apply(event)
            except VendorPayloadError as error:
                raise VendorPayloadError(error.provider, f"{place}: {error.place}", error.problem) from None
        except VendorError as error:
            error.partial = self.partial()
            raise

    def _place(self) -> str:
        return f"event {self._events}" + (f" (line {self._lines})" if self._lines else "")

    def _check(self, event: Json, shape: type[Shape]) -> None:
        check(event, shape, self.api.provider)

    def _wrong(self, problem: str) -> VendorPayloadError:
        return VendorPayloadError(self.api.provider, "order", problem)

    def _reply(self, *, cut: bool) -> Reply:
        payload, malformed = self._assembled(cut=cut)
        reply = self.api.read_reply(payload)
        return replace(
            self._with_texts(reply),
            malformed_calls=(*reply.malformed_calls, *malformed),
            unread_events=tuple(self.unread),
        )

    def _with_texts(self, reply: Reply) -> Reply:
        return reply

    @abstractmethod
    def _apply(self, event: Json) -> None:
        """Take an event that is no error."""

    @abstractmethod
    def _began(self) -> bool:
        """Whether an event of the reply has come."""

    @abstractmethod
    def _missing(self) -> str | None:
        """What the reply lacks to be whole, in words; None where it is whole."""

    @abstractmethod
    def _assembled(self, *, cut: bool) -> tuple[Json, list[ParsedToolCall]]:
        """The reply's payload, and the calls that cannot stand in it. `cut`: more events were to come."""


class StreamingApi(VendorApi):
    """An API whose streamed replies are put together, too."""

    @abstractmethod
    def stream(self) -> ReplyStream:
        """Puts a streamed reply together: `feed` it the events, then `finish`."""

    def read_stream(self, events: Iterable[object]) -> Reply:
        """A streamed reply, from its events or lines.

        Args:
            events: dicts, SDK objects, or lines of the HTTP response; see `ReplyStream.feed`.

        Raises:
            VendorStreamError: the stream was cut.
            VendorReplyError: the API reports an error, at once or in the middle.
            VendorPayloadError: something is no event of this API.
                All three name the event and hold the reply so far as `partial`.
        """
        return self.stream().read(events)


def merge(into: Json, delta: Mapping[str, Any], *, once: frozenset[str]) -> None:
    """Merge a delta: texts grow, objects merge, items of lists merge by their `index` or are appended.

    Fields named in `once` are not texts that grow: the last value that says something stands.
    """
    for name, value in delta.items():
        old = into.get(name)
        if value is None:
            into.setdefault(name, None)
        elif old is None and not isinstance(value, list | dict):
            into[name] = value
        elif isinstance(value, str) and isinstance(old, str) and name not in once:
            into[name] = old + value
        elif isinstance(value, dict):
            target = into[name] = old if isinstance(old, dict) else {}
            merge(target, value, once=once)
        elif isinstance(value, list):
            target_list = into[name] = old if isinstance(old, list) else []
            _merge_items(target_list, value, once)
        elif value != "":
            into[name] = value


def _merge_items(into: list[Any], items: list[Any], once: frozenset[str]) -> None:
    for item in items:
        index = item.get("index") if isinstance(item, dict) else None
        known = (one for one in into if isinstance(one, dict) and index is not None and one.get("index") == index)
        target = next(known, None)
        if target is not None:
            merge(target, item, once=once)
        else:
            into.append(item)
