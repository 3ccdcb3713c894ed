"""DeepSeek V3.2: a block of results after the calls, reasoning in `<think>`, typed calls in DSML.

The vendor ships a Python encoder and no template. See docs/families/deepseek-v3.2-v4.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from renderers.config import Revision
from renderers.conversation import NEVER, History, Turn
from renderers.dsml_turns import THINK, THINK_END, DsmlConfig, DsmlRenderer, DsmlState
from renderers.errors import UnsupportedMessageError
from renderers.formats.dsml import DsmlCalls
from renderers.messages import Message
from renderers.writer import Writer

BEGIN, END = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"
USER, ASSISTANT = "<｜User｜>", "<｜Assistant｜>"
RESULTS, RESULTS_END = "\n\n<function_results>", "\n</function_results>"

TOOLS_HEAD = """

## Tools

You have access to a set of tools you can use to answer the user's question.
You can invoke functions by writing a "<｜DSML｜function_calls>" block like the following as part of your reply to the user:
<｜DSML｜function_calls>
<｜DSML｜invoke name="$FUNCTION_NAME">
<｜DSML｜parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</｜DSML｜parameter>
...
</｜DSML｜invoke>
<｜DSML｜invoke name="$FUNCTION_NAME2">
...
</｜DSML｜invoke>
</｜DSML｜function_calls>

String and scalar parameters should be specified as is without any escaping or quotes, while lists and objects should \
use JSON format. The "string" attribute should be set to "true" for string type parameters and "false" for other types \
(numbers, booleans, arrays, objects).

If the thinking_mode is enabled, then after function results you should strongly consider outputting a thinking block. \
Here is an example:

<｜DSML｜function_calls>
...
</｜DSML｜function_calls>

<function_results>
...
</function_results>

<think>...thinking about results</think>

Here are the functions available in JSONSchema format:
<functions>"""
TOOLS_TAIL = "\n</functions>\n"


class DeepSeekV32Config(DsmlConfig):
    """Settings of DeepSeek V3.2. See `DsmlConfig`.

    Reasoning is dropped before the last user message whatever `drop_thinking` says: False only keeps developer messages
    there, which the encoder otherwise refuses.
    """

    name: Literal["deepseek-v3.2"] = "deepseek-v3.2"
    revision: Literal["v3.2"] = "v3.2"


@dataclass(frozen=True, slots=True)
class State(DsmlState):
    """What the next message depends on; `calls` is how many calls still wait for their result."""

    calls: int = 0


class DeepSeekV32Renderer(DsmlRenderer[DeepSeekV32Config]):
    """Renders, parses and bridges DeepSeek V3.2 conversations."""

    family = "deepseek-v3.2"
    config_class = DeepSeekV32Config
    revisions: ClassVar[tuple[Revision, ...]] = (Revision("v3.2", None, models=("deepseek-ai/DeepSeek-V3.2",)),)
    required_tokens = (BEGIN, END, USER, ASSISTANT, THINK, THINK_END, "｜DSML｜")
    begin_token = BEGIN
    stop_tokens = (END,)
    turn_close = END
    reply_headers = (ASSISTANT, END + RESULTS)
    calls = DsmlCalls("function_calls", TOOLS_HEAD, TOOLS_TAIL)
    state_class = State
    arguments_as_objects = True

    def template_floor(self, history: History) -> int:
        """Reasoning stays after the last user or developer message."""
        return history.last_query if self.thinks else NEVER

    def advance(self, state: State, message: Message) -> State:
        """A user's message opens the assistant's turn, and so does the last result.

        Two things are written otherwise when a user's message follows: a reply that nothing opened, and what opens the
        assistant's turn where a system message comes next.
        """
        match message.role:
            case "user":
                return State(ASSISTANT)
            case "developer":
                return State(ASSISTANT, settled=not self.drops)  # once a user's message follows it is refused
            case "assistant":
                return State("", state.settled if state.opener else False, len(message.tool_calls or ()))
            case "tool":
                return State("\n\n" if state.calls == 1 else "", state.settled, state.calls - 1)
        return State("", False if state.opener else state.settled)

    def recover_state(self, token_ids: Sequence[int]) -> State:
        """What was a developer's message looks like a user's."""
        return State(ASSISTANT, settled=None)

    def text_of(self, message: Message) -> str:
        """The encoder formats null content of users and tools into the text."""
        return "None" if message.text is None and message.role in {"user", "tool"} else message.text or ""

    def write_input(self, out: Writer, turn: Turn) -> None:
        """What opens the assistant's turn ends this message, but where the assistant's own begins with it."""
        if turn.message.text is None:
            detail = f"the encoder prints a {turn.role} message without content as None; give it an empty text"
            out.damage("printed_none", turn.index, detail)
        match turn.role:
            case "user":
                out.scaffold(USER)
                out.body(turn.content)
            case "developer":
                self.require_content(turn)
                if self.drops and not turn.follows_last_query:
                    problem = "with drop_thinking the encoder refuses a developer message before the last user message"
                    raise UnsupportedMessageError(problem, message_index=turn.index, field="role")
                out.scaffold(USER + "\n\n# The user's message is: ")
                out.body(turn.content)
            case "tool":
                self._write_result(out, turn)
        opener = self.advance(turn.state, turn.message).opener
        if opener and turn.next_role not in {None, "assistant"}:
            opens = self.thinks and (turn.keeps_reasoning or turn.follows_last_query)
            out.scaffold(opener + (THINK if opens else THINK_END))

    def _write_result(self, out: Writer, turn: Turn) -> None:
        if turn.state.calls < 1:
            problem = "this result answers no call: the encoder takes one for each call of the message before them"
            raise UnsupportedMessageError(problem, message_index=turn.index, field="role")
        if turn.previous_role != "tool":
            out.scaffold(RESULTS)
        out.scaffold("\n<result>")
        out.body(turn.content)
        out.scaffold("</result>")
        if turn.state.calls == 1:
            out.scaffold(RESULTS_END)
        elif turn.next_role != "tool":
            detail = (
                "the encoder closes the results, and opens the assistant's turn, only when each call has its result"
            )
            out.damage("unanswered_calls", turn.index, detail)

    def opener_of(self, turn: Turn) -> str:
        """In thinking mode an answer after the last user message must have reasoning."""
        is_bare = not (turn.reasoning or turn.message.tool_calls or turn.is_open)
        if is_bare and self.thinks and turn.follows_last_query:
            problem = "in thinking mode the encoder refuses an answer without reasoning after the last user message"
            raise UnsupportedMessageError(problem, message_index=turn.index, field="reasoning_content")
        return super().opener_of(turn)
