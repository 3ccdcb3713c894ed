"""Replies whose calls may stand without markers: an answer that is nothing but calls (Llama's JSON)."""

from __future__ import annotations

from renderers.parsing.lexer import Lexer
from renderers.parsing.markers import Found, MarkerTable
from renderers.parsing.protocol import BareReader, BlockFactory
from renderers.parsing.reply import MarkedReply
from renderers.parsing.rules import Role, Rules
from renderers.tokenizers.protocol import TokenizerAdapter


class BareReply(MarkedReply):
    """Reads one reply. An answer that may be calls is held back until its end decides, or it is clear that it is text.

    Calls it is only in a turn that the model ended. Cut, it is text, and so is what goes on from an answer that the
    prompt began.
    """

    def __init__(
        self,
        adapter: TokenizerAdapter,
        lexer: Lexer,
        rules: Rules,
        markers: MarkerTable,
        blocks: BlockFactory,
    ) -> None:
        super().__init__(adapter, lexer, rules, markers, blocks)
        self._waiting: list[str] = []
        #: Reads the answer as long as it may be calls.
        self._reader = self._fresh_reader()

    def _fresh_reader(self) -> BareReader | None:
        reader = self._blocks()
        return reader if isinstance(reader, BareReader) else None

    def on_text(self, text: str) -> None:
        """Text came."""
        if self._reader is None or not self.in_answer:
            super().on_text(text)
            return
        self._waiting.append(text)
        if not self._reader.may_be_calls(text):
            self._give_up()

    def on_marker(self, found: Found) -> None:
        """A marker came."""
        role = self._rules.roles[found.marker]
        is_earlier_turn = role is Role.STOP and self.record.silent
        if role is Role.STOP and not is_earlier_turn:
            self._end_answer()
        else:
            self._give_up()
        super().on_marker(found)
        if is_earlier_turn:
            self._reader = self._fresh_reader()
        elif role in (Role.CALL_OPEN, Role.SECTION_OPEN):
            self._reader = None

    def on_completion_begin(self) -> None:
        """The prompt's tokens are over."""
        self._give_up()
        super().on_completion_begin()

    def on_end(self, *, stopped: bool) -> None:
        """The reply is over."""
        if stopped:
            self._end_answer()
        else:
            self._give_up()
        super().on_end(stopped=stopped)

    def _end_answer(self) -> None:
        """The model ended its turn: what waits is calls, or text."""
        answer = "".join(self._waiting)
        if self._reader is not None and self._reader.are_calls(answer.strip()):
            self._waiting = []
            self._add_bare_block(answer)
        else:
            self._give_up()

    def _give_up(self) -> None:
        """What waits is text. After white space alone the answer has not begun."""
        text = "".join(self._waiting)
        if not text:
            return
        self._waiting = []
        if not text.isspace():
            self._reader = None
        super().on_text(text)
