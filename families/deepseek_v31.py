"""DeepSeek V3.1: turns between role tokens, calls in a section, a closing `</think>` before each answer to a user.

One official template. It opens the assistant's turn after a user message alone: after results, the model goes on
without a header. See docs/families/deepseek-v3.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from renderers.config import RendererConfig, Revision
from renderers.conversation import Turn
from renderers.formats.headed_calls import CallHead, HeadedJsonCalls
from renderers.messages import Message
from renderers.parsing import Reasoning, ReplyGrammar
from renderers.role_tokens import RoleTokenRenderer
from renderers.writer import Writer

BEGIN, END = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"
USER, ASSISTANT = "<｜User｜>", "<｜Assistant｜>"
CALLS, CALLS_END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
CALL, SEPARATOR, CALL_END = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"
OUTPUT, OUTPUT_END = "<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"
THINK, THINK_END = "<think>", "</think>"


class DeepSeekV31Config(RendererConfig):
    """Settings of DeepSeek V3.1.

    Attributes:
        revision: the official template; there is one.
        thinking: True ends the generation prompt in `<think>`; None, like the template's undefined, means False.
    """

    name: Literal["deepseek-v3.1"] = "deepseek-v3.1"
    revision: Literal["v3.1"] = "v3.1"
    thinking: bool | None = None


@dataclass(frozen=True, slots=True)
class State:
    """What came last, system and developer messages aside.

    Attributes:
        after_user: a user message, which the assistant's header follows.
        after_results: a tool message, after which an answer is printed as it is.
    """

    after_user: bool = False
    after_results: bool = False


class DeepSeekV31Renderer(RoleTokenRenderer[DeepSeekV31Config]):
    """Renders, parses and bridges conversations of DeepSeek V3.1."""

    family = "deepseek-v3.1"
    config_class = DeepSeekV31Config
    revisions: ClassVar[tuple[Revision, ...]] = (
        Revision(
            "v3.1",
            "45690185067ea25c073bff2d3e425a45ee2564d2bbf6cdf7d885e139d460b8e0",
            models=("deepseek-ai/DeepSeek-V3.1",),
            unverified=("deepseek-ai/DeepSeek-V3.1-Terminus", "deepseek-ai/DeepSeek-V3.2-Exp"),
            retention="none",
        ),
    )
    required_tokens = (
        BEGIN, END, USER, ASSISTANT, THINK, THINK_END, CALLS, CALLS_END, CALL, SEPARATOR, CALL_END, OUTPUT, OUTPUT_END,
    )  # fmt: skip
    begin_token, user_token = BEGIN, USER
    stop_tokens = (END,)
    other_headers = (USER,)
    turn_close = END
    reply_headers = (ASSISTANT, OUTPUT_END, END)
    reply_grammar = ReplyGrammar(
        stop_tokens,
        Reasoning(THINK, THINK_END),
        HeadedJsonCalls(CALL, SEPARATOR, CALL_END, CallHead, section_open=CALLS, section_close=CALLS_END),
    )

    def initial_state(self) -> State:
        """Nothing came."""
        return State()

    def advance(self, state: State, message: Message) -> State:
        """System and developer messages change nothing: they are not printed where they stand."""
        if message.role in {"system", "developer"}:
            return state
        return State(after_user=message.role == "user", after_results=message.role == "tool")

    def recover_state(self, token_ids: Sequence[int]) -> State:
        """What comes after a reply depends on nothing before it."""
        return State()

    def split_reasoning(self, message: Message) -> tuple[str | None, str]:
        """Without `reasoning_content`, reasoning is what stands before the first `</think>` of an answer."""
        reasoning, content = message.reasoning_text, self.text_of(message)
        if reasoning is None and message.tool_calls is None and THINK_END in content:
            before, _, content = content.partition(THINK_END)
            return before.removeprefix(THINK), content
        return reasoning, content

    def write_result(self, out: Writer, turn: Turn, text: str) -> None:
        """A result stands between its own tokens."""
        out.scaffold(OUTPUT)
        out.body(text)
        out.scaffold(OUTPUT_END)

    def write_reply(self, out: Writer, turn: Turn) -> None:
        """In the place of the reasoning the template writes `</think>`; a policy that keeps it, what was sampled."""
        calls, content = None if turn.is_open else turn.message.tool_calls, turn.content
        out.scaffold(ASSISTANT if turn.state.after_user else "")
        if turn.keeps_reasoning and self.is_reasoning(turn.reasoning or ""):
            calls = calls or None
            out.reply()
            out.scaffold(THINK)
            out.body(turn.reasoning or "")
            out.scaffold(THINK_END)
        else:
            continues = turn.message.prefix and self.config.thinking and calls is None
            out.scaffold((THINK if continues else THINK_END) if turn.state.after_user else "")
            out.reply()
            if calls is None:
                content = self.required_text(turn.message, turn.index)
                content = content if turn.state.after_results else content.split(THINK_END, 1)[-1]
        if calls != []:
            out.body(content)
        elif content:
            detail = "the template prints no content beside an empty list of calls; leave the list out"
            out.damage("dropped_content", turn.index, detail)
        for position, call in enumerate(calls or ()):
            out.scaffold(CALL if position else CALLS + CALL)
            out.body(call.function.name)
            out.scaffold(SEPARATOR)
            out.body(call.function.arguments_text)
            out.scaffold(CALL_END)
        out.scaffold(END if calls is None else CALLS_END + END)

    def write_generation_prompt(self, out: Writer, state: State) -> None:
        """There is none but after a user message: elsewhere the model goes on in its turn."""
        if state.after_user:
            out.scaffold(ASSISTANT + (THINK if self.config.thinking else THINK_END))
