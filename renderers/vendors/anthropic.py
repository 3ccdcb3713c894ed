"""Anthropic Messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Tag

from renderers.errors import MessageError
from renderers.vendors.anthropic_stream import AnthropicStream
from renderers.vendors.api import Reply, function_of_tool
from renderers.vendors.arguments import arguments_object
from renderers.vendors.blocks import Kind, Piece, function_of, make_call, read_parts, write_parts
from renderers.vendors.events import ReplyStream, StreamingApi
from renderers.vendors.payloads import Json, Shape, by_type
from renderers.vendors.turns import TurnApi


class _Text(Shape):
    text: str


class _Thinking(Shape):
    thinking: str


class _ToolUse(Shape):
    id: str
    name: str
    input: dict[str, Any]


class _Other(Shape):
    type: str


_ResultBlock: TypeAlias = Annotated[Annotated[_Text, Tag("text")] | Annotated[_Other, Tag("other")], by_type("text")]


class _ToolResult(Shape):
    tool_use_id: str
    content: str | list[_ResultBlock] | None = None
    is_error: bool | None = None


_Block: TypeAlias = Annotated[
    Annotated[_Text, Tag("text")]
    | Annotated[_Thinking, Tag("thinking")]
    | Annotated[_ToolUse, Tag("tool_use")]
    | Annotated[_ToolResult, Tag("tool_result")]
    | Annotated[_Other, Tag("other")],
    by_type("text", "thinking", "tool_use", "tool_result"),
]


class _Turn(Shape):
    role: Literal["user", "assistant", "system"]
    content: str | list[_Block]


class _Request(Shape):
    messages: list[_Turn]
    system: str | list[_Block] | None = None
    tools: list[dict[str, Any]] | None = None


class _Reply(Shape):
    role: Literal["assistant"]
    content: list[_Block]
    stop_reason: str | None = None
    usage: dict[str, Any] | None = None


@dataclass(frozen=True)
class Anthropic(StreamingApi, TurnApi):
    """Anthropic Messages.

    Args:
        provider: whose API this is.
        late_system: how a system message in the middle of the conversation is sent: as one (models since Claude Opus
            4.8), or as a user's turn.
    """

    provider: str = "anthropic"
    late_system: Literal["system", "user"] = "system"

    call_id_pattern = "[a-zA-Z0-9_-]{1,64}"
    unique_call_ids = True
    reasoning_count = ("output_tokens_details", "thinking_tokens")
    request_shape = _Request
    reply_shape = _Reply
    assistant_role = "assistant"
    blocks_field = "content"
    system_field = "system"

    def stream(self) -> ReplyStream:
        """See `StreamingApi.stream`."""
        return AnthropicStream(self)

    @property
    def _late_system_role(self) -> str:
        return self.late_system

    def _read_reply(self, reply: Json, choice: int) -> tuple[Json, Json, str | None]:
        envelope = {name: value for name, value in reply.items() if name != "content"}
        message = self._read_assistant({"role": "assistant", "content": reply["content"]})
        return message, envelope, reply.get("stop_reason")

    def _write_reply(self, message: Json, reply: Reply) -> Json:
        turn = self._write_assistant(message, 0) or {"role": "assistant", "content": []}
        usual = {"type": "message", "stop_reason": reply.stop}
        return {**(reply.envelope or usual), **turn, "content": self._as_blocks(turn["content"])}

    # Content ---------------------------------------------------------------------------------------------------------

    def _as_blocks(self, content: Any) -> list[Json]:
        return [self.part_block(content)] if isinstance(content, str) else super()._as_blocks(content)

    def _read_content(self, content: Any) -> str | list[Json]:
        return content if isinstance(content, str) else read_parts(self, content or [])

    def _write_content(self, content: str | list[Json], kept: Any, index: int) -> Any:
        if isinstance(content, str):
            return content
        return write_parts(self, content, kept if isinstance(kept, list) else [], index)

    def _system_turn(self, given: Any) -> Json:
        return {"content": given}

    def _system_value(self, turn: Json) -> Any:
        return turn["content"]

    # Results ---------------------------------------------------------------------------------------------------------

    def _is_result(self, block: Json) -> bool:
        return block.get("type") == "tool_result"

    def _read_result(self, block: Json, earlier: Sequence[Json]) -> Json:
        message: Json = {"role": "tool", "tool_call_id": block["tool_use_id"]}
        if "content" in block:
            content = block["content"]
            message["content"] = None if content is None else self._read_content(content)
        if block.get("is_error") is not None:
            message["is_error"] = block["is_error"]
        return message

    def _write_result(self, message: Json, earlier: Sequence[Json]) -> Json:
        if message.get("tool_call_id") is None:
            problem = "a result needs the ID of its call, and no call without a result stands before it"
            raise MessageError(problem, message_index=len(earlier), field="tool_call_id")
        block: Json = {"type": "tool_result", "tool_use_id": message["tool_call_id"]}
        if message.get("content") is not None:
            block["content"] = self._write_content(message["content"], None, len(earlier))
        if isinstance(message.get("is_error"), bool):
            block["is_error"] = message["is_error"]
        return block

    # Blocks ----------------------------------------------------------------------------------------------------------

    def pieces(self, block: Json) -> list[Piece]:
        """See `BlockForm.pieces`."""
        match block:
            case {"type": "text", "text": text}:
                return [Piece(Kind.TEXT, text)]
            case {"type": "thinking", "thinking": text}:
                return [Piece(Kind.REASONING, text)]
            case {"type": "redacted_thinking"}:
                return [Piece(Kind.REASONING, "")]
            case {"type": "tool_use", "id": call_id, "name": name, "input": arguments}:
                return [Piece(Kind.CALL, make_call(call_id, name, arguments))]
        return []

    def hides_reasoning(self, block: Json) -> bool:
        """See `BlockForm.hides_reasoning`: what is signed may be a summary."""
        return block.get("type") in {"thinking", "redacted_thinking"}

    def text_blocks(self, texts: Sequence[str]) -> list[Json]:
        """See `BlockForm.text_blocks`."""
        return [self.part_block(text) for text in texts]

    def reasoning_blocks(self, text: str) -> list[Json]:
        """See `BlockForm.reasoning_blocks`: none, because only signed thinking is taken."""
        return []

    def call_block(self, call: Json) -> Json:
        """See `BlockForm.call_block`."""
        function = function_of(call)
        arguments = arguments_object(function["arguments"])
        return {"type": "tool_use", "id": call.get("id"), "name": function["name"], "input": arguments}

    def part_text(self, block: Json) -> str | None:
        """See `BlockForm.part_text`."""
        return block["text"] if block.get("type") == "text" else None

    def part_block(self, text: str) -> Json:
        """See `BlockForm.part_block`."""
        return {"type": "text", "text": text}

    # Tools -----------------------------------------------------------------------------------------------------------

    def _read_tool(self, tool: Json) -> list[Json]:
        if tool.get("type", "custom") not in {"custom", None} or not isinstance(tool.get("name"), str):
            return []
        shared: Json = {name: tool[name] for name in ("name", "description", "strict") if name in tool}
        if "input_schema" in tool:
            shared["parameters"] = tool["input_schema"]
        return [{"type": "function", "function": shared}]

    def _write_tools(self, tools: list[Json]) -> list[Json]:
        return [self._write_tool(function_of_tool(tool, index, self.provider)) for index, tool in enumerate(tools)]

    def _write_tool(self, function: Json) -> Json:
        shared: Json = {name: function[name] for name in ("name", "description", "strict") if name in function}
        return {**shared, "input_schema": function.get("parameters", {"type": "object", "properties": {}})}
