"""The engine for transformers models, with a tiny random one; where torch is, see `make engines`."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
import torch
from loopback import engine_handler, serving
from test_wire_formats import KINDS, client

from renderers import Trajectory, create_renderer
from renderers.engines import (
    EngineRequestError,
    FinishReason,
    PromptTooLongError,
    SamplingParams,
    TransformersEngine,
    tiny_random_model,
)
from renderers.engines.local import _choose
from renderers.errors import ConfigError

VOCABULARY = 50
MODEL = tiny_random_model(VOCABULARY, max_context=64)
PROMPT = [1, 2, 3]


def generate(engine: TransformersEngine, sampling: SamplingParams, prompt: list[int] = PROMPT) -> Any:
    """One completion."""
    return asyncio.run(engine.generate(prompt, sampling))


def scored(model: Any, ids: list[int]) -> Any:
    """The model's log-probability of each token after the first, all at once, `[T-1]`."""
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([ids])).logits[0, :-1].float()
    return logits.log_softmax(-1).gather(1, torch.tensor(ids[1:])[:, None])[:, 0]


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0, 2.0])
def test_log_probabilities_are_the_models_own(temperature: float) -> None:
    found = generate(TransformersEngine(MODEL), SamplingParams(40, temperature=temperature, seed=1))
    again = scored(MODEL, PROMPT + found.token_ids)[len(PROMPT) - 1 :]
    torch.testing.assert_close(torch.tensor(found.logprobs), again, atol=2e-5, rtol=0)


def test_stop_length_and_the_end_of_the_context() -> None:
    engine = TransformersEngine(MODEL)
    free = generate(engine, SamplingParams(20, seed=3))
    assert (len(free.token_ids), free.finish_reason) == (20, FinishReason.LENGTH)
    stop = free.token_ids[7]
    stopped = generate(engine, SamplingParams(20, [stop], seed=3))
    assert stopped.token_ids == free.token_ids[: free.token_ids.index(stop) + 1]
    assert stopped.finish_reason is FinishReason.STOP
    assert len(generate(engine, SamplingParams(20), [1] * 60).token_ids) == 4
    with pytest.raises(PromptTooLongError, match="64"):
        generate(engine, SamplingParams(20), [1] * 64)
    assert len(generate(TransformersEngine(MODEL, max_context=10), SamplingParams(20)).token_ids) == 7


def test_seeds() -> None:
    engine = TransformersEngine(MODEL)
    assert generate(engine, SamplingParams(9, seed=3)) == generate(engine, SamplingParams(9, seed=3))
    assert len({tuple(generate(engine, SamplingParams(9)).token_ids) for _ in range(5)}) > 1


def test_a_token_that_the_model_does_not_have() -> None:
    with pytest.raises(EngineRequestError, match="token ID 50 is not in the model's 50"):
        generate(TransformersEngine(MODEL), SamplingParams(9), [1, 50])


def test_no_parameters_of_its_own() -> None:
    with pytest.raises(ConfigError, match="'min_p'"):
        generate(TransformersEngine(MODEL), SamplingParams(9, extra={"min_p": 0.1}))


SCORES = torch.tensor([0.4, 0.3, 0.2, 0.1]).log()


def shares(allowed: list[int] | None, **fields: Any) -> list[float]:
    """How often each of four tokens is sampled."""
    generator = torch.Generator().manual_seed(0)
    sampling = SamplingParams(1, **fields)
    drawn = [_choose(torch, SCORES, allowed, sampling, generator) for _ in range(4000)]
    return [drawn.count(token) / len(drawn) for token in range(4)]


@pytest.mark.parametrize(
    ("allowed", "fields", "expected"),
    [
        (None, {}, [0.4, 0.3, 0.2, 0.1]),
        (None, {"temperature": 0.5}, [0.533, 0.3, 0.133, 0.033]),
        (None, {"temperature": 0.0}, [1, 0, 0, 0]),
        (None, {"top_k": 2}, [0.571, 0.429, 0, 0]),
        (None, {"top_k": 9}, [0.4, 0.3, 0.2, 0.1]),
        (None, {"top_p": 0.7}, [0.571, 0.429, 0, 0]),
        (None, {"top_p": 0.75}, [0.444, 0.333, 0.222, 0]),
        ([1, 3], {}, [0, 0.75, 0, 0.25]),
        ([3], {"temperature": 0.0}, [0, 0, 0, 1]),
        ([2, 3], {"top_p": 0.5}, [0, 0, 1, 0]),
    ],
)
def test_what_is_sampled(allowed: list[int] | None, fields: dict[str, Any], expected: list[float]) -> None:
    assert shares(allowed, **fields) == pytest.approx(expected, abs=0.035)


def test_cancelling_ends_the_sampling() -> None:
    model = tiny_random_model(VOCABULARY, max_context=100_000)
    engine = TransformersEngine(model)

    async def run() -> float:
        task = asyncio.create_task(engine.generate(PROMPT, SamplingParams(100_000)))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        start = time.perf_counter()
        await engine.generate(PROMPT, SamplingParams(1))  # waits for the model
        return time.perf_counter() - start

    assert asyncio.run(run()) < 5


@pytest.mark.parametrize("kind", KINDS)
def test_over_the_wire_it_is_the_same_completion(kind: str) -> None:
    engine = TransformersEngine(MODEL)

    async def run() -> None:
        async with serving(engine_handler(engine)) as served, client(kind, served.url) as remote:
            for seed in range(4):
                sampling = SamplingParams(12, [7], temperature=0.8, top_p=0.9, top_k=20, seed=seed)
                assert await remote.generate(PROMPT, sampling) == await engine.generate(PROMPT, sampling)

    asyncio.run(run())


@pytest.mark.parametrize("name", ["qwen3", "glm45", "gpt-oss"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_rollout_over_the_wire_scores_as_it_was_sampled(name: str, kind: str) -> None:
    """The tokens of every sample, scored all at once, have the log-probabilities with which they were sampled."""
    renderer = create_renderer(f"golden:{name}", thinking_retention="all")
    model = tiny_random_model(renderer.tokenizer.vocabulary_size)

    async def run() -> Trajectory:
        trajectory = Trajectory(renderer)
        trajectory.begin([{"role": "user", "content": "hi"}])
        async with serving(engine_handler(TransformersEngine(model))) as served, client(kind, served.url) as remote:
            for turn in range(3):
                sampling = SamplingParams(15, renderer.stop_ids, seed=turn)
                found = await remote.generate(trajectory.next_prompt_ids, sampling)
                trajectory.add_completion(found.token_ids, found.logprobs)
                if turn < 2:
                    trajectory.add_messages([{"role": "user", "content": "again"}])
        return trajectory

    compared = 0
    for sample in asyncio.run(run()).samples():
        mask = torch.tensor(sample.action_mask[1:])
        sampled = torch.tensor(sample.logprobs[1:])
        torch.testing.assert_close(scored(model, list(sample.ids))[mask], sampled[mask], atol=1e-4, rtol=0)
        compared += int(mask.sum())
    assert compared == 45
