"""Qwen3.5, 3.6 and 3.8: ChatML turns, reasoning that the prompt opens, calls with a parameter a tag.

Three official templates; 3.6 and 3.8 can keep the reasoning of earlier turns, 3.8 names the reasoning effort. See
docs/families/qwen3.5.md.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import model_validator

from renderers.chatml_turns import EMPTY_THINKING, THINKING, ChatMLRenderer
from renderers.config import RendererConfig, Revision
from renderers.conversation import Conversation, History, Turn
from renderers.errors import UnsupportedMessageError
from renderers.formats.spelling import Spelling
from renderers.formats.xml_parameters import XmlParameters, instructions
from renderers.messages import Message
from renderers.parsing import ReplyGrammar
from renderers.writer import Writer

TOOLS_HEAD = "# Tools\n\nYou have access to the following functions:\n\n<tools>"
EFFORTS = {
    "xhigh": (
        "Reasoning effort is set to xhigh. Please think carefully through the task, validate key assumptions, consider "
        "plausible alternatives, and prioritize correctness, consistency, and clarity in the final answer."
    ),
    "medium": "",
    "low": (
        "Reasoning effort is set to low. Keep your thinking brief and focused, moving directly to the conclusion without "
        "unnecessary elaboration."
    ),
}
#: The revisions whose templates have the switch.
SWITCHES = {"preserve_thinking": ("3.6", "3.8"), "reasoning_effort": ("3.8",)}


class Qwen35Config(RendererConfig):
    """Settings of the Qwen3.5 family.

    Attributes:
        revision: which of the official templates.
        enable_thinking: False ends the generation prompt in an empty think block; None, like the template's undefined,
            means thinking.
        preserve_thinking: of 3.6 and 3.8, whether the reasoning of earlier turns stays; None, like the template's
            undefined, means no for 3.6 and yes for 3.8.
        reasoning_effort: of 3.8, whose template names it where thinking is on; None, like the template's undefined,
            means "xhigh".
    """

    name: Literal["qwen3.5"] = "qwen3.5"
    revision: Literal["3.5", "3.6", "3.8"] = "3.5"
    enable_thinking: bool | None = None
    preserve_thinking: bool | None = None
    reasoning_effort: Literal["xhigh", "medium", "low"] | None = None

    contradictions = (("preserve_thinking", True, "tool_cycle"), ("preserve_thinking", False, "all"))

    @model_validator(mode="after")
    def _check_switches(self) -> Qwen35Config:
        for switch, revisions in SWITCHES.items():
            if getattr(self, switch) is not None and self.revision not in revisions:
                raise ValueError(f"{switch} is a switch of {' and '.join(revisions)}; {self.revision} has none")
        return self


class Qwen35Renderer(ChatMLRenderer[Qwen35Config]):
    """Renders, parses and bridges conversations of Qwen3.5, 3.6 and 3.8."""

    family = "qwen3.5"
    config_class = Qwen35Config
    revisions: ClassVar[tuple[Revision, ...]] = (
        Revision(
            "3.5",
            "a4aee8afcf2e0711942cf848899be66016f8d14a889ff9ede07bca099c28f715",
            models=("Qwen/Qwen3.5-35B-A3B", "Qwen/Qwen3.5-4B"),
            retention="since the last query",
        ),
        Revision(
            "3.6",
            "e84f32a23fdda27689f868aa4a1a5621f41133e51a48d7f3efcbea2839574259",
            models=("Qwen/Qwen3.6-35B-A3B", "Qwen/Qwen3.6-27B"),
            retention="since the last query; everything with preserve_thinking",
        ),
        Revision(
            "3.8",
            "c3cf9e34abf4f9e36c2d72165aa9c132d3e2a725b6c2586aaa3a8af9d7a81041",
            models=(),
            unverified=("Qwen/Qwen3.8",),
            retention="everything; since the last query with preserve_thinking=False",
        ),
    )
    arguments_as_objects = True

    @property
    def takes_empty_arguments(self) -> bool:
        """3.8 looks at the arguments only where they are not an empty text."""
        return self.config.revision == "3.8"

    @property
    def calls(self) -> XmlParameters:
        """3.5 prints a boolean or null as Python does."""
        return XmlParameters(Spelling.PYTHON_SCALARS if self.config.revision == "3.5" else Spelling.JSON)

    @property
    def reply_grammar(self) -> ReplyGrammar:
        """Reasoning, then text, then calls."""
        return ReplyGrammar(stop_tokens=self.stop_tokens, reasoning=THINKING, tool_calls=self.calls)

    @property
    def splits_content(self) -> bool:
        """3.8 takes reasoning from `reasoning_content` only."""
        return self.config.revision != "3.8"

    @property
    def effort(self) -> str:
        """What 3.8 says about the reasoning effort."""
        if self.config.revision != "3.8" or self.config.enable_thinking is False:
            return ""
        return EFFORTS[self.config.reasoning_effort or "xhigh"]

    def text_of(self, message: Message) -> str:
        """Text parts follow each other without a separator; every text is stripped."""
        return (message.text_joined("") or "").strip()

    def is_reasoning(self, text: str) -> bool:
        """The template strips reasoning: white space is none."""
        return bool(text.strip())

    def template_floor(self, history: History) -> int:
        """All reasoning stays with `preserve_thinking`, which 3.8 has on."""
        preserves = self.config.preserve_thinking
        if preserves is None:
            preserves = self.config.revision == "3.8"
        return -1 if preserves else super().template_floor(history)

    def opens_results(self, turn: Turn) -> bool:
        """Results that open the conversation stand in no turn."""
        return turn.previous_role is not None and super().opens_results(turn)

    def write_preamble(self, out: Writer, conversation: Conversation) -> None:
        """The reasoning effort, the tools and the system message share a turn."""
        if conversation.messages and conversation.history.last_query < 0:
            problem = "the template refuses a conversation in which no user asks anything; add a user message"
            raise UnsupportedMessageError(problem, message_index=len(conversation.messages) - 1)
        system = conversation.opening_system
        text = self.text_of(system) if system is not None else ""
        if not self.effort and not conversation.tools:
            if system is not None and (text or self.config.revision != "3.8"):
                self.write_system(out, system)
            return
        out.scaffold("<|im_start|>system\n" + self.effort)
        if conversation.tools:
            out.scaffold("\n\n" if self.effort else "")
            out.scaffold(TOOLS_HEAD)
            for tool in conversation.tools.json_texts:
                out.scaffold("\n")
                out.schema(tool)
            out.scaffold("\n</tools>" + instructions())
        if text:
            out.scaffold("\n\n")
            out.begin(0, "system")
            out.body(text)
            out.begin(-1, "")
        out.scaffold(self.turn_close)

    def write_message(self, out: Writer, turn: Turn) -> None:
        """The template refuses a developer's message, and a system message that does not come first."""
        if turn.role == "developer" or (turn.role == "system" and not turn.is_first):
            problem = f"the template refuses a {turn.role} message here; put its text into the first system message"
            raise UnsupportedMessageError(problem, message_index=turn.index, field="role")
        super().write_message(out, turn)

    def write_reply(self, out: Writer, turn: Turn) -> None:
        """A think block, perhaps an empty one, where reasoning counts; the text; the calls."""
        if turn.keeps_reasoning:
            self.write_thinking(out, (turn.reasoning or "").strip())
        out.body(turn.content)
        self.calls.write_calls(out, turn)

    def write_generation_prompt(self, out: Writer, state: Any) -> None:
        """The reasoning is opened, or closed at once."""
        out.scaffold("<|im_start|>assistant\n")
        out.scaffold(EMPTY_THINKING if self.config.enable_thinking is False else "<think>\n")
