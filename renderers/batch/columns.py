"""Between columns of a data set and conversations: what arrays hold as Python values, and tokens as columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal

from renderers.errors import ConversationError
from renderers.rendered import RenderedTokens

#: What to do with null fields inside tools and call arguments. Arrow gives every object of a column all fields that
#: any of them has, so most of these nulls were never written: "refuse" raises, "drop" takes them for absent, "keep"
#: renders them.
NullFields = Literal["refuse", "drop", "keep"]

#: The columns that can be made of rendered tokens. Masks are empty where the renderer does
#: not know what was sampled; then owners are an error.
COLUMNS: Mapping[str, Callable[[RenderedTokens], list[Any]]] = {
    "token_ids": lambda rendered: rendered.token_ids,
    "message_indices": lambda rendered: rendered.message_indices,
    "sampled_mask": lambda rendered: rendered.sampled_mask,
    "is_content": lambda rendered: rendered.is_content,
    "owners": lambda rendered: [str(owner) for owner in rendered.owners],
    "warnings": lambda rendered: [f"{damage.kind}: {damage.detail}" for damage in rendered.warnings],
}


def conversation_of(messages: Any, tools: Any, nulls: NullFields) -> tuple[Any, Any]:
    """Messages and tools of one row, given as Python values, as numpy arrays of them, or as JSON text.

    Raises:
        ConversationError: the text is no JSON, or a null field is refused.
    """
    messages, tools = _plain(messages, "messages"), _plain(tools, "tools")
    if nulls == "keep":
        return messages, tools
    if isinstance(messages, list):
        messages = [_with_checked_arguments(message, nulls) for message in messages]
    return messages, _without_nulls(tools, nulls, "tools")


def _plain(value: Any, name: str) -> Any:
    """Python values of JSON text, arrays and numpy scalars, however they are nested."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except (ValueError, RecursionError) as error:
            raise ConversationError(f"{name} is text, but no JSON: {error}") from None
    return _unpacked(value)


def _unpacked(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {name: _unpacked(one) for name, one in value.items()}
    return [_unpacked(one) for one in value] if isinstance(value, list | tuple) else value


def _with_checked_arguments(message: Any, nulls: NullFields) -> Any:
    """The message with its calls' arguments checked; its own null fields are absent ones for the renderer."""
    if not isinstance(message, dict) or not message.get("tool_calls"):
        return message
    calls = [
        {**call, "function": {**call["function"], "arguments": _without_nulls(arguments, nulls, "arguments")}}
        if isinstance(call, dict)
        and isinstance(call.get("function"), dict)
        and isinstance(arguments := call["function"].get("arguments"), dict)
        else call
        for call in message["tool_calls"]
    ]
    return {**message, "tool_calls": calls}


def _without_nulls(value: Any, nulls: NullFields, place: str) -> Any:
    if isinstance(value, dict):
        kept = {}
        for name, one in value.items():
            if one is not None:
                kept[name] = _without_nulls(one, nulls, f"{place}.{name}")
            elif nulls == "refuse":
                raise ConversationError(
                    f"{place}.{name} is null, as Arrow writes where another row has this field: store tools and "
                    'arguments as JSON text, or say with null_fields whether to "drop" or to "keep" it'
                )
        return kept
    if isinstance(value, list):
        return [_without_nulls(one, nulls, f"{place}[{index}]") for index, one in enumerate(value)]
    return value
