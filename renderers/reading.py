"""Reads replies, and remembers those that a bridge will ask for: a harness parses a completion before it goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

from renderers.cache import GenerationCache
from renderers.messages import Message, Tools, validate_messages
from renderers.parsed import ParsedResponse
from renderers.parsing import BoundGrammar

_CACHE_BYTES = 8 << 20
_BYTES_PER_TOKEN = 60  # in the key and in the texts

#: All that a reply's reading depends on: its tokens, those of the prompt that belong to it, and the tools.
ReplyKey: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], bytes]


class ReadReply:
    """A reply without spans. Not to be changed."""

    def __init__(self, reply: ParsedResponse) -> None:
        self.reply = reply

    @cached_property
    def message(self) -> Message:
        """The reply as a message of the conversation; its text is not written again."""
        return validate_messages([self.reply.to_message()])[0]


class ReplyReader:
    """Reads replies of one grammar."""

    def __init__(self, grammar: BoundGrammar) -> None:
        self._grammar = grammar
        self._replies: GenerationCache[ReplyKey, ReadReply] = GenerationCache(_CACHE_BYTES)

    def parse(
        self, token_ids: list[int], opening_ids: Sequence[int], tools: Tools, *, stopped: bool | None
    ) -> ParsedResponse:
        """See `Renderer.parse_response`."""
        parsed = self._read(token_ids, opening_ids, tools, stopped=stopped, with_spans=True)
        if stopped is None:
            # The caller may do with its lists what it likes.
            kept = replace(parsed, tool_calls=[*parsed.tool_calls], spans=[])
            size = 2000 + _BYTES_PER_TOKEN * len(token_ids)
            self._replies.put(_key(token_ids, opening_ids, tools), ReadReply(kept), size)
        return parsed

    def recall(self, token_ids: list[int], opening_ids: Sequence[int], tools: Tools) -> ReadReply:
        """The same for a bridge; read only if it was not parsed before."""
        known = self._replies.get(_key(token_ids, opening_ids, tools))
        return known or ReadReply(self._read(token_ids, opening_ids, tools, stopped=None, with_spans=False))

    def _read(
        self, token_ids: list[int], opening_ids: Sequence[int], tools: Tools, *, stopped: bool | None, with_spans: bool
    ) -> ParsedResponse:
        stream = self._grammar.stream(tools=tools.schemas, opening_ids=opening_ids)
        stream.feed(token_ids)
        return stream.finish(stopped, with_spans=with_spans)


def _key(token_ids: Sequence[int], opening_ids: Sequence[int], tools: Tools) -> ReplyKey:
    return tuple(token_ids), tuple(opening_ids), tools.key
