"""The errors of this package: few, typed, and each says where, what was found, and what to do."""

from __future__ import annotations

from typing import Any


class RendererError(Exception):
    """Base class of every error that this package raises on purpose."""


class MessageError(RendererError, ValueError):
    """A message, or the list of messages, that cannot be rendered.

    Attributes:
        message_index: index of the message in the caller's list, or None where the list itself is at fault.
        field: path of the field in that message, such as `tool_calls[0].function.arguments`, or None.
    """

    def __init__(self, problem: str, *, message_index: int | None = None, field: str | None = None) -> None:
        place = "messages" if message_index is None else f"messages[{message_index}]"
        if field:
            place += f".{field}"
        super().__init__(f"{place}: {problem}")
        self.problem = problem
        self.message_index = message_index
        self.field = field

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild_message_error, (type(self), self.problem, self.message_index, self.field))


def _rebuild_message_error(
    kind: type[MessageError], problem: str, message_index: int | None, field: str | None
) -> MessageError:
    return kind(problem, message_index=message_index, field=field)


class DamageError(MessageError):
    """The format accepts the message and damages it, and the renderer was built with `on_damage="raise"`."""


class UnsupportedMessageError(MessageError):
    """The format has no place for this message: the official template refuses it."""


class ToolsError(RendererError, ValueError):
    """A list of tools that cannot be rendered."""


class ConfigError(RendererError, ValueError):
    """A setting that does not exist, or that contradicts another one."""


class ResolutionError(ConfigError):
    """No renderer could be found for a tokenizer, or the one found does not fit it."""


class TokenizerError(RendererError, ValueError):
    """A tokenizer that cannot be used, or lacks a special token that the format needs."""


class TokenIdsError(RendererError, ValueError):
    """Token IDs that cannot be token IDs: negative ones, for instance."""


class TokenIdsTypeError(TokenIdsError, TypeError):
    """Something that is not a sequence of integers was given for token IDs."""


class TemplateError(RendererError, ValueError):
    """A chat template refused the conversation, or could not be compiled. Carries the template's own message."""


class PrefixError(TemplateError):
    """A chat template does not keep what it printed before, so that no prompt can be extended by it."""


class UnknownMaskError(RendererError, ValueError):
    """A question that needs the sampled mask was asked of tokens whose mask is unknown."""


class TrajectoryError(RendererError, ValueError):
    """Something that a trajectory or a sample cannot take: a call out of turn, or values that do not fit the tokens."""


class NotOnPolicyError(TrajectoryError):
    """On-policy use of a sample whose tokens or logprobs are not those of the sampling model."""


class EmptyMaskError(TrajectoryError):
    """A mean over no tokens at all."""


class TokenMismatchError(TrajectoryError, AssertionError):
    """A sample does not hold what the engine returned, or its mask selects something else."""


class VendorError(RendererError, ValueError):
    """Something that a vendor's API sent, and that is no finished reply or request.

    Attributes:
        provider: the API, `anthropic` for instance.
        place: where: a path in the payload (`content[1].input`), or the event and line of a stream.
        problem: what was found, in words.
        partial: the `Reply` as far as a stream came, or None.
    """

    def __init__(self, provider: str, place: str, problem: str, *, partial: Any = None) -> None:
        super().__init__(f"{provider}: {place}: {problem}")
        self.provider = provider
        self.place = place
        self.problem = problem
        self.partial = partial

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.provider, self.place, self.problem), self.__dict__)


class VendorPayloadError(VendorError):
    """A payload or an event that is not of the API's shape."""


class VendorStreamError(VendorError):
    """A stream of events that ends before the reply does. `partial` holds what came."""


class VendorReplyError(VendorError):
    """The error that the API itself reports, in place of a reply or in the middle of its stream.

    Attributes:
        kind: the API's own word for it (`overloaded_error`, `RESOURCE_EXHAUSTED`), or None.
        payload: the error as it came.
    """

    kind: str | None = None
    payload: Any = None


class ConversationError(RendererError, ValueError):
    """A conversation of many that cannot be used; the message names its line.

    Attributes:
        report: what was made of the conversations before it, where a report on all was asked for.
    """

    def __init__(self, problem: str, report: Any = None) -> None:
        super().__init__(problem)
        self.report = report


class MissingExtraError(RendererError, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed: pip install 'token-renderers[{extra}]'"
        )
