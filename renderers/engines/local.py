"""A transformers model in this process: exact and simple, for tests, examples and experiments. Needs the extra `local`.

The sampling loop is our own, not `model.generate`: it keeps one number a token instead of one a vocabulary entry, takes
no settings from the model's `generation_config`, and ends within a token of being cancelled.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Sequence
from typing import Any

from renderers.engines.completion import checked_prompt, refuse_extra, tokens_left
from renderers.engines.errors import EngineRequestError
from renderers.engines.protocol import AllowedTokens, FinishReason, Generation, SamplingParams
from renderers.optional import load_optional


class TransformersEngine:
    """Samples from a causal language model, one request at a time, in a thread of its own.

    `logprobs` are the model's own: before temperature, top_p, top_k and `allowed_tokens`.

    Args:
        model: a causal language model of transformers. It is put into evaluation mode.
        max_context: the most tokens of prompt and completion together; None takes the model's
            `max_position_embeddings`.
        allowed_tokens: constrains what is sampled, as guided decoding does.
        seed: of the requests that bring none, each of which continues where the last one ended; None takes another each
            time.

    Raises:
        MissingExtraError: torch is not installed.
    """

    def __init__(
        self,
        model: Any,
        *,
        max_context: int | None = None,
        allowed_tokens: AllowedTokens | None = None,
        seed: int | None = None,
    ) -> None:
        self._torch = load_optional("torch", "local", "the engine for transformers models")
        self._model = model.eval()
        # transformers 5.24 has renamed it.
        names = inspect.signature(model.forward).parameters
        self._cache_name = "cache" if "cache" in names else "past_key_values"
        self._max_context = max_context or getattr(model.config, "max_position_embeddings", None)
        self._vocabulary_size: int = model.get_input_embeddings().num_embeddings
        self._allowed_tokens = allowed_tokens
        self._generator = self._new_generator(seed)
        self._one_at_a_time = threading.Lock()

    async def generate(self, prompt_ids: Sequence[int], sampling: SamplingParams) -> Generation:
        """Sample one completion of a prompt. Cancelling the task ends the sampling after the current token."""
        prompt = checked_prompt(prompt_ids)
        refuse_extra(sampling)
        if max(prompt) >= self._vocabulary_size:
            raise EngineRequestError(f"token ID {max(prompt)} is not in the model's {self._vocabulary_size}")
        room = tokens_left(prompt, sampling, self._max_context)
        cancelled = threading.Event()
        try:
            return await asyncio.to_thread(self._sample, prompt, sampling, room, cancelled)
        finally:
            cancelled.set()

    def _new_generator(self, seed: int | None) -> Any:
        generator = self._torch.Generator(self._model.device)
        if seed is None:
            generator.seed()
        else:
            generator.manual_seed(seed)
        return generator

    def _sample(self, prompt: list[int], sampling: SamplingParams, room: int, cancelled: threading.Event) -> Generation:
        torch = self._torch
        device = self._model.device
        generator = self._generator if sampling.seed is None else self._new_generator(sampling.seed)
        ids: list[int] = []
        logprobs: list[float] = []
        inputs, cache = torch.tensor([prompt], device=device), None
        with self._one_at_a_time, torch.inference_mode():
            while len(ids) < room and not cancelled.is_set():
                output = self._model(input_ids=inputs, use_cache=True, **{self._cache_name: cache})
                cache = output[self._cache_name]
                scores = output.logits[0, -1].float().log_softmax(-1)
                allowed = self._allowed_tokens(prompt, ids) if self._allowed_tokens else None
                token = _choose(torch, scores, allowed, sampling, generator)
                ids.append(token)
                logprobs.append(scores[token].item())
                if token in sampling.stop_token_ids:
                    break
                inputs = torch.tensor([[token]], device=device)
        stopped = bool(ids) and ids[-1] in sampling.stop_token_ids
        return Generation(ids, logprobs, FinishReason.STOP if stopped else FinishReason.LENGTH)


def _choose(torch: Any, scores: Any, allowed: Sequence[int] | None, sampling: SamplingParams, generator: Any) -> int:
    """One token by the log-probabilities `scores`, `[V]`."""
    if allowed is not None:
        tokens = torch.tensor(list(allowed), device=scores.device)
        return int(tokens[_choose(torch, scores[tokens], None, sampling, generator)])
    if sampling.temperature == 0:
        return int(scores.argmax())
    scores = scores / sampling.temperature
    if sampling.top_k is not None and sampling.top_k < len(scores):
        scores = scores.masked_fill(scores < scores.topk(sampling.top_k).values[-1], -torch.inf)
    probabilities = scores.softmax(-1)
    if sampling.top_p < 1:
        ordered, order = probabilities.sort(descending=True)
        beyond = ordered.cumsum(-1) - ordered >= sampling.top_p
        probabilities = probabilities.index_fill(0, order[beyond], 0)
    return int(torch.multinomial(probabilities, 1, generator=generator))
