"""What can go wrong between a prompt and its completion. All are `EngineError`s."""

from __future__ import annotations

from typing import TYPE_CHECKING

from renderers.errors import RendererError

if TYPE_CHECKING:
    from renderers.engines.protocol import Generation


class EngineError(RendererError):
    """No completion could be had from the engine."""


class EngineTimeoutError(EngineError, TimeoutError):
    """The engine took longer than `timeout`. Not retried: the request was taken, and a second doubles the load."""


class EngineUnavailableError(EngineError, ConnectionError):
    """The engine could not be reached, or was overloaded, at every attempt."""


class EngineRequestError(EngineError, ValueError):
    """The engine refused the request, or failed on it, and would again.

    Attributes:
        status: the HTTP status, or None for a local engine.
    """

    def __init__(self, problem: str, *, status: int | None = None) -> None:
        super().__init__(problem)
        self.status = status


class PromptTooLongError(EngineRequestError):
    """The prompt leaves no room in the model's context: compact the history, or end the trajectory as truncated."""


class EngineAbortedError(EngineError):
    """The engine gave up a request that it had begun: a weight update, a shutdown, an operator.

    Attributes:
        partial: what was sampled until then, or None. Its tokens are exact; whether to use them is the caller's choice.
    """

    def __init__(self, problem: str, partial: Generation | None = None) -> None:
        super().__init__(problem)
        self.partial = partial


class EngineReplyError(EngineError, ValueError):
    """The engine's answer is not what its protocol says, so its tokens cannot be trusted."""


class TextOnlyError(EngineReplyError):
    """The engine answered with text and no token IDs. Text is never encoded back: those are not the sampled tokens."""


class MissingStopError(EngineReplyError):
    """The engine says that the model stopped, and no stop token ends the IDs."""


class StopRestoredWarning(UserWarning):
    """A stop token that the engine had stripped was put back, as a token that was not sampled."""
