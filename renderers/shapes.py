"""What of a conversation a chat template's control flow can look at, small enough to be a key.

A template decides by roles, by what is there and what is empty, by markers in a text, by neighbours, and by where the
last user message or the last answer stands. A shape holds that, and nothing of texts, lengths or numbers of messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from jinja2 import nodes

_MOST_MARKERS = 24
_FIELDS_OF_TEXT = ("content", "reasoning_content", "reasoning", "thinking")

#: One message: role, what its texts are like, its calls, and which further fields it has.
MessageShape: TypeAlias = tuple[Any, ...]
_Pairs: TypeAlias = frozenset[tuple[MessageShape | None, MessageShape]]
_NO_PAIRS: _Pairs = frozenset()


@dataclass(frozen=True, slots=True)
class Shape:
    """A conversation so far, folded over its messages from left to right.

    Attributes:
        first: the first message.
        last: the last message.
        earlier: which messages have stood after which, before the last user message.
        in_cycle: the same since the last user message.
        since_answer: the same since the last assistant message without calls.
    """

    first: MessageShape | None = None
    last: MessageShape | None = None
    earlier: _Pairs = field(default=_NO_PAIRS)
    in_cycle: _Pairs = field(default=_NO_PAIRS)
    since_answer: _Pairs = field(default=_NO_PAIRS)

    def followed_by(self, message: MessageShape) -> Shape:
        """The shape with one more message."""
        pair = frozenset([(self.last, message)])
        role, calls = message[0], message[1]
        opens, answers = role == "user", role == "assistant" and not calls
        return Shape(
            first=message if self.first is None else self.first,
            last=message,
            earlier=self.earlier | self.in_cycle if opens else self.earlier,
            in_cycle=pair if opens else self.in_cycle | pair,
            since_answer=pair if answers else self.since_answer | pair,
        )


def message_shape(message: Mapping[str, Any], markers: Sequence[str]) -> MessageShape:
    """The shape of one message; `markers` are the texts that the template looks for."""
    calls = message.get("tool_calls")
    return (
        message.get("role"),
        tuple(_call_shape(call) for call in calls) if calls else None,
        tuple(_text_shape(message.get(name), markers) for name in _FIELDS_OF_TEXT),
        tuple(sorted(name for name, value in message.items() if value is not None)),
        message.get("name"),
    )


def _call_shape(call: Mapping[str, Any]) -> tuple[Any, ...]:
    function = call.get("function", call)
    arguments = function.get("arguments")
    return (function.get("name"), type(arguments).__name__, not arguments, call.get("id") is None)


def _text_shape(text: Any, markers: Sequence[str]) -> tuple[Any, ...]:
    if not isinstance(text, str):
        return (type(text).__name__, bool(text))
    found = tuple(
        (place, text.startswith(marker), text.endswith(marker))
        for place, marker in enumerate(markers)
        if marker in text
    )
    return (bool(text), bool(text.strip()), found)


def markers_of(tree: nodes.Template) -> tuple[str, ...]:
    """The texts that a template looks for in other texts: in conditions, and in `split` and its like."""
    markers: dict[str, None] = {}
    for text in _looked_for(tree):
        if text.strip() and not text.isalnum() and text.replace("_", "").isalpha() is False:
            markers[text] = None
    return tuple(markers)[:_MOST_MARKERS]


def _looked_for(tree: nodes.Template) -> Iterator[str]:
    for compare in tree.find_all(nodes.Compare):
        yield from _texts(compare)
    for call in tree.find_all(nodes.Call):
        if isinstance(call.node, nodes.Getattr) and call.node.attr != "get":
            for argument in call.args:
                yield from _texts(argument)


def _texts(node: nodes.Node) -> Iterator[str]:
    constants = [node] if isinstance(node, nodes.Const) else node.find_all(nodes.Const)
    for constant in constants:
        if isinstance(constant.value, str):
            yield constant.value
