"""Qwen3: ChatML turns, reasoning in `<think>`, tool calls as JSON between `<tool_call>` markers.

Four official templates: the hybrid models' current one and their first one of April 2025, Instruct-2507 (no
reasoning) and Thinking-2507 (the prompt opens the reasoning). See docs/families/qwen3.md.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import model_validator

from renderers.config import RendererConfig, Revision
from renderers.conversation import NEVER, Conversation, History, Turn
from renderers.family import FamilyRenderer
from renderers.formats.hermes import JsonToolCalls
from renderers.messages import Message, ToolCall
from renderers.parsing import Reasoning, ReplyGrammar
from renderers.writer import Writer

TOOLS_HEAD = (
    "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n<tools>"
)
TOOLS_TAIL = (
    "\n</tools>\n\nFor each function call, return a json object with function name and arguments within "
    '<tool_call></tool_call> XML tags:\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n'
    "</tool_call><|im_end|>\n"
)
EMPTY_THINKING = "<think>\n\n</think>\n\n"


class Qwen3Config(RendererConfig):
    """Settings of the Qwen3 family.

    Attributes:
        revision: which of the official templates.
        enable_thinking: False ends the generation prompt in an empty think block. Only the hybrid models have the
            switch; None, like the template's undefined, means thinking where the model can think.
    """

    name: Literal["qwen3"] = "qwen3"
    revision: Literal["hybrid", "hybrid-2025-04", "instruct-2507", "thinking-2507"] = "hybrid"
    enable_thinking: bool | None = None

    @model_validator(mode="after")
    def _check_switch(self) -> Qwen3Config:
        only = {"instruct-2507": False, "thinking-2507": True}.get(self.revision)
        if only is not None and self.enable_thinking is not None and self.enable_thinking is not only:
            raise ValueError(
                f"enable_thinking={self.enable_thinking} contradicts revision {self.revision!r}, whose template has no "
                f"such switch and always has thinking {'on' if only else 'off'}"
            )
        return self


class Qwen3Renderer(FamilyRenderer[Qwen3Config]):
    """Renders, parses and bridges Qwen3 conversations."""

    family = "qwen3"
    config_class = Qwen3Config
    revisions: ClassVar[tuple[Revision, ...]] = (
        Revision(
            "hybrid",
            "a55ee1b1660128b7098723e0abcd92caa0788061051c62d51cbe87d9cf1974d8",
            models=(
                "Qwen/Qwen3-0.6B", "Qwen/Qwen3-1.7B", "Qwen/Qwen3-4B", "Qwen/Qwen3-8B", "Qwen/Qwen3-14B",
                "Qwen/Qwen3-32B", "Qwen/Qwen3-30B-A3B", "Qwen/Qwen3-235B-A22B",
            ),
        ),
        Revision("hybrid-2025-04", "87a2728cb8dc9fe424d624542f6060ec05a1d285ebbec578bb078900e33396b5", models=("Qwen/Qwen3-8B@2025-04",)),
        Revision(
            "instruct-2507",
            "64f85b198065d0fba2a81f37e10ed68161ce2c19a754c7100e67e0ca2ee9c326",
            models=(
                "Qwen/Qwen3-4B-Instruct-2507", "Qwen/Qwen3-30B-A3B-Instruct-2507", "Qwen/Qwen3-235B-A22B-Instruct-2507",
            ),
        ),
        Revision(
            "thinking-2507",
            "3802169b2a02b81e6adb7ab4f64f91ff02db753c8c3a64a01c35192d3a61d8d7",
            models=(
                "Qwen/Qwen3-4B-Thinking-2507", "Qwen/Qwen3-30B-A3B-Thinking-2507", "Qwen/Qwen3-235B-A22B-Thinking-2507",
            ),
        ),
    )  # fmt: skip
    required_tokens = ("<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>")
    stop_tokens = ("<|im_end|>", "<|endoftext|>")
    stops_outside_history = frozenset({"<|endoftext|>"})
    turn_close = "<|im_end|>\n"
    reply_headers = ("<|im_start|>assistant\n",)

    @property
    def _reasons(self) -> bool:
        return self.config.revision != "instruct-2507"

    @property
    def reply_grammar(self) -> ReplyGrammar:
        """Reasoning (but for Instruct), then text, then JSON calls a line each."""
        reasoning = Reasoning("<think>", "</think>", after_open="\n", before_close="\n", after_close="\n\n")
        return ReplyGrammar(
            stop_tokens=self.stop_tokens,
            reasoning=reasoning if self._reasons else None,
            tool_calls=JsonToolCalls("<tool_call>", "</tool_call>"),
        )

    def is_query(self, message: Message) -> bool:
        """A user message wholly wrapped in `<tool_response>` tags is a tool result, and one without text is nothing."""
        text = message.text
        if text is None:
            return self.config.revision == "hybrid-2025-04"  # there null content has to become "", which is a query
        return not (text.startswith("<tool_response>") and text.endswith("</tool_response>"))

    def template_floor(self, history: History) -> int:
        """Reasoning stays after the last query; without any query the template takes the last message for one."""
        if not self._reasons:
            return NEVER
        return history.last_query if history.last_query >= 0 else history.count - 1

    def split_reasoning(self, message: Message) -> tuple[str | None, str]:
        """Without `reasoning_content`, reasoning is what stands before the last `</think>` of the content."""
        content, reasoning = message.text or "", message.reasoning_text
        if not self._reasons:
            return None, content
        if reasoning is None and "</think>" in content:
            reasoning = content.split("</think>")[0].rstrip("\n").split("<think>")[-1].lstrip("\n")
            content = content.split("</think>")[-1].lstrip("\n")
        return reasoning, content

    def write_preamble(self, out: Writer, conversation: Conversation) -> None:
        """The tools share a turn with the system message, or have one of their own."""
        if not conversation.tools:
            return
        out.scaffold("<|im_start|>system\n")
        if conversation.opening_system is not None:
            out.begin(0, "system")
            out.body(conversation.opening_system.text or "")
            out.begin(-1, "")
            out.scaffold("\n\n")
        out.scaffold(TOOLS_HEAD)
        for tool in conversation.tools.json_texts:
            out.scaffold("\n")
            out.schema(tool)
        out.scaffold(TOOLS_TAIL)

    def write_message(self, out: Writer, turn: Turn) -> None:
        """One ChatML turn; tool results share a user's turn."""
        match turn.role:
            case "system" if turn.is_first and turn.tools:
                pass  # stands in the preamble
            case "system" | "user":
                out.scaffold(f"<|im_start|>{turn.role}\n")
                out.body(turn.content)
                out.scaffold(self.turn_close)
            case "assistant":
                self._write_reply(out, turn)
            case "tool":
                if turn.previous_role != "tool":
                    out.scaffold("<|im_start|>user")
                out.scaffold("\n<tool_response>\n")
                out.body(turn.content)
                out.scaffold("\n</tool_response>")
                if turn.next_role != "tool":
                    out.scaffold(self.turn_close)
            case _:
                out.damage(
                    "dropped_message",
                    turn.index,
                    f"Qwen3's template prints no {turn.role} messages, so the model never sees this one; send it as a "
                    "system message",
                )

    def _write_reply(self, out: Writer, turn: Turn) -> None:
        out.scaffold("<|im_start|>assistant\n")
        out.reply()
        if self._reasons and turn.keeps_reasoning and (turn.is_last or turn.reasoning):
            out.scaffold("<think>\n")
            out.body((turn.reasoning or "").strip("\n"))
            out.scaffold("\n</think>\n\n")
            out.body(turn.content.lstrip("\n"))
        else:
            out.body(turn.content)
        calls: list[ToolCall] = turn.message.tool_calls or []
        for position, call in enumerate(calls):
            separator = "\n" if position or turn.content else ""
            out.scaffold(f'{separator}<tool_call>\n{{"name": "')
            out.body(call.function.name)
            out.scaffold('", "arguments": ')
            out.body(call.function.arguments_text)
            out.scaffold("}\n</tool_call>")
        out.scaffold(self.turn_close)

    def write_generation_prompt(self, out: Writer, state: Any) -> None:
        """Thinking-2507 opens the reasoning; the hybrids close it at once where thinking is off."""
        out.scaffold("<|im_start|>assistant\n")
        if self.config.revision == "thinking-2507":
            out.scaffold("<think>\n")
        elif self._reasons and self.config.enable_thinking is False:
            out.scaffold(EMPTY_THINKING)
