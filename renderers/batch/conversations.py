"""Conversations as they come: in memory, from a line of JSON, or out of an Arrow column."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from renderers.errors import ConversationError, RendererError
from renderers.rendered import RenderedTokens
from renderers.renderer import Renderer


def render_batch(
    renderer: Renderer[Any],
    conversations: Iterable[Sequence[Mapping[str, Any]] | Mapping[str, Any]],
    *,
    tools: Sequence[Mapping[str, Any]] | None = None,
    add_generation_prompt: bool = False,
) -> list[RenderedTokens]:
    """Render many conversations with one renderer, which encodes each piece of text that they share once.

    Args:
        renderer: the renderer.
        conversations: each a list of messages, or an object with `messages` and perhaps `tools`.
        tools: the tools of the conversations that bring none.
        add_generation_prompt: open the assistant's turn at the end of each.

    Raises:
        ConversationError: one of them cannot be rendered; says which and why.
    """
    rendered = []
    for place, given in enumerate(conversations):
        try:
            messages, own_tools = split_conversation(given)
            rendered.append(
                renderer.render(
                    messages,
                    tools=tools if own_tools is None else own_tools,
                    add_generation_prompt=add_generation_prompt,
                )
            )
        except RendererError as error:
            raise ConversationError(f"conversations[{place}]: {error}") from error
    return rendered


def split_conversation(given: Any) -> tuple[Any, Any]:
    """Messages and tools of a conversation; the renderer checks them.

    Raises:
        ConversationError: it is an object without `messages`.
    """
    if not isinstance(given, Mapping):
        return given, None
    if "messages" not in given:
        raise ConversationError(f"an object needs 'messages', found {', '.join(map(repr, given)) or 'nothing'}")
    return given["messages"], given.get("tools")


def read_line(line: bytes) -> Any:
    """The conversation in a line of JSON.

    Raises:
        ConversationError: it is no JSON.
    """
    try:
        # Not orjson, which turns long integers in arguments into floats.
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ConversationError(f"no JSON: {error}") from None
