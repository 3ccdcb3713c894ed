"""Turns that a role's token opens, after one text for all system messages: the frame of DeepSeek's first formats.

<begin>Be brief.

Answer in French.<user>What is 6 times 7?<assistant>42<end>
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from renderers.conversation import NEVER, Conversation, History, Turn
from renderers.family import FamilyRenderer
from renderers.messages import Message
from renderers.refusal import BridgeRefusal, RefusalReason
from renderers.renderer import ConfigT
from renderers.writer import Writer


class RoleTokenRenderer(FamilyRenderer[ConfigT]):
    """What such formats share. Their templates print neither tools nor reasoning, and fail where a message other than
    the assistant's has no content."""

    #: What every conversation begins with.
    begin_token: ClassVar[str]
    #: What opens a user's turn. Nothing closes it.
    user_token: ClassVar[str]

    @abstractmethod
    def write_reply(self, out: Writer, turn: Turn) -> None:
        """Write an assistant message."""

    @abstractmethod
    def write_result(self, out: Writer, turn: Turn, text: str) -> None:
        """Write a tool message with this text."""

    def template_floor(self, history: History) -> int:
        """No message's reasoning is printed."""
        return NEVER

    def is_reasoning(self, text: str) -> bool:
        """Any text is dropped, be it a line feed."""
        return bool(text)

    def write_preamble(self, out: Writer, conversation: Conversation) -> None:
        """The text of all system messages, an empty line between them."""
        out.scaffold(self.begin_token)
        separator, is_late = "", False
        for index, message in enumerate(conversation.messages):
            if message.role != "system":
                is_late = True
                continue
            out.begin(index, "system")
            out.scaffold(separator)
            out.body(self.required_text(message, index))
            separator = "\n\n"
            if is_late:
                detail = f"the {self.family} template puts all system messages first: this one is moved there"
                out.damage("moved_message", index, detail)
        out.begin(-1, "")
        self.drop_tools(out, conversation.tools)

    def write_message(self, out: Writer, turn: Turn) -> None:
        """One message."""
        match turn.role:
            case "system":
                pass  # stands in the preamble
            case "user":
                out.scaffold(self.user_token)
                out.body(self.required_text(turn.message, turn.index))
            case "assistant":
                self.write_reply(out, turn)
            case "tool":
                self.write_result(out, turn, self.required_text(turn.message, turn.index))
            case _:
                self.drop(out, turn)

    def refuse_extension(self, message: Message) -> BridgeRefusal | None:
        """A system message cannot be put before what the model saw."""
        if message.role != "system":
            return None
        return BridgeRefusal(RefusalReason.HISTORY_REWRITE, "the template puts system messages before all others")
