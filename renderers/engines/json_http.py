"""JSON over HTTP: one request, its timeout, and retries with back-off.

The client is the one that huggingface_hub brings: httpx2 since its version 2, httpx before.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from renderers.engines.errors import (
    EngineReplyError,
    EngineRequestError,
    EngineTimeoutError,
    EngineUnavailableError,
    PromptTooLongError,
)
from renderers.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    import httpx2 as http
else:
    try:
        import httpx2 as http
    except ImportError:
        try:
            import httpx as http
        except ImportError:
            raise MissingExtraError("httpx2", "engines", "a client of an inference server") from None

#: Statuses of a server that is overloaded or restarting: the request was not worked on, so it may be sent again.
_PASSING = frozenset({408, 429, 502, 503, 504})
#: How vLLM and SGLang say that a prompt does not fit. The third is vLLM's for a prompt that fills the context exactly.
_TOO_LONG = (
    "maximum context length",
    "longer than the maximum model length",
    "max_tokens must be at least 1, got 0",
    "longer than the model's context length",
    "exceeds the maximum allowed length",
)
_SHOWN_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class Retries:
    """When to try again: where the server cannot be reached, breaks the connection, or says that it is overloaded.

    Attributes:
        count: further attempts after the first.
        first_delay: seconds before the first of them; doubled each time, and shortened at random by up to a half, so
            that the rollouts of a batch do not all come back at once. A server's `Retry-After` is waited for instead.
        longest_delay: seconds; no wait is longer.
    """

    count: int = 4
    first_delay: float = 0.5
    longest_delay: float = 30.0

    def delay(self, attempt: int, retry_after: str | None = None) -> float:
        """Seconds to wait after attempt `attempt`, counted from 0."""
        if retry_after is not None and retry_after.isdecimal():
            return min(float(retry_after), self.longest_delay)
        longest = min(math.ldexp(self.first_delay, attempt), self.longest_delay)
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - no secret


class JsonClient:
    """Posts JSON to one server.

    Args:
        base_url: where the server is, without the endpoint's path.
        headers: sent with every request.
        timeout: seconds for one attempt, from sending to the last byte of the answer.
        connect_timeout: seconds for the connection alone; a server that does not answer by then is tried again.
        retries: when to try again.
    """

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str],
        timeout: float,
        connect_timeout: float,
        retries: Retries,
    ) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise ConfigError(f"base_url must begin with http:// or https://, found {base_url!r}")
        self.base_url = base_url.rstrip("/")
        self._timeout = timeout
        self._retries = retries
        try:
            self._client = http.AsyncClient(
                headers=dict(headers),
                timeout=http.Timeout(None, connect=connect_timeout),
                # A rollout batch is as many requests as it has samples; the engine queues them, not the client.
                limits=http.Limits(max_connections=None, max_keepalive_connections=100),
            )
        except (TypeError, ValueError) as error:
            raise ConfigError(f"headers of {base_url}: {error}") from None

    async def post(self, path: str, payload: Mapping[str, Any]) -> Any:
        """The JSON that the server answers with.

        Raises:
            EngineTimeoutError: an attempt took longer than `timeout`.
            EngineUnavailableError: every attempt failed to reach a working server.
            PromptTooLongError: the server says that the prompt does not fit its context.
            EngineRequestError: the server refuses the request or fails on it.
            EngineReplyError: the answer is not JSON.
        """
        url = self.base_url + path
        try:
            content = orjson.dumps(payload)
        except TypeError as error:
            raise ConfigError(f"a request to {url} cannot be written as JSON: {error}") from None
        attempt = 0
        while True:
            retry_after = None
            try:
                async with asyncio.timeout(self._timeout):
                    response = await self._client.post(
                        url, content=content, headers={"content-type": "application/json"}
                    )
            except TimeoutError:
                raise EngineTimeoutError(f"{url} did not answer within {self._timeout} seconds") from None
            except (http.UnsupportedProtocol, http.LocalProtocolError, http.InvalidURL) as error:
                raise ConfigError(f"a request to {url} cannot be sent: {error}") from None
            except http.TransportError as error:
                problem = f"{type(error).__name__} {error}".strip()
            else:
                if response.status_code not in _PASSING:
                    return _content(url, response)
                problem = f"status {response.status_code} {_message(response)}".strip()
                retry_after = response.headers.get("retry-after")
            if attempt == self._retries.count:
                raise EngineUnavailableError(f"{url} failed {attempt + 1} times, at last with {problem}")
            await asyncio.sleep(self._retries.delay(attempt, retry_after))
            attempt += 1

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def _content(url: str, response: http.Response) -> Any:
    if response.status_code != 200:
        message = _message(response)
        kind = PromptTooLongError if any(text in message for text in _TOO_LONG) else EngineRequestError
        raise kind(f"{url} answered with status {response.status_code}: {message}", status=response.status_code)
    try:
        # Not orjson: a server may write NaN, and then the log-probability's own check says which token it is.
        return json.loads(response.content)
    except ValueError as error:
        raise EngineReplyError(
            f"{url} answered with no JSON ({error}): {response.text[:_SHOWN_CHARACTERS]!r}"
        ) from None


def _message(response: http.Response) -> str:
    """What the server says is wrong: OpenAI's shape, FastAPI's, or the text as it is."""
    try:
        body = json.loads(response.content)
    except ValueError:
        return response.text[:_SHOWN_CHARACTERS]
    error = body.get("error", body) if isinstance(body, dict) else body
    found = (error.get("message") or error.get("detail") or error) if isinstance(error, dict) else error
    return str(found)[:_SHOWN_CHARACTERS]
