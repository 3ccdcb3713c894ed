"""OpenAI Responses: a conversation as a list of items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Tag

from renderers.errors import MessageError
from renderers.vendors.api import Reply, VendorApi, function_of_tool
from renderers.vendors.arguments import arguments_text
from renderers.vendors.blocks import (
    BlockForm,
    Kind,
    Piece,
    function_of,
    keep,
    keep_blocks,
    kept_of,
    make_call,
    read_assistant,
    read_parts,
    write_assistant,
    write_parts,
)
from renderers.vendors.chat_completions import custom_tool
from renderers.vendors.payloads import Json, Shape, by_type


class _Text(Shape):
    text: str


class _Refusal(Shape):
    refusal: str


class _Other(Shape):
    type: str


_Part: TypeAlias = Annotated[
    Annotated[_Text, Tag("input_text")]
    | Annotated[_Text, Tag("output_text")]
    | Annotated[_Text, Tag("summary_text")]
    | Annotated[_Text, Tag("reasoning_text")]
    | Annotated[_Refusal, Tag("refusal")]
    | Annotated[_Other, Tag("other")],
    by_type("input_text", "output_text", "summary_text", "reasoning_text", "refusal"),
]


class _Message(Shape):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[_Part]


class _Reasoning(Shape):
    summary: list[_Part] | None = None
    content: list[_Part] | None = None


class _Call(Shape):
    call_id: str
    name: str
    arguments: str


class _CustomCall(Shape):
    call_id: str
    name: str
    input: str


class _Output(Shape):
    call_id: str
    output: str | list[_Part]


_Item: TypeAlias = Annotated[
    Annotated[_Message, Tag("message")]
    | Annotated[_Reasoning, Tag("reasoning")]
    | Annotated[_Call, Tag("function_call")]
    | Annotated[_CustomCall, Tag("custom_tool_call")]
    | Annotated[_Output, Tag("function_call_output")]
    | Annotated[_Output, Tag("custom_tool_call_output")]
    | Annotated[_Other, Tag("other")],
    by_type(
        "message",
        "reasoning",
        "function_call",
        "custom_tool_call",
        "function_call_output",
        "custom_tool_call_output",
        default="message",
    ),
]


class _Request(Shape):
    input: str | list[_Item] | None = None
    instructions: str | None = None
    tools: list[dict[str, Any]] | None = None


class _Details(Shape):
    reason: str | None = None


class _Reply(Shape):
    output: list[_Item]
    status: str | None = None
    incomplete_details: _Details | None = None
    usage: dict[str, Any] | None = None


@dataclass(frozen=True)
class Responses(VendorApi, BlockForm):
    """OpenAI Responses.

    The assistant's items between two messages of others are one message: its reasoning, texts and calls, and whatever
    OpenAI ran itself, which no other model sees.

    Args:
        provider: whose API this is.
        takes_reasoning_text: the server takes reasoning that it did not write, as text (vLLM with gpt-oss). OpenAI's own
            takes only what it encrypted.
    """

    provider: str = "openai-responses"
    takes_reasoning_text: bool = False

    call_id_pattern = ".{1,64}"
    request_shape = _Request
    reply_shape = _Reply
    messages_field = "input"

    def _kept_messages(self, kept: Json, role: str) -> list[Any]:
        items: list[Any] = kept.get("content") or []
        return items

    def _read_messages(self, request: Json) -> tuple[list[Json], Json]:
        messages: list[Json] = []
        custom: set[str] = set()
        settings = dict(request)
        if isinstance(request.get("instructions"), str):
            messages.append({"role": "system", "content": settings.pop("instructions")})
            keep(messages[-1], self.provider, place="instructions")
        given = request.get("input")
        if given and isinstance(given, str):
            messages.append({"role": "user", "content": given})
            keep(messages[-1], self.provider, place="input")
        for is_own, group in groupby(given if isinstance(given, list) else (), key=_is_assistants):
            items = list(group)
            custom |= _custom_ids(items)
            messages += [self._read_own(items)] if is_own else [self._read_other(item, custom) for item in items]
        if given:
            del settings["input"]
        return messages, settings

    def _write_messages(self, messages: list[Json]) -> tuple[Json, set[int]]:
        request: Json = {}
        items: list[Json] = []
        absent: set[int] = set()
        custom: set[str] = set()
        for index, message in enumerate(messages):
            place = kept_of(message, self.provider).get("place")
            if message["role"] == "assistant":
                written = self._write_own(message, index)
                custom |= _custom_ids(written)
                if not written or (items and _is_assistants(items[-1])):
                    absent.add(index)
                items += written
            elif place == "instructions" and index == 0 and isinstance(message.get("content"), str):
                request["instructions"] = message["content"]
            elif (
                place == "input"
                and index == len(messages) - 1
                and not items
                and isinstance(message.get("content"), str)
            ):
                request["input"] = message["content"]
            else:
                items.append(self._write_other(message, index, custom))
        return {**request, "input": items} if items else request, absent

    def _read_reply(self, reply: Json, choice: int) -> tuple[Json, Json, str | None]:
        envelope = dict(reply)
        message = self._read_own(envelope.pop("output"))
        reason = (reply.get("incomplete_details") or {}).get("reason")
        return message, envelope, reason or reply.get("status")

    def _write_reply(self, message: Json, reply: Reply) -> Json:
        return {**reply.envelope, "output": self._write_own(message, 0)}

    # Items -----------------------------------------------------------------------------------------------------------

    def _read_own(self, items: list[Json]) -> Json:
        message = read_assistant(self, items)
        if self._write_own(message, 0) != items:
            keep_blocks(self, message, items)
        return message

    def _write_own(self, message: Json, index: int) -> list[Json]:
        return write_assistant(self, message, kept_of(message, self.provider).get("content") or [], index)

    def _read_other(self, item: Json, custom: set[str]) -> Json:
        message = self._readable(item)
        if self._write_other(message, 0, custom) != item:
            keep(message, self.provider, content=[item])
        return message

    def _readable(self, item: Json) -> Json:
        given = item["content"] if "content" in item else item["output"]
        content = given if isinstance(given, str) else read_parts(self, given)
        if "call_id" in item:
            return {"role": "tool", "tool_call_id": item["call_id"], "content": content}
        return {"role": item["role"], "content": content}

    def _write_other(self, message: Json, index: int, custom: set[str]) -> Json:
        kept = kept_of(message, self.provider).get("content") or []
        if kept and all(message.get(name) == value for name, value in self._readable(kept[0]).items()):
            item: Json = kept[0]
            return item
        content = message.get("content")
        if isinstance(content, list):
            given: Any = next((kept[0][name] for name in ("content", "output") if kept and name in kept[0]), [])
            content = write_parts(self, content, given if isinstance(given, list) else [], index)
        content = "" if content is None else content
        if message["role"] != "tool":
            return {"role": message["role"], "content": content}
        call_id = message.get("tool_call_id")
        if call_id is None:
            problem = "a result needs the ID of its call, and no call without a result stands before it"
            raise MessageError(problem, message_index=index, field="tool_call_id")
        kind = "custom_tool_call_output" if call_id in custom else "function_call_output"
        return {"type": kind, "call_id": call_id, "output": content}

    def pieces(self, block: Json) -> list[Piece]:
        """See `BlockForm.pieces`."""
        match block:
            case {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}:
                return [Piece(Kind.CALL, make_call(call_id, name, arguments))]
            case {"type": "custom_tool_call", "call_id": call_id, "name": name, "input": text}:
                return [Piece(Kind.CALL, make_call(call_id, name, {"input": text}))]
            case {"type": "reasoning"}:
                return [Piece(Kind.REASONING, _reasoning_text(block))]
            case {"role": "assistant", "content": str(text)}:
                return [Piece(Kind.TEXT, text)]
            case {"role": "assistant", "content": list(parts)}:
                texts = [part.get("text") or part.get("refusal") or "" for part in parts]
                return [Piece(Kind.TEXT, text) for text in texts]
        return []

    def hides_reasoning(self, block: Json) -> bool:
        """See `BlockForm.hides_reasoning`: a summary is not the reasoning."""
        return block.get("type") == "reasoning" and (bool(block.get("encrypted_content")) or not block.get("content"))

    def text_blocks(self, texts: Sequence[str]) -> list[Json]:
        """See `BlockForm.text_blocks`: one message, of as many parts."""
        parts = [{"type": "output_text", "text": text} for text in texts]
        return [{"type": "message", "role": "assistant", "content": parts}]

    def reasoning_blocks(self, text: str) -> list[Json]:
        """See `BlockForm.reasoning_blocks`."""
        parts = [{"type": "reasoning_text", "text": text}]
        return [{"type": "reasoning", "summary": [], "content": parts}] if self.takes_reasoning_text else []

    def call_block(self, call: Json) -> Json:
        """See `BlockForm.call_block`."""
        function = function_of(call)
        arguments = arguments_text(function["arguments"])
        return {"type": "function_call", "call_id": call.get("id"), "name": function["name"], "arguments": arguments}

    def part_text(self, block: Json) -> str | None:
        """See `BlockForm.part_text`."""
        return block["text"] if block.get("type") == "input_text" else None

    def part_block(self, text: str) -> Json:
        """See `BlockForm.part_block`."""
        return {"type": "input_text", "text": text}

    # Tools -----------------------------------------------------------------------------------------------------------

    def _read_tool(self, tool: Json) -> list[Json]:
        if not isinstance(tool.get("name"), str):
            return []
        if tool.get("type") == "custom":
            return [custom_tool(tool)]
        if tool.get("type") == "function":
            return [{"type": "function", "function": {key: tool[key] for key in tool if key != "type"}}]
        return []

    def _write_tools(self, tools: list[Json]) -> list[Json]:
        functions = [function_of_tool(tool, index, self.provider) for index, tool in enumerate(tools)]
        return [{"type": "function", **function} for function in functions]


def _is_assistants(item: Json) -> bool:
    """Whether an item is the assistant's, or of what ran on its behalf: everything but messages and results of others."""
    kind = item.get("type", "message")
    if kind == "message":
        return bool(item.get("role") == "assistant")
    return kind not in {"function_call_output", "custom_tool_call_output"}


def _custom_ids(items: Sequence[Json]) -> set[str]:
    """IDs of the calls of custom tools, which are answered otherwise than those of functions."""
    return {item["call_id"] for item in items if item.get("type") == "custom_tool_call"}


def _reasoning_text(item: Json) -> str:
    """Reasoning as text where the item has it, else its summary."""
    parts = item.get("content") or item.get("summary") or []
    return "\n\n".join([part["text"] for part in parts if part.get("text")])
