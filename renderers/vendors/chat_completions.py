"""OpenAI Chat Completions, and the many servers that speak it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Tag

from renderers.errors import VendorPayloadError
from renderers.vendors.api import Reply
from renderers.vendors.arguments import arguments_text
from renderers.vendors.blocks import (
    VENDOR_PART,
    function_of,
    keep,
    kept_of,
    make_call,
    reasoning_of,
    unsupported_part,
)
from renderers.vendors.chat_stream import ChatStream
from renderers.vendors.events import ReplyStream, StreamingApi
from renderers.vendors.payloads import Json, Shape, by_type

#: The fields under which servers give reasoning.
REASONING_FIELDS = ("reasoning_content", "reasoning")
#: A custom tool takes one free text; other models see a function with this parameter.
CUSTOM_PARAMETERS = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
_MISSING = object()


class _Function(Shape):
    name: str
    arguments: str


class _Custom(Shape):
    name: str
    input: str


class _FunctionCall(Shape):
    id: str | None = None
    function: _Function


class _CustomCall(Shape):
    id: str | None = None
    custom: _Custom


class _Text(Shape):
    text: str


class _Refusal(Shape):
    refusal: str


class _Media(Shape):
    type: str


_Call: TypeAlias = Annotated[
    Annotated[_CustomCall, Tag("custom")] | Annotated[_FunctionCall, Tag("other")], by_type("custom")
]
_Part: TypeAlias = Annotated[
    Annotated[_Text, Tag("text")] | Annotated[_Refusal, Tag("refusal")] | Annotated[_Media, Tag("other")],
    by_type("text", "refusal"),
]


class _Message(Shape):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[_Part] | None = None
    refusal: str | None = None
    name: str | None = None
    tool_call_id: str | None = None
    tool_calls: list[_Call] | None = None
    function_call: None = None


class _Request(Shape):
    messages: list[_Message]
    tools: list[dict[str, Any]] | None = None


class _Choice(Shape):
    message: _Message
    finish_reason: str | None = None


class _Reply(Shape):
    choices: list[_Choice]
    usage: dict[str, Any] | None = None


@dataclass(frozen=True)
class ChatCompletions(StreamingApi):
    """OpenAI Chat Completions.

    Args:
        provider: whose API this is. What one server keeps beside its messages (`reasoning_details`, signatures) goes back
            to servers of the same name only: name each.
        reasoning_field: the field in which this server takes reasoning (`reasoning_content`: DeepSeek, Kimi, GLM, vLLM;
            `reasoning`: OpenRouter and newer vLLM). None for OpenAI's own, which refuses such a field.
    """

    provider: str = "openai-chat"
    reasoning_field: Literal["reasoning_content", "reasoning"] | None = None

    call_id_pattern = ".{1,40}"
    request_shape = _Request
    reply_shape = _Reply
    reasoning_count = ("completion_tokens_details", "reasoning_tokens")
    #: Fields that the canonical message has, too.
    _shared: ClassVar[tuple[str, ...]] = ("content", "reasoning_content", "tool_calls", "name", "tool_call_id")

    def stream(self) -> ReplyStream:
        """See `StreamingApi.stream`."""
        return ChatStream(self)

    def _read_messages(self, request: Json) -> tuple[list[Json], Json]:
        settings = {key: value for key, value in request.items() if key != "messages"}
        return [self._read_message(message) for message in request["messages"]], settings

    def _kept_messages(self, kept: Json, role: str) -> list[Any]:
        absent = frozenset(kept.get("absent") or ())
        return [
            {
                name: value
                for name, value in {"role": role, **dict(kept.get("fields") or {})}.items()
                if name not in absent
            }
        ]

    def _write_messages(self, messages: list[Json]) -> tuple[Json, set[int]]:
        return {"messages": [self._write_message(message, index) for index, message in enumerate(messages)]}, set()

    def _read_reply(self, reply: Json, choice: int) -> tuple[Json, Json, str | None]:
        if not 0 <= choice < len(reply["choices"]):
            raise VendorPayloadError(self.provider, "choices", f"no choice {choice} among {len(reply['choices'])}")
        taken = dict(reply["choices"][choice])
        message = self._read_message(taken.pop("message"))
        choices = [taken if index == choice else one for index, one in enumerate(reply["choices"])]
        return message, {**reply, "choices": choices}, taken.get("finish_reason")

    def _write_reply(self, message: Json, reply: Reply) -> Json:
        choices = list(reply.envelope.get("choices") or [{"index": 0, "finish_reason": reply.stop}])
        choices[reply.choice] = {**choices[reply.choice], "message": self._write_message(message, 0)}
        return {**reply.envelope, "choices": choices}

    # Messages --------------------------------------------------------------------------------------------------------

    def _read_message(self, given: Json) -> Json:
        message = self._readable(given)
        fresh = self._write_fresh(message, 0)
        fields = {key: value for key, value in given.items() if fresh.get(key, _MISSING) != value}
        if fields:
            keep(message, self.provider, fields=fields)
        absent = [key for key in fresh if key not in given]
        if absent:
            keep(message, self.provider, absent=absent)
        if message["role"] == "assistant" and _hides_reasoning(given):
            keep(message, self.provider, hides=["reasoning"])
        return message

    def _readable(self, given: Json) -> Json:
        """What another model can read of a message."""
        message: Json = {"role": given["role"]}
        if "content" in given:
            content = given["content"]
            message["content"] = [_read_part(part) for part in content] if isinstance(content, list) else content
        if not message.get("content") and isinstance(given.get("refusal"), str):
            message["content"] = given["refusal"]  # text that the model wrote
        reasoning = next((given[name] for name in REASONING_FIELDS if isinstance(given.get(name), str)), None)
        if reasoning is not None:
            message["reasoning_content"] = reasoning
        if given.get("tool_calls"):
            message["tool_calls"] = [_read_call(call) for call in given["tool_calls"]]
        for name in ("name", "tool_call_id"):
            if given.get(name) is not None:
                message[name] = given[name]
        return message

    def _write_message(self, message: Json, index: int) -> Json:
        """A message: new, with those kept fields that say what the message still says."""
        written = self._write_fresh(message, index)
        kept = kept_of(message, self.provider)
        fields, absent = kept.get("fields") or {}, kept.get("absent") or ()
        whole = {key: value for key, value in {**written, **fields}.items() if key not in absent}
        if self._says(whole, message):
            return whole
        for name, value in fields.items():
            if self._says({**written, name: value}, message, than=written):
                written[name] = value
        return written

    def _says(self, given: Json, message: Json, *, than: Json | None = None) -> bool:
        """Whether a payload's message reads as `message` does, or, where it does not, as `than` does."""
        found, other = self._readable(given), {} if than is None else self._readable(than)
        return all(
            found.get(name) == message.get(name) or (than is not None and found.get(name) == other.get(name))
            for name in self._shared
        )

    def _write_fresh(self, message: Json, index: int) -> Json:
        written: Json = {"role": message["role"]}
        if "content" in message:
            content = message["content"]
            written["content"] = content
            if isinstance(content, list):
                for position, part in enumerate(content):
                    if part.get("type") == VENDOR_PART:
                        raise unsupported_part(self.provider, part, index, position)
        reasoning = reasoning_of(message)
        if reasoning and self.reasoning_field and message["role"] == "assistant":
            written[self.reasoning_field] = reasoning
        if message.get("tool_calls"):
            written["tool_calls"] = [_write_call(call) for call in message["tool_calls"]]
        for name in ("name", "tool_call_id"):
            if message.get(name) is not None:
                written[name] = message[name]
        return written

    # Tools -----------------------------------------------------------------------------------------------------------

    def _read_tool(self, tool: Json) -> list[Json]:
        if tool.get("type") == "function" and isinstance(tool.get("function"), dict):
            return [tool]
        custom = tool.get("custom")
        if tool.get("type") == "custom" and isinstance(custom, dict) and isinstance(custom.get("name"), str):
            return [custom_tool(custom)]
        return []

    def _write_tools(self, tools: list[Json]) -> list[Json]:
        return tools


def custom_tool(custom: Mapping[str, Any]) -> Json:
    """A tool that takes a free text, as a function."""
    described = {key: custom[key] for key in ("name", "description") if key in custom}
    return {"type": "function", "function": {**described, "parameters": CUSTOM_PARAMETERS}}


def _read_part(part: Json) -> Json:
    """A content part without what belongs to the server alone; parts of other types are canonical as they are."""
    if part["type"] == "text":
        return {"type": "text", "text": part["text"]}
    if part["type"] == "refusal":
        return {"type": "text", "text": part["refusal"]}
    return part


def _read_call(call: Json) -> Json:
    if call.get("type") == "custom":
        return make_call(call.get("id"), call["custom"]["name"], {"input": call["custom"]["input"]})
    return make_call(call.get("id"), call["function"]["name"], call["function"]["arguments"])


def _write_call(call: Json) -> Json:
    function = function_of(call)
    return make_call(call.get("id"), function["name"], arguments_text(function["arguments"]))


def _hides_reasoning(given: Json) -> bool:
    """OpenRouter's reasoning details may be encrypted, signed or summarised."""
    details = given.get("reasoning_details")
    return isinstance(details, list) and any(
        isinstance(one, dict) and (one.get("type") != "reasoning.text" or one.get("signature")) for one in details
    )
