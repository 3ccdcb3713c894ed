"""What one golden shows: a conversation, and perhaps a reply to it and what comes next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Message = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One behaviour, named after it.

    Attributes:
        name: the behaviour, in words joined by hyphens.
        messages: the conversation that is rendered.
        tools: its tools.
        add_generation_prompt: whether the assistant's turn is opened.
        model: model ID whose template is the reference; the family's first where None.
        settings: the template's switches.
        config: fields of the renderer's config that are not the template's: `thinking_retention` and the like.
        reply: the reply as a message; the recorder takes its official tokens.
        completion: the reply as text, special tokens spelled out, where it is not what the template would write: cut,
            malformed, or with special tokens spelled in ordinary tokens, which stand between `{ordinary:` and `}`.
        parsed: what parsing the reply gives, where that is not `reply`: some fields of the parsed response.
        new_messages: what the environment adds after the reply.
        tail: the text that a bridge appends, where the official template does not extend the prompt by it.
        refusal: the reason for which the bridge is refused.
        vector: the ID of a recorded vector whose conversation this is, for formats whose vendor ships an encoder;
            `messages`, `tools`, `settings` and the text come from there.
    """

    name: str
    messages: Sequence[Message] = ()
    tools: Sequence[Message] | None = None
    add_generation_prompt: bool = True
    model: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    reply: Message | None = None
    completion: str | None = None
    parsed: Mapping[str, Any] | None = None
    new_messages: Sequence[Message] | None = None
    tail: str | None = None
    refusal: str | None = None
    vector: str | None = None


def user(content: Any, **fields: Any) -> Message:
    """A user message."""
    return {"role": "user", "content": content, **fields}


def system(content: Any, **fields: Any) -> Message:
    """A system message."""
    return {"role": "system", "content": content, **fields}


def assistant(content: Any = None, *, reasoning: str | None = None, calls: Sequence[Message] = ()) -> Message:
    """An assistant message; what is not given is absent."""
    message: dict[str, Any] = {"role": "assistant"}
    if content is not None:
        message["content"] = content
    if reasoning is not None:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = list(calls)
    return message


def call(name: str, arguments: Any, call_id: str | None = None) -> Message:
    """A tool call, its arguments an object or JSON text."""
    function = {"name": name, "arguments": arguments}
    return {"type": "function", "function": function, **({"id": call_id} if call_id else {})}


def tool(content: Any, call_id: str | None = None, **fields: Any) -> Message:
    """A tool result."""
    return {"role": "tool", "content": content, **({"tool_call_id": call_id} if call_id else {}), **fields}


def schema(name: str, description: str = "", **properties: Any) -> Message:
    """A tool's schema; every property is required."""
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


WEATHER = schema("get_weather", "Weather in a city", city={"type": "string"})
SEARCH = schema("search", "Search the web", query={"type": "string"}, limit={"type": "integer"})
