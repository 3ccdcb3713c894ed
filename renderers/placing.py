"""Messages at their places in a conversation, and what is remembered of each.

How a message is written depends on all that stands before it, and on a few facts about what comes after. So what was
made of it is kept by its *place*: the tools and the messages up to it, content for content. A conversation that was
rendered before, one more turn of it, or another rollout of its prompt is then looked up and not written again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

from renderers.cache import GenerationCache
from renderers.conversation import ASKABLE, NEVER, History, Sight
from renderers.encoding import BYTES_PER_TOKEN, CACHE_BYTES, Fragment
from renderers.labels import Runs
from renderers.messages import Message
from renderers.rendered import Damage, Ids

_NOTHING: Final = Sight()


@dataclass(slots=True, eq=False)
class Written(Fragment):
    """What was made of a message: its text, encoded as far as its neighbours cannot matter.

    Attributes:
        sight: what the message saw, or another sight that makes no difference.
        asked: the fields of its sight that the format asked for, as bits; see `Turn.asked`.
        damages: what the format loses of it.
        reasoning_at: its index in the conversation, where it stands there with reasoning of its own; else `NEVER`.
    """

    sight: Sight = _NOTHING
    asked: int = 0
    damages: Sequence[Damage] = ()
    reasoning_at: int = NEVER

    def serves(self, seen: tuple[object, ...]) -> bool:
        """Whether the same would be written for another sight: one that differs in what nobody asked for."""
        answers = _ANSWERS[self.asked]
        return bool(answers(self.sight) == answers(seen))


#: Of a sight the fields that were asked for, and those that always make a difference, by the bits of `Turn.asked`.
_ANSWERS: Final = [
    itemgetter(*[place for place in range(len(Sight._fields)) if place >= ASKABLE or asked >> place & 1])
    for asked in range(1 << ASKABLE)
]
PlaceKey: TypeAlias = tuple[int, bytes]
#: For so many sights is a message remembered.
_SIGHTS = 8


@dataclass(slots=True)
class PlacedMessage:
    """A message at its place.

    Attributes:
        message: the message.
        before, after: the conversation without it, and with it.
        results: how many tool messages stand in a row, up to this one.
        tool_name: of a tool message the tool that it answers for, where that is known.
        key: number of the place before and the message's content; None where the message is not remembered.
        number: stands for this place in the keys of what follows.
        written: what was made of it, by what it saw, the newest first.
    """

    message: Message
    before: History
    after: History
    results: int
    tool_name: str | None
    key: PlaceKey | None = None
    number: int = 0
    written: tuple[Written, ...] = ()

    def written_for(self, seen: tuple[object, ...]) -> Written | None:
        """What was made of it where it saw this, a `Sight` or its fields; None where that is not known."""
        for one in self.written:
            if one.sight == seen:
                return one
        for one in self.written:
            if one.serves(seen):
                one.sight = Sight._make(seen)
                return one
        return None

    def add(self, written: Written) -> None:
        """Remember what was made of it; of the oldest sights nothing is remembered."""
        self.written = (written, *self.written[: _SIGHTS - 1])


class Rendering(NamedTuple):
    """A whole render, as far as it does not depend on who asks.

    Attributes:
        parts, runs: its tokens, in parts, and their labels.
        roles, tool_names: of its messages.
        damages: what the format loses of them.
        history: the history after the last message.
    """

    parts: Sequence[Ids]
    runs: Runs
    roles: Sequence[str]
    tool_names: Sequence[str | None]
    damages: Sequence[Damage]
    history: History


class PlaceCache:
    """The places that are known, up to a number of bytes.

    Numbers are never used again, so that no place is mistaken for another that went. What stands behind one that went is
    out of reach, and goes in its turn.
    """

    def __init__(self, cache_bytes: int = CACHE_BYTES) -> None:
        #: The message with a content behind a place, where it is known.
        self.places: GenerationCache[PlaceKey, PlacedMessage] = GenerationCache(cache_bytes)
        self._starts: GenerationCache[bytes, int] = GenerationCache(cache_bytes // 8)
        self._renderings: GenerationCache[tuple[int, bool, bool], Rendering] = GenerationCache(cache_bytes // 4)
        self._numbers = count(1)

    def start(self, tools: bytes) -> int:
        """The number of the place before the first message, under tools with this content."""
        number = self._starts.get(tools)
        if number is None:
            number = self.new_number()
            self._starts.put(tools, number, 200 + len(tools))
        return number

    def new_number(self) -> int:
        """A number for another place."""
        return next(self._numbers)

    def put(self, placed: PlacedMessage) -> None:
        """Remember what was made of a message, unless it is one that cannot be remembered."""
        if placed.key is None:
            return
        size = 2000 + 4 * len(placed.key[1])  # the key, the message and its pieces hold the text
        for written in placed.written:
            size += 500 + 100 * len(written.pieces)
        self.places.put(placed.key, placed, size)

    def get_rendering(self, last: PlacedMessage, *, opened: bool, open_last: bool) -> Rendering | None:
        """The render of the conversation that ends in this message, where it is known: the rollouts of a group ask for one."""
        return self._renderings.get((last.number, opened, open_last)) if last.key is not None else None

    def put_rendering(self, last: PlacedMessage, rendering: Rendering, *, opened: bool, open_last: bool) -> None:
        """Remember the render of the conversation that ends in this message."""
        if last.key is not None:
            size = 1000 + 100 * len(rendering.roles) + BYTES_PER_TOKEN * rendering.runs.length
            self._renderings.put((last.number, opened, open_last), rendering, size)
