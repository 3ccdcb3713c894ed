"""A family's renderer, made of its description.

A family states how one message is written, what stands before the first one, what opens the assistant's turn, the
grammar of a reply, and which reasoning its template keeps. Masks, attribution, caching, bridges, streaming, policies
and refusals are the framework's.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from renderers import bridging
from renderers.conversation import Conversation, History, Turn
from renderers.errors import MessageError, TokenizerError, UnsupportedMessageError
from renderers.messages import (
    NO_TOOLS,
    Message,
    Tools,
    check_prefill,
    validate_tools,
)
from renderers.opening import ReplyHeaders, since_last_marker
from renderers.parsed import ParsedResponse
from renderers.placing import PlacedMessage, Rendering
from renderers.reading import ReplyReader
from renderers.refusal import BridgeRefusal
from renderers.rendered import RenderedTokens, Segment
from renderers.renderer import ConfigT, Renderer
from renderers.scribe import Scribe
from renderers.token_ids import as_token_ids
from renderers.writer import Piece, Writer


class FamilyRenderer(Renderer[ConfigT]):
    """A renderer that a family describes.

    Raises:
        TokenizerError: where the tokenizer lacks a special token of the format, naming it.
    """

    #: Special tokens that end sampling, the usual one first.
    stop_tokens: ClassVar[tuple[str, ...]]
    #: Stop tokens that the template never writes: a bridge over one is refused, or kept under `"all"`.
    stops_outside_history: ClassVar[frozenset[str]] = frozenset()
    #: Those of them that close a turn themselves: under `"all"` no further close follows one that was sampled.
    closing_stops: ClassVar[frozenset[str]] = frozenset()
    #: Special tokens that open another message: no reply is open where one stands after the reply's header.
    other_headers: ClassVar[tuple[str, ...]] = ()
    #: What the template writes after the assistant's text. The stop token that the model samples is its beginning.
    turn_close: ClassVar[str]
    #: Roles whose messages may be queries.
    query_roles: ClassVar[frozenset[str]] = frozenset({"user"})

    def __init__(self, tokenizer: object, config: ConfigT | None = None) -> None:
        super().__init__(tokenizer, config)
        missing = [token for token in self.required_tokens if token not in self.tokenizer.special_tokens]
        if missing:
            raise TokenizerError(
                f"this tokenizer lacks special tokens of the {self.family} format: {', '.join(missing)}. It belongs to "
                "another family, or is damaged; give the tokenizer of the model, or another config"
            )
        self._scribe = Scribe(self)
        self._prompts: dict[Any, str] = {}

    # What a family describes -----------------------------------------------------------------------------------------

    @property
    def required_tokens(self) -> tuple[str, ...]:
        """Special tokens without which the format cannot be written."""
        return ()

    @property
    def arguments_as_objects(self) -> bool:
        """Whether the template takes a call's arguments as an object only: JSON text is then parsed before."""
        return False

    @property
    def takes_empty_arguments(self) -> bool:
        """Whether a template that takes arguments as an object only takes an empty text for no arguments."""
        return False

    @property
    def sanitizes(self) -> bool:
        """Whether the caller's text is encoded as ordinary text; also without the setting, where the vendor does it."""
        return self.config.sanitize_control_tokens

    @property
    @abstractmethod
    def reply_headers(self) -> tuple[str, ...]:
        """How the assistant's turn begins in a prompt, before any reasoning marker; used to find it there."""

    @abstractmethod
    def write_preamble(self, out: Writer, conversation: Conversation) -> None:
        """Write what stands before the first message: the tools, a default system message.

        Where a message's own text stands here, call `out.begin` around it.
        """

    @abstractmethod
    def write_message(self, out: Writer, turn: Turn) -> None:
        """Write one message, its header, separators and close included."""

    @abstractmethod
    def write_generation_prompt(self, out: Writer, state: Any) -> None:
        """Write what opens the assistant's turn; `state` is the family's state at that place."""

    def write_end(self, out: Writer, state: Any) -> None:
        """Write what the template puts after the last message where no generation prompt is asked for."""

    @abstractmethod
    def template_floor(self, history: History) -> int:
        """Index of the last message whose reasoning the template drops, in a conversation with this history.

        -1 where it keeps all reasoning, `NEVER` where it writes none.
        """

    def is_query(self, message: Message) -> bool:
        """Whether a message of one of `query_roles` is a query, which ends a tool cycle."""
        return True

    def initial_state(self) -> Any:
        """The family's state before the first message."""
        return None

    def advance(self, state: Any, message: Message) -> Any:
        """The family's state after a message. States are small, frozen and comparable."""
        return state

    def recover_state(self, token_ids: Sequence[int]) -> Any:
        """The family's state at the end of a prompt that is known as IDs alone.

        Raises:
            LookupError: where the IDs do not tell; the bridge is then refused.
        """
        if self.initial_state() is not None:
            raise LookupError("this family's state cannot be read from token IDs")
        return None

    def text_of(self, message: Message) -> str:
        """A message's content as one text, its parts joined by a newline; a template that takes parts has its own way."""
        return message.text or ""

    def split_reasoning(self, message: Message) -> tuple[str | None, str]:
        """Reasoning and content of an assistant message, as the template tells them apart."""
        return message.reasoning_text, self.text_of(message)

    def tool_name(self, history: History, message: Message, position: int) -> str | None:
        """The tool that a tool message answers for, where that is known; see `History.tool_name`."""
        return history.tool_name(message, position)

    def look_ahead(self, messages: Sequence[Message]) -> Sequence[Any]:
        """For each message what the format has to know of those that come later: its turn has it as `ahead`.

        Small hashable values, which change as seldom as can be: a message whose value changed is written again. Empty
        where there is nothing to know.
        """
        return ()

    def arrange(self, messages: Sequence[Message], histories: Sequence[History]) -> Sequence[int]:
        """Positions of the messages in the order in which the format writes them.

        Only messages of one role change places with each other, and no assistant's does.
        """
        return range(len(messages))

    def is_settled(self, state: Any) -> bool | None:
        """Whether the text so far, its reasoning aside, stays as it is when the template's floor moves on.

        None where that is not known, because the prompt came as IDs alone.
        """
        return True

    def refuse_extension(self, message: Message) -> BridgeRefusal | None:
        """Whether appending this message changes how earlier ones are written, or cannot be done."""
        return None

    def close_after(self, reply: ParsedResponse) -> str:
        """What the template writes after this reply. Its beginning is the stop token of such a reply."""
        return self.turn_close

    # What the framework makes of it ----------------------------------------------------------------------------------

    @property
    def stop_token_texts(self) -> Sequence[str]:
        """See `Renderer.stop_token_texts`."""
        return self.stop_tokens

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
    ) -> RenderedTokens:
        """See `Renderer.render`."""
        tool_list = validate_tools(tools)
        places = self._scribe.place(messages, tool_list)
        if not places:
            raise MessageError("there are no messages; give at least one")
        flags = {"opened": add_generation_prompt, "open_last": continue_final_message}
        rendering = self._scribe.cache.get_rendering(places[-1], **flags)
        if rendering is None:
            rendering = self._rendering(places, tool_list, **flags)
            self._scribe.cache.put_rendering(places[-1], rendering, **flags)
        return RenderedTokens(
            Segment(rendering.parts, rendering.runs),
            message_roles=rendering.roles,
            message_tool_names=rendering.tool_names,
            warnings=self.report(rendering.damages),
            history=rendering.history,
        )

    def _rendering(self, places: Sequence[PlacedMessage], tools: Tools, *, opened: bool, open_last: bool) -> Rendering:
        """What is rendered of messages at their places."""
        validated = [placed.message for placed in places]
        if open_last:
            check_prefill(validated, add_generation_prompt=opened)
        last = places[-1].after
        if not opened:
            last = last._replace(ended=True)
        out = Writer()
        self.write_preamble(out, Conversation(validated, tools, last))
        written, final = self._scribe.write(places, last, open_last=open_last)
        damages = [*out.damages, *[damage for one in written for damage in one.damages]]
        end = Writer()
        if opened:
            self.write_generation_prompt(end, final.state)
        elif not open_last:
            self.write_end(end, final.state)
        parts, runs = self._scribe.join(out, written, end)
        roles, tool_names = [message.role for message in validated], [placed.tool_name for placed in places]
        return Rendering(parts, runs, roles, tool_names, damages, final)

    @cached_property
    def reader(self) -> ReplyReader:
        """What reads replies."""
        return ReplyReader(self.grammar)

    def parse_response(
        self,
        token_ids: Sequence[int],
        *,
        prompt_ids: Sequence[int] | RenderedTokens | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        stopped: bool | None = None,
    ) -> ParsedResponse:
        """See `Renderer.parse_response`."""
        opening = self.opening_ids(prompt_ids)
        return self.reader.parse(as_token_ids(token_ids), opening, validate_tools(tools), stopped=stopped)

    def bridge(
        self,
        previous_prompt_ids: Sequence[int] | RenderedTokens,
        previous_completion_ids: Sequence[int],
        new_messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> RenderedTokens | BridgeRefusal:
        """See `Renderer.bridge`."""
        return bridging.bridge(self, self._scribe, previous_prompt_ids, previous_completion_ids, new_messages, tools)

    # Shared by render and bridge ------------------------------------------------------------------------------------

    def drop(self, out: Writer, turn: Turn) -> None:
        """Write nothing of a message, because the template prints none of its role, and say it."""
        out.damage(
            "dropped_message",
            turn.index,
            f"the {self.family} template prints no {turn.role} messages, so the model never sees this one; send it as a "
            "system message",
        )

    def drop_tools(self, out: Writer, tools: Tools) -> None:
        """Say that the template prints no tools, where there are some."""
        if tools:
            out.damage(
                "dropped_tools",
                0,
                f"the {self.family} template prints no tools, so the model is never told of these; describe them in the "
                "system message",
            )

    def required_text(self, message: Message, index: int) -> str:
        """A message's content as one text, where the template fails without content.

        Raises:
            UnsupportedMessageError: where it is null or missing.
        """
        if message.content is None:
            problem = f"the {self.family} template fails on a {message.role} message without content; give it a text"
            raise UnsupportedMessageError(problem, message_index=index, field="content")
        return self.text_of(message)

    def reasoning_floor(self, history: History) -> int:
        """Index of the last message whose reasoning the retention policy drops."""
        match self.config.thinking_retention:
            case "all":
                return -1
            case "tool_cycle":
                return history.last_query
            case None:
                return self.template_floor(history)

    def prompt_text(self, state: Any) -> str:
        """The generation prompt of this config at a place with this state."""
        text = self._prompts.get(state)
        if text is None:
            out = Writer()
            self.write_generation_prompt(out, state)
            if len(self._prompts) == _PROMPTS_KEPT:
                self._prompts.clear()
            text = self._prompts[state] = "".join([piece[0] for piece in out.pieces])
        return text

    @cached_property
    def headers(self) -> ReplyHeaders:
        """The `reply_headers`, resolved for this tokenizer."""
        return ReplyHeaders(self.tokenizer, self.reply_headers)

    @cached_property
    def ids_outside_reply(self) -> frozenset[int]:
        """The special tokens that no open reply holds: those that end one or open another message."""
        return frozenset({*self.stop_ids, *(self.tokenizer.special_tokens[token] for token in self.other_headers)})

    def is_reasoning(self, text: str) -> bool:
        """Whether reasoning holds anything: an empty think block, or newlines alone, is none."""
        return bool(text.strip("\n"))

    def holds_reasoning(self, prompt_ids: Sequence[int]) -> bool:
        """Whether a prompt shows reasoning that is closed and not empty.

        In a text that spells the closing marker the block seems to end early: every one of its turn is looked at.
        """
        markers = self.grammar.reasoning_ids
        if markers is None:
            return False
        opener, closer = markers
        ends = self.ids_outside_reply | self.headers.first_ids
        start, is_closed = -1, True
        for place, token_id in enumerate(prompt_ids):
            if token_id == opener and is_closed:
                start, is_closed = place + 1, False
            elif token_id == closer and start >= 0:
                if self.is_reasoning(self.decode(prompt_ids[start:place])):
                    return True
                is_closed = True
            elif is_closed and token_id in ends:
                start = -1
        return False

    def shows_tools(self, prompt_ids: Sequence[int], tools: Tools) -> bool:
        """Whether a prompt's preamble declares exactly these tools."""
        if not self._tools_sign:  # a format that prints no tools
            return True
        if not tools:
            return self._tools_sign not in self.decode(prompt_ids)
        pieces = self._preamble(tools)
        schemas = [position for position, piece in enumerate(pieces) if piece[2]] or [0, len(pieces)]
        # From the scaffolding before the first schema to that after the last.
        try:
            shown = self._as_encoded([piece[0] for piece in pieces[max(schemas[0] - 1, 0) : schemas[-1] + 2]])
        except TokenizerError:  # a lone surrogate, which no prompt shows
            return False
        size = 256 + len(shown) // 2
        while True:
            if shown in self.decode(prompt_ids[:size]):
                return True
            if size >= len(prompt_ids):
                return False
            size *= 2

    @cached_property
    def _tools_sign(self) -> str:
        """The longest scaffolding that stands in a preamble with tools only; empty where there is none."""
        without = {piece[0] for piece in self._preamble(NO_TOOLS)}
        added = [text for text, _, from_caller in self._preamble(_SOME_TOOL) if not from_caller and text not in without]
        return self._as_encoded([max(added, key=len, default="")])

    def _preamble(self, tools: Tools) -> list[Piece]:
        """The pieces of a preamble without messages."""
        out = Writer()
        self.write_preamble(out, Conversation([], tools, History(tools=tools, state=self.initial_state())))
        return out.pieces

    def _as_encoded(self, texts: Sequence[str]) -> str:
        """Texts joined, as a prompt shows them."""
        return self.tokenizer.normalize("".join(texts))

    def opening_ids(self, prompt_ids: Sequence[int] | RenderedTokens | None) -> list[int]:
        """See `Renderer.opening_ids`. Without a prompt, the generation prompt of this config is assumed."""
        ids: list[int] = []
        if isinstance(prompt_ids, RenderedTokens):
            tail = prompt_ids.segment.tail(self.headers.first_ids)
            start = self.headers.find(tail)
            if start is not None:
                return tail[start:]
            ids = prompt_ids.token_ids
        elif prompt_ids is not None:
            ids = as_token_ids(prompt_ids, "prompt_ids")
        ids = ids or self._config_prompt_ids
        start = self.headers.find(ids)
        # Where no assistant's turn is open, only the prompt's end was given, perhaps.
        return ids[start:] if start is not None else since_last_marker(ids, self.grammar.reasoning_markers)

    @cached_property
    def _config_prompt_ids(self) -> list[int]:
        out = Writer()
        question = Message(role="user", content="")
        self.write_generation_prompt(out, self.advance(self.initial_state(), question))
        parts, _ = self._scribe.join(out, (), Writer())
        return [token_id for part in parts for token_id in part]


#: A state may count messages: what was written for each is not kept forever.
_PROMPTS_KEPT = 1000
_SOME_TOOL = validate_tools([{"type": "function", "function": {"name": "tool", "parameters": {}}}])
