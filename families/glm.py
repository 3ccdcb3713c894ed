"""GLM: turns that a role's marker opens and the next one's closes, reasoning in `<think>`, calls as keys and values.

GLM-4.5 writes its parts on lines of their own, and the model opens its reasoning. GLM-4.7 and GLM-5 have no line feeds,
and the prompt opens it. Five official templates. See docs/families/glm.md.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import model_validator

from renderers.config import RendererConfig, Revision
from renderers.conversation import Conversation, History, Turn
from renderers.errors import ToolsError
from renderers.family import FamilyRenderer
from renderers.formats.arg_pairs import ArgPairs
from renderers.formats.inline_reasoning import report_dropped_text, split_inline_reasoning
from renderers.messages import Message, Tools, to_json
from renderers.parsing import Reasoning, ReplyGrammar
from renderers.writer import Writer


class GLM45Config(RendererConfig):
    """Settings of the GLM-4.5 family.

    Attributes:
        revision: the official template; there is one.
        enable_thinking: False ends every user message in `/nothink` and the generation prompt in an empty think block;
            None, like the template's undefined, means thinking.
    """

    name: Literal["glm4.5"] = "glm4.5"
    revision: Literal["4.5"] = "4.5"
    enable_thinking: bool | None = None


class GLM5Config(RendererConfig):
    """Settings of the GLM-5 family.

    Attributes:
        revision: which of the official templates.
        enable_thinking: False closes the reasoning in the generation prompt; None, like the template's undefined, means
            thinking.
        clear_thinking: False keeps the reasoning of earlier turns; None, like the template's undefined, means True.
        reasoning_effort: of 5.2, whose template names it where thinking is on; None, like the template's undefined and
            whatever else is not "high", means "max".
    """

    name: Literal["glm5"] = "glm5"
    revision: Literal["4.7", "5", "5.1", "5.2"] = "5.2"
    enable_thinking: bool | None = None
    clear_thinking: bool | None = None
    reasoning_effort: Literal["high", "max"] | None = None

    @model_validator(mode="after")
    def _check_switches(self) -> GLM5Config:
        if self.reasoning_effort is not None and self.revision != "5.2":
            raise ValueError(
                f"reasoning_effort is a switch of revision '5.2'; the template of {self.revision!r} has none"
            )
        if (self.clear_thinking, self.thinking_retention) in {(True, "all"), (False, "tool_cycle")}:
            raise ValueError(
                f"clear_thinking={self.clear_thinking} contradicts thinking_retention={self.thinking_retention!r}"
            )
        return self


GLMConfig = TypeVar("GLMConfig", GLM45Config, GLM5Config)


class GLMRenderer(FamilyRenderer[GLMConfig]):
    """What all GLM formats share."""

    required_tokens = (
        "[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>", "<think>", "</think>",
        "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>",
    )  # fmt: skip
    stop_tokens = ("<|user|>", "<|observation|>", "<|endoftext|>")
    stops_outside_history = frozenset({"<|endoftext|>"})
    turn_close = ""  # the marker of the next message, which the model samples
    reply_headers = ("<|assistant|>",)
    other_headers = ("<|system|>",)
    arguments_as_objects = True
    #: The dialect of the calls. What stands between its lines stands between all parts of a turn.
    calls: ClassVar[ArgPairs] = ArgPairs()

    @property
    def reply_grammar(self) -> ReplyGrammar:
        """Reasoning, text, calls; after calls the model stops at the marker of their results."""
        return ReplyGrammar(
            stop_tokens=self.stop_tokens,
            stop_after_calls="<|observation|>",
            reasoning=Reasoning("<think>", "</think>", before_open=self.calls.line, after_close=self.calls.line),
            tool_calls=self.calls,
        )

    @property
    def prefix(self) -> str:
        """What every prompt begins with."""
        return "[gMASK]<sop>"

    @property
    def is_early(self) -> bool:
        """Whether this is a template before 5.1: it strips reasoning, and takes a tool's result as text only."""
        return True

    def text_of(self, message: Message) -> str:
        """Text parts follow each other without a separator."""
        return message.text_joined("\n" if message.role == "tool" and self.is_early else "") or ""

    def split_reasoning(self, message: Message) -> tuple[str | None, str]:
        """Without `reasoning_content`, reasoning is what stands before the first `</think>` of the content."""
        reasoning, content = message.reasoning_text, self.text_of(message)
        if reasoning is None:
            reasoning, content = split_inline_reasoning(content, strip="\n" if self.is_early else "")
        return reasoning, content

    def is_reasoning(self, text: str) -> bool:
        """White space is none where the template strips it."""
        return bool(text.strip() if self.is_early else text)

    def template_floor(self, history: History) -> int:
        """Reasoning stays after the last user message."""
        return history.last_query

    def tool_texts(self, tools: Tools) -> Sequence[str]:
        """The tools as the preamble shows them."""
        return tools.json_texts

    def write_preamble(self, out: Writer, conversation: Conversation) -> None:
        """The tools have a system turn of their own."""
        out.scaffold(self.prefix)
        if conversation.tools:
            self.calls.write_tools(out, self.tool_texts(conversation.tools))

    def write_message(self, out: Writer, turn: Turn) -> None:
        """A role's marker and the text."""
        match turn.role:
            case "system" | "user":
                out.scaffold(f"<|{turn.role}|>{self.calls.line}")
                out.body(turn.content)
            case "assistant":
                out.scaffold("<|assistant|>")
                self.write_thinking(out, turn)
                if content := turn.content.strip():
                    out.scaffold(self.calls.line)
                    out.body(content)
                self.calls.write_calls(out, turn)
                report_dropped_text(out, turn, self.text_of(turn.message))
            case "tool":
                self.calls.write_result(out, turn, loops_over_content=self.is_early)
            case _:
                self.drop(out, turn)

    @abstractmethod
    def write_thinking(self, out: Writer, turn: Turn) -> None:
        """Write the think block of an assistant's turn, or what stands in its place."""

    def write_think_block(self, out: Writer, reasoning: str, *, empty: str) -> None:
        """A think block, or what the template writes where there is no reasoning."""
        if reasoning:
            out.reply()
            out.scaffold(f"{self.calls.line}<think>")
            out.body(reasoning)
            out.scaffold("</think>")
        else:
            out.scaffold(empty)
            out.reply()


class GLM45Renderer(GLMRenderer[GLM45Config]):
    """Renders, parses and bridges GLM-4.5 conversations."""

    family = "glm4.5"
    config_class = GLM45Config
    revisions: ClassVar[tuple[Revision, ...]] = (
        Revision(
            "4.5",
            "44f815868bf02fa458dd2f741a338046f4bf45f398eb6d067766726b9d96cce3",
            models=("zai-org/GLM-4.5", "zai-org/GLM-4.5-Air", "zai-org/GLM-4.6"),
        ),
    )
    calls = ArgPairs(line="\n")

    def write_message(self, out: Writer, turn: Turn) -> None:
        """Without thinking, every user message ends in `/nothink`."""
        super().write_message(out, turn)
        if turn.role == "user" and self.config.enable_thinking is False and not turn.content.endswith("/nothink"):
            out.scaffold("/nothink")

    def write_thinking(self, out: Writer, turn: Turn) -> None:
        """Every turn has a think block, perhaps an empty one."""
        reasoning = turn.reasoning if turn.keeps_reasoning else None
        self.write_think_block(out, (reasoning or "").strip(), empty="\n<think></think>")

    def write_generation_prompt(self, out: Writer, state: Any) -> None:
        """The model opens its reasoning itself; without thinking, an empty block stands there."""
        out.scaffold("<|assistant|>")
        if self.config.enable_thinking is False:
            out.scaffold("\n<think></think>")


class GLM5Renderer(GLMRenderer[GLM5Config]):
    """Renders, parses and bridges GLM-4.7 and GLM-5 conversations."""

    family = "glm5"
    config_class = GLM5Config
    revisions: ClassVar[tuple[Revision, ...]] = (
        Revision(
            "4.7",
            "d63ad536c3c81880043e22ec7fd08db42b4d8fb7c89c7138bc562bfa25281375",
            models=("zai-org/GLM-4.7-Flash",),
            unverified=("zai-org/GLM-4.7",),
        ),
        Revision("5", "45a1d5635afd3d8e08a28866e72fc8395d2a7ec30989fd0bdaec6dd45a99eff0", models=("zai-org/GLM-5",)),
        Revision(
            "5.1", "03b1bbff20331e54647c68167e8ac7f0b5b7ceb40ead372f44826624a9ad79cd", models=("zai-org/GLM-5.1",)
        ),
        Revision(
            "5.2", "dedbb4dae748fa22459663ee32851fa5d4910124bbeb795085d47214d6c78529", models=("zai-org/GLM-5.2",)
        ),
    )

    @property
    def prefix(self) -> str:
        """5.2 names the reasoning effort."""
        if self.config.revision != "5.2" or self.config.enable_thinking is False:
            return super().prefix
        effort = "High" if self.config.reasoning_effort == "high" else "Max"
        return f"{super().prefix}<|system|>Reasoning Effort: {effort}"

    @property
    def is_early(self) -> bool:
        """4.7 and 5 still do it as 4.5."""
        return self.config.revision in {"4.7", "5"}

    def template_floor(self, history: History) -> int:
        """All reasoning stays with `clear_thinking=False`."""
        return -1 if self.config.clear_thinking is False else super().template_floor(history)

    def look_ahead(self, messages: Sequence[Message]) -> Sequence[bool]:
        """Whether a turn after the same user message has `reasoning_content`, which 5.1 asks for."""
        cycles = list(accumulate(message.role == "user" for message in messages))
        thinking = {
            cycle
            for cycle, message in zip(cycles, messages, strict=True)
            if cycle and message.role == "assistant" and message.reasoning_text is not None
        }
        return [cycle in thinking for cycle in cycles]

    def _block(self, turn: Turn) -> str | None:
        """What stands between the tags of the think block, or None where a closing tag stands alone."""
        reasoning = turn.reasoning if turn.keeps_reasoning else None
        match self.config.revision:
            case "4.7" | "5":
                return reasoning.strip() if reasoning else None
            case "5.1" if turn.keeps_reasoning and reasoning is None:
                thinks = turn.ahead
                if turn.follows_last_query:
                    thinks = self.config.enable_thinking is not False
                return "" if thinks else None
            case "5.1":
                return reasoning
            case "5.2":
                return reasoning or ""

    def write_thinking(self, out: Writer, turn: Turn) -> None:
        """A turn without reasoning has a closing tag alone, or an empty think block."""
        block = self._block(turn)
        self.write_think_block(out, block or "", empty="</think>" if block is None else "<think></think>")

    def tool_texts(self, tools: Tools) -> Sequence[str]:
        """5.1 and 5.2 show the functions alone, and not those whose loading is deferred."""
        if self.is_early:
            return super().tool_texts(tools)
        functions = [tool.get("function", tool) for tool in tools.schemas]
        if not all(isinstance(function, dict) for function in functions):
            raise ToolsError("tools: a tool's `function` is an object")
        return [_function_text(function) for function in functions if not function.get("defer_loading")]

    def write_generation_prompt(self, out: Writer, state: Any) -> None:
        """The reasoning is opened, or closed at once."""
        out.scaffold("<|assistant|>")
        if self.config.enable_thinking is not False:
            out.scaffold("<think>")
        else:
            out.scaffold("<think></think>" if self.config.revision == "5.2" else "</think>")


def _function_text(function: dict[str, Any]) -> str:
    """A function as JSON, without the fields that are for the server."""
    fields = [f'"{key}": {to_json(value)}' for key, value in function.items() if key not in {"defer_loading", "strict"}]
    return "{" + ", ".join(fields) + "}"
