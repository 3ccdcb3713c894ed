"""DeepSeek V3, R1 and V3.1: turns between role tokens, calls in a section of special tokens, reasoning in `<think>`.

Three official templates. None prints tools or `reasoning_content`, all put the system messages before everything else,
and those of V3 and R1 remember whether calls and results were printed before, and write later ones without what opens
them. See docs/families/deepseek-v3.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from pydantic import model_validator

from renderers.config import RendererConfig, Revision
from renderers.conversation import NEVER, Conversation, History, Turn
from renderers.errors import UnsupportedMessageError
from renderers.family import FamilyRenderer
from renderers.formats.fenced_calls import FENCE, FENCE_END, KIND, FencedJsonCalls
from renderers.formats.headed_calls import CallHead, HeadedJsonCalls
from renderers.messages import Message, ToolCall
from renderers.parsing import Reasoning, ReplyGrammar
from renderers.refusal import BridgeRefusal, RefusalReason
from renderers.writer import Writer

BEGIN, END = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"
USER, ASSISTANT = "<｜User｜>", "<｜Assistant｜>"
CALLS_BEGIN, CALLS_END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
CALL_BEGIN, SEPARATOR, CALL_END = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"
OUTPUTS_BEGIN, OUTPUTS_END = "<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>"
OUTPUT_BEGIN, OUTPUT_END = "<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"
THINK, THINK_END = "<think>", "</think>"


class DeepSeekV3Config(RendererConfig):
    """Settings of the DeepSeek V3 line.

    Attributes:
        revision: which of the official templates.
        thinking: V3.1 alone has the switch: True ends the generation prompt in `<think>`. None, like the template's
            undefined, means no thinking. V3 never thinks, R1 always does.
    """

    name: Literal["deepseek-v3"] = "deepseek-v3"
    revision: Literal["v3", "r1", "v3.1"] = "v3"
    thinking: bool | None = None

    @model_validator(mode="after")
    def _check_switch(self) -> DeepSeekV3Config:
        if self.thinking is not None and self.revision != "v3.1":
            raise ValueError(f"thinking is a switch of revision 'v3.1' alone; the template of {self.revision!r} has none")
        return self


@dataclass(frozen=True, slots=True)
class State:
    """What the templates remember of the messages so far.

    Attributes:
        calls_begun: a call was printed; V3 and R1 open the section for the first one alone.
        results_begun: a result was printed; V3 and R1 open that section for the first one alone, too.
        after_results: a tool message came after the last user and assistant message.
        after_user: the last message but system and developer messages is the user's; V3.1 opens the assistant's turn
            only then.
    """

    calls_begun: bool = False
    results_begun: bool = False
    after_results: bool = False
    after_user: bool = False


class DeepSeekV3Renderer(FamilyRenderer[DeepSeekV3Config]):
    """Renders, parses and bridges conversations of DeepSeek V3, R1 and V3.1."""

    family = "deepseek-v3"
    config_class = DeepSeekV3Config
    revisions: ClassVar[tuple[Revision, ...]] = (
        Revision(
            "v3", "3b8267e54b67df6500f231ffa969955cc9d26b3444a291ced4eb96ca7d3ca1ea", retention="none",
            models=("deepseek-ai/DeepSeek-V3",), unverified=("deepseek-ai/DeepSeek-V3-0324",),
        ),
        Revision(
            "r1", "563b1ce7d61d50a9b4c7439a912a1116f095b712df5b5e4d3e1116049874eb64", retention="none",
            models=("deepseek-ai/DeepSeek-R1",), unverified=("deepseek-ai/DeepSeek-R1-0528",),
        ),
        Revision(
            "v3.1", "45690185067ea25c073bff2d3e425a45ee2564d2bbf6cdf7d885e139d460b8e0", retention="none",
            models=("deepseek-ai/DeepSeek-V3.1",),
            unverified=("deepseek-ai/DeepSeek-V3.1-Terminus", "deepseek-ai/DeepSeek-V3.2-Exp"),
        ),
    )  # fmt: skip
    stop_tokens = (END,)
    turn_close = END

    @property
    def _is_v31(self) -> bool:
        return self.config.revision == "v3.1"

    @property
    def required_tokens(self) -> tuple[str, ...]:
        """V3 has no tokens for reasoning."""
        calls = (CALLS_BEGIN, CALLS_END, CALL_BEGIN, SEPARATOR, CALL_END, OUTPUT_BEGIN, OUTPUT_END)
        return BEGIN, END, USER, ASSISTANT, *calls, *(() if self.config.revision == "v3" else (THINK, THINK_END))

    @property
    def reply_headers(self) -> tuple[str, ...]:
        """After tool results the model goes on without a header, and V3.1 wherever no user message came before."""
        return (ASSISTANT, OUTPUT_END, END) if self._is_v31 else (ASSISTANT, OUTPUTS_END)

    @property
    def reply_grammar(self) -> ReplyGrammar:
        """Reasoning, then text, then a section of calls; R1 writes line feeds around all of them, V3.1 none."""
        markers = (CALL_BEGIN, SEPARATOR, CALL_END)
        if self._is_v31:
            calls = HeadedJsonCalls(*markers, CallHead, section_open=CALLS_BEGIN, section_close=CALLS_END)
            return ReplyGrammar(self.stop_tokens, Reasoning(THINK, THINK_END), calls)
        reasoning = Reasoning(THINK, THINK_END, after_open="\n", before_close="\n", after_close="\n\n")
        fenced = FencedJsonCalls(*markers, CALLS_BEGIN, CALLS_END)
        return ReplyGrammar(self.stop_tokens, reasoning if self.config.revision == "r1" else None, fenced)

    def initial_state(self) -> State:
        """Nothing was printed."""
        return State()

    def advance(self, state: State, message: Message) -> State:
        """System and developer messages change nothing."""
        match message.role:
            case "user":
                return replace(state, after_results=False, after_user=True)
            case "assistant":
                begun = bool(message.tool_calls) and not self._is_v31 and self._takes_calls(message)
                return State(state.calls_begun or begun, state.results_begun)
            case "tool":
                return replace(state, results_begun=True, after_results=True, after_user=False)
        return state

    def recover_state(self, token_ids: Sequence[int]) -> State:
        """What follows a reply depends on `results_begun` alone, and the token that opens the results tells it."""
        return State(results_begun=self.tokenizer.special_tokens.get(OUTPUTS_BEGIN) in token_ids)

    def template_floor(self, history: History) -> int:
        """No template of this line prints reasoning."""
        return NEVER

    def refuse_extension(self, message: Message) -> BridgeRefusal | None:
        """A system message is printed before everything else."""
        if message.role != "system":
            return None
        detail = "the template puts system messages before all others, also those that come late"
        return BridgeRefusal(RefusalReason.HISTORY_REWRITE, detail)

    def split_reasoning(self, message: Message) -> tuple[str | None, str]:
        """Without `reasoning_content`, reasoning is what stands before `</think>` in the content of an answer."""
        content, reasoning = message.text or "", message.reasoning_text
        printed = self._without_reasoning(content)
        if reasoning is not None or message.tool_calls is not None or printed == content:
            return reasoning, content
        before = content.removesuffix(printed).removesuffix(THINK_END)
        return before.removeprefix(THINK).strip("\n"), printed.removeprefix("\n\n")

    def _without_reasoning(self, content: str) -> str:
        """What the template prints of an answer: R1 what follows the last `</think>`, V3.1 what follows the first."""
        match self.config.revision:
            case "v3":
                return content
            case "r1":
                return content.split(THINK_END)[-1]
            case "v3.1":
                return content.split(THINK_END, 1)[-1]

    def write_preamble(self, out: Writer, conversation: Conversation) -> None:
        """The text of all system messages; tools are printed nowhere."""
        out.scaffold(BEGIN)
        separator, late = "", False
        for index, message in enumerate(conversation.messages):
            if message.role != "system":
                late = True
                continue
            out.begin(index, "system")
            out.scaffold(separator)
            out.body(_text(message, index))
            separator = "\n\n"
            if late:
                detail = f"the {self.family} template moves system messages to the front, also one that comes late"
                out.damage("moved_message", index, detail)
        out.begin(-1, "")
        if conversation.tools:
            detail = f"the {self.family} template prints no tools: describe them in the system message"
            out.damage("dropped_tools", 0, detail)

    def write_message(self, out: Writer, turn: Turn) -> None:
        """Role tokens open the user's and the assistant's turn, and only the latter is closed."""
        match turn.role:
            case "system":
                pass  # stands in the preamble
            case "user":
                out.scaffold(USER)
                out.body(_text(turn.message, turn.index))
            case "assistant":
                self._write_reply(out, turn)
            case "tool":
                if not self._is_v31:
                    between = "\n" if self.config.revision == "v3" else ""
                    out.scaffold(between if turn.state.results_begun else OUTPUTS_BEGIN)
                out.scaffold(OUTPUT_BEGIN)
                out.body(_text(turn.message, turn.index))
                out.scaffold(OUTPUT_END)
            case _:
                self.drop(out, turn)

    def _takes_calls(self, message: Message) -> bool:
        """Whether the template takes an assistant message for calls: V3 if its content is null, the others if it has
        a list of them, be it empty. Otherwise it prints an answer."""
        return message.text is None if self.config.revision == "v3" else message.tool_calls is not None

    def _write_reply(self, out: Writer, turn: Turn) -> None:
        if turn.keeps_reasoning and self.is_reasoning(turn.reasoning or ""):
            self._write_as_sampled(out, turn)
        elif self._takes_calls(turn.message) and not turn.is_open:
            self._write_calls(out, turn)
        else:
            self._write_answer(out, turn)

    def _write_as_sampled(self, out: Writer, turn: Turn) -> None:
        """A turn whose reasoning a policy keeps, as no template writes it."""
        line = "" if self._is_v31 else "\n"
        out.scaffold(self._header(turn.state))
        out.reply()
        out.scaffold(THINK + line)
        out.body(turn.reasoning or "")
        out.scaffold(line + THINK_END + 2 * line)
        out.body(turn.content)
        calls = turn.message.tool_calls or []
        for position, call in enumerate(calls):
            out.scaffold(line if position else CALLS_BEGIN)
            self._write_call(out, call)
        out.scaffold(CALLS_END + END if calls else END)

    def _write_calls(self, out: Writer, turn: Turn) -> None:
        """V3.1 opens a section in each turn, V3 and R1 one in the whole conversation; V3 closes it after each call but
        the first."""
        content, calls, state = turn.message.text or "", turn.message.tool_calls or [], turn.state
        opens = bool(calls) and not state.calls_begun
        if self._is_v31:
            out.scaffold(ASSISTANT + THINK_END if state.after_user else "")
        elif opens:
            out.scaffold(ASSISTANT)
        out.reply()
        if opens:
            out.body(content)
            out.scaffold(CALLS_BEGIN)
        elif content:
            detail = "the template prints no text beside an empty list of calls, or beside later calls of R1"
            out.damage("dropped_content", turn.index, detail)
        for position, call in enumerate(calls):
            first = opens and position == 0
            out.scaffold("" if first or self._is_v31 else "\n")
            self._write_call(out, call)
            if self.config.revision == "v3" and not first:
                out.scaffold(CALLS_END + END)
        if self.config.revision != "v3":
            out.scaffold(CALLS_END + END)

    def _write_call(self, out: Writer, call: ToolCall) -> None:
        out.scaffold(CALL_BEGIN)
        if not self._is_v31:
            out.body(call.type or "function")
            out.scaffold(SEPARATOR)
        out.body(call.function.name)
        out.scaffold(SEPARATOR if self._is_v31 else FENCE)
        out.body(call.function.arguments_text)
        out.scaffold(CALL_END if self._is_v31 else FENCE_END + CALL_END)

    def _write_answer(self, out: Writer, turn: Turn) -> None:
        content, state = _text(turn.message, turn.index), turn.state
        if turn.message.tool_calls:
            detail = "the template prints calls beside null content alone; send None instead of text"
            out.damage("dropped_tool_calls", turn.index, detail)
        out.scaffold(self._header(state))
        if self._is_v31 and state.after_user:
            out.scaffold(THINK if turn.message.prefix and self.config.thinking else THINK_END)
        out.reply()
        out.body(content if state.after_results else self._without_reasoning(content))
        out.scaffold(END)

    def _header(self, state: State) -> str:
        if self._is_v31:
            return ASSISTANT if state.after_user else ""
        return OUTPUTS_END if state.after_results else ASSISTANT

    def write_generation_prompt(self, out: Writer, state: State) -> None:
        """R1 opens the reasoning, V3.1 opens or closes it; not where the model goes on after results."""
        out.scaffold(self._header(state))
        if self._is_v31 and state.after_user:
            out.scaffold(THINK if self.config.thinking else THINK_END)
        elif self.config.revision == "r1" and not state.after_results:
            out.scaffold(THINK + "\n")

    def write_end(self, out: Writer, state: State) -> None:
        """V3 and R1 close the results also where nobody asks for a generation prompt."""
        if state.after_results and not self._is_v31:
            out.scaffold(OUTPUTS_END)


def _text(message: Message, index: int) -> str:
    if message.text is None:
        problem = f"the template cannot print a {message.role} message without content; send \"\" instead of null"
        raise UnsupportedMessageError(problem, message_index=index, field="content")
    return message.text
