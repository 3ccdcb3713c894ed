"""Gemini generateContent."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from renderers.errors import MessageError, VendorPayloadError, VendorReplyError
from renderers.messages import to_json
from renderers.vendors.api import Reply, function_of_tool
from renderers.vendors.arguments import arguments_object
from renderers.vendors.blocks import VENDOR_PART, Kind, Piece, function_of, kept_of, make_call, read_parts, write_parts
from renderers.vendors.payloads import Json, Shape
from renderers.vendors.turns import TurnApi

#: What Gemini 3 and later take in place of the signature of a call that another model made.
UNSIGNED = "skip_thought_signature_validator"
#: The fields that are read here and have another spelling in Google's Python SDK.
_SPELLINGS = {
    re.sub("[A-Z]", lambda found: "_" + found[0].lower(), name): name
    for name in (
        "systemInstruction", "functionDeclarations", "parametersJsonSchema", "functionCall", "functionResponse",
        "thoughtSignature", "finishReason", "usageMetadata", "thoughtsTokenCount", "promptFeedback", "blockReason",
    )
}  # fmt: skip
#: Fields below which names are the caller's own.
_FREE = frozenset({"args", "response", "parameters", "parametersJsonSchema"})


class _Call(Shape):
    name: str
    id: str | None = None
    args: dict[str, Any] | None = None


class _Response(Shape):
    name: str
    id: str | None = None
    response: dict[str, Any] | None = None
    parts: list[dict[str, Any]] | None = None


class _Part(Shape):
    text: str | None = None
    thought: bool | None = None
    function_call: _Call | None = Field(None, alias="functionCall")
    function_response: _Response | None = Field(None, alias="functionResponse")


class _Content(Shape):
    role: Literal["user", "model", "function"] | None = None
    parts: list[_Part] | None = None


class _Declaration(Shape):
    name: str


class _Tool(Shape):
    function_declarations: list[_Declaration] | None = Field(None, alias="functionDeclarations")


class _Request(Shape):
    contents: list[_Content]
    system_instruction: _Content | None = Field(None, alias="systemInstruction")
    tools: list[_Tool] | None = None


class _Candidate(Shape):
    content: _Content | None = None


class _Reply(Shape):
    candidates: list[_Candidate] | None = None
    usage_metadata: dict[str, Any] | None = Field(None, alias="usageMetadata")


@dataclass(frozen=True)
class Gemini(TurnApi):
    """Gemini generateContent.

    Fields in the spelling of Google's Python SDK (`function_call`) are read, too, and written in that of the REST API.
    Calls that come without an ID are named by their place in the turn, `call_0`, and lose that name on the way back.

    Args:
        provider: whose API this is.
        unsigned_calls: what stands in place of the signature of a turn's first call that another model made. Gemini 3 and
            later refuse calls without one, and take `UNSIGNED` for it; None leaves it out.
    """

    provider: str = "gemini"
    unsigned_calls: str | None = None

    call_id_pattern = ".+"
    request_shape = _Request
    reply_shape = _Reply
    usage_field = "usageMetadata"
    reasoning_count = ("thoughtsTokenCount",)
    assistant_role = "model"
    blocks_field = "parts"
    messages_field = "contents"
    system_field = "systemInstruction"

    @property
    def _late_system_role(self) -> str:
        return "user"

    def _spelled(self, payload: Json) -> Json:
        spelled: Json = _as_in_rest(payload)
        return spelled

    def _read_reply(self, reply: Json, choice: int) -> tuple[Json, Json, str | None]:
        candidates = reply.get("candidates") or []
        blocked = (reply.get("promptFeedback") or {}).get("blockReason")
        if not candidates and blocked:
            error = VendorReplyError(self.provider, "promptFeedback", f"the prompt was blocked: {blocked}")
            error.kind, error.payload = str(blocked), reply
            raise error
        if not 0 <= choice < len(candidates):
            raise VendorPayloadError(self.provider, "candidates", f"no candidate {choice} among {len(candidates)}")
        taken = dict(candidates[choice])
        message: Json = {"role": "assistant", "content": ""}
        if taken.get("content") is not None:
            message = self._read_assistant(taken.pop("content"))
        others = [taken if index == choice else one for index, one in enumerate(candidates)]
        return message, {**reply, "candidates": others}, taken.get("finishReason")

    def _write_reply(self, message: Json, reply: Reply) -> Json:
        candidates = list(reply.envelope.get("candidates") or [{"finishReason": reply.stop}])
        turn = self._write_assistant(message, 0)
        content = {} if turn is None else {"content": turn}
        candidates[reply.choice] = {**candidates[reply.choice], **content}
        return {**reply.envelope, "candidates": candidates}

    # Content ---------------------------------------------------------------------------------------------------------

    def _read_content(self, content: Any) -> str | list[Json]:
        parts = read_parts(self, content or [])
        if not parts:
            return ""
        return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts

    def _write_content(self, content: str | list[Json], kept: Any, index: int) -> Any:
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        return write_parts(self, parts, kept or [], index)

    # Results ---------------------------------------------------------------------------------------------------------

    def _is_result(self, block: Json) -> bool:
        return isinstance(block.get("functionResponse"), dict)

    def _read_result(self, block: Json, earlier: Sequence[Json]) -> Json:
        given = block["functionResponse"]
        call_id, name = given.get("id"), given["name"]
        if not call_id:
            call_id = self._awaiting(name, earlier)
        message: Json = {"role": "tool"}
        if call_id:
            message["tool_call_id"] = call_id
        called = self._call(call_id, earlier)
        if called is None or called[0] != name:
            message["name"] = name
        message["content"], failed = _read_response(given.get("response") or {})
        if given.get("parts"):
            text = message["content"]
            texts = [{"type": "text", "text": text}] if isinstance(text, str) else text
            message["content"] = texts + read_parts(self, given["parts"])
        if failed:
            message["is_error"] = True
        return message

    def _write_result(self, message: Json, earlier: Sequence[Json]) -> Json:
        call_id = message.get("tool_call_id")
        name, has_id = self._call(call_id, earlier) or (None, True)
        name = message.get("name") or name
        if name is None:
            problem = (
                "Gemini takes a result with its tool's name, and no call of this ID stands before it; give it a name"
            )
            raise MessageError(problem, message_index=len(earlier), field="name")
        response: Json = {} if call_id is None or not has_id else {"id": call_id}
        content = message.get("content") or ""
        own: list[Json] = []
        if isinstance(content, list):
            own = [part for part in content if part.get("type") == VENDOR_PART]
            blocks = write_parts(self, content, [], len(earlier))
            content = [block["text"] for block, part in zip(blocks, content, strict=True) if part not in own]
        response |= {"name": name, "response": {"error" if message.get("is_error") is True else "output": content}}
        if own:
            response["parts"] = [part["block"] for part in own]
        return {"functionResponse": response}

    def _call(self, call_id: str | None, earlier: Sequence[Json]) -> tuple[str, bool] | None:
        """The tool's name of the last call with this ID, and whether the call is sent with it."""
        for message in reversed(earlier):
            for call in message.get("tool_calls") or ():
                if call_id is not None and call.get("id") == call_id:
                    return function_of(call)["name"], call_id not in self._made_ids(message)
        return None

    def _made_ids(self, message: Json) -> set[str]:
        """The IDs that were given to calls of a turn that came without."""
        given = self._as_blocks(kept_of(message, self.provider).get("content"))
        named = self._named(given)
        return {one["functionCall"]["id"] for one, other in zip(named, given, strict=True) if one is not other}

    def _awaiting(self, name: str, earlier: Sequence[Json]) -> str | None:
        """The ID of the first call of this tool that has no result yet."""
        answered: set[str] = set()
        for message in reversed(earlier):
            if message["role"] == "assistant":
                calls = [call for call in message.get("tool_calls") or () if call["id"] not in answered]
                return next((str(call["id"]) for call in calls if function_of(call)["name"] == name), None)
            answered.add(message.get("tool_call_id") or "")
        return None

    # Blocks ----------------------------------------------------------------------------------------------------------

    def _named(self, blocks: list[Json]) -> list[Json]:
        named, count = [], 0
        for block in blocks:
            call = block.get("functionCall")
            made = isinstance(call, dict) and not call.get("id")
            named.append({**block, "functionCall": {**call, "id": f"call_{count}"}} if made and call else block)
            count += isinstance(call, dict)
        return named

    def _write_assistant(self, message: Json, index: int) -> Json | None:
        turn = super()._write_assistant(message, index)
        if turn is None or self.unsigned_calls is None or "content" in kept_of(message, self.provider):
            return turn
        parts = list(turn.get("parts") or ())
        first = next((position for position, part in enumerate(parts) if "functionCall" in part), None)
        if first is not None:
            parts[first] = {**parts[first], "thoughtSignature": self.unsigned_calls}
        return {**turn, "parts": parts}

    def pieces(self, block: Json) -> list[Piece]:
        """See `BlockForm.pieces`."""
        match block:
            case {"functionCall": {"name": str(name)} as call}:
                return [Piece(Kind.CALL, make_call(call.get("id"), name, call.get("args") or {}))]
            case {"text": str(text), "thought": True}:
                return [Piece(Kind.REASONING, text)]
            case {"text": str(text)}:
                return [Piece(Kind.TEXT, text)]
        return []

    def hides_reasoning(self, block: Json) -> bool:
        """See `BlockForm.hides_reasoning`: thoughts are summaries, and signatures stand for more."""
        return block.get("thought") is True or "thoughtSignature" in block

    def text_blocks(self, texts: Sequence[str]) -> list[Json]:
        """See `BlockForm.text_blocks`."""
        return [self.part_block(text) for text in texts]

    def reasoning_blocks(self, text: str) -> list[Json]:
        """See `BlockForm.reasoning_blocks`: none, because Gemini takes back its own thoughts only."""
        return []

    def call_block(self, call: Json) -> Json:
        """See `BlockForm.call_block`."""
        function = function_of(call)
        call_id = {} if call.get("id") is None else {"id": call["id"]}
        return {"functionCall": {**call_id, "name": function["name"], "args": arguments_object(function["arguments"])}}

    def part_text(self, block: Json) -> str | None:
        """See `BlockForm.part_text`."""
        text = block.get("text")
        return text if isinstance(text, str) else None

    def part_block(self, text: str) -> Json:
        """See `BlockForm.part_block`."""
        return {"text": text}

    # Tools -----------------------------------------------------------------------------------------------------------

    def _read_tool(self, tool: Json) -> list[Json]:
        return [
            {"type": "function", "function": _read_declaration(one)} for one in tool.get("functionDeclarations") or ()
        ]

    def _write_tools(self, tools: list[Json]) -> list[Json]:
        functions = [function_of_tool(tool, index, self.provider) for index, tool in enumerate(tools)]
        return [{"functionDeclarations": [_write_declaration(one) for one in functions]}] if functions else []

    def _own_tools(self, tools: list[Json]) -> list[Json]:
        own = [{name: value for name, value in tool.items() if name != "functionDeclarations"} for tool in tools]
        return [tool for tool in own if tool]


def _read_response(response: Json) -> tuple[str | list[Json], bool]:
    """A result's text or texts, and whether it is an error. Where there is no agreed field, the JSON of all of it."""
    for field in ("output", "error"):
        if response.keys() == {field}:
            value = response[field]
            if isinstance(value, str):
                return value, field == "error"
            if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
                return [{"type": "text", "text": one} for one in value], field == "error"
    return (to_json(response) if response else ""), "error" in response


def _read_declaration(declaration: Json) -> Json:
    function: Json = {name: declaration[name] for name in ("name", "description") if name in declaration}
    if "parametersJsonSchema" in declaration:
        function["parameters"] = declaration["parametersJsonSchema"]
    elif "parameters" in declaration:
        function["parameters"] = _lower_types(declaration["parameters"])
    return function


def _write_declaration(function: Json) -> Json:
    declaration: Json = {name: function[name] for name in ("name", "description") if name in function}
    return declaration | ({"parametersJsonSchema": function["parameters"]} if "parameters" in function else {})


def _lower_types(schema: Any) -> Any:
    """A schema of Gemini's own kind, which spells types in capitals, as JSON schema."""
    if isinstance(schema, list):
        return [_lower_types(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    lowered = dict(schema)
    if isinstance(schema.get("type"), str):
        lowered["type"] = schema["type"].lower()
    if isinstance(schema.get("properties"), dict):
        lowered["properties"] = {name: _lower_types(one) for name, one in schema["properties"].items()}
    for name in ("items", "anyOf"):
        if name in schema:
            lowered[name] = _lower_types(schema[name])
    return lowered


def _as_in_rest(value: Any) -> Any:
    """A payload with the fields that are read here in the spelling of the REST API."""
    if isinstance(value, list):
        return [_as_in_rest(one) for one in value]
    if not isinstance(value, dict):
        return value
    spelled = {_SPELLINGS.get(name, name): one for name, one in value.items()}
    return {name: one if name in _FREE else _as_in_rest(one) for name, one in spelled.items()}
