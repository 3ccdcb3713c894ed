"""SGLang: its native endpoint with input IDs."""

from __future__ import annotations

from typing import Any

from renderers.engines.completion import Answer
from renderers.engines.errors import EngineReplyError, TextOnlyError
from renderers.engines.protocol import SamplingParams
from renderers.engines.servers import ServerEngine


class SglangEngine(ServerEngine):
    """A client of an SGLang server's `/generate`. Takes the options of `ServerEngine`."""

    def _request(self, prompt_ids: list[int], sampling: SamplingParams) -> tuple[str, dict[str, Any]]:
        parameters: dict[str, Any] = {
            "max_new_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "stop_token_ids": list(sampling.stop_token_ids),
            "skip_special_tokens": False,
            "no_stop_trim": True,
        }
        if sampling.top_k is not None:
            parameters["top_k"] = sampling.top_k
        if sampling.seed is not None:
            parameters["sampling_seed"] = sampling.seed
        return "/generate", {
            "input_ids": prompt_ids,
            "sampling_params": {**parameters, **sampling.extra},
            "return_logprob": True,
        }

    def _answer(self, reply: Any) -> Answer:
        about = reply["meta_info"]
        scored = about.get("output_token_logprobs")  # each is log-probability, ID, and text or None
        ids = reply.get("output_ids")
        if ids is None and scored is not None:
            ids = [entry[1] for entry in scored]  # servers before output_ids: the same tokens
        if ids is None:
            raise TextOnlyError("the server returned text, and neither output_ids nor output_token_logprobs")
        logprobs = None if scored is None else [entry[0] for entry in scored]
        if scored is not None and [entry[1] for entry in scored] != ids:
            logprobs = _of_kept_tokens(ids, scored)
        reason = about["finish_reason"]
        counted, detail = about.get("completion_tokens"), reason.get("message") or ""
        return Answer(ids, logprobs, reason["type"], reason.get("matched"), reply, counted, detail)


def _of_kept_tokens(ids: list[int], scored: list[Any]) -> list[float]:
    """Log-probabilities where the server trimmed the stop token from the IDs and not from these."""
    kept = scored[: len(ids)]
    if [entry[1] for entry in kept] != ids:
        raise EngineReplyError("output_ids and output_token_logprobs of the server's answer name different tokens")
    return [entry[0] for entry in kept]
