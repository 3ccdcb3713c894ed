"""System messages that a template puts before everything else, wherever they stand in the conversation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from renderers.messages import Message
from renderers.refusal import BridgeRefusal, RefusalReason
from renderers.writer import Writer


def write_systems(
    out: Writer, messages: Sequence[Message], text_of: Callable[[Message, int], str], separator: str = "\n\n"
) -> None:
    """The text of all system messages. For one that comes after another message, the move is a damage."""
    before, is_late = "", False
    for index, message in enumerate(messages):
        if message.role == "system":
            out.begin(index, "system")
            out.scaffold(before)
            out.body(text_of(message, index))
            before = separator
            if is_late:
                detail = "the template puts system messages before all others: the model does not see this one in its place"
                out.damage("moved_message", index, detail)
        else:
            is_late = True
    out.begin(-1, "")


def refuse_system(message: Message) -> BridgeRefusal | None:
    """A bridge cannot put a message before what the model saw."""
    if message.role != "system":
        return None
    return BridgeRefusal(RefusalReason.HISTORY_REWRITE, "the template puts a system message before all others")
