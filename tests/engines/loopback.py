"""A small HTTP server on the loopback interface: whatever a test wants to answer, and real engines behind real formats."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from renderers.engines import Engine, Generation, PromptTooLongError, SamplingParams


@dataclass
class Reply:
    """What the server answers: a status, JSON or bytes, and further headers."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


#: Path and JSON of a request to its reply; None breaks the connection without one.
Handler = Callable[[str, Any], Awaitable[Reply | None]]


@dataclass
class Served:
    """A running server.

    Attributes:
        url: where it is.
        requests: path and JSON of each request, in order.
        headers: the headers of each, names in lower case.
        abandoned: how many requests the client gave up before they were answered.
    """

    url: str
    requests: list[tuple[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    abandoned: int = 0


@contextlib.asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[Served]:
    """Serve on a free port of the loopback interface. Each connection carries one request."""
    served = Served("")

    connections: set[asyncio.Task[None]] = set()

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        body = json.loads(await reader.readexactly(int(headers["content-length"])))
        path = head[0].split()[1]
        served.requests.append((path, body))
        served.headers.append(headers)
        answer = asyncio.ensure_future(handler(path, body))
        gone = asyncio.ensure_future(reader.read())
        try:
            await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                reply = answer.result()
                if reply is not None:
                    writer.write(_response(reply))
                    await writer.drain()
            else:
                served.abandoned += 1
        finally:
            answer.cancel()
            gone.cancel()
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    server = await asyncio.start_server(connection, "127.0.0.1", 0)
    served.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield served
    finally:
        server.close()
        await asyncio.gather(*connections, return_exceptions=True)


def _response(reply: Reply) -> bytes:
    content = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
    headers = {"content-length": str(len(content)), "connection": "close", **reply.headers}
    lines = [f"HTTP/1.1 {reply.status} X", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode() + content


def answering(*replies: Reply | None) -> Handler:
    """One reply after another; the last one again and again."""
    left = list(replies)

    async def handler(_path: str, _body: Any) -> Reply | None:
        return left.pop(0) if len(left) > 1 else left[0]

    return handler


def engine_handler(engine: Engine, *, strip_stop: bool = False) -> Handler:
    """An engine behind the wire formats of vLLM's two endpoints and of SGLang's.

    Args:
        engine: who samples.
        strip_stop: leave the stop token out of the IDs, as some servers do.
    """

    async def handler(path: str, body: Any) -> Reply:
        given = body if path == "/v1/completions" else body["sampling_params"]
        sampling = SamplingParams(
            max_tokens=given.get("max_tokens") or given["max_new_tokens"],
            stop_token_ids=given["stop_token_ids"],
            temperature=given["temperature"],
            top_p=given["top_p"],
            top_k=given.get("top_k"),
            seed=given.get("seed", given.get("sampling_seed")),
        )
        prompt = body.get("prompt") or body.get("token_ids") or body["input_ids"]
        try:
            generation = await engine.generate(prompt, sampling)
        except PromptTooLongError:
            message = f"The input ({len(prompt)} tokens) is longer than the model's context length (40 tokens)."
            return Reply(400, {"error": {"message": message}})
        return Reply(200, wire_format(path, generation, strip_stop=strip_stop))

    return handler


def wire_format(path: str, generation: Generation, *, strip_stop: bool = False) -> dict[str, Any]:
    """The answer of the endpoint `path`: those of its fields that a client of token IDs reads."""
    ids, logprobs, reason = generation.token_ids, generation.logprobs, str(generation.finish_reason)
    counted = len(ids)
    stop = ids[-1] if reason == "stop" else None
    if strip_stop and stop is not None:
        ids, logprobs = ids[:-1], logprobs[:-1]
    if path == "/generate":
        about = {"type": reason, **({"matched": stop} if stop is not None else {"length": len(ids)})}
        scored = [[logprob, token_id, None] for token_id, logprob in zip(ids, logprobs, strict=True)]
        return {
            "text": "",
            "output_ids": ids,
            "meta_info": {"finish_reason": about, "output_token_logprobs": scored, "completion_tokens": counted},
        }
    scored = {"token_logprobs": logprobs}
    if path == "/inference/v1/generate":
        content = [{"token_id": token_id, "logprob": logprob} for token_id, logprob in zip(ids, logprobs, strict=True)]
        scored = {"content": content}
    choice = {"index": 0, "token_ids": ids, "logprobs": scored, "finish_reason": reason, "stop_reason": stop}
    return {"choices": [choice], "usage": {"completion_tokens": counted}}
