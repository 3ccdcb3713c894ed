"""ChatML turns, as the Qwen line writes them: a role's name after `<|im_start|>`, a user's turn for all tool results.

<|im_start|>assistant
<think>
I need the tool.
</think>

<tool_call>
...
</tool_call><|im_end|>
<|im_start|>user
<tool_response>
18 C
</tool_response><|im_end|>
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from renderers.conversation import History, Turn
from renderers.family import FamilyRenderer
from renderers.formats.inline_reasoning import report_dropped_text, split_inline_reasoning
from renderers.messages import Message
from renderers.parsing import Reasoning
from renderers.renderer import ConfigT
from renderers.writer import Writer

THINKING = Reasoning("<think>", "</think>", after_open="\n", before_close="\n", after_close="\n\n")
EMPTY_THINKING = "<think>\n\n</think>\n\n"


class ChatMLRenderer(FamilyRenderer[ConfigT]):
    """What such formats share."""

    required_tokens = ("<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>")
    stop_tokens = ("<|im_end|>", "<|endoftext|>")
    stops_outside_history = frozenset({"<|endoftext|>"})
    turn_close = "<|im_end|>\n"
    reply_headers = ("<|im_start|>assistant\n",)
    #: What opens the turn of tool results, and what stands around each.
    results_header: ClassVar[str] = "<|im_start|>user"
    result_tags: ClassVar[tuple[str, str]] = ("\n<tool_response>\n", "\n</tool_response>")

    @abstractmethod
    def write_reply(self, out: Writer, turn: Turn) -> None:
        """Write an assistant message, without its header and close."""

    @property
    def splits_content(self) -> bool:
        """Whether the template takes reasoning out of the content, where there is no `reasoning_content`."""
        return True

    def opens_results(self, turn: Turn) -> bool:
        """Whether a turn begins with this tool message."""
        return turn.previous_role != "tool"

    def is_query(self, message: Message) -> bool:
        """A user message wholly wrapped in `<tool_response>` tags is a tool result."""
        text = self.text_of(message)
        return not (text.startswith("<tool_response>") and text.endswith("</tool_response>"))

    def template_floor(self, history: History) -> int:
        """Reasoning stays after the last query."""
        return history.last_query

    def split_reasoning(self, message: Message) -> tuple[str | None, str]:
        """Without `reasoning_content`, reasoning is what stands before the last `</think>` of the content."""
        reasoning, content = message.reasoning_text, self.text_of(message)
        if reasoning is None and self.splits_content:
            return split_inline_reasoning(content)
        return reasoning, content

    def write_message(self, out: Writer, turn: Turn) -> None:
        """One ChatML turn; tool results share a user's turn. A system message that comes first stands in the preamble."""
        match turn.role:
            case "system" if turn.is_first:
                pass
            case "system" | "user":
                self.write_turn(out, turn.role, turn.content)
            case "assistant":
                out.scaffold("<|im_start|>assistant\n")
                out.reply()
                self.write_reply(out, turn)
                out.scaffold(self.turn_close)
                if self.splits_content:
                    report_dropped_text(out, turn, self.text_of(turn.message))
            case "tool":
                self._write_result(out, turn)
            case _:
                self.drop(out, turn)

    def write_turn(self, out: Writer, role: str, content: str) -> None:
        """A turn that holds a text."""
        out.scaffold(f"<|im_start|>{role}\n")
        out.body(content)
        out.scaffold(self.turn_close)

    def write_system(self, out: Writer, message: Message) -> None:
        """The turn of a system message that comes first and stands alone."""
        out.begin(0, "system")
        self.write_turn(out, "system", self.text_of(message))
        out.begin(-1, "")

    def write_thinking(self, out: Writer, reasoning: str) -> None:
        """The think block."""
        out.scaffold("<think>\n")
        out.body(reasoning)
        out.scaffold("\n</think>\n\n")

    def _write_result(self, out: Writer, turn: Turn) -> None:
        before, after = self.result_tags
        if self.opens_results(turn):
            out.scaffold(self.results_header)
        out.scaffold(before)
        out.body(turn.content)
        out.scaffold(after)
        if turn.next_role != "tool":
            out.scaffold(self.turn_close)
