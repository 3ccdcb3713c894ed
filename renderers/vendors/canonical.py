"""The canonical messages, checked before they are written for an API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeAlias

from pydantic import Strict, TypeAdapter
from pydantic.dataclasses import dataclass as validated_dataclass

from renderers.errors import MessageError
from renderers.messages import (
    KNOWN_KEYS,
    Message,
    PlainText,
    as_dicts,
    check_arguments,
    validate_messages,
    validate_tools,
    validate_with,
)
from renderers.vendors.payloads import Json, plain

Object: TypeAlias = Annotated[dict[PlainText, Any], Strict()]


@validated_dataclass(frozen=True, slots=True, config=KNOWN_KEYS)
class _AnyParts(Message):
    """A message whose content may hold parts of any type: an API takes more than text."""

    vendor_blocks: Annotated[dict[PlainText, Object], Strict()] | None = None
    content: PlainText | Annotated[list[Object], Strict()] | None = None  # type: ignore[assignment]  # wider than a renderer's, on purpose


_MESSAGES = TypeAdapter(list[_AnyParts])


def canonical(messages: Sequence[Mapping[str, Any]]) -> list[Json]:
    """A deep copy of messages that are of the OpenAI chat shapes.

    Raises:
        MessageError: naming the message and the field.
    """
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
        validate_messages(messages)  # says what is wrong
    given = as_dicts(messages)
    check_arguments(validate_with(_MESSAGES, given))
    copies = []
    for index, message in enumerate(given):
        try:
            copies.append(plain(message))
        except (TypeError, RecursionError) as error:
            raise MessageError(f"cannot be written as JSON: {error}", message_index=index) from None
    return copies


def canonical_tools(tools: Sequence[Mapping[str, Any]] | None) -> list[Json] | None:
    """A deep copy of tools, in the OpenAI shape: `{"type": "function", "function": {...}}`.

    Raises:
        ToolsError: naming the tool.
    """
    if tools is None:
        return None
    copies: list[Json] = plain(validate_tools(tools).schemas)
    return copies
