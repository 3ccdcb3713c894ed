"""The wire formats: recorded answers of a real vLLM, documented ones of SGLang, and both over a loopback server."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path
from typing import Any

import pytest
from loopback import Reply, answering, engine_handler, serving, wire_format
from vllm_cases import CASES, ENDPOINTS, Case, recorded

from renderers.engines import (
    EngineAbortedError,
    EngineReplyError,
    FinishReason,
    Generation,
    MissingStopError,
    PromptTooLongError,
    RandomEngine,
    SamplingParams,
    SglangEngine,
    StopRestoredWarning,
    TextOnlyError,
    VllmEngine,
)

SGLANG: dict[str, Any] = json.loads((Path(__file__).parent / "documented" / "sglang.json").read_text("utf-8"))
BY_NAME = {case.name: case for case in CASES}
STOP = 151645
SAMPLING = SamplingParams(max_tokens=4, stop_token_ids=[STOP, 151643])


def ask(engine_class: Any, reply: Reply, sampling: SamplingParams = SAMPLING, **options: Any) -> Generation:
    """What an engine makes of one answer."""

    async def run() -> Generation:
        async with serving(answering(reply)) as served, engine_class(served.url, **options) as engine:
            generation: Generation = await engine.generate([1, 2], sampling)
            return generation

    return asyncio.run(run())


def sglang(name: str, **options: Any) -> Generation:
    """What the engine makes of a documented answer."""
    return ask(SglangEngine, Reply(200, SGLANG[name]), **options)


@pytest.mark.parametrize("one", recorded(), ids=lambda one: f"{one['case']}-{one['endpoint']}")
def test_what_a_real_vllm_answers(one: dict[str, Any]) -> None:
    case: Case = BY_NAME[one["case"]]
    reply = Reply(one["status"], one["reply"])
    options = {"endpoint": one["endpoint"], "model": case.model}
    if not isinstance(case.expected, FinishReason):
        with pytest.raises(case.expected) as caught:
            ask(VllmEngine, reply, case.parameters(), **options)
        assert type(caught.value) is case.expected
        return
    generation = ask(VllmEngine, reply, case.parameters(), **options)
    assert generation.finish_reason is case.expected
    assert generation.token_ids == one["reply"]["choices"][0]["token_ids"]
    assert len(generation.logprobs) == one["reply"]["usage"]["completion_tokens"]
    assert all(-20 < logprob < 0 for logprob in generation.logprobs)
    assert generation.sampled is None


def test_every_case_is_recorded() -> None:
    found = {(one["case"], one["endpoint"]) for one in recorded()}
    assert found == {(case.name, endpoint) for case in CASES for endpoint in case.endpoints}


def test_both_endpoints_of_vllm_sample_the_same() -> None:
    ids = {one["endpoint"]: one["reply"]["choices"][0]["token_ids"] for one in recorded() if one["case"] == "length"}
    assert ids["completions"] == ids["generate"]


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_the_loopback_server_answers_as_vllm_does(endpoint: Any) -> None:
    real = next(one["reply"] for one in recorded() if (one["case"], one["endpoint"]) == ("stop", endpoint))
    path = "/v1/completions" if endpoint == "completions" else "/inference/v1/generate"
    ours = wire_format(path, Generation([5, 9], [-1.0, -1.0], FinishReason.STOP))
    assert_same_shape(ours, real)


def test_the_loopback_server_answers_as_sglang_does() -> None:
    assert_same_shape(wire_format("/generate", Generation([5, 9], [-1.0, -1.0], FinishReason.STOP)), SGLANG["stop"])


def assert_same_shape(ours: Any, real: Any) -> None:
    """Every field of ours is in the real answer, with a value of the same kind."""
    if isinstance(ours, dict):
        assert set(ours) <= set(real)
        for name, value in ours.items():
            if not (name == "stop_reason" and real[name] is None):
                assert_same_shape(value, real[name])
    elif isinstance(ours, list):
        assert isinstance(real, list)
        assert_same_shape(ours[0], real[0])
    else:
        assert type(ours) is type(real)


def test_sglang_answers() -> None:
    assert sglang("stop") == Generation([9707, STOP], [-0.25, -0.5], FinishReason.STOP)
    assert sglang("length") == Generation([9707], [-0.25], FinishReason.LENGTH)
    assert sglang("without_output_ids") == sglang("stop")


@pytest.mark.parametrize(
    ("name", "error", "problem"),
    [
        ("trimmed", MissingStopError, "last token is 9707"),
        ("stop_text", MissingStopError, "the text 'o'"),
        ("text_only", TextOnlyError, "text, and neither"),
        ("mismatch", EngineReplyError, "different tokens"),
        ("without_logprobs", EngineReplyError, "1 log-probabilities, the engine gave none"),
    ],
)
def test_sglang_answers_that_cannot_be_used(name: str, error: type[Exception], problem: str) -> None:
    with pytest.raises(error, match=problem):
        sglang(name)


def test_an_abort_carries_what_was_sampled() -> None:
    with pytest.raises(EngineAbortedError, match="after 1 tokens: Aborted by pause_generation") as caught:
        sglang("abort")
    assert caught.value.partial is not None
    assert caught.value.partial.token_ids == [9707]
    choice = {"token_ids": [], "logprobs": {"token_logprobs": []}, "finish_reason": "abort"}
    with pytest.raises(EngineAbortedError, match="after 0 tokens") as caught:
        ask(VllmEngine, Reply(200, {"choices": [choice]}))
    assert caught.value.partial is None


def test_a_stripped_stop_token_is_restored_as_not_sampled() -> None:
    with pytest.warns(StopRestoredWarning, match="151645 was put back"):
        generation = sglang("trimmed", restore_stop=True)
    assert generation.token_ids == [9707, STOP]
    assert generation.logprobs[0] == -0.25
    assert math.isnan(generation.logprobs[1])
    assert generation.sampled == [True, False]
    assert generation.finish_reason is FinishReason.STOP


def test_what_was_not_stripped_is_not_restored() -> None:
    with pytest.raises(MissingStopError, match="the text"):
        sglang("stop_text", restore_stop=True)
    unlisted = [one for one in recorded() if one["case"] == "unlisted_stop"]
    for one in unlisted:
        case, reply = BY_NAME["unlisted_stop"], Reply(200, one["reply"])
        with pytest.raises(MissingStopError, match="last token is 151645 and the stop tokens are"):
            ask(VllmEngine, reply, case.parameters(), endpoint=one["endpoint"], restore_stop=True)
    with pytest.raises(MissingStopError, match="get_stop_token_ids"):
        sglang("trimmed", restore_stop=True, sampling=SamplingParams(max_tokens=4))


def client(kind: str, url: str, **options: Any) -> VllmEngine | SglangEngine:
    """The client of one of the three endpoints."""
    if kind == "sglang":
        return SglangEngine(url, **options)
    endpoint: Any = kind
    return VllmEngine(url, endpoint=endpoint, **options)


KINDS = (*ENDPOINTS, "sglang")


@pytest.mark.parametrize("kind", KINDS)
def test_over_the_wire_it_is_the_same_completion(kind: str) -> None:
    """Every parameter arrives, and tokens and log-probabilities come back unchanged."""

    async def run() -> None:
        engine = RandomEngine(20, max_context=40)
        async with serving(engine_handler(engine)) as served, client(kind, served.url) as remote:
            for seed in range(20):
                sampling = SamplingParams(12, [3, 7], temperature=0.5, top_p=0.9, top_k=5, seed=seed)
                assert await remote.generate([1, 2], sampling) == await engine.generate([1, 2], sampling)
            with pytest.raises(PromptTooLongError):
                await remote.generate([1] * 40, sampling)
            at_the_end = await remote.generate([1] * 38, sampling)
            assert len(at_the_end.token_ids) <= 2

    asyncio.run(run())


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_strips_stop_tokens(kind: str) -> None:
    async def run() -> None:
        sampling = SamplingParams(100, [0], seed=1)
        engine = RandomEngine(2)
        direct = await engine.generate([1], sampling)
        async with (
            serving(engine_handler(engine, strip_stop=True)) as served,
            client(kind, served.url) as strict,
            client(kind, served.url, restore_stop=True) as restoring,
        ):
            with pytest.raises(MissingStopError):
                await strict.generate([1], sampling)
            with pytest.warns(StopRestoredWarning):
                restored = await restoring.generate([1], sampling)
        assert restored.token_ids == direct.token_ids
        assert restored.sampled == [True] * (len(direct.token_ids) - 1) + [False]

    asyncio.run(run())
