"""What a template sees of the caller's messages, tools and variables: fresh copies, made of plain JSON types.

The steps are those of transformers 5: fields that are None go, reasoning is filled in under each of its names, and rich
objects (numpy scalars, pydantic models, dataclasses, enums) are reduced to plain values, because a template is untrusted
code and an object may have methods that do harm.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from renderers.errors import MessageError, ToolsError
from renderers.messages import REASONING_FIELDS, UNSEEN_KEYS

#: The types of JSON's scalars.
SCALARS = frozenset({str, int, float, bool, type(None)})

# Subclasses may print themselves otherwise (enums do) and carry methods: the base class says what they hold.
_BASE_OF: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
)


def plain_data(value: Any) -> Any:
    """A copy of a value that holds nothing but dicts, lists, tuples, text, numbers, booleans and None."""
    kind = type(value)
    if kind in SCALARS:
        return value
    if kind is dict or isinstance(value, Mapping):
        return {plain_data(key): plain_data(item) for key, item in value.items()}
    if kind is list or isinstance(value, list):
        return [plain_data(item) for item in value]
    return _plain_object(value)


def _plain_object(value: Any) -> Any:
    for scalar, as_base in _BASE_OF:
        if isinstance(value, scalar):
            return as_base(value)
    if isinstance(value, tuple):
        return tuple(plain_data(item) for item in value)
    numpy = sys.modules.get("numpy")  # if it was never imported, this is none of its scalars
    if numpy is not None and isinstance(value, numpy.generic):
        return plain_data(value.item())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain_data(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if callable(getattr(value, "model_dump", None)):
        return plain_data(value.model_dump())
    return f"<{type(value).__name__}>"  # inert: templates only ask whether media is there


def plain_messages(messages: Sequence[Mapping[str, Any]]) -> list[dict[Any, Any]]:
    """Copies of messages, unknown fields included.

    Raises:
        MessageError: where a field cannot be copied, naming the message and the field.
    """
    return [
        {plain_data(name): _plain_field(index, name, value) for name, value in message.items()}
        for index, message in enumerate(messages)
    ]


def _plain_field(index: int, name: object, value: Any) -> Any:
    try:
        return plain_data(value)
    except RecursionError:
        problem = "the value is nested too deeply, or holds itself"
        raise MessageError(problem, message_index=index, field=str(name)) from None


def prepare_messages(
    messages: Sequence[Any],
    *,
    null_content: bool = False,
    label: Callable[[int, Mapping[Any, Any]], dict[Any, Any]] | None = None,
) -> list[dict[Any, Any]]:
    """Copies of the messages as the template gets them.

    Args:
        messages: dicts, dataclasses or pydantic models.
        null_content: give None for null and for missing content. Three templates (DeepSeek V3, R1, V3.1) test for it,
            and were deployed with transformers 4, which left it in.
        label: called with each message's index and the message, before the aliases are filled, instead of making it
            plain; gives its fields, plain, without those that are None, and with their sources.

    Raises:
        MessageError: where one is neither of these.
    """
    prepared = []
    for index, message in enumerate(messages):
        given = message if type(message) is dict else plain_data(message)
        if not isinstance(given, dict):
            raise MessageError(f"a message is a dict, and this is {type(message).__name__}", message_index=index)
        if not UNSEEN_KEYS.isdisjoint(given):
            given = {key: value for key, value in given.items() if key not in UNSEEN_KEYS}
        if label is None:
            fields = {plain_data(key): plain_data(value) for key, value in given.items() if value is not None}
        else:
            fields = label(index, given)
        for name in REASONING_FIELDS:
            if name in fields:
                fields = {"thinking": fields[name], **fields, "reasoning_content": fields[name]}
                break
        if null_content and "content" not in fields:
            fields["content"] = None
        prepared.append(fields)
    return prepared


def prepare_tools(
    tools: Sequence[Any] | None, *, label: Callable[[str, list[Any]], list[Any]] | None = None
) -> list[Any] | None:
    """Copies of the tools, or None.

    Args:
        tools: JSON schemas.
        label: called with the name of the variable and the tools, instead of making them plain.

    Raises:
        ToolsError: where one is no dict.
    """
    if tools is None:
        return None
    prepared: list[Any] = plain_data(list(tools)) if label is None else label("tools", list(tools))
    for index, tool in enumerate(prepared):
        if not isinstance(tool, dict):
            raise ToolsError(
                f"tools[{index}]: a tool is a dict (its JSON schema), and this is {type(tools[index]).__name__}"
            )
    return prepared
