"""gpt-oss: Harmony, in which one reply is several messages on channels, each with a header and an end token.

Two references, which differ in places: OpenAI's Harmony library, which engines serve the models with, and the chat
template on the hub. See docs/families/gpt-oss.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any, ClassVar, Literal

from pydantic import field_validator, model_validator

from renderers.config import RendererConfig, Revision
from renderers.conversation import Conversation, History, Turn
from renderers.errors import UnsupportedMessageError
from renderers.family import FamilyRenderer
from renderers.formats import harmony_messages as harmony
from renderers.formats.harmony import CALL, CHANNEL, CONSTRAIN, END, MESSAGE, START, HarmonyGrammar
from renderers.messages import Message, ToolCall
from renderers.parsed import ParsedResponse
from renderers.writer import Writer

RETURN = "<|return|>"


class GptOssConfig(RendererConfig):
    """Settings of the gpt-oss family.

    Attributes:
        reference: which of the two is reproduced: OpenAI's Harmony library, or the chat template.
        drop_analysis: which reasoning a render leaves out: all before the last answer (the template's rule, and vLLM's),
            all before the first one unless a call follows the last (Harmony's own), or none. The template has its own
            rule alone.
        reasoning_effort: None is the references' default, medium.
        conversation_start_date: an ISO date, or "today", which becomes the date on which the config is made. Harmony
            prints no date without it; the template always prints one, and so needs it.
        model_identity: the first sentence of the system message.
        builtin_tools: tools that the model was trained with, which the system message declares.
    """

    name: Literal["gpt-oss"] = "gpt-oss"
    revision: Literal["2025-08"] = "2025-08"
    reference: Literal["harmony", "template"] = "harmony"
    drop_analysis: Literal["before_last_final", "before_first_final", "never"] = "before_last_final"
    reasoning_effort: Literal["low", "medium", "high"] | None = None
    conversation_start_date: str | None = None
    model_identity: str | None = None
    builtin_tools: tuple[Literal["browser", "python"], ...] = ()

    contradictions = (
        ("drop_analysis", "never", "tool_cycle"),
        ("drop_analysis", "before_first_final", "tool_cycle"),
        ("drop_analysis", "before_first_final", "all"),
    )

    @field_validator("builtin_tools", mode="before")
    @classmethod
    def _take_list(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    @field_validator("conversation_start_date")
    @classmethod
    def _resolve_date(cls, value: str | None) -> str | None:
        if value == "today":
            return date.today().isoformat()  # noqa: DTZ011 - where the machine is, as engines do
        return value if value is None else date.fromisoformat(value).isoformat()

    @model_validator(mode="after")
    def _check_template(self) -> GptOssConfig:
        if self.reference == "template" and self.conversation_start_date is None:
            raise ValueError(
                'reference="template" always prints a date: set conversation_start_date, to "today" perhaps'
            )
        if self.reference == "template" and self.drop_analysis != "before_last_final":
            raise ValueError(f'drop_analysis="{self.drop_analysis}": reference="template" has its own rule alone')
        return self


@dataclass(frozen=True, slots=True)
class State:
    """What a message may depend on.

    Attributes:
        count: number of messages.
        first_answer: index of the first assistant message without calls, or -1.
        is_answered: the last assistant message has no calls.
        ends_in_answer: that message is the last one that is printed.
        has_early_reasoning: some message up to the first answer has reasoning.
        names: ID and name of every call.
        last_called: the tool that the last assistant message calls first, if it calls any.
    """

    count: int = field(default=0, compare=False)  # whatever it is, the generation prompt is the same
    first_answer: int = field(default=-1, compare=False)
    is_answered: bool = False
    ends_in_answer: bool = False
    has_early_reasoning: bool = False
    names: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    last_called: str | None = field(default=None, compare=False)

    def name_of(self, call_id: str | None) -> str | None:
        """The tool that this call called."""
        return next((name for one, name in reversed(self.names) if one == call_id), None)


class GptOssRenderer(FamilyRenderer[GptOssConfig]):
    """Renders, parses and bridges gpt-oss conversations."""

    family = "gpt-oss"
    config_class = GptOssConfig
    revisions: ClassVar[tuple[Revision, ...]] = (
        Revision(
            "2025-08",
            "a4c9919cbbd4acdd51ccffe22da049264b1b73e59055fa58811a99efbd7c8146",
            models=("openai/gpt-oss-20b", "openai/gpt-oss-120b"),
            retention="since the last answer",
        ),
    )
    stop_tokens = (RETURN, CALL, "<|endoftext|>")
    stops_outside_history = frozenset({RETURN, "<|endoftext|>"})
    closing_stops = frozenset({RETURN})
    turn_close = END
    reply_headers = (harmony.ASSISTANT,)
    reply_grammar = HarmonyGrammar(stop_tokens)
    required_tokens = (START, CHANNEL, MESSAGE, CONSTRAIN, END, *stop_tokens)

    @property
    def sanitizes(self) -> bool:
        """Harmony encodes every text as ordinary text."""
        return self.config.reference == "harmony" or super().sanitizes

    @property
    def arguments_as_objects(self) -> bool:
        """The template would encode JSON text once more."""
        return self.is_template

    @cached_property
    def is_template(self) -> bool:
        """Whether the chat template is the reference."""
        return self.config.reference == "template"

    @property
    def spelling(self) -> harmony.Spelling:
        """How messages are written."""
        return harmony.TEMPLATE if self.is_template else harmony.LIBRARY

    def initial_state(self) -> State:
        """Nothing was asked."""
        return State()

    def advance(self, state: State, message: Message) -> State:
        """Remember calls by their IDs, and where the first answer stands."""
        first, early, names = state.first_answer, state.has_early_reasoning, state.names
        if message.role != "assistant":
            ends_in_answer = state.ends_in_answer and self._is_passed_over(message)
            return State(state.count + 1, first, state.is_answered, ends_in_answer, early, names, state.last_called)
        calls = message.tool_calls or ()
        if first < 0:
            early = early or bool(message.reasoning_text)
            first = first if calls else state.count
        names += tuple([(call.id, call.function.name) for call in calls if call.id is not None])
        last_called = calls[0].function.name if calls else None
        return State(state.count + 1, first, not calls, not calls, early, names, last_called)

    def _is_passed_over(self, message: Message) -> bool:
        """Whether the library never sees a message, and so takes the one before it for the last."""
        return not self.is_template and message.role in {"system", "developer"}

    def look_ahead(self, messages: Sequence[Message]) -> Sequence[bool]:
        """Whether it is the last message as the reference sees them."""
        last = max((place for place, one in enumerate(messages) if not self._is_passed_over(one)), default=0)
        return [place == last for place in range(len(messages))]

    def recover_state(self, token_ids: Sequence[int]) -> State:
        """IDs of calls are not in the tokens; nor is reasoning that was left out, which may come back."""
        if self.config.drop_analysis == "before_first_final" and harmony.FINAL in self.decode(token_ids):
            raise LookupError("the IDs do not tell which reasoning was left out before the first answer")
        return State(count=2)

    def template_floor(self, history: History) -> int:
        """See `drop_analysis`. The last message, if it is an answer and nothing follows, keeps its own reasoning."""
        match self.config.drop_analysis:
            case "before_last_final":
                return history.last_answer - (history.ended and history.state.ends_in_answer)
            case "before_first_final":
                return history.state.first_answer if history.state.is_answered else -1
            case "never":
                return -1

    def is_settled(self, state: State) -> bool:
        """Harmony's rule drops reasoning when an answer comes, and prints it again when a call follows."""
        return state.is_answered or not state.has_early_reasoning

    def is_reasoning(self, text: str) -> bool:
        """White space is a message, too."""
        return bool(text)

    def holds_reasoning(self, prompt_ids: Sequence[int]) -> bool:
        """A message on the analysis channel opens with three tokens; the fourth closes it where it is empty."""
        text = self.decode(prompt_ids)
        return text.count(harmony.ANALYSIS) > text.count(harmony.ANALYSIS + END)

    def split_reasoning(self, message: Message) -> tuple[str | None, str]:
        """The template takes content beside calls for reasoning."""
        reasoning, content = super().split_reasoning(message)
        if self.is_template and message.tool_calls and content and not reasoning:
            return content, ""
        return reasoning, content

    def write_preamble(self, out: Writer, conversation: Conversation) -> None:
        """The system message, which is ours; then the developer's, with the instructions and the tools."""
        config, messages, tools = self.config, conversation.messages, conversation.tools
        harmony.write_system(
            out,
            identity=config.model_identity,
            date=config.conversation_start_date,
            effort=config.reasoning_effort,
            builtin=config.builtin_tools,
            has_tools=bool(tools),
        )
        instructs = bool(messages) and messages[0].role in {"system", "developer"}
        self.spelling.write_developer(out, self.text_of(messages[0]) if instructs else "", tools)

    def write_message(self, out: Writer, turn: Turn) -> None:
        """One message. The assistant's is several of Harmony's: reasoning, text beside calls, calls or an answer."""
        match turn.role:
            case "user":
                out.scaffold(f"{START}user{MESSAGE}")
                out.body(turn.content)
                out.scaffold(END)
            case "assistant":
                self._write_reply(out, turn)
            case "tool":
                self._write_result(out, turn)
            case _ if not turn.is_first:
                self.drop(out, turn)

    def _write_reply(self, out: Writer, turn: Turn) -> None:
        calls = turn.message.tool_calls or []
        if self.is_template:
            harmony.check_for_template(turn.message, turn.index)
            calls = self._first_call(out, turn, calls)
        is_end = turn.ended and turn.ahead
        shows_empty = self.is_template and is_end and turn.reasoning is not None and not calls
        if turn.keeps_reasoning and (turn.reasoning or shows_empty):
            harmony.write_part(out, harmony.ANALYSIS, turn.reasoning or "")
        if not calls:
            harmony.write_part(out, harmony.FINAL, turn.content, RETURN if is_end else END)
        elif turn.content:
            harmony.write_part(out, harmony.COMMENTARY, turn.content)
        for call in calls:
            self.spelling.write_call(out, self._namespace(call.function.name), call.function)

    def _namespace(self, tool: str) -> str:
        """What stands before a tool's name. The declared ones of those that the model was trained with are no functions."""
        is_builtin = not self.is_template and tool.partition(".")[0] in self.config.builtin_tools
        return "" if is_builtin else "functions."

    def _write_result(self, out: Writer, turn: Turn) -> None:
        name = turn.state.last_called if self.is_template else turn.tool_name
        if name is None:
            problem = "no call of the assistant fits this tool result; give `name`, or the `tool_call_id` of its call"
            raise UnsupportedMessageError(problem, message_index=turn.index, field="tool_call_id")
        self.spelling.write_result(out, self._namespace(name), name, turn.content)
        if turn.tool_name not in {None, name}:
            detail = f"the template prints this result of {turn.tool_name!r} as that of {name!r}, the tool called last"
            out.damage("misattributed_result", turn.index, detail)

    def tool_name(self, history: History, message: Message, position: int) -> str | None:
        """By the message's name, or by the ID of any call; else the only call just before it."""
        name = super().tool_name(history, message, position) or history.state.name_of(message.tool_call_id)
        is_next = history.last_role == "assistant" and len(history.call_names) == 1
        return history.call_names[0][1] if name is None and is_next else name

    def write_generation_prompt(self, out: Writer, state: Any) -> None:
        """The role; the model writes the rest of the header."""
        out.scaffold(harmony.ASSISTANT)

    def close_after(self, reply: ParsedResponse) -> str:
        """A call has its own end token."""
        return CALL if reply.stop == CALL and reply.tool_calls else END

    def _first_call(self, out: Writer, turn: Turn, calls: list[ToolCall]) -> list[ToolCall]:
        if calls and self.text_of(turn.message):
            what = "prints content beside calls as reasoning" if turn.keeps_reasoning else "drops content beside calls"
            out.damage("content_as_reasoning", turn.index, f"the template {what}")
        if len(calls) > 1:
            detail = f"the template prints the first of {len(calls)} calls alone, and all results as that call's"
            out.damage("dropped_calls", turn.index, detail)
        return calls[:1]
