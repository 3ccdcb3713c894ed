"""What the checks share: readable failures, and renders that do not stop at a damage warning."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from renderers.renderer import DamageWarning
from renderers.testing.messages import Conversation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from renderers.rendered import RenderedTokens
    from renderers.renderer import Renderer

#: The official rendering of a conversation, as token IDs. Raises where the official template does.
Reference: TypeAlias = Callable[[Conversation], Sequence[int]]

_CONTEXT = 12


def fail(problem: str, *details: str) -> NoReturn:
    """Raise an AssertionError of several lines."""
    raise AssertionError("\n".join([problem, *details]))


def shown(value: Any) -> str:
    """JSON of a message or a conversation, short enough to read."""
    if isinstance(value, Conversation):
        value = {
            "messages": value.messages,
            "tools": value.tools,
            "kwargs": value.kwargs,
            "add_generation_prompt": value.add_generation_prompt,
        }
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 4000 else f"{text[:4000]} ... ({len(text)} characters)"


def text_of(renderer: Renderer[Any], token_ids: Sequence[int]) -> str:
    """The text of tokens, special tokens spelled out."""
    return renderer.tokenizer.decode_bytes(token_ids).decode("utf-8", "replace")


def _around(renderer: Renderer[Any], token_ids: Sequence[int], place: int) -> str:
    start, end = max(place - _CONTEXT, 0), place + _CONTEXT
    tokens = [f"{text_of(renderer, [token_id])!r} {token_id}" for token_id in token_ids[place : place + 4]]
    return f"{text_of(renderer, token_ids[start:end])!r}, here {', '.join(tokens) or 'the end'}"


def difference(renderer: Renderer[Any], found: Sequence[int], expected: Sequence[int]) -> str:
    """Where two token sequences first differ, with the text around that place."""
    place = 0
    while place < min(len(found), len(expected)) and found[place] == expected[place]:
        place += 1
    return (
        f"first difference at token {place} (found {len(found)} tokens, expected {len(expected)})\n"
        f"  found    {_around(renderer, found, place)}\n"
        f"  expected {_around(renderer, expected, place)}"
    )


@contextmanager
def damage_allowed() -> Iterator[None]:
    """Warnings about damage are not errors here: they are what the format is like."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        yield


def rendered(renderer: Renderer[Any], conversation: Conversation) -> RenderedTokens:
    """The conversation, rendered. Its `kwargs` are the renderer's: they were given when it was made."""
    with damage_allowed():
        return renderer.render(
            conversation.messages,
            tools=conversation.tools,
            add_generation_prompt=conversation.add_generation_prompt,
        )


def special_ids(renderer: Renderer[Any]) -> frozenset[int]:
    """IDs of every special token."""
    return frozenset(renderer.tokenizer.special_tokens.values())
