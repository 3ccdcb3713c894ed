"""From what an engine answered to a `Generation`: everything that could corrupt a trajectory is checked here."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from renderers.engines.errors import (
    EngineAbortedError,
    EngineReplyError,
    MissingStopError,
    PromptTooLongError,
    StopRestoredWarning,
)
from renderers.engines.protocol import FinishReason, Generation, SamplingParams
from renderers.errors import ConfigError, TokenIdsError
from renderers.token_ids import as_token_ids


@dataclass(frozen=True, slots=True)
class Answer:
    """A completion as the wire format gave it, nothing checked.

    Attributes:
        token_ids: the IDs.
        logprobs: one log-probability a token.
        finish_reason: the engine's own word.
        matched: what the engine says that it stopped at: a token ID, a stop string, or None.
        detail: the engine's explanation of an abort.
        raw: the whole answer.
        counted: how many tokens the engine says it sampled, or None.
    """

    token_ids: Any
    logprobs: Any
    finish_reason: Any
    matched: Any
    raw: Mapping[str, Any]
    counted: Any = None
    detail: str = ""


def checked_prompt(prompt_ids: Sequence[int]) -> list[int]:
    """The prompt as a list of IDs; an empty one is an error here and not at the engine.

    Raises:
        TokenIdsError: for what is empty or no token IDs.
    """
    ids = as_token_ids(prompt_ids, "prompt_ids")
    if not ids:
        raise TokenIdsError("prompt_ids is empty: there is nothing to continue")
    return ids


def tokens_left(prompt: Sequence[int], sampling: SamplingParams, max_context: int | None) -> int:
    """How many tokens may be sampled: `max_tokens`, or fewer where the context ends before.

    Raises:
        PromptTooLongError: for none.
    """
    if max_context is None:
        return sampling.max_tokens
    if len(prompt) >= max_context:
        raise PromptTooLongError(f"a prompt of {len(prompt)} tokens leaves no room in a context of {max_context}")
    return min(sampling.max_tokens, max_context - len(prompt))


def refuse_extra(sampling: SamplingParams) -> None:
    """Local engines have no parameters of their own.

    Raises:
        ConfigError: for `extra`.
    """
    if sampling.extra:
        raise ConfigError(f"this engine has no parameter {next(iter(sampling.extra))!r}: leave `extra` empty")


def finished(answer: Answer, sampling: SamplingParams, *, restore_stop: bool) -> Generation:
    """The completion, checked.

    Raises:
        EngineAbortedError: the engine gave the request up.
        MissingStopError: the engine says stop, and the last token is no stop token.
        EngineReplyError: IDs or log-probabilities are not what they should be.
    """
    ids, logprobs = _checked_tokens(answer)
    if answer.finish_reason == "abort":
        partial = Generation(ids, logprobs, FinishReason.LENGTH, raw=answer.raw) if ids else None
        detail = f": {answer.detail}" if answer.detail else ""
        raise EngineAbortedError(f"the engine aborted the request after {len(ids)} tokens{detail}", partial)
    if answer.finish_reason not in set(FinishReason):
        raise EngineReplyError(f"finish reason {answer.finish_reason!r} is neither stop nor length")
    reason = FinishReason(answer.finish_reason)
    if reason is FinishReason.LENGTH or (ids and ids[-1] in sampling.stop_token_ids):
        # A stop token on the last place of a full length is a stop, whatever the engine calls it.
        stopped = bool(ids) and ids[-1] in sampling.stop_token_ids
        reason = FinishReason.STOP if stopped else FinishReason.LENGTH
        return Generation(ids, logprobs, reason, raw=answer.raw)
    problem = _missing_stop(ids, sampling, answer.matched)
    if not restore_stop or not _can_restore(ids, sampling, answer):
        raise MissingStopError(problem)
    stop = answer.matched if answer.matched in sampling.stop_token_ids else sampling.stop_token_ids[0]
    warnings.warn(f"{problem}; {stop} was put back, as not sampled", StopRestoredWarning, stacklevel=3)
    return Generation(
        [*ids, stop], [*logprobs, math.nan], FinishReason.STOP, [True] * len(ids) + [False], raw=answer.raw
    )


def _checked_tokens(answer: Answer) -> tuple[list[int], list[float]]:
    try:
        ids = as_token_ids(answer.token_ids, "token_ids")
    except TokenIdsError as error:
        raise EngineReplyError(f"the engine's answer: {error}") from None
    logprobs = answer.logprobs
    if not isinstance(logprobs, list) or len(logprobs) != len(ids):
        found = f"{len(logprobs)} of them" if isinstance(logprobs, list) else "none"
        raise EngineReplyError(f"{len(ids)} tokens need {len(ids)} log-probabilities, the engine gave {found}")
    for place, value in enumerate(logprobs):
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
            raise EngineReplyError(f"the log-probability of token {place} is {value!r}, not a number")
    return ids, [float(value) for value in logprobs]


def _missing_stop(ids: list[int], sampling: SamplingParams, matched: Any) -> str:
    known = list(sampling.stop_token_ids)
    if isinstance(matched, str):
        return f"the engine stopped at the text {matched!r}, which is no token: stop at tokens only"
    last = f"the last token is {ids[-1]}" if ids else "there is no token"
    hint = "" if known else " (give stop_token_ids=renderer.get_stop_token_ids())"
    return f"the engine says that the model stopped, but {last} and the stop tokens are {known}{hint}"


def _can_restore(ids: list[int], sampling: SamplingParams, answer: Answer) -> bool:
    """Whether it was a stop token that the engine stripped, and not a text, or a token that we did not know of."""
    unlisted = answer.counted == len(ids) or (bool(ids) and answer.matched == ids[-1])
    return bool(sampling.stop_token_ids) and not isinstance(answer.matched, str) and not unlisted
