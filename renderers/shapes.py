"""What of a conversation a chat template's control flow can look at, small enough to be a key.

A template decides by roles, by what is there and what is empty, by markers in a text, by neighbours, and by where the
last user message or the last answer stands. A shape holds that, and nothing of lengths or numbers of messages: where a
template counts (`Looks.counts`), no shape stands for a conversation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from renderers.messages import REASONING_FIELDS
from renderers.template.looks import Looks

_FIELDS_OF_TEXT = ("content", *REASONING_FIELDS)
#: So many parts of a text between markers are told apart, and so many messages of one kind.
_MOST_PARTS, _MOST_MESSAGES = 24, 2

#: One message: role, what its texts are like, its calls, and its further fields.
MessageShape: TypeAlias = tuple[Any, ...]
_Pairs: TypeAlias = frozenset[tuple[MessageShape | None, MessageShape]]
_NO_PAIRS: _Pairs = frozenset()


@dataclass(frozen=True, slots=True)
class Shape:
    """A conversation so far, folded over its messages from left to right.

    Attributes:
        first: the first two messages.
        last: the last message.
        counts: of each role, with and without calls, whether there is one message or more.
        earlier: which messages have stood after which, before the last user message.
        in_cycle: the same since the last user message.
        since_answer: the same since the last assistant message without calls.
    """

    first: tuple[MessageShape, ...] = ()
    last: MessageShape | None = None
    counts: frozenset[tuple[Any, bool, int]] = frozenset()
    earlier: _Pairs = field(default=_NO_PAIRS)
    in_cycle: _Pairs = field(default=_NO_PAIRS)
    since_answer: _Pairs = field(default=_NO_PAIRS)

    @property
    def first_role(self) -> str | None:
        """The role of the first message."""
        return self.first[0][0] if self.first else None

    def followed_by(self, message: MessageShape) -> Shape:
        """The shape with one more message."""
        pair = frozenset([(self.last, message)])
        role, calls = message[0], message[1]
        opens, answers = role == "user", role == "assistant" and not calls
        kind = (role, bool(calls))
        counted = max((count for *one, count in self.counts if tuple(one) == kind), default=0)
        return Shape(
            first=(*self.first, message)[:2],
            last=message,
            counts=self.counts | {(*kind, min(counted + 1, _MOST_MESSAGES))},
            earlier=self.earlier | self.in_cycle if opens else self.earlier,
            in_cycle=pair if opens else self.in_cycle | pair,
            since_answer=pair if answers else self.since_answer | pair,
        )


def message_shape(message: Mapping[str, Any], looks: Looks) -> MessageShape:
    """The shape of one message, for a template that looks at such things."""
    calls = message.get("tool_calls")
    others = [
        (str(name), _value_shape(value, looks))
        for name, value in message.items()
        if value is not None and name not in {"role", "tool_calls", *_FIELDS_OF_TEXT}
    ]
    return (
        message.get("role"),
        tuple(_call_shape(call) for call in calls) if calls else None,
        tuple((name in message, _value_shape(message.get(name), looks)) for name in _FIELDS_OF_TEXT),
        tuple(sorted(others, key=str)),
        message.get("name"),
    )


def _call_shape(call: Mapping[str, Any]) -> tuple[Any, ...]:
    function = call.get("function", call)
    arguments = function.get("arguments")
    return (function.get("name"), type(arguments).__name__, not arguments, call.get("id") is None)


def _value_shape(value: Any, looks: Looks) -> tuple[Any, ...]:
    if isinstance(value, str):
        return _text_shape(value, looks)
    return (type(value).__name__, bool(value))


def _text_shape(text: str, looks: Looks) -> tuple[Any, ...]:
    """Whether there is text, which words it is, and the markers in it in order, with or without text between."""
    stripped, folded = text.strip(), text.casefold()
    word = stripped if folded.strip() in looks.words else None
    found = [marker for marker in looks.markers if marker.casefold() in folded]
    if not found:
        return (
            (bool(text), bool(stripped), text == stripped, word) if word is not None else (bool(text), bool(stripped))
        )
    pattern = "|".join(re.escape(marker) for marker in sorted(found, key=len, reverse=True))
    parts = re.split(f"({pattern})", text, flags=re.IGNORECASE)
    # Every second part is a marker; of the others it counts whether they are empty, blank or text.
    kept = tuple(
        part if place % 2 else bool(part) + bool(part.strip()) for place, part in enumerate(parts[:_MOST_PARTS])
    )
    return (bool(text), word, tuple(marker in text for marker in found), kept, len(parts) > _MOST_PARTS)
