"""The conversations that the doctor renders: each way to append, and each kind of reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

Messages = Sequence[Mapping[str, Any]]

TOOL_NAME = "get_weather"
TOOLS: Sequence[Mapping[str, Any]] = (
    {
        "type": "function",
        "function": {
            "name": TOOL_NAME,
            "description": "Weather in a city.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string", "description": "The city."}},
                "required": ["city"],
            },
        },
    },
)


class Probe(NamedTuple):
    """Two conversations, the second of which continues the first.

    Attributes:
        code: its name.
        group: what is appended: `results`, `users`, `system`, or `replies` to a generation prompt.
        title: what is appended to what.
        before: the first conversation.
        added: what the second one adds.
        advice: what to do where this breaks and nothing better is known.
    """

    code: str
    group: str
    title: str
    before: Messages
    added: Messages
    advice: str = ""

    @property
    def is_reply(self) -> bool:
        """Whether the earlier render is a prompt and the later one holds the reply to it."""
        return self.group == "replies"

    @property
    def tools(self) -> Messages | None:
        """The tools, where any message is a call."""
        return TOOLS if any("tool_calls" in message for message in (*self.before, *self.added)) else None


def call(number: int, city: str = "Ulm") -> dict[str, Any]:
    """A tool call. Its ID is of the one form that all templates take."""
    function = {"name": TOOL_NAME, "arguments": {"city": city}}
    return {"id": f"call{number:05}", "type": "function", "function": function}


def result(number: int, content: str) -> dict[str, Any]:
    """The result of a call."""
    return {"role": "tool", "tool_call_id": f"call{number:05}", "name": TOOL_NAME, "content": content}


QUESTION: Mapping[str, Any] = {"role": "user", "content": "First question."}
ANSWER: Mapping[str, Any] = {"role": "assistant", "content": "An answer."}
REASONED_ANSWER: Mapping[str, Any] = {**ANSWER, "reasoning_content": "Some reasoning."}
CALL: Mapping[str, Any] = {"role": "assistant", "content": "Let me look.", "tool_calls": [call(1)]}
EMPTY_CALL: Mapping[str, Any] = {**CALL, "content": ""}
NULL_CALL: Mapping[str, Any] = {**CALL, "content": None}
REASONED_CALL: Mapping[str, Any] = {**EMPTY_CALL, "reasoning_content": "Some reasoning."}
TWO_CALLS: Mapping[str, Any] = {**EMPTY_CALL, "tool_calls": [call(1), call(2, "Bonn")]}
SECOND_CALL: Mapping[str, Any] = {**REASONED_CALL, "tool_calls": [call(2, "Bonn")]}
RESULT: Mapping[str, Any] = result(1, "Sunny.")
SECOND_RESULT: Mapping[str, Any] = result(2, "Rainy.")
NEXT_QUESTION: Mapping[str, Any] = {"role": "user", "content": "Next question."}
SYSTEM: Mapping[str, Any] = {"role": "system", "content": "Be brief."}
LATE_SYSTEM: Mapping[str, Any] = {"role": "system", "content": "Be kind."}

_NEW_SAMPLE = (
    "Render again from here and begin a new sample, or keep the form that the model saw by patching the template."
)
_TOGETHER = "Append all results of one turn at once (row results-together)."

PROBES: Sequence[Probe] = (
    Probe("result", "results", "a tool result after a call with text", [QUESTION, CALL], [RESULT]),
    Probe("result-after-reasoning", "results", "a tool result after a reasoned call", [QUESTION, REASONED_CALL], [RESULT]),
    Probe("result-empty", "results", "a tool result after a call with empty content", [QUESTION, EMPTY_CALL], [RESULT]),
    Probe("result-null", "results", "a tool result after a call with null content", [QUESTION, NULL_CALL], [RESULT]),
    Probe("results-together", "results", "two results after two calls", [QUESTION, TWO_CALLS], [RESULT, SECOND_RESULT]),
    Probe("second-result", "results", "a second result after the first", [QUESTION, TWO_CALLS, RESULT], [SECOND_RESULT], _TOGETHER),
    Probe(
        "next-result", "results", "the result of a second call", [QUESTION, REASONED_CALL, RESULT, SECOND_CALL], [SECOND_RESULT]
    ),
    Probe("user", "users", "a user message after an answer", [QUESTION, ANSWER], [NEXT_QUESTION], _NEW_SAMPLE),
    Probe(
        "user-after-reasoning", "users", "a user message after a reasoned answer",
        [QUESTION, REASONED_ANSWER], [NEXT_QUESTION], _NEW_SAMPLE,
    ),
    Probe("user-after-call", "users", "a user message after a tool call", [QUESTION, EMPTY_CALL], [NEXT_QUESTION], _NEW_SAMPLE),
    Probe(
        "user-after-tools", "users", "a user message after a tool cycle",
        [QUESTION, REASONED_CALL, RESULT, REASONED_ANSWER], [NEXT_QUESTION], _NEW_SAMPLE,
    ),
    Probe(
        "system", "system", "a system message in the middle",
        [SYSTEM, QUESTION, ANSWER], [LATE_SYSTEM, NEXT_QUESTION], "Put it into a user message.",
    ),
    Probe("reply", "replies", "an answer", [QUESTION], [ANSWER]),
    Probe("reply-reasoned", "replies", "a reasoned answer", [QUESTION], [REASONED_ANSWER]),
    Probe("reply-call", "replies", "a tool call", [QUESTION], [EMPTY_CALL]),
    Probe("reply-reasoned-call", "replies", "a reasoned tool call", [QUESTION], [REASONED_CALL]),
    Probe(
        "reply-after-result", "replies", "a reasoned answer after a tool result",
        [QUESTION, REASONED_CALL, RESULT], [REASONED_ANSWER],
    ),
)  # fmt: skip
