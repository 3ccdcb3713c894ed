"""Turns of the encoders that write DSML: what the model answers ends in what opens its turn, and its reasoning.

<begin>Be brief.<user>Weather in Ulm?<assistant><think>I need the tool.</think>

<｜DSML｜function_calls> ... </｜DSML｜function_calls><end>

Where it shall not reason, `</think>` stands in place of `<think>`, and the reasoning of older turns is replaced so.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar

from renderers.config import RendererConfig
from renderers.conversation import Conversation, Turn
from renderers.errors import UnsupportedMessageError
from renderers.family import FamilyRenderer
from renderers.formats.dsml import DsmlCalls
from renderers.messages import Function
from renderers.parsing import Reasoning, ReplyGrammar
from renderers.writer import Writer

THINK, THINK_END = "<think>", "</think>"


class DsmlConfig(RendererConfig):
    """Settings of such a format, the encoder's own arguments.

    Attributes:
        thinking_mode: whether the prompt opens the reasoning or closes it.
        drop_thinking: None, like the encoder's default, means True. What it drops is the format's matter.
    """

    thinking_mode: Literal["thinking", "chat"] = "chat"
    drop_thinking: bool | None = None

    contradictions = (("drop_thinking", True, "all"), ("drop_thinking", False, "tool_cycle"))


DsmlConfigT = TypeVar("DsmlConfigT", bound=DsmlConfig)


@dataclass(frozen=True, slots=True)
class DsmlState:
    """What the next message depends on.

    Attributes:
        opener: what opens the assistant's turn here, up to its reasoning; empty where the encoder opens none.
        settled: whether all that is no reasoning stays as it is when older reasoning is dropped; None, it is not known.
    """

    opener: str = ""
    settled: bool | None = True


class DsmlRenderer(FamilyRenderer[DsmlConfigT]):
    """What such formats share."""

    #: What every conversation begins with.
    begin_token: ClassVar[str]
    #: The calls, and the text that explains them.
    calls: ClassVar[DsmlCalls]
    state_class: ClassVar[type[DsmlState]]
    query_roles = frozenset({"user", "developer"})

    @abstractmethod
    def write_input(self, out: Writer, turn: Turn) -> None:
        """Write the message of a user, a developer or a tool."""

    def opener_of(self, turn: Turn) -> str:
        """What opens the turn of an assistant message, up to its reasoning."""
        state: DsmlState = turn.state
        return state.opener

    def arguments_of(self, out: Writer, turn: Turn, function: Function) -> Mapping[str, Any]:
        """The arguments of a call."""
        return function.arguments_object

    @property
    def preface(self) -> str:
        """What stands before everything else."""
        return ""

    @property
    def thinks(self) -> bool:
        """Whether the prompt opens the reasoning."""
        return self.config.thinking_mode == "thinking"

    @property
    def drops(self) -> bool:
        """Whether it is left to the encoder what becomes of older reasoning, and it may drop it."""
        return self.thinks and self.config.drop_thinking is not False and self.config.thinking_retention is None

    @property
    def reply_grammar(self) -> ReplyGrammar:
        """Reasoning, then text, then calls."""
        return ReplyGrammar(self.stop_tokens, Reasoning(THINK, THINK_END), self.calls)

    def is_reasoning(self, text: str) -> bool:
        """The encoders drop any text, be it a line feed."""
        return bool(text)

    def initial_state(self) -> DsmlState:
        """Nothing opens a turn."""
        return self.state_class()

    def is_settled(self, state: DsmlState) -> bool | None:
        """See `DsmlState.settled`."""
        return state.settled

    def write_preamble(self, out: Writer, conversation: Conversation) -> None:
        """The tools follow the system message's text, or stand alone."""
        out.scaffold(self.begin_token + self.preface)
        if conversation.tools:
            if conversation.opening_system is not None:
                out.begin(0, "system")
                out.body(self.text_of(conversation.opening_system))
                out.begin(-1, "")
            self.calls.write_tools(out, conversation.tools)

    def write_message(self, out: Writer, turn: Turn) -> None:
        """One message. A system message is bare text, wherever it stands."""
        match turn.role:
            case "system" if turn.is_first and turn.tools:
                pass  # stands in the preamble
            case "system":
                out.body(turn.content)
            case "assistant":
                self._write_reply(out, turn)
            case _:
                self.write_input(out, turn)

    def require_content(self, turn: Turn) -> None:
        """Refuse a developer message without content, as the encoders do."""
        if not turn.content:
            problem = f"the encoder refuses a {turn.role} message without content"
            raise UnsupportedMessageError(problem, message_index=turn.index, field="content")

    def _write_reply(self, out: Writer, turn: Turn) -> None:
        opener = self.opener_of(turn)
        shows_reasoning = turn.keeps_reasoning and (self.thinks or turn.reasoning)
        if opener:
            out.scaffold(opener if shows_reasoning else opener + THINK_END)
        out.reply()
        if shows_reasoning:
            out.scaffold(THINK if opener or not self.thinks else "")
            out.body(turn.reasoning or "")
            out.scaffold(THINK_END)
        out.body(turn.content)
        if turn.message.tool_calls:
            self.calls.write(
                out,
                [(call.function.name, self.arguments_of(out, turn, call.function)) for call in turn.message.tool_calls],
            )
        out.scaffold(self.turn_close)

    def write_generation_prompt(self, out: Writer, state: DsmlState) -> None:
        """What the encoder has written already where the assistant's turn is next, and nothing elsewhere."""
        if state.opener:
            out.scaffold(state.opener + (THINK if self.thinks else THINK_END))
