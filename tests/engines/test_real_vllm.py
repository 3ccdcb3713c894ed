"""Against a real vLLM server at VLLM_URL, as `make vllm` starts it."""

from __future__ import annotations

import asyncio
import math
import os
from typing import Any

import httpx2
import pytest
from vllm_cases import CASES, ENDPOINTS, PROMPT, Case

from golden.reference import load_tokenizer
from renderers import Trajectory, create_renderer
from renderers.engines import (
    EngineRequestError,
    EngineTimeoutError,
    FinishReason,
    Generation,
    SamplingParams,
    VllmEngine,
)

URL = os.environ["VLLM_URL"]
RENDERER = create_renderer(load_tokenizer("Qwen/Qwen3-8B"), thinking_retention="all")
MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Weather in Ulm?"}]
LONG = SamplingParams(2000, RENDERER.get_stop_token_ids())


@pytest.mark.parametrize(
    ("case", "endpoint"),
    [pytest.param(case, endpoint, id=f"{case.name}-{endpoint}") for case in CASES for endpoint in case.endpoints],
)
def test_the_recorded_cases_still_hold(case: Case, endpoint: Any) -> None:
    async def run() -> Generation:
        async with case.engine(URL, endpoint) as engine:
            return await engine.generate(case.prompt, case.parameters())

    if isinstance(case.expected, FinishReason):
        assert asyncio.run(run()).finish_reason is case.expected
    else:
        with pytest.raises(case.expected):
            asyncio.run(run())


def test_the_server_renders_what_we_render() -> None:
    body = {"model": "tiny", "messages": MESSAGES, "add_generation_prompt": True}
    rendered = httpx2.post(f"{URL}/v1/chat/completions/render", json=body).json()
    assert rendered["token_ids"] == RENDERER.render_ids(MESSAGES, add_generation_prompt=True)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_rollout_scores_as_it_was_sampled(endpoint: Any) -> None:
    """Three bridged turns: the server gives the sampled tokens of the one sample the log-probabilities that it sampled."""

    async def run() -> Trajectory:
        trajectory = Trajectory(RENDERER)
        trajectory.begin(MESSAGES)
        async with VllmEngine(URL, model="tiny", endpoint=endpoint) as engine:
            for turn in range(3):
                found = await engine.generate(
                    trajectory.next_prompt_ids, SamplingParams(12, RENDERER.stop_ids, seed=turn)
                )
                trajectory.add_completion(found.token_ids, found.logprobs, sampled=found.sampled)
                if turn < 2:
                    trajectory.add_messages([{"role": "user", "content": "Go on."}])
        return trajectory

    trajectory = asyncio.run(run())
    (sample,) = trajectory.samples()
    body = {"model": "tiny", "prompt": list(sample.ids), "max_tokens": 1, "prompt_logprobs": 0}
    scored = httpx2.post(f"{URL}/v1/completions", json=body, timeout=60).json()["choices"][0]["prompt_logprobs"]
    compared = 0
    for place, token_id in enumerate(sample.ids):
        if sample.action_mask[place]:
            again = scored[place][str(token_id)]["logprob"]
            assert math.isclose(again, sample.logprobs[place], abs_tol=1e-4)
            compared += 1
    assert compared == 36


def running_requests() -> float:
    """How many requests the server works on."""
    lines = httpx2.get(f"{URL}/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("vllm:num_requests_running{"))


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("how", ["cancelled", "timeout"])
def test_a_request_that_is_given_up_ends_at_the_server(endpoint: Any, how: str) -> None:
    async def run() -> None:
        async with VllmEngine(URL, endpoint=endpoint, timeout=0.3 if how == "timeout" else 60) as engine:
            task = asyncio.create_task(engine.generate(PROMPT, LONG))
            await asyncio.sleep(0.2)
            if how == "cancelled":
                task.cancel()
            with pytest.raises((asyncio.CancelledError, EngineTimeoutError)):
                await task
            for _ in range(50):
                if running_requests() == 0:
                    return
                await asyncio.sleep(0.1)
        raise AssertionError("the server still works on it")

    asyncio.run(run())


def test_many_rollouts_at_once() -> None:
    async def run() -> list[Generation]:
        async with VllmEngine(URL) as engine:
            seeds = [SamplingParams(8, seed=seed) for seed in range(40)]
            return await asyncio.gather(*(engine.generate(PROMPT, one) for one in seeds))

    assert len({tuple(one.token_ids) for one in asyncio.run(run())}) == 40


def test_the_error_names_the_server_and_what_it_said() -> None:
    async def run() -> None:
        async with VllmEngine(URL, model="other") as engine:
            await engine.generate(PROMPT, LONG)

    with pytest.raises(EngineRequestError, match=r"status 404: The model `other` does not exist"):
        asyncio.run(run())
