"""Harmony's replies: messages on channels, each with a header.

    <|channel|>analysis<|message|>I need the tool.<|end|>
    <|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Ulm"}<|call|>

The prompt wrote the first `<|start|>assistant`. A message to somebody is a call; of the others, those on the analysis
channel are reasoning, and all others content. Models write headers in many ways, so a header is searched for what it
says, in any order:

* The recipient stands behind `to=`, before or after the channel; without `to=` it is known by its namespace.
* The first channel counts. An unknown channel, or none, is content.
* Of the content type (`json`, `<|constrain|>json`, `code`) nothing depends.
* A message without `<|end|>` is closed by the next header. A call is not: it counts as cut. `<|end|>` and all stop
  tokens close a call, too.
* Text that no header precedes is content.

Texts of several messages on one channel are joined by a line feed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from renderers.formats.json_text import CallFaultError, json_call
from renderers.parsed import CallStatus, Region
from renderers.parsing import Found, Marker, MarkerTable, TokenStream, Tools
from renderers.parsing.lexer import Lexer
from renderers.parsing.protocol import CallProgress
from renderers.tokenizers.protocol import TokenizerAdapter

START, CHANNEL, MESSAGE, CONSTRAIN, END = "<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|end|>"
CALL = "<|call|>"
#: Tools that the model was trained with. Their names are whole recipients, without `functions.`.
BUILTIN = re.compile(r"python|browser\.[^\s<]*")

_ROLE = re.compile(r"\s*(assistant|\S*)")
_CHANNEL = re.compile(r"\s*(analysis|commentary|final|[^\s<]*?(?=to=)|[^\s<]*)")
_RECIPIENT = re.compile(r"to=\s*([^\s<]+)")
_NAMESPACE = re.compile(rf"(?<!\S)(functions\.[^\s<]+|{BUILTIN.pattern})(?!\S)")
#: Messages to these are no calls.
_NOBODY = frozenset({"assistant", "all", "user"})


@dataclass(frozen=True, slots=True)
class HarmonyGrammar:
    """Replies of Harmony. `stop_tokens` end a reply, the one after an answer first; one of them is `<|call|>`."""

    stop_tokens: tuple[str, ...]

    def bind(self, adapter: TokenizerAdapter) -> BoundHarmony:
        """Resolve the markers for a tokenizer.

        Raises:
            TokenizerError: the tokenizer lacks special tokens of Harmony.
        """
        return BoundHarmony(self, adapter)


class BoundHarmony:
    """The grammar for one tokenizer. Shared by threads, pickles."""

    def __init__(self, grammar: HarmonyGrammar, adapter: TokenizerAdapter) -> None:
        self.grammar = grammar
        self._adapter = adapter
        markers = (START, CHANNEL, MESSAGE, CONSTRAIN, END, *grammar.stop_tokens)
        self._markers = MarkerTable(adapter, [Marker(text) for text in markers])
        self._plain_ids: set[int] = set()

    @property
    def stop_ids(self) -> tuple[int, ...]:
        """IDs of the tokens that end a reply, the usual one first."""
        return tuple(self._adapter.special_tokens[text] for text in self.grammar.stop_tokens)

    @property
    def reasoning_ids(self) -> None:
        """A header opens reasoning, no single token."""

    @cached_property
    def reasoning_markers(self) -> frozenset[int]:
        """The token with which reasoning begins, and other messages."""
        return frozenset({self._adapter.special_tokens[CHANNEL]})

    def stream(
        self,
        tools: Tools | None = None,
        opening_ids: Sequence[int] = (),
        opening_reasoning: bool | None = None,
    ) -> HarmonyReply:
        """A fresh parser for one reply; see `renderers.parsing.protocol.BoundGrammar`."""
        lexer = Lexer(self._adapter, self._markers, None, self._plain_ids)
        stream = HarmonyReply(self._adapter, lexer, self.grammar.stop_tokens)
        if len(opening_ids):
            stream.read_opening(opening_ids)
        if opening_reasoning is not None:
            stream.begin_in(reasoning=opening_reasoning)
        return stream


@dataclass(slots=True)
class _Segment:
    """A part of a header: a marker (none before the first one), and the text after it."""

    marker: str
    text: str = ""

    @property
    def units(self) -> int:
        return bool(self.marker) + len(self.text)


class _Header(NamedTuple):
    """What a header says. `rest` is the text at its end that is no part of it, where `<|message|>` is missing."""

    channel: str
    recipient: str
    rest: str


def read_header(segments: Sequence[_Segment]) -> _Header:
    """Search a header. The first segment goes on from a role that the prompt wrote."""
    channel = ""
    texts: list[str] = []
    for segment in segments:
        text = segment.text
        if segment.marker == START and (role := _ROLE.match(text)):
            text = text[role.end() :]
        elif segment.marker == CHANNEL and (found := _CHANNEL.match(text)) and _NAMESPACE.match(text.strip()) is None:
            channel = channel or found[1]
            text = text[found.end() :].removeprefix(" ")
        texts.append(text)
    bare = texts[0] if not segments[0].marker else ""  # may be an answer whose header is missing
    recipient = _RECIPIENT.match(bare.lstrip()) or _RECIPIENT.search(" ".join(texts[1:] if bare else texts))
    if recipient is None and len(segments) > 1:
        recipient = _NAMESPACE.search(" ".join(texts))
    name = recipient[1] if recipient is not None else ""
    return _Header(channel, "" if name in _NOBODY else name, texts[-1])


class _Call:
    """A call whose arguments are being read."""

    def __init__(self, index: int, recipient: str, header: str) -> None:
        self.index = index
        self.name = recipient.removeprefix("functions.")
        self.header = header
        self.arguments: list[str] = []


class HarmonyReply(TokenStream):
    """Reads one reply, in one pass. A header is kept until its end says what it opens."""

    def __init__(self, adapter: TokenizerAdapter, lexer: Lexer, stop_tokens: Sequence[str]) -> None:
        super().__init__(adapter, lexer)
        self._stop_tokens = stop_tokens
        #: What the open message is; None while its header is open.
        self._region: Region | None = None
        self._header = [_Segment("")]
        self._prompt_units = 0  # how many of the header's units are the prompt's
        self._call: _Call | None = None
        self._is_fresh = True  # whether the open message has given no text yet
        self._ends_in_reasoning = False
        self._ends_in_call = False
        self._unclosed = ""

    # What the stream calls.

    def on_text(self, text: str) -> None:
        """Text came."""
        if self._region is None:
            self._header[-1].text += text
        else:
            self._add(text, len(text))

    def on_marker(self, found: Found) -> None:
        """A marker came."""
        marker = found.marker.text
        if marker in self._stop_tokens:
            self._end_message(marker, closed=True)
            if not self.record.silent:  # in a reply's opening it means nothing: the reply begins after it
                self.close(found)
        elif marker == END:
            call = self._call.index if self._call is not None else None
            self._end_message(marker, closed=True)
            self.record.mark(Region.STRUCTURE, found.units, call)
        elif self._region is None:
            self._continue_header(marker)
        elif marker == START or (marker == CHANNEL and self._call is None):
            self._end_message("", closed=False)
            self._header = [_Segment(marker)]
        else:
            self._add(marker, found.units)

    def on_completion_begin(self) -> None:
        """The prompt's tokens are over."""
        self._prompt_units = sum(segment.units for segment in self._header)
        self.record.begin_completion()
        if self._call is not None:
            self._call.index = 0
        if self._region is Region.REASONING:
            self.record.begin_reasoning()

    def begin_in(self, *, reasoning: bool) -> None:
        """The caller knows whether the reply begins inside reasoning."""
        if reasoning and self._region is None:
            self._region = Region.REASONING
            self.record.begin_reasoning()
        elif not reasoning and self._region is Region.REASONING:
            self._region, self.record.reasoning = Region.CONTENT, None

    def on_end(self, *, stopped: bool) -> None:
        """The reply is over. Where it was cut inside a header, or before one, no close can follow at once."""
        if self._region is None and any(segment.units for segment in self._header):
            self._unclosed = MESSAGE
        elif self._region is None:
            self._unclosed = f"{START}assistant{CHANNEL}final{MESSAGE}"
        self._end_message("", closed=stopped)

    def reasoning_complete(self) -> bool:
        """False where the reply ends on the analysis channel."""
        return not self._ends_in_reasoning

    def usual_stop(self) -> str:
        """After a call it is another one than after an answer."""
        return CALL if self._ends_in_call else self._stop_tokens[0]

    def unclosed(self) -> str:
        """What has to stand before the close of a reply that was cut outside a message."""
        return self._unclosed

    # Headers.

    def _continue_header(self, marker: str) -> None:
        if marker == MESSAGE:
            self._open_message()
        elif marker == START and any(segment.units for segment in self._header):
            self._end_message("", closed=True)
            self._header = [_Segment(marker)]
        else:
            self._header.append(_Segment(marker))

    def _open_message(self) -> None:
        header = read_header(self._header)
        self._is_fresh = True
        if header.recipient:
            self._region = Region.TOOL_CALL
            raw = "".join([segment.marker + segment.text for segment in self._header]) + MESSAGE
            self._call = _Call(self.record.begin_block(), header.recipient, raw)
            self._mark_header(self._call.index)
            self.record.mark(Region.STRUCTURE, 1, self._call.index)
            if self._call.name:
                self.record.progress([CallProgress(self._call.name)])
            return
        self._region = Region.REASONING if header.channel == "analysis" else Region.CONTENT
        self._mark_header(None)
        self.record.mark(Region.STRUCTURE, 1)
        if self._region is Region.REASONING:
            self.record.begin_reasoning()

    def _mark_header(self, call: int | None) -> None:
        """Mark the header's units but the prompt's. What a call's header says belongs to the call."""
        known = self._prompt_units
        for segment in self._header:
            for region, units in ((Region.STRUCTURE, bool(segment.marker)), (Region.TOOL_CALL, len(segment.text))):
                own = max(0, units - known)
                known -= units - own
                self.record.mark(region if call is not None else Region.STRUCTURE, own, call)

    def _end_header(self, *, closed: bool) -> None:
        """The open header ends without `<|message|>`."""
        header = read_header(self._header)
        is_bare = len(self._header) == 1 and not self._header[0].marker
        if header.recipient:
            status, error = CallStatus.INCOMPLETE, "the call was cut before its arguments"
            if closed:
                status, error = CallStatus.MALFORMED, f"the call's header does not end in {MESSAGE}"
            index = self.record.begin_block()
            read = json_call(header.recipient.removeprefix("functions."), "", CallFaultError(status, error))
            self.record.end_block([read], ["".join([segment.marker + segment.text for segment in self._header])])
            self._mark_header(index)
            return
        rest = header.rest
        if not closed and (not is_bare or "to=".startswith(rest.strip())):
            rest = ""  # cut, and perhaps a header still
        self._ends_in_reasoning = header.channel == "analysis"
        own = sum(segment.units for segment in self._header) - self._prompt_units
        rest = rest[max(0, len(rest) - own) :]
        self.record.mark(Region.STRUCTURE, own - len(rest))
        if rest:
            self._region = Region.REASONING if header.channel == "analysis" else Region.CONTENT
            self._is_fresh = True
            self._add(rest, len(rest))

    # Messages.

    def _add(self, text: str, units: int) -> None:
        """Text of the open message."""
        record = self.record
        if self._call is not None:
            self._call.arguments.append(text)
            record.mark(Region.TOOL_CALL, units, self._call.index)
            if self._call.name:
                record.progress([CallProgress(None, text)])
            return
        is_reasoning = self._region is Region.REASONING
        add = record.add_reasoning if is_reasoning else record.add_content
        if self._is_fresh and (record.reasoning if is_reasoning else record.content):
            add("\n", 0)
        self._is_fresh = False
        add(text, units)

    def _end_message(self, closer: str, *, closed: bool) -> None:
        """What is open ends: a message or a header. A call that nothing closed was cut."""
        self._ends_in_reasoning = self._region is Region.REASONING and closer != END
        self._ends_in_call = self._call is not None
        if self._region is None:
            self._end_header(closed=closed)
        elif self._call is not None:
            text = "".join(self._call.arguments)
            cut = None if closed else CallFaultError(CallStatus.INCOMPLETE, "the call was cut before its end")
            self.record.end_block([json_call(self._call.name, text, cut)], [f"{self._call.header}{text}{closer}"])
        self._region, self._call = None, None
        self._header, self._prompt_units = [_Segment("")], 0
