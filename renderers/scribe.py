"""Writes a family's messages as its description says, each of them once.

See `renderers.placing` for what is remembered, and under what key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from renderers.cache import GenerationCache
from renderers.conversation import NEVER, History, Sight, Turn
from renderers.encoding import CACHE_BYTES, Encoder, Fragment
from renderers.labels import Runs, message_of
from renderers.messages import (
    Message,
    Tools,
    check_arguments,
    check_reasoning,
    content_of,
    contents_of,
    require_list,
    validate_messages,
)
from renderers.placing import PlaceCache, PlacedMessage, Written
from renderers.rendered import Ids
from renderers.writer import Piece, Writer

if TYPE_CHECKING:
    from renderers.family import FamilyRenderer


class Scribe:
    """Writes and encodes for one renderer, and remembers what it wrote."""

    def __init__(self, renderer: FamilyRenderer[Any], cache_bytes: int = CACHE_BYTES) -> None:
        self._renderer = renderer
        self._encoder = Encoder(
            renderer.tokenizer, stop_ids=renderer.stop_ids, sanitize=renderer.sanitizes, cache_bytes=cache_bytes
        )
        self.cache = PlaceCache(cache_bytes)
        self._frames: GenerationCache[tuple[Piece, ...], list[Fragment]] = GenerationCache(cache_bytes // 8)

    def place(self, messages: Sequence[Mapping[str, Any]], tools: Tools) -> list[PlacedMessage]:
        """The caller's messages at their places, those validated that are not known there yet.

        Raises:
            MessageError: for what cannot be rendered, naming the message and the field.
        """
        require_list(messages)
        places: list[PlacedMessage] = []
        number, known = self.cache.start(tools.key), self.cache.places.get
        for given in messages:
            content = content_of(given)
            placed = None if content is None else known((number, content))
            if placed is None:
                break
            places.append(placed)
            number = placed.number
        rest = messages[len(places) :]
        if not rest:
            return places
        contents, copies = contents_of(rest)
        first = len(places)
        validated = validate_messages([*copies, *rest[len(copies) :]], first_index=first)
        check_reasoning(validated, first_index=first)
        check_arguments(
            validated,
            as_objects=self._renderer.arguments_as_objects,
            empty_text=self._renderer.takes_empty_arguments,
            first_index=first,
        )
        if places:
            after, results = places[-1].after, places[-1].results
        else:
            after, results = History(tools=tools, family=self._renderer.family, state=self._renderer.initial_state()), 0
        for position, placed in enumerate(self.follow(after, validated, results)):
            # What stands behind a message without a copy cannot be remembered, either.
            if position < len(copies):
                placed.key, placed.number = (number, contents[position]), self.cache.new_number()
                number = placed.number
            places.append(placed)
        return places

    def follow(self, before: History, messages: Sequence[Message], results: int = 0) -> list[PlacedMessage]:
        """Messages after a history; `results` tool messages stand directly before them."""
        places: list[PlacedMessage] = []
        for message in messages:
            after = self.history_after(before, message)
            tool_name = None
            if message.role == "tool":
                tool_name = self._renderer.tool_name(before, message, results)
                results += 1
            else:
                results = 0
            places.append(PlacedMessage(message, before, after, results, tool_name))
            before = after
        return places

    def history_after(self, before: History, message: Message) -> History:
        """The history with one more message."""
        is_query = message.role in self._renderer.query_roles and self._renderer.is_query(message)
        return before.followed_by(message, is_query=is_query, state=self._renderer.advance(before.state, message))

    def write(
        self, places: Sequence[PlacedMessage], last: History, *, open_last: bool = False
    ) -> tuple[list[Written], History]:
        """What is made of messages, in the order in which the format writes them, and the history after them.

        `last` is the history with all of them. A message is written once at its place for all that it can see from there.
        """
        messages = [placed.message for placed in places]
        histories = [*[placed.before for placed in places], last]
        ahead, floor = self._renderer.look_ahead(messages), self._renderer.reasoning_floor(last)
        written: list[Written] = []
        sights: dict[tuple[object, ...], Sight] = {}  # many messages see the same: one object for all of them
        for place, position in enumerate(self._renderer.arrange(messages, histories)):
            placed, history = places[position], histories[place]
            index = placed.before.length
            seen = (
                (index > floor) - (index < floor),
                messages[place + 1].role if place + 1 < len(messages) else None,
                index >= last.last_query,
                ahead[position] if ahead else None,
                last.ended,
                open_last and place == len(messages) - 1,
                None if place == position else (history.last_role, history.state),
            )
            one = placed.written_for(seen)
            if one is None:
                sight = sights.get(seen)
                if sight is None:
                    sight = sights[seen] = Sight(*seen)
                one = self._write_one(position, placed, history, sight)
                placed.add(one)
                self.cache.put(placed)
            written.append(one)
        first_reasoning = min([histories[0].first_reasoning, *[one.reasoning_at for one in written]])
        # A prefill is not yet a message: the reply that continues it is.
        return written, (histories[-2] if open_last else last).with_reasoning_at(first_reasoning)

    def _write_one(self, position: int, placed: PlacedMessage, history: History, sight: Sight) -> Written:
        """Write one message, which lands behind `history`."""
        message, role = placed.message, placed.message.role
        reasoning = None
        if role == "assistant":
            reasoning, content = self._renderer.split_reasoning(message)
        else:
            content = self._renderer.text_of(message)
        turn = Turn(
            message,
            placed.before.length,
            content,
            reasoning,
            history.last_role,
            placed.tool_name,
            history.state,
            history.tools,
            sight,
        )
        out = Writer()
        out.begin(position, role)
        self._renderer.write_message(out, turn)
        reasoning_at = NEVER
        if role == "assistant":
            if message.written_by is None:
                out.mark_sampled(self._renderer.prompt_text(history.state))
            if reasoning is not None and turn.keeps_reasoning and self._renderer.is_reasoning(reasoning):
                reasoning_at = turn.index
        if sight.is_open:
            out.cut_after_body()
        written = Written(
            tuple(out.pieces), sight=sight, asked=turn.asked, damages=tuple(out.damages), reasoning_at=reasoning_at
        )
        self._encoder.cut(written)
        return written

    def join(self, before: Writer, written: Sequence[Written], after: Writer) -> tuple[list[Ids], Runs]:
        """IDs and labels of messages, between what stands before and after them.

        Raises:
            MessageError: where a text cannot be encoded, naming the message.
        """
        return self._encoder.join([*self._frames_of(before), *written, *self._frames_of(after)])

    def _frames_of(self, out: Writer) -> list[Fragment]:
        """What stands before or after the messages: a message's part of it (the system's) apart from the declarations."""
        pieces = tuple(out.pieces)
        fragments = self._frames.get(pieces)
        if fragments is None:
            parts = [tuple(part) for _, part in groupby(pieces, lambda piece: message_of(piece[1]))]
            fragments = [self._frame(part) for part in parts]
            self._keep_frames(pieces, fragments)
        return fragments

    def _frame(self, pieces: tuple[Piece, ...]) -> Fragment:
        fragments = self._frames.get(pieces)
        if fragments is None:
            fragments = [Fragment(pieces)]
            self._encoder.cut(fragments[0])
            self._keep_frames(pieces, fragments)
        return fragments[0]

    def _keep_frames(self, pieces: tuple[Piece, ...], fragments: list[Fragment]) -> None:
        self._frames.put(pieces, fragments, 1000 + 4 * sum(len(text) for text, _, _ in pieces))
