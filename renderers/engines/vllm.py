"""vLLM: its completions endpoint with token IDs, and its token-in/token-out endpoint."""

from __future__ import annotations

from typing import Any, Literal, Unpack

from renderers.engines.completion import Answer
from renderers.engines.errors import EngineReplyError, TextOnlyError
from renderers.engines.protocol import SamplingParams
from renderers.engines.servers import ServerEngine, ServerOptions

Endpoint = Literal["completions", "generate"]


class VllmEngine(ServerEngine):
    """A client of a vLLM server.

    Args:
        base_url: where the server is, such as `http://127.0.0.1:8000`.
        model: the served model's name, or a LoRA adapter's; None is the server's only model.
        endpoint: "completions" is `/v1/completions`, which every server has (token IDs since vLLM 0.10.2); "generate"
            is `/inference/v1/generate`, which detokenises nothing and needs the server's `--enable-scale-out`.
        options: those of `ServerEngine`.
    """

    def __init__(
        self,
        base_url: str,
        *,
        model: str | None = None,
        endpoint: Endpoint = "completions",
        **options: Unpack[ServerOptions],
    ) -> None:
        super().__init__(base_url, **options)
        self.model = model
        self.endpoint = endpoint

    def _request(self, prompt_ids: list[int], sampling: SamplingParams) -> tuple[str, dict[str, Any]]:
        named = {"model": self.model} if self.model is not None else {}
        if self.endpoint == "generate":
            return "/inference/v1/generate", {
                **named,
                "token_ids": prompt_ids,
                "sampling_params": _parameters(sampling),
            }
        return "/v1/completions", {
            **named,
            "prompt": prompt_ids,
            "return_token_ids": True,
            # The IDs are what counts, but the text is for logs: it should show what was sampled.
            "skip_special_tokens": False,
            **_parameters(sampling),
        }

    def _answer(self, reply: Any) -> Answer:
        choice = reply["choices"][0]
        ids = choice.get("token_ids")
        if ids is None:
            raise TextOnlyError(
                "the server returned text and no token_ids: it ignores return_token_ids (vLLM does so before 0.10.2, "
                "and some proxies drop what they do not know)"
            )
        logprobs = choice["logprobs"]
        if logprobs is not None and self.endpoint == "generate":
            content = logprobs["content"]
            if [entry["token_id"] for entry in content] != ids:
                raise EngineReplyError("token_ids and logprobs of the server's answer name different tokens")
            logprobs = [entry["logprob"] for entry in content]
        elif logprobs is not None:
            logprobs = logprobs["token_logprobs"]
        counted = (reply.get("usage") or {}).get("completion_tokens")
        return Answer(ids, logprobs, choice["finish_reason"], choice.get("stop_reason"), reply, counted)


def _parameters(sampling: SamplingParams) -> dict[str, Any]:
    """Sampling parameters, which both endpoints name alike; `logprobs: 0` asks for the sampled token's alone."""
    parameters: dict[str, Any] = {
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "stop_token_ids": list(sampling.stop_token_ids),
        "logprobs": 0,
    }
    if sampling.top_k is not None:
        parameters["top_k"] = sampling.top_k
    if sampling.seed is not None:
        parameters["seed"] = sampling.seed
    return {**parameters, **sampling.extra}
