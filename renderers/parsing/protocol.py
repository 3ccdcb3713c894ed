"""What a reply grammar and a tool-call format have to say, and how to write a new one.

The toolkit reads a reply in three steps, each of which a family may replace:

1. **Lexing** (`renderers.parsing.lexer`). Token IDs become text and markers, in order. Special tokens are found by ID,
   plain-text markers by position; incomplete characters and incomplete text markers are held back. Inside the toolkit
   a special token that the grammar knows is one *code*, a character that cannot occur in sampled text: see
   `MarkerTable`.
2. **The reply** (`renderers.parsing.reply`): reasoning, content, calls, stop tokens, and the whitespace that the format
   puts between them. `ReplyGrammar` declares it. A format whose replies are built in another way (Harmony's channels)
   writes its own class with the same `bind`, and a subclass of `TokenStream` that overrides three methods: text came,
   a marker came, the reply ended.
3. **Tool calls** (`renderers.formats`): what stands between a call's opening and closing marker. A dialect is a class
   with the shape of `ToolCallFormat`. The smallest one looks like this:

    @dataclass(frozen=True)
    class TextCalls:
        '''Calls like `<tool_call>say Good morning</tool_call>`: a name and one text.'''

        @property
        def frame(self):
            return Frame(open="<tool_call>", close="</tool_call>", between="\\n")

        def bind(self, markers):
            return WholeBlocks(self.read)

        def read(self, body, *, complete, schemas):
            name, _, text = body.partition(" ")
            cut = CallFaultError(CallStatus.INCOMPLETE, "the call was cut before its end")
            return [typed_call(name, [Parameter("text", text)], schemas, fault=None if complete else cut)]

   `WholeBlocks` collects a block and calls the function once, at its end; `typed_call` reads each value by the tool's
   schema and reports what is wrong. A dialect that can say earlier what is certain (a JSON call's name and arguments)
   gives its own `BlockReader`; one whose values may quote markers by their own tokens gives a `ValueReader`.

Rules that every format keeps:

* A block that was cut (`complete` is False) yields no call with status `ok`, however whole it looks.
* Reading never raises, whatever the body holds.
* What `progress` says about a call, `read` repeats: the name is the same, the arguments' text begins with what was
  said. And both depend on the body alone, not on the portions in which it came.
* Values keep their bytes. Bodies may hold codes: `MarkerTable.text` turns a value that does into the sampled text.
* Time is linear in the body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

from renderers.errors import ConfigError
from renderers.parsed import CallStatus, Delta, ParsedResponse
from renderers.parsing.markers import Marker, MarkerTable, as_marker
from renderers.tokenizers.protocol import TokenizerAdapter

#: JSON schemas of the tools, as in the request.
Tools = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class ReadCall:
    """One call that a format read from a block.

    `start` and `end` say which part of the body is this call, where a block holds several; with None the whole block,
    markers included, is the call. `call_id` is set where the format writes IDs.
    """

    name: str
    arguments: dict[str, Any] | None = None
    arguments_text: str = ""
    status: CallStatus = CallStatus.OK
    error: str | None = None
    call_id: str | None = None
    start: int | None = None
    end: int | None = None


class CallProgress(NamedTuple):
    """What became certain about a call while its block is open.

    `name` comes once, before or with the first arguments, and never empty; `arguments` is the next piece of the
    arguments' text. `call` counts within the block; calls are named in order.
    """

    name: str | None = None
    arguments: str = ""
    call_id: str | None = None
    call: int = 0


class BlockReader(Protocol):
    """Reads one block: what stands between an opening marker and its close."""

    def progress(self, text: str) -> Sequence[CallProgress]:
        """Take the body's next piece while the block is open, and say what became certain.

        Called at most once for each portion that the stream is fed, and not at all for the last one.
        """

    def read(self, body: str, *, complete: bool) -> Sequence[ReadCall]:
        """The calls of the whole body, at the end of the block. `complete` tells whether the close was sampled.

        A body in which no call is found is reported as one that is malformed.
        """


@runtime_checkable
class ValueReader(BlockReader, Protocol):
    """A reader of a format whose values may quote markers, which the model then samples as the markers' own tokens.

    Position is all that tells them apart. A marker that comes inside a value is the value's text if the value is closed
    later; if the model ends its turn before that, the value was not closed where it should have been, and the markers
    count.
    """

    def in_value(self, text: str) -> bool:
        """Whether a value is open after `text`, which goes on where the text of the last question ended."""


@runtime_checkable
class BareReader(BlockReader, Protocol):
    """A reader of a format whose calls may stand without markers (`Frame.bare`).

    Position is all that tells them: an answer is calls from its first character to its last, or it is text.
    """

    def may_be_calls(self, text: str) -> bool:
        """Whether the answer so far may turn out to be calls; `text` goes on where that of the last question ended.

        After a False the answer is text, and nobody asks again.
        """

    def are_calls(self, answer: str) -> bool:
        """Whether the whole answer of a turn that the model ended is calls; `read` then says which. White space around
        it was taken away."""


class BoundToolCalls(Protocol):
    """A format whose markers were resolved for one tokenizer."""

    def reader(self, tools: Tools | None) -> BlockFactory:
        """What makes a reader for each block of one reply."""


class BlockFactory(Protocol):
    """Makes the reader of a block."""

    def __call__(self) -> BlockReader:
        """A fresh reader."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What encloses a format's calls, and the line feeds around them.

    Attributes:
        open: the marker that opens a block. One block is one call (`<tool_call>`), or a section that holds several
            and cannot be taken apart by markers alone (DSML, MiniMax).
        close: the marker that closes it. None where the format has none: a block then goes on to the next opening
            marker or the end of the turn.
        section_open: the marker before the first of a group of blocks (`<｜tool▁calls▁begin｜>`), if there is one.
        section_close: the marker after the last.
        inner: special tokens that have a meaning inside a block only (`<arg_key>`, `<｜tool▁sep｜>`).
        other_markers: other spellings of the four markers that models use, as (role, marker); a role is the name of
            one of the fields above.
        bare: calls may also stand without their markers, where they are the whole answer; readers are `BareReader`s.
        before: the line feeds that the format writes between content and the first block or section.
        between: the line feeds that it writes after a block, after a section's opener and after a section.

    A separator stands for "at most": of more line feeds than that the rest is content, fewer are taken as they are.
    """

    open: str | Marker
    close: str | Marker | None
    section_open: str | Marker | None = None
    section_close: str | Marker | None = None
    inner: tuple[str | Marker, ...] = ()
    other_markers: tuple[tuple[str, Marker], ...] = ()
    bare: bool = False
    before: str = ""
    between: str = ""

    def __post_init__(self) -> None:
        require_line_feeds(before=self.before, between=self.between)
        if wrong := [role for role, _ in self.other_markers if role not in _FRAME_ROLES]:
            raise ConfigError(f"{wrong[0]!r} is no role of a frame's marker; there are {', '.join(_FRAME_ROLES)}")

    def markers(self, role: str) -> list[Marker]:
        """Every marker of one role, the canonical one first."""
        first = getattr(self, role)
        others = [marker for other_role, marker in self.other_markers if other_role == role]
        return [as_marker(first), *others] if first is not None else others


_FRAME_ROLES = ("open", "close", "section_open", "section_close")


def require_line_feeds(**separators: str) -> None:
    """Refuse a separator that is more than line feeds: no format has one, and the toolkit relies on it."""
    for name, separator in separators.items():
        if separator.strip("\n"):
            raise ConfigError(f"{name} is {separator!r}: a separator is made of line feeds")


class ToolCallFormat(Protocol):
    """A dialect of tool calls, as a grammar declares it."""

    @property
    def frame(self) -> Frame:
        """What encloses the calls."""

    def bind(self, markers: MarkerTable) -> BoundToolCalls:
        """The format for one tokenizer: look the codes of inner markers up here, once."""


class ReplyStream(Protocol):
    """A parser of one reply, fed as it is sampled."""

    def feed(self, token_ids: Sequence[int] | int) -> list[Delta]:
        """Take the next token or tokens, in any grouping, and return what became certain.

        Raises:
            TokenIdsError: for negative numbers and for anything that is not an integer; nothing was taken then.
        """

    def finish(self, stopped: bool | None = None, *, with_spans: bool = True) -> ParsedResponse:
        """End the reply. `stopped` is the engine's word on whether the model ended the turn, for engines that strip
        the stop token; None decides by a stop token in the IDs. A stop token that was sampled stands in any case.
        Without `with_spans` the result has none, which saves half of the time."""

    def drain(self) -> list[Delta]:
        """What `finish` released: text that was held back until the end decided about it. Empty at a second call."""


class BoundGrammar(Protocol):
    """A reply grammar whose markers were resolved for one tokenizer. Shared by threads, pickles."""

    @property
    def stop_ids(self) -> tuple[int, ...]:
        """IDs of the tokens that end a reply, the usual one first."""

    @property
    def reasoning_ids(self) -> tuple[int, int] | None:
        """IDs of the tokens that open and close reasoning, or None where the format has none, or no tokens for it."""

    @property
    def reasoning_markers(self) -> frozenset[int]:
        """IDs of all tokens that open or close reasoning."""

    def stream(
        self, tools: Tools | None = None, opening_ids: Sequence[int] = (), opening_reasoning: bool | None = None
    ) -> ReplyStream:
        """A fresh parser for one reply.

        Args:
            tools: the tools of the prompt, for formats whose values are typed by the tools' schemas.
            opening_ids: the prompt's tokens that already belong to the assistant's turn, after its header: `<think>`,
                an empty think block, a prefilled partial answer or call. They tell where the reply begins and are
                part of no field and no span, with one exception: a call that they left open is the reply's, whole.
            opening_reasoning: whether the reply begins inside reasoning, where the caller knows it in another way than
                from `opening_ids`; None means as `opening_ids` leave it.
        """


class Grammar(Protocol):
    """A reply grammar: what a family declares."""

    def bind(self, adapter: TokenizerAdapter) -> BoundGrammar:
        """Resolve the markers for a tokenizer.

        Raises:
            TokenizerError: the tokenizer lacks special tokens that the grammar names.
        """
