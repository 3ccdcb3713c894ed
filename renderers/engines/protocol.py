"""What every engine is: prompt IDs and sampling parameters in; completion IDs, log-probabilities, finish reason out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

from renderers.errors import ConfigError
from renderers.token_ids import as_token_ids

#: Which tokens may come next, from the prompt and the completion so far; None means all of them.
AllowedTokens: TypeAlias = Callable[[list[int], list[int]], Sequence[int] | None]


class FinishReason(StrEnum):
    """Why a completion ends."""

    #: The model sampled one of the stop tokens; it is the last of the IDs.
    STOP = "stop"
    #: `max_tokens` or the end of the model's context was reached.
    LENGTH = "length"


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How to sample one completion.

    Attributes:
        max_tokens: the most tokens to sample. Engines sample fewer where the context ends before.
        stop_token_ids: the tokens that end the completion, `renderer.get_stop_token_ids()`.
        temperature: 0 takes the likeliest token.
        top_p: sample among the likeliest tokens that have this probability together.
        top_k: sample among this many likeliest tokens; None among all.
        seed: makes one engine sample the same again; None takes another each time.
        extra: parameters in the engine's own names, sent as they are (`{"logit_bias": {...}}`). The local engines
            have none.

    Raises:
        ConfigError: for a value that no engine takes.
    """

    max_tokens: int
    stop_token_ids: Sequence[int] = ()
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int | None = None
    seed: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "stop_token_ids", tuple(as_token_ids(self.stop_token_ids, "stop_token_ids")))
        if self.max_tokens < 1:
            raise ConfigError(f"max_tokens must be at least 1, found {self.max_tokens}")
        if not 0 <= self.temperature < float("inf"):
            raise ConfigError(f"temperature must be a number from 0 up, found {self.temperature}")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p must be above 0 and at most 1, found {self.top_p}")
        if self.top_k is not None and self.top_k < 1:
            raise ConfigError(f"top_k must be at least 1, or None for all tokens, found {self.top_k}")


@dataclass(frozen=True, slots=True)
class Generation:
    """One completion, as the engine sampled it.

    Attributes:
        token_ids: the completion's IDs, the stop token included.
        logprobs: natural logarithm of each token's probability, as long as `token_ids`. Of which distribution is the
            engine's setting: vLLM reports by default the model's own, before temperature, top_p, top_k and biases
            (`--logprobs-mode`), and the local engines do the same. At temperature 1 without top_p and top_k these are
            the probabilities that were sampled with. NaN on a token that was not sampled.
        finish_reason: stop or length.
        sampled: for `Trajectory.add_completion`: None where every token was sampled, else true on those that were.
            Only `restore_stop=True` makes tokens that were not.
        raw: the engine's own answer, for what else it holds (routed experts, weight versions, usage).
    """

    token_ids: list[int]
    logprobs: list[float]
    finish_reason: FinishReason
    sampled: list[bool] | None = None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


class Engine(Protocol):
    """Token-in, token-out generation."""

    async def generate(self, prompt_ids: Sequence[int], sampling: SamplingParams) -> Generation:
        """Sample one completion of a prompt.

        Cancelling the task cancels the request, at the engine too; nothing is retried then.

        Args:
            prompt_ids: the prompt, as `RenderedTokens.token_ids` or `Trajectory.next_prompt_ids` give it.
            sampling: how to sample.

        Raises:
            EngineError: see `renderers.engines.errors` for the kinds.
            TokenIdsError: for a prompt that is empty or no token IDs.
        """
        ...  # pragma: no cover - a protocol
