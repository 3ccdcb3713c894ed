"""DeepSeek V3 and R1: turns between role tokens, calls and results in sections, reasoning in `<think>`.

Two official templates. Both open a section of calls once in a conversation, and a section of results, too: what comes
later stands without its opener. V3 closes its calls from the second one on, and prints them beside null content alone.
See docs/families/deepseek-v3.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from renderers.config import RendererConfig, Revision
from renderers.conversation import Turn
from renderers.formats.fenced_calls import FencedJsonCalls
from renderers.messages import Message
from renderers.parsing import Marker, Reasoning, ReplyGrammar
from renderers.role_tokens import RoleTokenRenderer
from renderers.writer import Writer

BEGIN, END = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"
USER, ASSISTANT = "<｜User｜>", "<｜Assistant｜>"
THINK, THINK_END = "<think>", "</think>"
CALLS, CALLS_END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
OUTPUTS, OUTPUTS_END = "<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>"
OUTPUT, OUTPUT_END = "<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"


class DeepSeekV3Config(RendererConfig):
    """Settings of the DeepSeek V3 family.

    Attributes:
        revision: V3, which has no reasoning, or R1, whose prompt opens it. Neither template has switches.
    """

    name: Literal["deepseek-v3"] = "deepseek-v3"
    revision: Literal["v3", "r1"] = "v3"


@dataclass(frozen=True, slots=True)
class State:
    """What the templates remember of the messages so far, and never forget but for the last.

    Attributes:
        calls_begun: a call was printed: the section of calls was opened.
        results_begun: a result was printed: the section of results was opened.
        after_results: a tool message came after the last user and assistant message.
    """

    calls_begun: bool = False
    results_begun: bool = False
    after_results: bool = False


class DeepSeekV3Renderer(RoleTokenRenderer[DeepSeekV3Config]):
    """Renders, parses and bridges conversations of DeepSeek V3 and R1."""

    family = "deepseek-v3"
    config_class = DeepSeekV3Config
    revisions: ClassVar[tuple[Revision, ...]] = (
        Revision(
            "v3",
            "3b8267e54b67df6500f231ffa969955cc9d26b3444a291ced4eb96ca7d3ca1ea",
            models=("deepseek-ai/DeepSeek-V3",),
            unverified=("deepseek-ai/DeepSeek-V3-0324",),
            retention="none",
        ),
        Revision(
            "r1",
            "563b1ce7d61d50a9b4c7439a912a1116f095b712df5b5e4d3e1116049874eb64",
            models=("deepseek-ai/DeepSeek-R1",),
            unverified=("deepseek-ai/DeepSeek-R1-0528",),
            retention="none",
        ),
    )
    begin_token, user_token = BEGIN, USER
    stop_tokens = (END,)
    other_headers = (USER,)
    turn_close = END
    reply_headers = (ASSISTANT, OUTPUTS_END)
    calls = FencedJsonCalls("<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>", CALLS, CALLS_END)

    @property
    def _is_r1(self) -> bool:
        return self.config.revision == "r1"

    @property
    def required_tokens(self) -> tuple[str, ...]:
        """V3 has no tokens for reasoning."""
        thinking = (THINK, THINK_END) if self._is_r1 else ()
        return BEGIN, END, USER, ASSISTANT, *self.calls.tokens, OUTPUTS, OUTPUT, OUTPUT_END, OUTPUTS_END, *thinking

    @property
    def reply_grammar(self) -> ReplyGrammar:
        """R1's reasoning, then text, then a section of calls. V3 has none, unless a policy keeps what was given to it."""
        opener, closer = Marker.either(THINK), Marker.either(THINK_END)
        reasoning = Reasoning(opener, closer, after_open="\n", before_close="\n", after_close="\n\n")
        has_reasoning = self._is_r1 or self.config.thinking_retention is not None
        return ReplyGrammar(self.stop_tokens, reasoning if has_reasoning else None, self.calls)

    def initial_state(self) -> State:
        """Nothing was printed."""
        return State()

    def advance(self, state: State, message: Message) -> State:
        """System and developer messages change nothing: they are not printed where they stand."""
        match message.role:
            case "user":
                return replace(state, after_results=False)
            case "assistant":
                begins = bool(message.tool_calls) and self._takes_calls(message)
                return State(state.calls_begun or begins, state.results_begun)
            case "tool":
                return State(state.calls_begun, results_begun=True, after_results=True)
        return state

    def recover_state(self, token_ids: Sequence[int]) -> State:
        """What comes after a reply depends on the results alone, and they begin with a token of their own."""
        opener, first = (self.tokenizer.special_tokens[token] for token in (OUTPUTS, OUTPUT))
        after = [token_ids[place + 1 : place + 2] for place, token_id in enumerate(token_ids) if token_id == opener]
        if after not in ([], [[first]]):
            raise LookupError(f"the prompt holds {OUTPUTS} where no results begin")
        return State(results_begun=bool(after))

    def split_reasoning(self, message: Message) -> tuple[str | None, str]:
        """Without `reasoning_content`, R1's reasoning is what stands before the last `</think>` of an answer."""
        reasoning, content = message.reasoning_text, self.text_of(message)
        if self._is_r1 and reasoning is None and message.tool_calls is None and THINK_END in content:
            before, _, content = content.rpartition(THINK_END)
            return before.removeprefix(THINK).strip("\n"), content.removeprefix("\n\n")
        return reasoning, content

    def write_reply(self, out: Writer, turn: Turn) -> None:
        """Calls or an answer; a turn whose reasoning a policy keeps is written as the model samples it."""
        if turn.keeps_reasoning and self.is_reasoning(turn.reasoning or ""):
            self._write_as_sampled(out, turn)
        elif self._takes_calls(turn.message) and not turn.is_open:
            self._write_calls(out, turn)
        else:
            self._write_answer(out, turn)

    def write_result(self, out: Writer, turn: Turn, text: str) -> None:
        """The conversation's first result opens the section; a line feed stands before V3's later ones."""
        later = "" if self._is_r1 else "\n"
        out.scaffold((later if turn.state.results_begun else OUTPUTS) + OUTPUT)
        out.body(text)
        out.scaffold(OUTPUT_END)

    def _takes_calls(self, message: Message) -> bool:
        """Whether the template prints a message's calls and no answer: with a list of them, be it empty, or in V3
        without content."""
        return message.tool_calls is not None if self._is_r1 else message.content is None

    def _write_calls(self, out: Writer, turn: Turn) -> None:
        """The conversation's first calls open the section, and R1 prints content before them; V3 closes it after each
        call but the first, R1 after the last."""
        calls = turn.message.tool_calls or []
        opens = bool(calls) and not turn.state.calls_begun
        out.scaffold(ASSISTANT if opens else "")
        out.reply()
        if opens:
            out.body(turn.content)
            out.scaffold(CALLS)
        elif turn.content:
            detail = "R1's template prints no content beside later calls, or beside an empty list of them"
            out.damage("dropped_content", turn.index, detail)
        for position, call in enumerate(calls):
            is_first = opens and position == 0
            out.scaffold("" if is_first else "\n")
            self.calls.write(out, call)
            out.scaffold("" if is_first or self._is_r1 else CALLS_END + END)
        out.scaffold(CALLS_END + END if self._is_r1 else "")

    def _write_answer(self, out: Writer, turn: Turn) -> None:
        content = self.required_text(turn.message, turn.index)
        if turn.message.tool_calls:
            detail = "V3's template prints calls beside null content alone; give None where there is no text"
            out.damage("dropped_tool_calls", turn.index, detail)
        if turn.state.after_results:
            out.scaffold(OUTPUTS_END)
        else:
            out.scaffold(ASSISTANT)
            content = content.split(THINK_END)[-1] if self._is_r1 else content
        out.reply()
        out.body(content)
        out.scaffold(END)

    def _write_as_sampled(self, out: Writer, turn: Turn) -> None:
        """A turn whose reasoning a policy keeps. No template writes one; this is what the model samples."""
        out.scaffold(OUTPUTS_END if turn.state.after_results else ASSISTANT)
        out.reply()
        out.scaffold(THINK + "\n")
        out.body(turn.reasoning or "")
        out.scaffold("\n" + THINK_END + "\n\n")
        out.body(turn.content)
        if turn.message.tool_calls:
            self.calls.write_section(out, turn.message.tool_calls)
        out.scaffold(END)

    def write_generation_prompt(self, out: Writer, state: State) -> None:
        """After results the model goes on in the same turn; elsewhere R1 opens the reasoning."""
        if state.after_results:
            out.scaffold(OUTPUTS_END)
        else:
            out.scaffold(ASSISTANT + THINK + "\n" if self._is_r1 else ASSISTANT)

    def write_end(self, out: Writer, state: State) -> None:
        """Results are closed, also where nobody asks for a generation prompt."""
        out.scaffold(OUTPUTS_END if state.after_results else "")
