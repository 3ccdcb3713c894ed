"""The part of a reply's parser that every format shares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from renderers.errors import RendererError
from renderers.parsed import Delta, ParsedResponse, Region
from renderers.parsing.lexer import Lexer, Piece
from renderers.parsing.markers import Found
from renderers.parsing.record import ReplyRecord
from renderers.parsing.spans import make_spans
from renderers.token_ids import as_token_ids
from renderers.tokenizers.protocol import TokenizerAdapter


class TokenStream(ABC):
    """Feeds a lexer's pieces to a format, and makes the result of what the format recorded.

    A format overrides the `on_...` methods and writes into `self.record`. Every unit that it is given must be marked
    there once, in order, at the latest in `on_end`. When a stop token comes it calls `close`: what follows is structure
    and is not shown to the format.
    """

    def __init__(self, adapter: TokenizerAdapter, lexer: Lexer) -> None:
        self._adapter = adapter
        self._lexer = lexer
        self._stop: str | None = None
        self._units_at_stop = 0
        self._result: ParsedResponse | None = None
        self.record = ReplyRecord()

    @abstractmethod
    def on_text(self, text: str) -> None:
        """Text came, one character or more. It may hold codes of special tokens that are parts of text markers."""

    @abstractmethod
    def on_marker(self, found: Found) -> None:
        """A marker came."""

    @abstractmethod
    def on_end(self, *, stopped: bool) -> None:
        """The reply is over and no stop token came; `stopped` tells whether the model ended the turn all the same."""

    @abstractmethod
    def reasoning_complete(self) -> bool | None:
        """What the result says of the reasoning."""

    @abstractmethod
    def usual_stop(self) -> str | None:
        """The stop token that the model samples after such a reply: the one that an engine stripped."""

    def unclosed(self) -> str:
        """The marker that the reply so far still lacks to close a section of calls."""
        return ""

    def on_portion_end(self) -> None:  # noqa: B027 - a format that streams nothing early has nothing to do here
        """What the caller fed is over, and the reply is still open: say what is certain."""

    def on_completion_begin(self) -> None:
        """The prompt's tokens are over: what comes now was sampled."""
        self.record.begin_completion()

    def close(self, found: Found) -> None:
        """To be called at a stop token: the turn is over."""
        self.record.mark(Region.STRUCTURE, found.units)
        self._stop = found.marker.text
        self._units_at_stop = self.record.units

    def read_opening(self, opening_ids: Sequence[int]) -> None:
        """Read the prompt's tokens that belong to the assistant's turn; before the first `feed`, if at all."""
        ids = as_token_ids(opening_ids, "opening_ids")
        self.record.silent = True
        self._give(self._lexer.feed(ids))
        self._lexer.begin_completion()
        self.on_completion_begin()

    def feed(self, token_ids: Sequence[int] | int) -> list[Delta]:
        """Take the next token or tokens, in any grouping, and return what became certain.

        Raises:
            TokenIdsError: for negative numbers and for anything that is not an integer; nothing was taken then.
        """
        if self._result is not None:
            raise RendererError("the reply was finished: a stream parses one reply, make a new one for the next")
        if type(token_ids) is int:
            token_ids = [token_ids]
        if type(token_ids) is list and len(token_ids) == 1 and type(token_ids[0]) is int and self._stop is None:
            text = self._lexer.feed_one(token_ids[0])
            if text is not None:
                self.on_text(text)
                self.on_portion_end()
                return self._take_deltas()
        ids = as_token_ids(token_ids, or_one=True)
        if self._stop is not None:
            self.record.mark(Region.STRUCTURE, self._lexer.skip(ids))
        else:
            self._give(self._lexer.feed(ids))
        return self._take_deltas()

    def finish(self, stopped: bool | None = None, *, with_spans: bool = True) -> ParsedResponse:
        """End the reply. `stopped` is the engine's word on whether the model ended the turn, for engines that strip
        the stop token; None decides by a stop token in the IDs. A stop token that was sampled stands in any case.
        Without `with_spans` the result has none, which saves half of the time."""
        if self._result is None:
            self._give(self._lexer.finish())
            stop = self._stop
            if stop is None:
                self.on_end(stopped=bool(stopped))
                stop = self.usual_stop() if stopped else None
            self._result = self._make_result(stop, with_spans=with_spans)
        return self._result

    def drain(self) -> list[Delta]:
        """What `finish` released: text that was held back until the end decided about it. Empty at a second call."""
        return self._take_deltas()

    def _give(self, pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            if self._stop is not None:
                self.record.mark(Region.STRUCTURE, len(piece) if isinstance(piece, str) else piece.units)
            elif isinstance(piece, str):
                self.on_text(piece)
            else:
                self.on_marker(piece)
        if self._stop is None:
            self.on_portion_end()

    def _take_deltas(self) -> list[Delta]:
        deltas = self.record.deltas
        if deltas:
            self.record.deltas = []
        return deltas

    def _make_result(self, stop: str | None, *, with_spans: bool) -> ParsedResponse:
        record, lexer = self.record, self._lexer
        closed_at = len(lexer.token_ids)
        if self._stop is not None:
            closed_at = next(chunk[0] for chunk in lexer.chunks if chunk[1] >= self._units_at_stop)
        spans = make_spans(self._adapter, lexer.token_ids, lexer.chunks, record.all_runs()) if with_spans else []
        return ParsedResponse(
            content="".join(record.content),
            reasoning_content=None if record.reasoning is None else "".join(record.reasoning),
            tool_calls=list(record.calls),
            reasoning_complete=self.reasoning_complete(),
            stop=stop,
            spans=spans,
            closed_at=closed_at,
            unclosed=self.unclosed() if stop is None else "",
        )
