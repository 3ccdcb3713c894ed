"""Qwen3: ChatML turns, reasoning in `<think>`, tool calls as JSON between `<tool_call>` markers.

Four official templates: the hybrid models' current one and their first one of April 2025, Instruct-2507 (no
reasoning) and Thinking-2507 (the prompt opens the reasoning). See docs/families/qwen3.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from pydantic import model_validator

from renderers.chatml_turns import EMPTY_THINKING, THINKING, ChatMLRenderer
from renderers.config import RendererConfig, Revision
from renderers.conversation import NEVER, Conversation, History, Turn
from renderers.formats.hermes import JsonToolCalls
from renderers.messages import Message, ToolCall
from renderers.parsing import ReplyGrammar
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


class Qwen3Renderer(ChatMLRenderer[Qwen3Config]):
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
            retention="no reasoning",
        ),
        Revision(
            "thinking-2507",
            "3802169b2a02b81e6adb7ab4f64f91ff02db753c8c3a64a01c35192d3a61d8d7",
            models=(
                "Qwen/Qwen3-4B-Thinking-2507", "Qwen/Qwen3-30B-A3B-Thinking-2507", "Qwen/Qwen3-235B-A22B-Thinking-2507",
            ),
        ),
    )  # fmt: skip

    @property
    def _reasons(self) -> bool:
        return self.config.revision != "instruct-2507"

    @property
    def splits_content(self) -> bool:
        """Instruct's template knows of no reasoning."""
        return self._reasons

    @property
    def reply_grammar(self) -> ReplyGrammar:
        """Reasoning (but for Instruct), then text, then JSON calls a line each."""
        return ReplyGrammar(
            stop_tokens=self.stop_tokens,
            reasoning=THINKING if self._reasons else None,
            tool_calls=JsonToolCalls("<tool_call>", "</tool_call>"),
        )

    def is_query(self, message: Message) -> bool:
        """A user message without text is nothing; to the first template, for which it has to become "", it is a query."""
        if message.text is None:
            return self.config.revision == "hybrid-2025-04"
        return super().is_query(message)

    def template_floor(self, history: History) -> int:
        """Without any query the template takes the last message for one."""
        if not self._reasons:
            return NEVER
        return history.last_query if history.last_query >= 0 else history.length - 1

    def recover_state(self, token_ids: Sequence[int]) -> None:
        """Nothing but that there is a query: IDs that show none do not tell what the template takes for one."""
        if self._reasons and self.config.thinking_retention is None and not self._shows_query(token_ids):
            raise LookupError("the prompt shows no user's question, and without one the template drops all reasoning")

    def _shows_query(self, token_ids: Sequence[int]) -> bool:
        opener, place = self.tokenizer.special_tokens["<|im_start|>"], -1
        while True:
            try:
                place = token_ids.index(opener, place + 1)
            except ValueError:
                return False
            turn = self.decode(token_ids[place + 1 : place + 6])
            if turn.startswith("user\n") and not turn.startswith(("user\n<tool_response>", "user\n<|im_end|>")):
                return True

    def write_preamble(self, out: Writer, conversation: Conversation) -> None:
        """The tools share a turn with the system message, or have one of their own."""
        system = conversation.opening_system
        if not conversation.tools:
            if system is not None:
                self.write_system(out, system)
            return
        out.scaffold("<|im_start|>system\n")
        if system is not None:
            out.begin(0, "system")
            out.body(self.text_of(system))
            out.begin(-1, "")
            out.scaffold("\n\n")
        out.scaffold(TOOLS_HEAD)
        for tool in conversation.tools.json_texts:
            out.scaffold("\n")
            out.schema(tool)
        out.scaffold(TOOLS_TAIL)

    def write_reply(self, out: Writer, turn: Turn) -> None:
        """Reasoning that counts, an empty think block in the last turn, the text, the calls."""
        if self._reasons and turn.keeps_reasoning and (turn.is_last or turn.reasoning):
            self.write_thinking(out, (turn.reasoning or "").strip("\n"))
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

    def write_generation_prompt(self, out: Writer, state: Any) -> None:
        """Thinking-2507 opens the reasoning; the hybrids close it at once where thinking is off."""
        out.scaffold("<|im_start|>assistant\n")
        if self.config.revision == "thinking-2507":
            out.scaffold("<think>\n")
        elif self._reasons and self.config.enable_thinking is False:
            out.scaffold(EMPTY_THINKING)
