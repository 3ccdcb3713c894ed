"""The conversations that a report is made of: line by line, each checked, a bad one named by its line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from renderers.errors import ConversationError
from renderers.messages import REASONING_FIELDS, as_dicts, validate_messages, validate_tools
from renderers.retention.recorded import is_document, recorded


@dataclass(frozen=True, slots=True)
class Failure:
    """A conversation that was left out.

    Attributes:
        line: its line in the file, from 1 on, or its place among the conversations that were given, from 1 on.
        problem: what is wrong with it.
        model: the model that cannot take it; None where no model could.
    """

    line: int
    problem: str
    model: str | None = None

    def __str__(self) -> str:
        return f"line {self.line}: {self.problem}" + (f" ({self.model})" if self.model else "")


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation. Whether a format has a place for its messages is for the renderers to say.

    Attributes:
        messages: the messages.
        tools: the tools of the prompt.
        replies: positions of the assistant messages that were sampled. One that opens the conversation answers no
            prompt: it is context.
    """

    messages: list[dict[str, Any]]
    tools: Sequence[Mapping[str, Any]] | None
    replies: list[int]

    def without_reasoning(self) -> Conversation:
        """The same conversation with a model that does not reason."""
        messages = [{key: value for key, value in one.items() if key not in REASONING_FIELDS} for one in self.messages]
        return replace(self, messages=messages)

    def with_reasoning(self, position: int, reasoning: str) -> Conversation:
        """The same conversation, where a message that has no reasoning has this one."""
        message = {**self.messages[position], "reasoning_content": reasoning}
        return replace(self, messages=[*self.messages[:position], message, *self.messages[position + 1 :]])

    def has_reasoning(self, position: int) -> bool:
        """Whether a message has reasoning that says anything."""
        return any(str(self.messages[position].get(name) or "").strip() for name in REASONING_FIELDS)


@dataclass(frozen=True, slots=True)
class Item:
    """A conversation as it came: a line of a file, or an object."""

    line: int
    given: Any
    size: int = 0


def items_of(lines: Iterable[bytes]) -> Iterator[Item]:
    """The lines of a file that are not blank."""
    for number, line in enumerate(lines, start=1):
        if not line.isspace():
            yield Item(number, line, len(line))


def items_in(path: Path) -> Iterator[Item]:
    """The lines of a file, read one by one."""
    with path.open("rb") as lines:
        yield from items_of(lines)


def read_conversations(item: Item) -> list[Conversation]:
    """What a line holds: a list of messages, an object with `messages` and perhaps `tools`, or stored trajectories.

    Raises:
        ConversationError: for anything else, and where no reply was sampled in any of it.
        MessageError: for a message that is none, naming its field.
        ToolsError: for tools that are none.
    """
    value = item.given
    if isinstance(value, bytes):
        try:
            # Not orjson, which turns long integers in arguments into floats.
            value = json.loads(value.strip())
        except json.JSONDecodeError as error:
            raise ConversationError(f"no JSON: {error.msg} at character {error.pos + 1}") from None
        except (ValueError, RecursionError) as error:
            raise ConversationError(f"no JSON: {error}") from None
    if isinstance(value, Mapping) and is_document(value):
        found = [_checked(messages, tools, replies) for messages, tools, replies in recorded(value)]
    elif isinstance(value, Mapping):
        if "messages" not in value:
            names = ", ".join(map(str, value)) or "nothing"
            raise ConversationError(f'an object needs "messages", found {names}')
        found = [_checked(value["messages"], value.get("tools"))]
    else:
        found = [_checked(value, None)]
    with_replies = [conversation for conversation in found if conversation.replies]
    if not with_replies:
        raise ConversationError("no assistant message follows another message, so there is no reply to look at")
    return with_replies


def _checked(value: Any, tools: Any, replies: list[int] | None = None) -> Conversation:
    """A conversation whose messages are some. Which of them were sampled is not always known: then all replies were."""
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise ConversationError(f"a conversation is a list of messages, found {type(value).__name__}")
    messages = as_dicts(value)
    validate_messages(messages)
    validate_tools(tools)
    if replies is None:
        replies = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    return Conversation(messages, tools, [place for place in replies if place])
