"""Why a trajectory begins another sample, and why it ends before the task does."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from renderers.errors import ConfigError
from renderers.refusal import RefusalReason


class BreakReason(StrEnum):
    """Reasons for a new sample that are no refusal of a bridge."""

    #: The harness gave another history: compaction, or edited messages.
    REPLACED_HISTORY = "replaced_history"
    #: A reply that is known as text alone does not continue the tokens of its prompt.
    TEXT_ONLY_REPLY = "text_only_reply"


@dataclass(frozen=True, slots=True)
class Break:
    """A place where the next prompt does not continue the tokens so far, so that a new sample begins.

    Attributes:
        turn: how many completions the trajectory held.
        reason: why: the reason for which the bridge was refused, or a `BreakReason`.
        detail: what was found, in words.
        kept_tokens: how many tokens the new prompt has in common with the tokens before it.
        lost_tokens: how many of those before it are not in the new prompt.
    """

    turn: int
    reason: RefusalReason | BreakReason
    detail: str
    kept_tokens: int
    lost_tokens: int


class Limit(StrEnum):
    """The limit that ended a trajectory."""

    MAX_LENGTH = "max_length"
    MAX_TURNS = "max_turns"


def check_limits(max_length: int | None, reserve: int, max_turns: int | None) -> None:
    """Raise ConfigError for limits that make no sense."""
    for name, value, least in (("max_length", max_length, 1), ("reserve", reserve, 0), ("max_turns", max_turns, 1)):
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
            raise ConfigError(f"{name} is {value!r}; it must be a whole number of at least {least}")
    if reserve and max_length is None:
        raise ConfigError("reserve keeps tokens of max_length free, and there is no max_length")
