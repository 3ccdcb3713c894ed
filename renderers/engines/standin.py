"""A stand-in where there is no model: every token as likely as every other. For examples and tests, not for results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

from renderers.engines.completion import checked_prompt, refuse_extra, tokens_left
from renderers.engines.protocol import AllowedTokens, FinishReason, Generation, SamplingParams


class RandomEngine:
    """Samples tokens uniformly, without a model.

    It implements the protocol honestly: `logprobs` are those of its distribution, the same number for each token.
    Temperature, top_p and top_k change nothing about equally likely tokens (temperature 0 takes the first).

    Args:
        vocabulary_size: one more than the largest token ID.
        max_context: the most tokens of prompt and completion together; None has no end.
        allowed_tokens: constrains what is sampled, as guided decoding does.
        seed: of the requests that bring none, each of which continues where the last one ended; None takes another each
            time.
    """

    def __init__(
        self,
        vocabulary_size: int,
        *,
        max_context: int | None = None,
        allowed_tokens: AllowedTokens | None = None,
        seed: int | None = None,
    ) -> None:
        self._vocabulary_size = vocabulary_size
        self._max_context = max_context
        self._allowed_tokens = allowed_tokens
        self._random = Random(seed)  # noqa: S311 - sampling is no cryptography

    async def generate(self, prompt_ids: Sequence[int], sampling: SamplingParams) -> Generation:
        """Sample one completion of a prompt."""
        prompt = checked_prompt(prompt_ids)
        refuse_extra(sampling)
        room = tokens_left(prompt, sampling, self._max_context)
        source = self._random if sampling.seed is None else Random(sampling.seed)  # noqa: S311 - the same
        ids: list[int] = []
        while len(ids) < room:
            allowed = self._allowed_tokens(prompt, ids) if self._allowed_tokens else None
            options = range(self._vocabulary_size) if allowed is None else allowed
            ids.append(options[0] if sampling.temperature == 0 else source.choice(options))
            if ids[-1] in sampling.stop_token_ids:
                break
        logprobs = [-math.log(self._vocabulary_size)] * len(ids)
        stopped = ids[-1] in sampling.stop_token_ids
        return Generation(ids, logprobs, FinishReason.STOP if stopped else FinishReason.LENGTH)
