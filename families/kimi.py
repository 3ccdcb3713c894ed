"""Kimi K2 and its successors: turns between `<|im_user|>`, `<|im_middle|>` and `<|im_end|>`, calls named by their IDs.

Two families share the format. K2 (Instruct, -0905, Thinking) declares tools as JSON and writes a default system
message; K2.5 and K2.6 declare tools as TypeScript and open the reasoning in the prompt. See docs/families/kimi.md.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, ClassVar, Literal

from pydantic import model_validator

from renderers.config import RendererConfig, Revision
from renderers.conversation import NEVER, Conversation, History, Turn
from renderers.family import FamilyRenderer
from renderers.formats.headed_calls import CALL_ID, HeadedJsonCalls, read_call_id
from renderers.formats.typescript_tools import typescript_tools
from renderers.messages import Message, Tools, to_json
from renderers.parsing import Marker, Reasoning, ReplyGrammar
from renderers.renderer import ConfigT
from renderers.writer import Writer

DEFAULT_SYSTEM = "<|im_system|>system<|im_middle|>You are Kimi, an AI assistant created by Moonshot AI.<|im_end|>"
ASSISTANT = "<|im_assistant|>assistant<|im_middle|>"
EMPTY_THINKING = "<think></think>"
MARKERS = (
    "<|im_end|>", "<|im_user|>", "<|im_assistant|>", "<|im_system|>", "<|im_middle|>", "<|tool_calls_section_begin|>",
    "<|tool_calls_section_end|>", "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>",
)  # fmt: skip


@lru_cache(maxsize=64)
def json_tools(tools: Tools) -> str:
    """The tools as compact JSON, all keys sorted: Kimi's tokenizer class sorts them before the template."""
    return to_json(tools.schemas, separators=(",", ":"), sort_keys=True)


@lru_cache(maxsize=64)
def declared_tools(tools: Tools) -> str:
    """The tools as TypeScript; as JSON where a schema has no such form, or none of them is a function."""
    return typescript_tools(json.loads(json_tools(tools))) or json_tools(tools)


class _KimiRenderer(FamilyRenderer[ConfigT]):
    """What all of them share: the turns, the calls, the results."""

    stop_tokens = ("<|im_end|>", "[EOS]")
    stops_outside_history = frozenset({"[EOS]"})
    turn_close = "<|im_end|>"
    reply_headers = (ASSISTANT,)
    tool_call_id_form = "functions.{name}:{index}"
    calls = HeadedJsonCalls(
        "<|tool_call_begin|>",
        "<|tool_call_argument_begin|>",
        "<|tool_call_end|>",
        read_call_id,
        section_open="<|tool_calls_section_begin|>",
        section_close="<|tool_calls_section_end|>",
    )

    @property
    def reply_grammar(self) -> ReplyGrammar:
        """Reasoning, text, then a section of calls, with nothing between them."""
        return ReplyGrammar(self.stop_tokens, Reasoning("<think>", "</think>"), self.calls)

    @property
    def no_reasoning(self) -> str:
        """What stands for reasoning that is not there, or is not kept."""
        return EMPTY_THINKING

    @property
    def required_tokens(self) -> tuple[str, ...]:
        """The markers of turns and calls, and of reasoning where the template writes some."""
        return (*MARKERS, "<think>", "</think>") if self.no_reasoning else MARKERS

    def declare(self, tools: Tools) -> str:
        """The tools as the model is told of them."""
        return declared_tools(tools)

    def text_of(self, message: Message) -> str:
        """The template prints text parts one after the other."""
        return message.text_joined("") or ""

    def is_reasoning(self, text: str) -> bool:
        """The template drops any text between the markers, be it a line feed."""
        return bool(text)

    def write_preamble(self, out: Writer, conversation: Conversation) -> None:
        """The tools, in a turn of their own."""
        if conversation.tools:
            out.scaffold("<|im_system|>tool_declare<|im_middle|>")
            out.schema(self.declare(conversation.tools))
            out.scaffold("<|im_end|>")

    def write_message(self, out: Writer, turn: Turn) -> None:
        """One turn: its marker, its name (else its role), its text. Whoever is neither user nor assistant is system."""
        out.scaffold({"user": "<|im_user|>", "assistant": "<|im_assistant|>"}.get(turn.role, "<|im_system|>"))
        if turn.message.name:
            out.body(turn.message.name)
        else:
            out.scaffold(turn.role)
        out.scaffold("<|im_middle|>")
        if turn.role == "assistant":
            self._write_reply(out, turn)
        else:
            if turn.role == "tool":
                out.scaffold("## Return of ")
                self._write_call_id(out, turn, turn.message.tool_call_id)
                out.scaffold("\n")
            out.body(turn.content)
        out.scaffold(self.turn_close)

    def _write_reply(self, out: Writer, turn: Turn) -> None:
        if turn.keeps_reasoning and turn.reasoning:
            out.reply()
            out.scaffold("<think>")
            out.body(turn.reasoning)
            out.scaffold("</think>")
        else:
            out.scaffold(self.no_reasoning)
            out.reply()
        out.body(turn.content)
        if not turn.message.tool_calls:
            return
        out.scaffold("<|tool_calls_section_begin|>")
        for call in turn.message.tool_calls:
            out.scaffold("<|tool_call_begin|>")
            self._write_call_id(out, turn, call.id, call.function.name)
            out.scaffold("<|tool_call_argument_begin|>")
            out.body(call.function.arguments_text)
            out.scaffold("<|tool_call_end|>")
        out.scaffold("<|tool_calls_section_end|>")

    def _write_call_id(self, out: Writer, turn: Turn, call_id: str | None, name: str | None = None) -> None:
        """A call's ID, as it came: the only place where the tool's name is printed."""
        found = CALL_ID.fullmatch(call_id or "")
        if not found or not found["prefix"] or found["name"] != (name or found["name"]):
            out.damage(
                "missing_tool_call_id" if call_id is None else "foreign_tool_call_id",
                turn.index,
                f"of a tool call the template prints the ID ({call_id!r}) and not the tool's name, and the model knows IDs "
                f"of the form functions.{name or 'NAME'}:INDEX only; keep those that it samples",
            )
        out.body(call_id or "")

    def write_generation_prompt(self, out: Writer, state: Any) -> None:
        """The assistant's header."""
        out.scaffold(ASSISTANT)


class KimiK2Config(RendererConfig):
    """Settings of the Kimi K2 family.

    Attributes:
        revision: Instruct (also -0905), which has no reasoning, or Thinking. Neither template has switches.
    """

    name: Literal["kimi-k2"] = "kimi-k2"
    revision: Literal["instruct", "thinking"] = "instruct"


class KimiK2Renderer(_KimiRenderer[KimiK2Config]):
    """Renders, parses and bridges conversations of Kimi K2."""

    family = "kimi-k2"
    config_class = KimiK2Config
    revisions: ClassVar[tuple[Revision, ...]] = (
        Revision(
            "instruct",
            "95acba08e22bf980f058ab9bcd603c7fe0bf9b027e0f04a12ee4fdd9995b3cc3",
            models=("moonshotai/Kimi-K2-Instruct", "moonshotai/Kimi-K2-Instruct-0905"),
            retention="no reasoning",
        ),
        Revision(
            "thinking",
            "3b0ed4adbd8b6693d8435a87e844c701d7c27abe0229150cca55488c8df1c7ad",
            models=("moonshotai/Kimi-K2-Thinking",),
            retention="since the last answer",
        ),
    )

    @property
    def no_reasoning(self) -> str:
        """Instruct writes no think block."""
        return "" if self.config.revision == "instruct" else EMPTY_THINKING

    @property
    def reply_grammar(self) -> ReplyGrammar:
        """Instruct has no reasoning, unless a policy keeps some that was given to it; its markers may be plain text."""
        if self.config.revision == "thinking":
            return super().reply_grammar
        given = Reasoning(Marker.either("<think>"), Marker.either("</think>"))
        return ReplyGrammar(self.stop_tokens, given if self.config.thinking_retention else None, self.calls)

    def declare(self, tools: Tools) -> str:
        """JSON."""
        return json_tools(tools)

    def template_floor(self, history: History) -> int:
        """Reasoning stays after the last answer without calls; Instruct never prints any."""
        return NEVER if self.config.revision == "instruct" else history.last_answer

    def write_preamble(self, out: Writer, conversation: Conversation) -> None:
        """The tools, then a default system message unless the conversation opens with one."""
        super().write_preamble(out, conversation)
        if conversation.opening_system is None:
            out.scaffold(DEFAULT_SYSTEM)
            if self.config.revision == "instruct":
                out.scaffold("\n")  # a line feed of the template's own source, after this message alone


class KimiK25Config(RendererConfig):
    """Settings of the Kimi K2.5 family.

    Attributes:
        revision: which of the official templates.
        thinking: False closes the reasoning in the prompt, and drops it from the history. None is the template's
            undefined, which means thinking.
        preserve_thinking: True keeps the reasoning of all messages. K2.6 alone has the switch.
    """

    name: Literal["kimi-k2.5"] = "kimi-k2.5"
    revision: Literal["k2.5", "k2.6"] = "k2.5"
    thinking: bool | None = None
    preserve_thinking: bool | None = None

    @model_validator(mode="after")
    def _check_preserving(self) -> KimiK25Config:
        if self.preserve_thinking is not None and self.revision == "k2.5":
            raise ValueError(
                f"preserve_thinking={self.preserve_thinking}: K2.5's template has no such switch, K2.6's has"
            )
        if (self.preserve_thinking, self.thinking_retention) in {(True, "tool_cycle"), (False, "all")}:
            raise ValueError(
                f"preserve_thinking={self.preserve_thinking} contradicts thinking_retention={self.thinking_retention!r}"
            )
        return self


class KimiK25Renderer(_KimiRenderer[KimiK25Config]):
    """Renders, parses and bridges conversations of Kimi K2.5 and K2.6."""

    family = "kimi-k2.5"
    config_class = KimiK25Config
    revisions: ClassVar[tuple[Revision, ...]] = (
        Revision(
            "k2.5",
            "27f0a184f44c84b6a9b6ded8f16c876896153bd9a7e878c066cf2bdaaa64ee9c",
            models=("moonshotai/Kimi-K2.5",),
            retention="since the last answer",
        ),
        Revision(
            "k2.6",
            "8bf859698fd4781c0e1e1c63ce74422aab27e53ccc5f47116317c64cda06132f",
            models=("moonshotai/Kimi-K2.6",),
            retention="since the last answer; everything with preserve_thinking",
        ),
    )

    def split_reasoning(self, message: Message) -> tuple[str | None, str]:
        """K2.6 looks for `reasoning` before `reasoning_content`."""
        reasoning, content = super().split_reasoning(message)
        if self.config.revision == "k2.6" and isinstance(message.reasoning, str):
            reasoning = message.reasoning
        return reasoning, content

    def template_floor(self, history: History) -> int:
        """Reasoning stays after the last answer without calls, unless the switches keep all of it or none."""
        if self.config.preserve_thinking:
            return -1
        return NEVER if self.config.thinking is False else history.last_answer

    def write_generation_prompt(self, out: Writer, state: Any) -> None:
        """The prompt opens the reasoning, and closes it at once where thinking is off."""
        super().write_generation_prompt(out, state)
        out.scaffold(EMPTY_THINKING if self.config.thinking is False else "<think>")
