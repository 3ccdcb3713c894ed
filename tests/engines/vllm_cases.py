"""What is asked of a real vLLM server, and what must come of it; `python tests/engines/vllm_cases.py URL` records it.

The server is the one of `make vllm`: two layers with dummy weights, Qwen3's tokenizer, a context of 2048 tokens.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from renderers.engines import (
    EngineRequestError,
    FinishReason,
    MissingStopError,
    PromptTooLongError,
    SamplingParams,
    TextOnlyError,
    VllmEngine,
)

RECORDED = Path(__file__).parent / "recorded"
CONTEXT = 2048
ENDPOINTS = ("completions", "generate")
END_OF_TURN = 151645
#: `<|im_start|>user`, `hi`, `<|im_end|>`, `<|im_start|>assistant`.
PROMPT = [151644, 872, 198, 6023, 151645, 198, 151644, 77091, 198]


@dataclass(frozen=True)
class Case:
    """One request.

    Attributes:
        name: of the case.
        expected: the finish reason, or the error.
        prompt: the prompt's IDs.
        sampling: fields of the sampling parameters that differ from five tokens at seed 1.
        model: the model that is asked for.
        endpoints: where it is asked.
    """

    name: str
    expected: FinishReason | type[Exception]
    prompt: tuple[int, ...] = tuple(PROMPT)
    sampling: tuple[tuple[str, Any], ...] = ()
    model: str = "tiny"
    endpoints: tuple[Any, ...] = ENDPOINTS

    def engine(self, url: str, endpoint: Any) -> VllmEngine:
        """The client that asks."""
        return VllmEngine(url, model=self.model, endpoint=endpoint)

    def parameters(self) -> SamplingParams:
        """The sampling parameters."""
        fields = {"max_tokens": 5, "stop_token_ids": [END_OF_TURN], "seed": 1, **dict(self.sampling)}
        return SamplingParams(**fields)


_ENDS_TURN = {"logit_bias": {str(END_OF_TURN): 100}}
CASES = (
    Case("length", FinishReason.LENGTH),
    Case("stop", FinishReason.STOP, sampling=(("extra", _ENDS_TURN),)),
    Case("unlisted_stop", MissingStopError, sampling=(("extra", _ENDS_TURN), ("stop_token_ids", [151643]))),
    Case("stop_text", MissingStopError, sampling=(("extra", {"stop": ["e"]}), ("max_tokens", 50))),
    Case("text_only", TextOnlyError, sampling=(("extra", {"return_token_ids": False}),), endpoints=("completions",)),
    Case("end_of_context", FinishReason.LENGTH, prompt=(5,) * (CONTEXT - 2)),
    Case("fills_context", PromptTooLongError, prompt=(5,) * CONTEXT),
    Case("too_long", PromptTooLongError, prompt=(5,) * (CONTEXT + 1)),
    Case("unknown_token", EngineRequestError, prompt=(9_999_999,)),
    Case("unknown_model", EngineRequestError, model="other"),
)


def recorded() -> list[dict[str, Any]]:
    """Every recorded answer."""
    return [json.loads(line) for path in RECORDED.glob("vllm-*.jsonl") for line in path.read_text("utf-8").splitlines()]


def record(url: str) -> None:
    """Ask the server, and write down what it answers."""
    import httpx2

    version = httpx2.get(f"{url}/version").json()["version"]
    lines = []
    for case in CASES:
        for endpoint in case.endpoints:
            path, payload = case.engine(url, endpoint)._request(list(case.prompt), case.parameters())
            response = httpx2.post(url + path, json=payload, timeout=60)
            answer = {"case": case.name, "endpoint": endpoint, "status": response.status_code, "reply": response.json()}
            lines.append(json.dumps(answer))
    RECORDED.mkdir(exist_ok=True)
    (RECORDED / f"vllm-{version}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    record(sys.argv[1])
