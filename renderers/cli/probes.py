"""The probe set: conversations on which a template and a renderer, or two models, are compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple


class Probe(NamedTuple):
    """One conversation of the probe set."""

    name: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] | None
    add_generation_prompt: bool


_WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather in a city, in °C",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "description": "name"}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    },
}


def _call(position: int, **arguments: Any) -> dict[str, Any]:
    return {
        "id": f"functions.get_weather:{position}",
        "type": "function",
        "function": {"name": "get_weather", "arguments": arguments},
    }


def _result(position: int, content: str) -> dict[str, Any]:
    return {
        "role": "tool",
        "tool_call_id": f"functions.get_weather:{position}",
        "name": "get_weather",
        "content": content,
    }


_SYSTEM = {"role": "system", "content": "Be brief."}
_QUESTION = {"role": "user", "content": "Weather in Ulm?\n\n  And in Köln?"}
_REASONED_CALL = {
    "role": "assistant",
    "content": "Let me look.",
    "reasoning_content": "I need the tool.",
    "tool_calls": [_call(0, city="Ulm", days=2)],
}
_CALL = {"role": "assistant", "content": "", "tool_calls": [_call(0, city="Ulm")]}
_PARALLEL = {"role": "assistant", "content": "", "tool_calls": [_call(0, city="Ulm"), _call(1, city="Köln")]}
_ANSWER = {"role": "assistant", "content": "18 °C.", "reasoning_content": "The tool says 18."}
_PLAIN = {"role": "assistant", "content": "Hello!"}
_THANKS = {"role": "user", "content": "Thanks 👋"}

_CONVERSATIONS: dict[str, tuple[list[dict[str, Any]], bool]] = {
    "one question": ([_QUESTION], False),
    "system message": ([_SYSTEM, _QUESTION], False),
    "plain answer": ([_QUESTION, _PLAIN], False),
    "answer with reasoning": ([_QUESTION, _ANSWER], False),
    "next question after reasoning": ([_QUESTION, _ANSWER, _THANKS], False),
    "two plain turns": ([_SYSTEM, _QUESTION, _PLAIN, _THANKS, _PLAIN], False),
    "tools": ([_QUESTION], True),
    "tools beside a system message": ([_SYSTEM, _QUESTION], True),
    "tool call": ([_QUESTION, _CALL], True),
    "tool call with reasoning": ([_QUESTION, _REASONED_CALL], True),
    "tool result": ([_QUESTION, _REASONED_CALL, _result(0, "18 °C")], True),
    "parallel calls and results": ([_QUESTION, _PARALLEL, _result(0, "18"), _result(1, "16\n")], True),
    "answer after a tool cycle": ([_QUESTION, _REASONED_CALL, _result(0, "18"), _ANSWER], True),
    "question after a tool cycle": ([_QUESTION, _REASONED_CALL, _result(0, "18"), _ANSWER, _THANKS], True),
    "second tool cycle": (
        [_QUESTION, _CALL, _result(0, "18"), _ANSWER, _THANKS, _REASONED_CALL, _result(0, "17")],
        True,
    ),
}


def probes() -> Iterator[Probe]:
    """The probe set, each conversation with and without a generation prompt."""
    for name, (messages, has_tools) in _CONVERSATIONS.items():
        for add_generation_prompt in (False, True):
            yield Probe(name, messages, [_WEATHER] if has_tools else None, add_generation_prompt)
