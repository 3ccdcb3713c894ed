"""Requests over HTTP: timeouts, retries, cancelling, refusals and answers that are none."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from loopback import Handler, Reply, Served, answering, serving

from renderers.engines import (
    EngineReplyError,
    EngineRequestError,
    EngineTimeoutError,
    EngineUnavailableError,
    FinishReason,
    Generation,
    PromptTooLongError,
    Retries,
    SamplingParams,
    VllmEngine,
)
from renderers.errors import ConfigError, TokenIdsError

SAMPLING = SamplingParams(max_tokens=4, stop_token_ids=[9])
QUICK = Retries(count=2, first_delay=0.001)
CHOICE = {"token_ids": [5, 9], "logprobs": {"token_logprobs": [-0.5, -1]}, "finish_reason": "stop", "stop_reason": 9}
GOOD = Reply(200, {"choices": [CHOICE]})


def ask(handler: Handler, **options: Any) -> tuple[Generation, Served]:
    """One completion from a server."""

    async def run() -> tuple[Generation, Served]:
        options.setdefault("retries", QUICK)
        async with serving(handler) as served, VllmEngine(served.url, **options) as engine:
            return await engine.generate([1, 2], SAMPLING), served

    return asyncio.run(run())


def test_a_completion() -> None:
    generation, served = ask(answering(GOOD), model="tiny", api_key="key", headers={"x-run": "7"})
    assert generation == Generation([5, 9], [-0.5, -1.0], FinishReason.STOP)
    assert generation.raw == GOOD.body
    (path, payload), headers = served.requests[0], served.headers[0]
    assert path == "/v1/completions"
    assert payload["prompt"] == [1, 2]
    assert payload["model"] == "tiny"
    assert (headers["authorization"], headers["x-run"]) == ("bearer key", "7")


@pytest.mark.parametrize("passing", [Reply(429), Reply(502), Reply(503), Reply(504), Reply(408), None])
def test_what_passes_is_tried_again(passing: Reply | None) -> None:
    generation, served = ask(answering(passing, passing, GOOD))
    assert generation.token_ids == [5, 9]
    assert len(served.requests) == 3
    assert served.requests[0] == served.requests[2]


def test_retries_end() -> None:
    with pytest.raises(EngineUnavailableError, match=r"failed 3 times.*status 503 overloaded"):
        ask(answering(Reply(503, {"error": {"message": "overloaded"}})))


def test_a_server_that_is_not_there_is_unavailable() -> None:
    async def run() -> None:
        async with serving(answering(GOOD)) as served:
            url = served.url
        async with VllmEngine(url, retries=QUICK) as engine:
            await engine.generate([1], SAMPLING)

    with pytest.raises(EngineUnavailableError, match="ConnectError"):
        asyncio.run(run())


def test_delays_double_up_to_the_longest_and_follow_the_server() -> None:
    retries = Retries(first_delay=1, longest_delay=5)
    for attempt, longest in enumerate((1, 2, 4, 5, 5)):
        assert longest / 2 <= retries.delay(attempt) <= longest
    assert retries.delay(0, "3") == 3
    assert retries.delay(0, "3600") == 5
    assert retries.delay(0, "Wed, 21 Oct 2026 07:28:00 GMT") <= 1


def test_the_servers_own_delay_is_waited_for() -> None:
    start = time.perf_counter()
    ask(answering(Reply(429, headers={"retry-after": "1"}), GOOD), retries=Retries(longest_delay=0.2))
    assert time.perf_counter() - start >= 0.2


def test_a_timeout_is_not_tried_again() -> None:
    async def slow(path: str, _body: Any) -> Reply:
        seen.append(path)
        await asyncio.sleep(60)
        return GOOD

    seen: list[str] = []
    with pytest.raises(EngineTimeoutError, match=r"within 0.05 seconds") as caught:
        ask(slow, timeout=0.05)
    assert isinstance(caught.value, TimeoutError)
    assert len(seen) == 1


@pytest.mark.parametrize("during", ["request", "delay"])
def test_cancelling_ends_the_request_at_the_server_and_retries_nothing(during: str) -> None:
    async def run() -> Served:
        arrived = asyncio.Event()

        async def slow(_path: str, _body: Any) -> Reply:
            arrived.set()
            if during == "request":
                await asyncio.sleep(60)
            return Reply(503)

        async with serving(slow) as served, VllmEngine(served.url, retries=Retries(first_delay=60)) as engine:
            task = asyncio.create_task(engine.generate([1], SAMPLING))
            await arrived.wait()
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            for _ in range(200):
                if during == "delay" or served.abandoned:
                    break
                await asyncio.sleep(0.02)
            return served

    served = asyncio.run(run())
    assert len(served.requests) == 1
    assert served.abandoned == (1 if during == "request" else 0)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 500, 302])
def test_a_refusal_is_not_tried_again(status: int) -> None:
    async def run() -> Served:
        async with serving(answering(Reply(status, {"detail": "no"}))) as served, VllmEngine(served.url) as engine:
            with pytest.raises(EngineRequestError, match=f"status {status}: no") as caught:
                await engine.generate([1], SAMPLING)
            assert caught.value.status == status
            assert not isinstance(caught.value, PromptTooLongError)
            return served

    assert len(asyncio.run(run()).requests) == 1


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"<html>", "no JSON"),
        (b"", "no JSON"),
        (["list"], "lacks what its protocol has"),
        ({"choices": []}, "lacks what its protocol has"),
        ({"choices": [{"text": "a", "token_ids": [5]}]}, "lacks what its protocol has"),
        ({"choices": [{**CHOICE, "logprobs": None}]}, "2 log-probabilities, the engine gave none"),
        ({"choices": [{**CHOICE, "token_ids": [5, -1]}]}, "negative"),
        ({"choices": [{**CHOICE, "token_ids": "ab"}]}, "str"),
        ({"choices": [{**CHOICE, "finish_reason": "content_filter"}]}, "'content_filter' is neither"),
        (b'{"choices": [{"token_ids": [5], "logprobs": {"token_logprobs": [NaN]}, "finish_reason": "stop"}]}', "nan"),
    ],
)
def test_an_answer_of_another_shape(body: Any, problem: str) -> None:
    with pytest.raises(EngineReplyError, match=problem):
        ask(answering(Reply(200, body)))


def test_many_requests_at_once() -> None:
    async def run() -> int:
        async def slow(_path: str, _body: Any) -> Reply:
            await asyncio.sleep(0.2)
            return GOOD

        async with serving(slow) as served, VllmEngine(served.url) as engine:
            await asyncio.gather(*(engine.generate([1], SAMPLING) for _ in range(150)))
            return len(served.requests)

    assert asyncio.run(run()) == 150


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://host", ""])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(ConfigError, match="http://"):
        VllmEngine(url)


def test_a_key_that_no_header_can_hold() -> None:
    with pytest.raises(ConfigError):
        ask(answering(GOOD), api_key="new\nline")
    with pytest.raises(ConfigError, match="headers"):
        VllmEngine("http://127.0.0.1:1", api_key="ключ")


def test_parameters_that_are_no_json() -> None:
    async def run() -> None:
        async with VllmEngine("http://127.0.0.1:1") as engine:
            await engine.generate([1], SamplingParams(max_tokens=1, extra={"stop": object()}))

    with pytest.raises(ConfigError, match="cannot be written as JSON"):
        asyncio.run(run())


@pytest.mark.parametrize("prompt", [[], [-1], ["a"], "ab"])
def test_a_prompt_that_is_none(prompt: Any) -> None:
    async def run() -> None:
        async with VllmEngine("http://127.0.0.1:1") as engine:
            await engine.generate(prompt, SAMPLING)

    with pytest.raises(TokenIdsError):
        asyncio.run(run())
