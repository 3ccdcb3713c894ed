"""One vendor API: its requests and replies, to the canonical messages and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from renderers.errors import MessageError, ToolsError, VendorPayloadError, VendorReplyError
from renderers.messages import VENDOR_BLOCKS
from renderers.parsed import ParsedToolCall
from renderers.vendors.arguments import malformed_call
from renderers.vendors.blocks import kept_of
from renderers.vendors.call_ids import ToolCallIds
from renderers.vendors.canonical import canonical, canonical_tools
from renderers.vendors.differences import Difference, find_differences
from renderers.vendors.payloads import Json, Shape, as_json_object, check, plain


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a request holds.

    Attributes:
        messages: the canonical messages.
        tools: JSON schemas of the tools in the OpenAI shape; None where the request says nothing of tools.
        settings: every other field of the request as it came (the model, limits, the API's own tools under `tools`).
    """

    messages: list[Json]
    tools: list[Json] | None = None
    settings: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply.

    Attributes:
        message: the canonical message.
        stop: why the model stopped, in the API's own word; None where it does not say.
        usage: the API's count of tokens as it came, or None.
        envelope: every other field of the reply as it came.
        choice: which of several alternatives this is.
        hides_reasoning: the API counts tokens of reasoning that it does not show.
        malformed_calls: tool calls that must not be executed: they were cut off, or their arguments are no sound JSON
            object. Those of a stream that cannot be written back are not in `message`.
        unread_events: events of a stream that are none of the documented ones, as they came.
    """

    message: Json
    stop: str | None = None
    usage: Json | None = None
    envelope: Json = field(default_factory=dict)
    choice: int = 0
    hides_reasoning: bool = False
    malformed_calls: tuple[ParsedToolCall, ...] = ()
    unread_events: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """A payload, ready to be sent.

    Attributes:
        payload: the payload; a JSON object that shares nothing with what it was made of.
        differences: everything that the payload does not say, or says otherwise, of what it was made of: found by
            reading it back. `renderers.vendors.restore` undoes them.
    """

    payload: Json
    differences: tuple[Difference, ...] = ()


class VendorApi(ABC):
    """Converts between an API's payloads and the canonical messages. Holds no conversation.

    Reading keeps what has no counterpart beside the message, under `vendor_blocks` and the provider's name; writing for
    the same provider puts it back where the message was not changed, and for another one leaves it out.
    """

    #: What is kept is tagged with it, and goes back to it alone.
    provider: str
    #: The tool-call IDs that the API takes, as a regular expression; None where it takes any. Others are mapped.
    call_id_pattern: ClassVar[str | None] = None
    #: Whether it refuses two calls of one ID.
    unique_call_ids: ClassVar[bool] = False
    request_shape: ClassVar[type[Shape]]
    reply_shape: ClassVar[type[Shape]]
    #: The field of a request that holds the messages.
    messages_field: ClassVar[str] = "messages"
    #: The field of a reply that holds the count of tokens, and where in it the tokens of reasoning are told apart.
    usage_field: ClassVar[str] = "usage"
    reasoning_count: ClassVar[tuple[str, ...]] = ("output_tokens_details", "reasoning_tokens")

    def read_request(self, payload: object) -> Conversation:
        """A request's messages, tools and settings.

        Args:
            payload: a dict, JSON text, or an SDK object.

        Raises:
            VendorPayloadError: where it is no request of this API, naming the place.
        """
        request = self._spelled(as_json_object(payload, self.provider, "payload"))
        check(request, self.request_shape, self.provider)
        messages, settings = self._read_messages(request)
        given = settings.get("tools")
        if given is None:
            return Conversation(messages, None, settings)
        tools = [tool for one in given for tool in self._read_tool(one)]
        if self._write_tools(tools) == given:
            del settings["tools"]
        return Conversation(messages, tools, settings)

    def write_request(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Written:
        """A request, of canonical messages.

        Args:
            messages: the conversation.
            tools: JSON schemas in the OpenAI shape.
            settings: further fields of the request, such as `model`; those of `read_request` for one that was read.

        Raises:
            MessageError: for a message that this API cannot take, naming the message and the field.
            ToolsError: for a tool that it cannot take.
            VendorPayloadError: for settings that are none of its requests.
        """
        given, given_tools = canonical(messages), canonical_tools(tools)
        request, absent = self._write_messages(self._prepared(given))
        payload = {**as_json_object(settings or {}, self.provider, "settings"), **plain(request)}
        if given_tools is not None:
            check({self.messages_field: [], "tools": payload.get("tools")}, self.request_shape, self.provider)
            payload["tools"] = plain(self._merge_tools(given_tools, payload.get("tools")))
        back = self.read_request(payload)
        differences = find_differences(given, back.messages, root="messages", absent=absent)
        differences += find_differences(given_tools or [], back.tools or [], root="tools")
        return Written(payload, tuple(differences))

    def read_reply(self, payload: object, *, choice: int = 0) -> Reply:
        """A reply's message.

        Args:
            payload: a dict, JSON text, or an SDK object.
            choice: which of several alternatives to read.

        Raises:
            VendorReplyError: the API reports an error instead.
            VendorPayloadError: where it is no reply of this API, naming the place.
        """
        reply = self._spelled(as_json_object(payload, self.provider, "payload"))
        self.raise_error(reply, "payload")
        check(reply, self.reply_shape, self.provider)
        message, envelope, stop = self._read_reply(reply, choice)
        usage = reply.get(self.usage_field)
        count: Any = usage
        for step in self.reasoning_count:
            count = count.get(step) if isinstance(count, dict) else None
        hides = not message.get("reasoning_content") and isinstance(count, int) and count > 0
        return Reply(message, stop, usage, envelope, choice, hides, tuple(_malformed_calls(message)))

    def write_reply(self, reply: Reply) -> Written:
        """A reply payload, of a canonical message and the envelope that it came in, or another.

        Raises:
            MessageError: for a message that this API cannot say.
        """
        [given] = canonical([reply.message])
        [mapped] = self._prepared([given])
        payload = plain(self._write_reply(mapped, reply))
        back = self.read_reply(payload, choice=reply.choice)
        return Written(payload, tuple(find_differences([given], [back.message], root="messages")))

    def raise_error(self, payload: Json, place: str, partial: Any = None) -> None:
        """Raise VendorReplyError where the API reports an error in place of a reply."""
        found = payload.get("error")
        if not found:
            return
        fields = found if isinstance(found, dict) else {"message": str(found)}
        kind = fields.get("status") or fields.get("type") or fields.get("code")
        error = VendorReplyError(self.provider, place, f"{kind}: {fields.get('message')}", partial=partial)
        error.kind, error.payload = None if kind is None else str(kind), payload
        raise error

    # What an API says of itself --------------------------------------------------------------------------------------

    @abstractmethod
    def _read_messages(self, request: Json) -> tuple[list[Json], Json]:
        """A request's messages, and its other fields."""

    @abstractmethod
    def _write_messages(self, messages: list[Json]) -> tuple[Json, set[int]]:
        """A request's fields that hold messages, and the indices of messages that it has no message of its own for."""

    @abstractmethod
    def _read_reply(self, reply: Json, choice: int) -> tuple[Json, Json, str | None]:
        """A reply's message, its other fields, and why the model stopped."""

    @abstractmethod
    def _write_reply(self, message: Json, reply: Reply) -> Json:
        """A reply with this message."""

    @abstractmethod
    def _read_tool(self, tool: Json) -> list[Json]:
        """A tool in the OpenAI shape; none of what only this API knows, several where it groups them."""

    @abstractmethod
    def _write_tools(self, tools: list[Json]) -> list[Json]:
        """Tools in the API's own shape."""

    def _spelled(self, payload: Json) -> Json:
        """A payload as the API's documentation spells it."""
        return payload

    def _own_tools(self, tools: list[Json]) -> list[Json]:
        """Those of the API's tools that have no counterpart."""
        return [tool for tool in tools if not self._read_tool(tool)]

    @abstractmethod
    def _kept_messages(self, kept: Json, role: str) -> list[Any]:
        """What is kept beside a message of this role, as messages of the API: to see whether they are some."""

    # Shared ----------------------------------------------------------------------------------------------------------

    def _prepared(self, messages: list[Json]) -> list[Json]:
        """The messages with IDs that fit, what is kept beside them checked: it may have been through many hands."""
        for index, message in enumerate(messages):
            kept = kept_of(message, self.provider)
            if kept:
                try:
                    found = {self.messages_field: self._kept_messages(kept, message["role"])}
                    check(found, self.request_shape, self.provider)
                except (TypeError, VendorPayloadError) as error:
                    problem = f"what is kept here is nothing of the API's: {error}; leave it as it was, or out"
                    raise MessageError(problem, message_index=index, field=f"{VENDOR_BLOCKS}.{self.provider}") from None
        if self.call_id_pattern is None:
            return messages
        return ToolCallIds("call_{index}", pattern=self.call_id_pattern, unique=self.unique_call_ids).to_model(messages)

    def _merge_tools(self, tools: list[Json], vendor_tools: list[Json] | None) -> list[Json]:
        """The tools with the API's own beside them, in the order in which they came where nothing was changed."""
        own = vendor_tools or []
        if own and [tool for one in own for tool in self._read_tool(one)] == tools:
            return own
        return self._write_tools(tools) + self._own_tools(own)


def _malformed_calls(message: Json) -> Iterator[ParsedToolCall]:
    for call in message.get("tool_calls") or ():
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        malformed = malformed_call(call.get("id"), name, arguments) if isinstance(arguments, str) else None
        if malformed is not None:
            yield malformed


def function_of_tool(tool: Json, index: int, provider: str) -> Json:
    """What a tool says of its function.

    Raises:
        ToolsError: where it names none.
    """
    function = tool.get("function", tool)
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise ToolsError(f"tools[{index}]: {provider} takes functions with a name; found {str(tool)[:80]}")
    return function
