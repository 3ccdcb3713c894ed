"""What parsing a sampled reply gives: regions, deltas, tool calls and the reply as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple


class Region(StrEnum):
    """What a completion token is part of."""

    REASONING = "reasoning"
    CONTENT = "content"
    TOOL_CALL = "tool_call"
    STRUCTURE = "structure"


class CallStatus(StrEnum):
    """Whether a tool call can be executed, or why not."""

    OK = "ok"
    #: The reply ended, or another marker came, before the call was closed.
    INCOMPLETE = "incomplete"
    #: The call's data is not JSON.
    INVALID_JSON = "invalid_json"
    #: The call has no name, or an empty one.
    MISSING_NAME = "missing_name"
    #: The arguments are not an object.
    INVALID_ARGUMENTS = "invalid_arguments"
    #: The arguments name one key twice.
    DUPLICATE_KEY = "duplicate_key"
    #: The arguments hold NaN or an infinity, which JSON does not have.
    NON_FINITE_NUMBER = "non_finite_number"
    #: The text breaks the format's own grammar.
    MALFORMED = "malformed"


@dataclass(frozen=True, slots=True)
class Span:
    """Completion tokens `start` to `end` (exclusive), all in one region; `call` is the index of their tool call.

    The markers and line feeds that enclose a call are structure, and carry its index as well.
    """

    start: int
    end: int
    region: Region
    call: int | None = None


@dataclass(frozen=True, slots=True)
class ParsedToolCall:
    """One tool call as it was sampled.

    Attributes:
        id: the call's ID where the format has one, otherwise one made from its position, `call_0`, `call_1`, ...
        name: the tool's name, or an empty string where it could not be read.
        arguments: the arguments, or None where they could not be read.
        raw: the exact sampled text of the call, markers included.
        arguments_text: the exact sampled text of the arguments where the format writes them as JSON, otherwise the
            arguments as JSON; an empty string where they could not be read. Of a call that is not well formed, as much
            of that text as a stream has shown.
        status: `ok`, or why the call must not be executed.
        error: what is wrong, in words, or None.
    """

    id: str
    name: str
    arguments: dict[str, Any] | None
    raw: str
    arguments_text: str = ""
    status: CallStatus = CallStatus.OK
    error: str | None = None


class Delta(NamedTuple):
    """A piece of a reply, as it arrives: text of one field, or the name of a tool call that begins.

    Exactly one of `reasoning`, `content`, `name` and `arguments` is set. `call` is the index of the tool call that
    `name` or `arguments` belongs to; `call_id` comes with the name, which comes once for every call, at the latest at
    its end (an empty string where it could not be read). A call whose format types its values (XML parameters) sends
    its arguments as JSON text when the call closes. Deltas of a call may come before its fault is known: only the
    finished reply says whether a call is well formed. A tuple, because streaming makes one for every token.
    """

    reasoning: str | None = None
    content: str | None = None
    call: int | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None


@dataclass(frozen=True, slots=True)
class ParsedResponse:
    """A sampled reply, parsed. The token IDs are untouched: `spans` says what each of them is part of.

    Attributes:
        content: the answer's text, empty where there is none.
        reasoning_content: the reasoning's text, or None where the reply has no reasoning.
        tool_calls: every call that was begun, the malformed and cut ones included: look at `status`.
        reasoning_complete: False where the reply ends inside its reasoning, or in calls made out of unclosed
            reasoning; True otherwise; None where the family has no reasoning.
        stop: the stop token that ended the reply, as text, or None where the reply was cut off. Where the engine
            stripped the token and `stopped=True` was given, the family's usual stop token.
        spans: every completion token in exactly one region, in order.
        closed_at: number of tokens up to and including the stop token; the length of the completion where it is None.
        unclosed: the marker that a section of calls lacks, where the reply was cut off between two calls or after the
            last; else an empty string.
    """

    content: str
    reasoning_content: str | None
    tool_calls: list[ParsedToolCall] = field(default_factory=list)
    reasoning_complete: bool | None = None
    stop: str | None = None
    spans: list[Span] = field(default_factory=list)
    closed_at: int = 0
    unclosed: str = ""

    @property
    def valid_tool_calls(self) -> list[ParsedToolCall]:
        """The calls with status `ok`, in order."""
        return [call for call in self.tool_calls if call.status is CallStatus.OK]

    def to_message(self) -> dict[str, Any]:
        """The reply as an assistant message, arguments as the sampled text, in the OpenAI shape: beside calls, content
        that is empty is None. (DeepSeek V3 prints calls beside no content only.)

        Calls that are not well formed are left out: a message must not carry what nobody may execute. They stay in
        `tool_calls` with their raw text.

        >>> ParsedResponse(content="4", reasoning_content="2+2").to_message()
        {'role': 'assistant', 'content': '4', 'reasoning_content': '2+2'}
        """
        message: dict[str, Any] = {"role": "assistant", "content": self.content}
        if self.reasoning_content is not None:
            message["reasoning_content"] = self.reasoning_content
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments_text}}
            for call in self.valid_tool_calls
        ]
        if calls:
            message["tool_calls"] = calls
            message["content"] = self.content or None
        return message
