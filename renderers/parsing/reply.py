"""The parser of replies that `ReplyGrammar` declares: reasoning, content, calls, stop."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

from renderers.parsed import CallStatus, Region
from renderers.parsing.lexer import Lexer, Piece
from renderers.parsing.markers import Found, Marker, MarkerTable
from renderers.parsing.protocol import BlockFactory, BlockReader, ReadCall, ValueReader
from renderers.parsing.rules import Role, Rules
from renderers.parsing.stream import TokenStream
from renderers.parsing.undecided import COMPLETION_BEGINS, CompletionBegins, Kept, find_calls
from renderers.tokenizers.protocol import TokenizerAdapter


class _Mode(Enum):
    CONTENT = auto()
    REASONING = auto()
    #: Inside reasoning, after a call's opener: what comes is kept until it is known whether the reasoning closes.
    UNDECIDED = auto()


#: What a block is in which a format finds no call: nothing that was sampled is dropped without a word.
_NO_CALL = ReadCall("", status=CallStatus.MALFORMED, error="there is no call between the markers")
_CUT_CALL = ReadCall("", status=CallStatus.INCOMPLETE, error="the call was cut before its end")
#: What opens a block without markers.
_NO_MARKER = Found(Marker("-"), "", 0)


class _Block:
    """A block of calls that is open."""

    def __init__(self, opener: Found, reader: BlockReader, first_call: int) -> None:
        self.opener = opener
        self.reader = reader
        self.first_call = first_call
        self.parts: list[str] = []
        #: Parts up to here were given to the reader as progress.
        self.shown = 0
        #: Units of the body that are the prompt's.
        self.silent_units = 0
        # As isinstance does it with a protocol, in a tenth of the time.
        self._values: ValueReader | None = reader if hasattr(reader, "in_value") else None  # type: ignore[assignment]  # seen above
        self._asked = 0
        #: Markers among the parts, by their place, from the first one on that is a value's text.
        self.quoted: dict[int, Found] = {}

    def in_value(self) -> bool:
        """Whether a marker that comes now stands inside a value."""
        if self._values is None:
            return False
        text = "".join(self.parts[self._asked :])
        self._asked = len(self.parts)
        return self._values.in_value(text)

    def add(self, found: Found, *, quoted: bool = False) -> None:
        """A marker that is part of the body."""
        if quoted or self.quoted:
            self.quoted[len(self.parts)] = found
        self.parts.append(found.coded)

    def unquote(self) -> list[Piece]:
        """Take everything away from the first quoted marker on."""
        start = next(iter(self.quoted))
        pieces = [self.quoted.get(place, part) for place, part in enumerate(self.parts)][start:]
        del self.parts[start:]
        self.quoted = {}
        return pieces


class MarkedReply(TokenStream):
    """Reads one reply. Single pass: kept pieces are read a second time once, when it is decided what they are."""

    def __init__(
        self,
        adapter: TokenizerAdapter,
        lexer: Lexer,
        rules: Rules,
        markers: MarkerTable,
        blocks: BlockFactory,
    ) -> None:
        super().__init__(adapter, lexer)
        self._rules = rules
        self._markers = markers
        self._blocks = blocks
        self._mode = _Mode.CONTENT
        #: Line feeds that the format writes here and that may still come.
        self._skip = 0
        #: Line feeds at the end of the text so far: a marker may make them the format's.
        self._held = ""
        self._hold_in_content = max(rules.before_calls, rules.before_reasoning)
        self._hold_in_reasoning = max(rules.before_calls, rules.before_reasoning_close)
        self._block: _Block | None = None
        self._kept: list[Kept] = []
        self._ended_in_reasoning = False
        self._in_section = False
        #: Whether values may quote markers. Not in what is read again because one was not closed.
        self._quoting = True

    @property
    def in_answer(self) -> bool:
        """Whether text that comes now is the answer's: it stands neither in reasoning nor in a call."""
        return self._mode is _Mode.CONTENT and self._block is None

    # What the stream calls.

    def on_text(self, text: str) -> None:
        """Text came."""
        if self._block is not None:
            self._block.parts.append(text)
        elif self._mode is _Mode.UNDECIDED:
            self._kept.append(text)
        else:
            self._add_text(text)

    def on_marker(self, found: Found) -> None:
        """A marker came."""
        role = self._rules.roles[found.marker]
        if self._mode is _Mode.UNDECIDED:
            if role is Role.REASONING_CLOSE:
                self._decide(frozenset())
            elif role is Role.STOP:
                self._decide(find_calls(self._kept, self._rules, self._blocks))
            else:
                self._kept.append(found)
                return
        self._take_marker(found, role)

    def on_portion_end(self) -> None:
        """Show the open block's reader what came."""
        block = self._block
        if block is None:
            return
        parts, shown = block.parts, block.shown
        count = len(parts)
        if shown < count:
            block.shown = count
            events = block.reader.progress(parts[-1] if shown == count - 1 else "".join(parts[shown:]))
            if events:
                self.record.progress(events)

    def on_completion_begin(self) -> None:
        """The prompt's tokens are over."""
        if self._mode is _Mode.UNDECIDED:
            self._kept.append(COMPLETION_BEGINS)
        else:
            self._begin_completion()

    def begin_in(self, *, reasoning: bool) -> None:
        """The caller knows whether the reply begins inside reasoning."""
        if self._block is not None:
            return
        if reasoning and self._mode is _Mode.CONTENT and self._rules.has_reasoning:
            self._mode, self._skip = _Mode.REASONING, 0
            self.record.begin_reasoning()
        elif not reasoning and self._mode is _Mode.REASONING:
            self._mode, self._skip = _Mode.CONTENT, 0
            self.record.reasoning = None

    def on_end(self, *, stopped: bool) -> None:
        """The reply is over."""
        if self._mode is _Mode.UNDECIDED:
            self._decide(find_calls(self._kept, self._rules, self._blocks) if stopped else frozenset())
        if stopped:
            self._stop_quoting()
        self._end(stopped=stopped)

    def reasoning_complete(self) -> bool | None:
        """False where the reply ended inside reasoning, or in calls made out of it."""
        return not self._ended_in_reasoning if self._rules.has_reasoning else None

    def usual_stop(self) -> str | None:
        """The stop token that the model samples after such a reply."""
        rules = self._rules
        return rules.stop_after_calls if rules.stop_after_calls and self.record.calls else rules.stop

    def unclosed(self) -> str:
        """The close of a section that was opened."""
        return self._rules.section_close if self._in_section else ""

    # Text.

    def _add_text(self, text: str, *, coded: bool = False) -> None:
        """Text of the answer or of the reasoning; line feeds around it may be the format's."""
        if self._skip:
            kept = text.lstrip("\n")
            skipped = min(len(text) - len(kept), self._skip)
            self.record.mark(Region.STRUCTURE, skipped)
            text = text[skipped:]
            if not text:
                self._skip -= skipped
                return
            self._skip = 0
        if self._held:
            text = self._held + text
            self._held = ""
        if text[-1] == "\n":
            limit = self._hold_in_content if self._mode is _Mode.CONTENT else self._hold_in_reasoning
            if limit:
                end = len(text) - min(limit, len(text) - len(text.rstrip("\n")))
                self._held = text[end:]
                text = text[:end]
        if text:
            units = len(text)
            self._write(self._markers.text(text) if coded or self._markers.in_text else text, units)

    def _write(self, text: str, units: int) -> None:
        if self._mode is _Mode.CONTENT:
            self.record.add_content(text, units)
        else:
            self.record.add_reasoning(text, units)

    def _release(self, structure: int = 0) -> None:
        """Decide about the line feeds held: the last `structure` of them, at most, are the format's."""
        self._skip = 0
        held = self._held
        if held:
            self._held = ""
            end = max(0, len(held) - structure)
            if end:
                self._write(held[:end], end)
            self.record.mark(Region.STRUCTURE, len(held) - end)

    # Markers.

    def _take_marker(self, found: Found, role: Role) -> None:
        if role is Role.STOP:
            self._stop_quoting()
        block = self._block
        if block is not None:
            if role is Role.INNER:
                block.add(found)
                return
            if self._quoting and role is not Role.STOP and block.in_value():
                block.add(found, quoted=True)
                return
            closer = found if role is Role.CALL_CLOSE else None
            ends_here = self._rules.open_ended and role in (Role.STOP, Role.CALL_OPEN)
            self._end_block(block, closer, complete=closer is not None or ends_here)
            if closer is not None:
                return
        if role is Role.STOP:
            self._take_stop(found)
        elif self._mode is _Mode.REASONING:
            self._take_in_reasoning(found, role)
        else:
            self._take_in_content(found, role)

    def _take_stop(self, found: Found) -> None:
        if self.record.silent:  # not a reply's opening: whatever was given, the reply begins after it
            self._release()
            self._mode = _Mode.CONTENT
            return
        self._end(stopped=True)
        self.close(found)

    def _take_in_content(self, found: Found, role: Role) -> None:
        rules = self._rules
        if role is Role.REASONING_OPEN:
            self._release(rules.before_reasoning)
            self._enter_reasoning(found)
        elif role in (Role.CALL_OPEN, Role.SECTION_OPEN):
            self._release(rules.before_calls)
            if role is Role.CALL_OPEN:
                self._open_block(found)
            else:
                self.record.mark(Region.STRUCTURE, found.units)
                self._skip = rules.between_calls
                self._in_section = True
        elif role is Role.INNER:
            self._add_text(found.coded, coded=True)
        else:
            self._release()
            self.record.mark(Region.STRUCTURE, found.units)
            self._skip = rules.after_reasoning if role is Role.REASONING_CLOSE else rules.between_calls
            self._in_section &= role is not Role.SECTION_CLOSE

    def _take_in_reasoning(self, found: Found, role: Role) -> None:
        rules = self._rules
        if role is Role.REASONING_CLOSE:
            self._release(rules.before_reasoning_close)
            self.record.mark(Region.STRUCTURE, found.units)
            self._mode = _Mode.CONTENT
            self._skip = rules.after_reasoning
        elif role is Role.REASONING_OPEN:
            self._release()
            self._enter_reasoning(found)
        elif role in (Role.CALL_OPEN, Role.SECTION_OPEN) and found.marker in rules.by_token:
            self._kept = [self._held, found] if self._held else [found]
            self._held, self._skip = "", 0
            self._mode = _Mode.UNDECIDED
        else:
            self._add_text(found.coded, coded=True)

    def _enter_reasoning(self, found: Found) -> None:
        self.record.mark(Region.STRUCTURE, found.units)
        self.record.begin_reasoning()
        self._mode = _Mode.REASONING
        self._skip = self._rules.after_reasoning_open

    def _begin_completion(self) -> None:
        """From here on the reply counts. What was held is the prompt's."""
        skip = self._skip
        self._release()
        self._skip = skip
        self.record.begin_completion()
        if self._block is not None:
            self._block.first_call = 0
            self._block.silent_units = sum(map(len, self._block.parts))
            self._block.quoted = {}
        if self._mode is _Mode.REASONING:
            self.record.begin_reasoning()

    def _end(self, *, stopped: bool) -> None:
        if self._block is not None:
            self._end_block(self._block, None, complete=stopped and self._rules.open_ended)
        self._release()
        self._ended_in_reasoning |= self._mode is _Mode.REASONING

    # Calls.

    def _open_block(self, found: Found) -> None:
        first_call = self.record.begin_block()
        self._block = _Block(found, self._blocks(), first_call)
        self.record.mark(Region.STRUCTURE, found.units, first_call)

    def _end_block(self, block: _Block, closer: Found | None, *, complete: bool) -> None:
        """Read the open block, which was cut where it is not `complete`."""
        self._block = None
        self._skip = self._rules.between_calls if closer is not None else 0
        body = "".join(block.parts)
        calls = block.reader.read(body, complete=complete) or [_NO_CALL if complete else _CUT_CALL]
        ends = (block.opener.coded, closer.coded if closer is not None else "")
        self.record.end_block(calls, [self._raw(call, body, ends) for call in calls])
        self._mark_body(block, body, calls)
        if closer is not None:
            self.record.mark(Region.STRUCTURE, closer.units, block.first_call + len(calls) - 1)

    def _add_bare_block(self, text: str) -> None:
        """A block without markers came, whole. White space around it is the format's."""
        self._release(self._rules.before_calls)
        body = text.strip()
        self.record.mark(Region.STRUCTURE, text.index(body))
        block = _Block(_NO_MARKER, self._blocks(), self.record.begin_block())
        block.parts.append(body)
        self._end_block(block, None, complete=True)
        self.record.mark(Region.STRUCTURE, len(text.lstrip()) - len(body))

    def _stop_quoting(self) -> None:
        """The model ended its turn: if a value is open still, it was not closed where it should have been."""
        block = self._block
        if block is None or not block.quoted or not block.in_value():
            return
        self._quoting = False
        for piece in block.unquote():
            if isinstance(piece, str):
                self.on_text(piece)
            else:
                self.on_marker(piece)
        if self._mode is _Mode.UNDECIDED:
            self._decide(find_calls(self._kept, self._rules, self._blocks))

    def _raw(self, call: ReadCall, body: str, ends: tuple[str, str]) -> str:
        if call.start is None:
            return self._markers.text(ends[0] + body + ends[1])
        return self._markers.text(body[call.start : call.end])

    def _mark_body(self, block: _Block, body: str, calls: Sequence[ReadCall]) -> None:
        """The calls' own units are theirs, the rest of the body is structure. The prompt's units do not count."""
        done = block.silent_units

        def mark(end: int, region: Region, call: int | None) -> None:
            nonlocal done
            if end > done:
                self.record.mark(region, end - done, call)
                done = end

        for index, call in enumerate(calls, block.first_call):
            start, end = call.start, call.end
            if start is None or end is None:
                start, end = len(body) - len(body.lstrip()), len(body.rstrip())
            mark(start, Region.STRUCTURE, index)
            mark(end, Region.TOOL_CALL, index)
        mark(len(body), Region.STRUCTURE, block.first_call + len(calls) - 1)

    # Calls inside reasoning.

    def _decide(self, places: frozenset[int]) -> None:
        """Read the kept pieces again: as reasoning up to the first of `places`, from there on as calls.

        Reasoning that opens once more is treated in the same way, so that pieces are kept and read again only once.
        """
        kept, self._kept = self._kept, []
        self._mode = _Mode.REASONING
        for place, piece in enumerate(kept):
            if isinstance(piece, CompletionBegins):
                self._begin_completion()
            elif isinstance(piece, str):
                self.on_text(piece)
            else:
                role = self._rules.roles[piece.marker]
                if self._mode is not _Mode.REASONING or role is Role.REASONING_OPEN:
                    self._take_marker(piece, role)
                elif place in places:
                    self._release(self._rules.before_calls)
                    self._mode = _Mode.CONTENT
                    self._ended_in_reasoning = True
                    self._take_marker(piece, role)
                else:
                    self._add_text(piece.coded, coded=True)
