"""Why a bridge is refused."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class RefusalReason(StrEnum):
    """The reasons for which a bridge cannot keep its contract."""

    EMPTY_PROMPT = "empty_prompt"
    EMPTY_COMPLETION = "empty_completion"
    NO_NEW_MESSAGES = "no_new_messages"
    #: The new messages hold assistant text, which would be tokenised again.
    ASSISTANT_MESSAGE = "assistant_message"
    #: The completion stops inside unfinished reasoning.
    OPEN_REASONING = "open_reasoning"
    #: The completion is cut inside a tool call.
    OPEN_TOOL_CALL = "open_tool_call"
    #: The completion goes on after the end of the turn.
    TOKENS_AFTER_CLOSE = "tokens_after_close"
    #: The sampled stop token is not the one that the history shows before the new messages.
    WRONG_STOP = "wrong_stop"
    #: The retention policy writes earlier reasoning differently from this boundary on.
    RETENTION = "retention"
    #: The new messages change how earlier turns are written.
    HISTORY_REWRITE = "history_rewrite"
    #: A plain list of IDs does not tell what the family needs to know.
    UNKNOWN_HISTORY = "unknown_history"
    #: The family cannot place one of the new messages.
    UNSUPPORTED_MESSAGE = "unsupported_message"


@dataclass(frozen=True, slots=True)
class BridgeRefusal:
    """A bridge that is not made: render the whole conversation instead.

    Attributes:
        reason: which part of the contract cannot be kept.
        detail: what was found, in words.
    """

    reason: RefusalReason
    detail: str

    def __bool__(self) -> bool:
        """False: `renderer.bridge(...) or renderer.render(...)` renders where the bridge was refused."""
        return False
