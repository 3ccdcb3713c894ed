"""The declarative grammar of a reply: reasoning between two markers, an answer, tool calls, a stop token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from renderers.errors import ConfigError
from renderers.parsing.bare import BareReply
from renderers.parsing.lexer import Lexer, TextMarkers
from renderers.parsing.markers import Marker, MarkerTable, as_marker
from renderers.parsing.protocol import BlockReader, Frame, ToolCallFormat, Tools, require_line_feeds
from renderers.parsing.reply import MarkedReply
from renderers.parsing.rules import Role, Rules
from renderers.tokenizers.protocol import TokenizerAdapter


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Reasoning between two markers, and the line feeds that the format writes around them.

    Attributes:
        open: the marker that opens reasoning.
        close: the marker that closes it.
        before_open: line feeds before the opening marker.
        after_open: line feeds after it.
        before_close: line feeds before the closing marker.
        after_close: line feeds after it.
        assumed_open: whether a reply begins inside reasoning where nobody says how the prompt ended.

    A separator stands for "at most": of more line feeds than that the rest is text, fewer are taken as they are.
    """

    open: str | Marker
    close: str | Marker
    before_open: str = ""
    after_open: str = ""
    before_close: str = ""
    after_close: str = ""
    assumed_open: bool = False

    def __post_init__(self) -> None:
        require_line_feeds(
            before_open=self.before_open,
            after_open=self.after_open,
            before_close=self.before_close,
            after_close=self.after_close,
        )


@dataclass(frozen=True, slots=True)
class ReplyGrammar:
    """What a family's replies look like.

    Attributes:
        stop_tokens: the special tokens that end a reply, the usual one first.
        reasoning: the reasoning's markers, or None where the family has no reasoning.
        tool_calls: the dialect of its calls, or None where it has none.
        stop_after_calls: the stop token that the model samples after tool calls, where that is another one than after
            an answer (GLM).

    How a reply is read:

    * The opening marker opens reasoning wherever it stands outside a call, also after content; several blocks of
      reasoning are one text. Inside reasoning it is structure, and so is a closing marker outside.
    * A call inside reasoning is reasoning if the reasoning closes later. If it never closes, the first well-formed
      call ends it, provided that the call's opener is a special token and that the model ended the turn.
    * A call that is open when another marker of the grammar comes is incomplete; the marker then counts. Where calls
      have no closing marker, the next call's opener and the end of the turn close them.
    * Of a special token that the grammar does not know, the text is shown where it stands.
    """

    stop_tokens: tuple[str, ...]
    reasoning: Reasoning | None = None
    tool_calls: ToolCallFormat | None = None
    stop_after_calls: str | None = None

    def __post_init__(self) -> None:
        if self.stop_after_calls is not None and self.stop_after_calls not in self.stop_tokens:
            raise ConfigError(f"stop_after_calls is {self.stop_after_calls!r}, which is none of stop_tokens")

    def bind(self, adapter: TokenizerAdapter) -> BoundReplyGrammar:
        """Resolve the markers for a tokenizer.

        Raises:
            TokenizerError: the tokenizer lacks special tokens that the grammar names.
        """
        return BoundReplyGrammar(self, adapter)


class BoundReplyGrammar:
    """A `ReplyGrammar` whose markers were resolved for one tokenizer. Shared by threads, pickles."""

    def __init__(self, grammar: ReplyGrammar, adapter: TokenizerAdapter) -> None:
        self.grammar = grammar
        self._adapter = adapter
        roles = _roles(grammar)
        inner = grammar.tool_calls.frame.inner if grammar.tool_calls is not None else ()
        for text in inner:
            roles.setdefault(as_marker(text), Role.INNER)
        self._markers = MarkerTable(adapter, roles)
        self._text_markers = TextMarkers(self._markers.by_text) if self._markers.by_text else None
        self._tool_calls = grammar.tool_calls.bind(self._markers) if grammar.tool_calls is not None else None
        self._rules = _rules(grammar, roles, self._markers)
        self._reply = BareReply if grammar.tool_calls is not None and grammar.tool_calls.frame.bare else MarkedReply
        self._plain_ids: set[int] = set()

    @property
    def stop_ids(self) -> tuple[int, ...]:
        """IDs of the tokens that end a reply, the usual one first."""
        return tuple(self._adapter.special_tokens[text] for text in self.grammar.stop_tokens)

    @cached_property
    def reasoning_ids(self) -> tuple[int, int] | None:
        """IDs of the tokens that open and close reasoning, or None where the format has none, or no tokens for it."""
        reasoning = self.grammar.reasoning
        if reasoning is None:
            return None
        special = self._adapter.special_tokens
        opener, closer = (special.get(as_marker(marker).text) for marker in (reasoning.open, reasoning.close))
        return None if opener is None or closer is None else (opener, closer)

    @cached_property
    def reasoning_markers(self) -> frozenset[int]:
        """IDs of all tokens that open or close reasoning."""
        return frozenset(self.reasoning_ids or ())

    def stream(
        self, tools: Tools | None = None, opening_ids: Sequence[int] = (), opening_reasoning: bool | None = None
    ) -> MarkedReply:
        """A fresh parser for one reply; see `renderers.parsing.protocol.BoundGrammar`."""
        lexer = Lexer(self._adapter, self._markers, self._text_markers, self._plain_ids)
        blocks = self._tool_calls.reader(tools) if self._tool_calls is not None else _no_blocks
        stream = self._reply(self._adapter, lexer, self._rules, self._markers, blocks)
        if len(opening_ids):
            stream.read_opening(opening_ids)
        elif opening_reasoning is None and self.grammar.reasoning is not None:
            opening_reasoning = self.grammar.reasoning.assumed_open
        if opening_reasoning is not None:
            stream.begin_in(reasoning=opening_reasoning)
        return stream


def _no_blocks() -> BlockReader:
    raise AssertionError("a grammar without tool calls has no marker that opens one")


def _roles(grammar: ReplyGrammar) -> dict[Marker, Role]:
    """Every marker of the grammar and what it does. The first role that a marker is given stands."""
    roles = {Marker(text): Role.STOP for text in grammar.stop_tokens}
    if grammar.reasoning is not None:
        roles.setdefault(as_marker(grammar.reasoning.open), Role.REASONING_OPEN)
        roles.setdefault(as_marker(grammar.reasoning.close), Role.REASONING_CLOSE)
    if grammar.tool_calls is not None:
        for name, role in _FRAME_ROLES.items():
            for marker in grammar.tool_calls.frame.markers(name):
                roles.setdefault(marker, role)
    return roles


_FRAME_ROLES: dict[str, Role] = {
    "open": Role.CALL_OPEN,
    "close": Role.CALL_CLOSE,
    "section_open": Role.SECTION_OPEN,
    "section_close": Role.SECTION_CLOSE,
}


def _rules(grammar: ReplyGrammar, roles: dict[Marker, Role], markers: MarkerTable) -> Rules:
    frame = grammar.tool_calls.frame if grammar.tool_calls is not None else Frame("-", "-")
    reasoning = grammar.reasoning or Reasoning("-", "-")
    return Rules(
        roles=roles,
        by_token=frozenset(marker for marker in roles if markers.is_token(marker)),
        has_reasoning=grammar.reasoning is not None,
        open_ended=frame.close is None,
        stop=grammar.stop_tokens[0] if grammar.stop_tokens else None,
        stop_after_calls=grammar.stop_after_calls,
        section_close=as_marker(frame.section_close).text if frame.section_close is not None else "",
        before_reasoning=len(reasoning.before_open),
        after_reasoning_open=len(reasoning.after_open),
        before_reasoning_close=len(reasoning.before_close),
        after_reasoning=len(reasoning.after_close),
        before_calls=len(frame.before),
        between_calls=len(frame.between),
    )
