"""Replies taken apart into the events of a stream, in pieces of any size."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from renderers.testing import Choices

Json = dict[str, Any]


def pieces(choices: Choices, text: str) -> Iterator[str]:
    """The text in pieces, at times with an empty one."""
    while text and not choices.exhausted:
        size = choices.pick((3, 1, 0, 7, 40))
        yield text[:size]
        text = text[size:]
    if text:
        yield text


def anthropic_events(choices: Choices, reply: Json) -> list[Json]:
    """The events of a Messages reply."""
    start = {**copy.deepcopy(reply), "content": [], "stop_reason": None}
    events: list[Json] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(reply["content"]):
        events += [{"type": "content_block_start", "index": index, "content_block": _emptied(block)}]
        for delta in _deltas(choices, block):
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
            if choices.chance(10):
                events.append({"type": "ping"})
        events.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": reply["stop_reason"], "stop_sequence": None}
    return [*events, {"type": "message_delta", "delta": delta, "usage": reply["usage"]}, {"type": "message_stop"}]


def _emptied(block: Json) -> Json:
    empty: dict[str, Json] = {
        "text": {"text": ""},
        "thinking": {"thinking": "", "signature": ""},
        "tool_use": {"input": {}},
    }
    kind = "tool_use" if block["type"] == "server_tool_use" else block["type"]
    return {**copy.deepcopy(block), **empty.get(kind, {})}


def _deltas(choices: Choices, block: Json) -> Iterator[Json]:
    kind = block["type"]
    if kind == "text":
        yield from ({"type": "text_delta", "text": piece} for piece in pieces(choices, block["text"]))
    elif kind == "thinking":
        yield from ({"type": "thinking_delta", "thinking": piece} for piece in pieces(choices, block["thinking"]))
        yield {"type": "signature_delta", "signature": block["signature"]}
    elif kind in {"tool_use", "server_tool_use"}:
        text = json.dumps(block["input"], ensure_ascii=False, indent=choices.pick((None, 1)))
        yield from ({"type": "input_json_delta", "partial_json": piece} for piece in pieces(choices, text))


def chat_events(choices: Choices, reply: Json) -> list[Json]:
    """The chunks of a Chat Completions reply."""
    about = {name: value for name, value in reply.items() if name not in {"choices", "usage", "object"}}
    chunks: list[Json] = []

    def chunk(index: int, **what: Any) -> None:
        chunks.append({**about, "object": "chat.completion.chunk", "choices": [{"index": index, **what}]})

    for choice in reply["choices"]:
        index, message = choice["index"], choice["message"]
        others = {name: value for name, value in choice.items() if name not in {"index", "message", "finish_reason"}}
        grows = {"content", "refusal", "reasoning_content", "reasoning", "tool_calls"}
        first = {name: value for name, value in message.items() if name not in grows or value is None}
        chunk(index, delta={"role": "assistant", **first}, **others)
        for name in ("reasoning_content", "reasoning", "content", "refusal"):
            if isinstance(message.get(name), str):
                chunk(index, delta={name: ""}, finish_reason=None)
                for piece in pieces(choices, message[name]):
                    chunk(index, delta={name: piece}, finish_reason=None)
        if message.get("tool_calls") == []:
            chunk(index, delta={"tool_calls": []})
        for number, call in enumerate(message.get("tool_calls") or ()):
            kind, field = ("custom", "input") if call["type"] == "custom" else ("function", "arguments")
            opened = {**copy.deepcopy(call), kind: {**call[kind], field: ""}}
            chunk(index, delta={"tool_calls": [{"index": number, **opened}]})
            for piece in pieces(choices, call[kind][field]):
                chunk(index, delta={"tool_calls": [{"index": number, kind: {field: piece}}]})
        chunk(index, delta={}, finish_reason=choice["finish_reason"])
    return [*chunks, {**about, "object": "chat.completion.chunk", "choices": [], "usage": reply["usage"]}]
