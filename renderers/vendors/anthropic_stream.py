"""A streamed reply of Anthropic Messages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from renderers.errors import VendorPayloadError
from renderers.parsed import ParsedToolCall
from renderers.vendors.api import Reply, VendorApi
from renderers.vendors.arguments import arguments_object, cut_call, malformed_call
from renderers.vendors.blocks import make_call
from renderers.vendors.events import ReplyStream, merge
from renderers.vendors.payloads import Json, Shape


class _Message(Shape):
    role: str
    content: list[dict[str, Any]]


class _Start(Shape):
    message: _Message


class _TypedPart(Shape):
    type: str


class _BlockStart(Shape):
    index: int
    content_block: _TypedPart


class _BlockDelta(Shape):
    index: int
    delta: _TypedPart


class _BlockStop(Shape):
    index: int


class _MessageDelta(Shape):
    delta: dict[str, Any]
    usage: dict[str, Any] | None = None


class AnthropicStream(ReplyStream):
    """Puts a reply together from its events. A call's arguments are the text that the model wrote."""

    def __init__(self, api: VendorApi) -> None:
        super().__init__(api)
        self._message: Json | None = None
        self._blocks: dict[int, Json] = {}
        self._inputs: dict[int, str] = {}  # text of the input of each block that streams one
        self._open: set[int] = set()
        self._ended = False

    def _apply(self, event: Json) -> None:
        kind = event.get("type")
        if kind == "ping":
            return
        if kind == "message_start":
            self._check(event, _Start)
            if self._message is not None:
                raise self._wrong("a second message_start")
            self._message = dict(event["message"])
            self._blocks = dict(enumerate(self._message.pop("content")))
            return
        if kind is None:
            raise VendorPayloadError(self.api.provider, "type", "missing: this is no event of the Messages API")
        if self._message is None:
            raise self._wrong(f"{kind} before message_start")
        if self._ended:
            raise self._wrong(f"{kind} after message_stop")
        self._apply_inside(kind, event, self._message)

    def _apply_inside(self, kind: object, event: Json, message: Json) -> None:
        match kind:
            case "content_block_start":
                self._check(event, _BlockStart)
                if event["index"] in self._blocks:
                    raise self._wrong(f"a second content_block_start of block {event['index']}")
                self._blocks[event["index"]] = event["content_block"]
                self._open.add(event["index"])
            case "content_block_delta":
                self._check(event, _BlockDelta)
                self._grow(self._open_block(event["index"]), event["index"], event["delta"])
            case "content_block_stop":
                self._check(event, _BlockStop)
                self._open_block(event["index"])
                self._open.remove(event["index"])
            case "message_delta":
                self._check(event, _MessageDelta)
                message.update(event["delta"])
                if event.get("usage"):
                    message["usage"] = {**(message.get("usage") or {}), **_said(event["usage"])}
                others = {name: value for name, value in event.items() if name not in {"type", "delta", "usage"}}
                message.update(others)
            case "message_stop":
                if self._open:
                    raise self._wrong(f"message_stop while block {min(self._open)} is open")
                self._ended = True
            case _:  # the API may add events at any time
                self.unread.append(event)

    def _open_block(self, index: int) -> Json:
        if index not in self._open:
            raise self._wrong(f"block {index} is not open")
        return self._blocks[index]

    def _grow(self, block: Json, index: int, delta: Json) -> None:
        given = {name: value for name, value in delta.items() if name != "type"}
        match delta["type"]:
            case "input_json_delta" if isinstance(delta.get("partial_json"), str):
                self._inputs[index] = self._inputs.get(index, "") + delta["partial_json"]
            case "signature_delta":
                block.update(given)
            case "citations_delta":
                block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]
            case _:  # text, thinking, and what may come: its fields grow
                merge(block, given, once=frozenset())

    def _began(self) -> bool:
        return self._message is not None

    def _missing(self) -> str | None:
        if self._message is None:
            return "before the reply begins"
        if self._open:
            return f"inside block {min(self._open)}"
        return None if self._ended else "before message_stop"

    def _assembled(self, *, cut: bool) -> tuple[Json, list[ParsedToolCall]]:
        malformed: list[ParsedToolCall] = []
        content = []
        for index in sorted(self._blocks):
            block, text = self._blocks[index], self._inputs.get(index)
            about = (block.get("id"), str(block.get("name")), text or "")
            fault = None
            if block.get("type") == "tool_use":
                fault = cut_call(*about) if cut and index in self._open else malformed_call(*about)
            if fault is not None:
                malformed.append(fault)
                continue
            if text:
                block = {**block, "input": _input(text)}
            content.append(block)
        return {**(self._message or {}), "content": content}, malformed

    def _with_texts(self, reply: Reply) -> Reply:
        """The arguments as the model wrote them; calls without any text came with an empty object."""
        texts = {self._blocks[index].get("id"): text for index, text in self._inputs.items() if text}
        calls = [
            make_call(call["id"], call["function"]["name"], texts.get(call["id"], call["function"]["arguments"]))
            for call in reply.message.get("tool_calls") or ()
        ]
        return replace(reply, message={**reply.message, "tool_calls": calls}) if calls else reply


def _input(text: str) -> Any:
    """The input of a tool, the server's own included; text that is no JSON object stays text."""
    try:
        return arguments_object(text)
    except ValueError:
        return text


def _said(usage: Json) -> Json:
    return {name: value for name, value in usage.items() if value is not None}
