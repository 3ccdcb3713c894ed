"""What a format may look at: one message with its neighbours, and a summary of the conversation so far.

The summary, `History`, is folded over the messages from left to right. A render folds it over all messages; a bridge
continues it from where the previous result left it, so that both are written by the same code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from renderers.messages import NO_TOOLS, Message, Tools

#: No message has this index or a higher one.
NEVER = 1 << 60


class History(NamedTuple):
    """A conversation so far, as much of it as the messages that follow can depend on.

    Attributes:
        length: number of messages.
        last_query: index of the last user message that asks something (a family may say that some do not), or -1.
        last_answer: index of the last assistant message without tool calls, or -1.
        last_result: index of the last tool message, or -1.
        first_reasoning: index of the earliest assistant message whose reasoning stands in the rendered text, or `NEVER`.
        last_role: role of the last message, or None.
        tools: the tools of the preamble.
        call_names: ID and tool name of each call of the last assistant message, in order.
        family: the family whose format the conversation is in.
        state: what the family itself needs, a small frozen value, see `Renderer.advance`.
        ended: nothing follows in this render, not even a generation prompt.
    """

    length: int = 0
    last_query: int = -1
    last_answer: int = -1
    last_result: int = -1
    first_reasoning: int = NEVER
    last_role: str | None = None
    tools: Tools = NO_TOOLS
    call_names: tuple[tuple[str | None, str], ...] = ()
    family: str = ""
    state: Any = None
    ended: bool = False

    def followed_by(self, message: Message, *, is_query: bool, state: Any) -> History:
        """The history with one more message."""
        role, index = message.role, self.length
        calls = self.call_names
        if role == "assistant":
            calls = tuple([(call.id, call.function.name) for call in message.tool_calls or ()])
        return History(
            index + 1,
            index if is_query else self.last_query,
            index if role == "assistant" and not message.tool_calls else self.last_answer,
            index if role == "tool" else self.last_result,
            self.first_reasoning,
            role,
            self.tools,
            calls,
            self.family,
            state,
        )

    def with_reasoning_at(self, index: int) -> History:
        """The history, where the reasoning of message `index` stands in the rendered text."""
        return self if index >= self.first_reasoning else self._replace(first_reasoning=index)

    def tool_name(self, message: Message, position: int) -> str | None:
        """The tool that a tool message answers for: its own `name`, else that of the call it names, else None.

        `position` counts the tool messages since the calls: where no ID matches, results stand in the order of calls.
        """
        if message.name is not None:
            return message.name
        for call_id, name in self.call_names:
            if call_id is not None and call_id == message.tool_call_id:
                return name
        if message.tool_call_id is None and position < len(self.call_names):
            return self.call_names[position][1]
        return None


class Sight(NamedTuple):
    """What a message sees from its place of the messages after it. All that is written of it follows from both.

    Attributes:
        side: before, at or after the last message whose reasoning is dropped: -1, 0 or 1.
        next_role: the role of the next message, None at the end.
        follows_last_query: whether no user's query comes after it.
        ahead: what the family looks ahead for, see `FamilyRenderer.look_ahead`.
        ended: nothing follows the last message, not even a generation prompt.
        is_open: the message is a prefill that the model continues.
        landing: role and family's state before the place to which the format moves it; None where it stays.
    """

    side: int = 1
    next_role: str | None = None
    follows_last_query: bool = True
    ahead: Any = None
    ended: bool = False
    is_open: bool = False
    landing: tuple[str | None, Any] | None = None


#: So many fields of a sight make a difference only to a message that asks for them, 1, 2, 4, ... in `Turn.asked`; the rest
#: always does.
ASKABLE = Sight._fields.index("is_open")


@dataclass(slots=True)
class Turn:
    """One message as a format sees it.

    Attributes:
        message: the message.
        index: its index in the whole conversation.
        content: its content as one text; "" where there is none.
        reasoning: its reasoning, or None. For an assistant message it may have been taken out of the content, where
            the format does that.
        previous_role: role of the message before, None at the beginning.
        tool_name: for a tool message the tool that it answers for, where that is known.
        state: the family's state before this message.
        tools: the tools of the conversation.
        asked: the fields of its sight that were read through the properties below, as bits, the first field the lowest.
            So it is known which of the messages after it its text depends on.
    """

    message: Message
    index: int
    content: str
    reasoning: str | None
    previous_role: str | None
    tool_name: str | None
    state: Any
    tools: Tools
    _sight: Sight
    asked: int = 0

    @property
    def role(self) -> str:
        """The message's role."""
        return self.message.role

    @property
    def is_first(self) -> bool:
        """Whether it opens the conversation."""
        return self.index == 0

    @property
    def keeps_reasoning(self) -> bool:
        """Whether the retention rule in force keeps the reasoning of this message."""
        self.asked |= 1
        return self._sight.side > 0

    @property
    def precedes_floor(self) -> bool:
        """Whether the retention rule in force drops the reasoning of a later message."""
        self.asked |= 1
        return self._sight.side < 0

    @property
    def next_role(self) -> str | None:
        """Role of the next message, None at the end."""
        self.asked |= 2
        return self._sight.next_role

    @property
    def is_last(self) -> bool:
        """Whether it ends the conversation as far as it goes."""
        return self.next_role is None

    @property
    def follows_last_query(self) -> bool:
        """Whether no user's query comes after it."""
        self.asked |= 4
        return self._sight.follows_last_query

    @property
    def ahead(self) -> Any:
        """What the family looks ahead for, see `FamilyRenderer.look_ahead`."""
        self.asked |= 8
        return self._sight.ahead

    @property
    def ended(self) -> bool:
        """Whether nothing follows the last message, not even a generation prompt."""
        self.asked |= 16
        return self._sight.ended

    @property
    def is_open(self) -> bool:
        """Whether the message is a prefill that the model continues."""
        return self._sight.is_open


@dataclass(frozen=True, slots=True)
class Conversation:
    """All messages of a render, with the tools. What stands before the first message may depend on any of it."""

    messages: Sequence[Message]
    tools: Tools
    history: History

    @property
    def opening_system(self) -> Message | None:
        """The first message, where it is a system message."""
        return self.messages[0] if self.messages and self.messages[0].role == "system" else None


def tool_names(messages: Sequence[Message]) -> list[str | None]:
    """The tool that each tool message answers for, where it is known; None for other messages."""
    names: list[str | None] = []
    history, results = History(), 0
    for message in messages:
        is_result = message.role == "tool"
        names.append(history.tool_name(message, results) if is_result else None)
        results = results + 1 if is_result else 0
        history = history.followed_by(message, is_query=False, state=None)
    return names
