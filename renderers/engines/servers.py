"""What the clients of inference servers have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self, TypedDict

from renderers.engines.completion import Answer, checked_prompt, finished
from renderers.engines.errors import EngineReplyError
from renderers.engines.json_http import JsonClient, Retries
from renderers.engines.protocol import Generation, SamplingParams


class ServerOptions(TypedDict, total=False):
    """The options of every `ServerEngine`; it says what they mean."""

    api_key: str | None
    headers: Mapping[str, str] | None
    timeout: float
    connect_timeout: float
    retries: Retries | None
    restore_stop: bool


class ServerEngine(ABC):
    """A client of one inference server. It belongs to one event loop; close it, or use it as a context manager.

    Args:
        base_url: where the server is, such as `http://127.0.0.1:8000`.
        api_key: sent as a bearer token.
        headers: sent with every request.
        timeout: seconds for one attempt, from sending to the last byte of the answer. Not retried.
        connect_timeout: seconds for the connection alone. Retried.
        retries: when to try again.
        restore_stop: where the server strips the stop token from the IDs, put it back as a token that was not sampled
            (mask 0), with a warning; by default that is a `MissingStopError`.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 600.0,
        connect_timeout: float = 10.0,
        retries: Retries | None = None,
        restore_stop: bool = False,
    ) -> None:
        sent = {**({"authorization": f"Bearer {api_key}"} if api_key is not None else {}), **(headers or {})}
        self.restore_stop = restore_stop
        self._client = JsonClient(
            base_url, headers=sent, timeout=timeout, connect_timeout=connect_timeout, retries=retries or Retries()
        )

    async def generate(self, prompt_ids: Sequence[int], sampling: SamplingParams) -> Generation:
        """Sample one completion of a prompt. Cancelling the task closes the connection, and the server aborts."""
        path, payload = self._request(checked_prompt(prompt_ids), sampling)
        reply = await self._client.post(path, payload)
        try:
            answer = self._answer(reply)
        except (LookupError, TypeError, AttributeError) as error:
            raise EngineReplyError(
                f"the answer of {self._client.base_url}{path} lacks what its protocol has "
                f"({type(error).__name__}: {error}): {str(reply)[:500]}"
            ) from None
        return finished(answer, sampling, restore_stop=self.restore_stop)

    @abstractmethod
    def _request(self, prompt_ids: list[int], sampling: SamplingParams) -> tuple[str, dict[str, Any]]:
        """The path and the JSON to post."""

    @abstractmethod
    def _answer(self, reply: Any) -> Answer:
        """The completion in an answer. May fail with the errors of looking into JSON of another shape."""

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
