"""A streamed reply of Chat Completions."""

from __future__ import annotations

from typing import Any

from renderers.parsed import ParsedToolCall
from renderers.vendors.api import VendorApi
from renderers.vendors.arguments import cut_call
from renderers.vendors.events import ReplyStream, merge
from renderers.vendors.payloads import Json, Shape

#: Fields of a delta that are said once, not in pieces.
_ONCE = frozenset({"id", "type", "role", "name", "format", "signature"})
#: Fields of a chunk that are not the reply's.
_OF_CHUNKS = frozenset({"choices", "object", "obfuscation"})


class _ToolCall(Shape):
    index: int


class _Delta(Shape):
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(Shape):
    index: int
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Chunk(Shape):
    choices: list[_Choice]


class ChatStream(ReplyStream):
    """Puts a reply together from its chunks, and its alternatives, which stay in the envelope.

    How many alternatives were asked for it does not know: one that never began is not missed.
    """

    def __init__(self, api: VendorApi) -> None:
        super().__init__(api)
        self._fields: Json = {}
        self._choices: dict[int, Json] = {}

    def _apply(self, event: Json) -> None:
        if "choices" not in event:
            self.unread.append(event)
            return
        self._check(event, _Chunk)
        for name, value in event.items():
            if name not in _OF_CHUNKS and (value is not None or name not in self._fields):
                self._fields[name] = value
        for given in event["choices"]:
            choice = self._choices.setdefault(given["index"], {"index": given["index"], "message": {}})
            merge(choice["message"], given.get("delta") or {}, once=_ONCE)
            others = {name: value for name, value in given.items() if name not in {"index", "delta"}}
            merge(choice, others, once=_ONCE | {"finish_reason"})

    def _began(self) -> bool:
        return bool(self._choices)

    def _missing(self) -> str | None:
        if not self._choices:
            return "before the reply begins"
        unfinished = [index for index, choice in self._choices.items() if choice.get("finish_reason") is None]
        return f"before choice {unfinished[0]} is finished" if unfinished else None

    def _assembled(self, *, cut: bool) -> tuple[Json, list[ParsedToolCall]]:
        choices, malformed = [], []
        for index in sorted(self._choices):
            choice = dict(self._choices[index])
            message: Json = {"role": "assistant", "content": None, **choice["message"]}
            calls = [dict(call) for call in message.get("tool_calls") or ()]
            if calls and cut and choice.get("finish_reason") is None:
                last = calls.pop()  # more of it may have been to come
                if index == 0:
                    function: dict[str, Any] = last.get("function") or {}
                    texts = (str(function.get("name") or ""), str(function.get("arguments") or ""))
                    malformed.append(cut_call(last.get("id"), *texts))
            if message.get("tool_calls") is not None:
                message["tool_calls"] = [_whole(call) for call in calls]
            choices.append({**choice, "message": message})
        return {**self._fields, "object": "chat.completion", "choices": choices}, malformed


def _whole(call: Json) -> Json:
    """A call as it stands in a reply that came in one piece."""
    whole = {name: value for name, value in call.items() if name != "index"}
    whole.setdefault("type", "function")
    if whole["type"] == "function":
        whole["function"] = {"arguments": "", **(whole.get("function") or {})}
    return whole
