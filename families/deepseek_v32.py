"""DeepSeek V3.2: turns between role tokens, reasoning in `<think>`, typed calls in DSML.

The vendor ships a Python encoder and no template. It writes whose turn comes next at the end of a user's message and
of a block of results, and opens or closes the reasoning there. See docs/families/deepseek-v3.2-v4.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from renderers.config import RendererConfig, Revision
from renderers.conversation import NEVER, Conversation, History, Turn
from renderers.errors import UnsupportedMessageError
from renderers.family import FamilyRenderer
from renderers.formats.dsml import DsmlCalls
from renderers.messages import Message
from renderers.parsing import Reasoning, ReplyGrammar
from renderers.writer import Writer

BEGIN, END = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"
USER, ASSISTANT = "<｜User｜>", "<｜Assistant｜>"
THINK, THINK_END = "<think>", "</think>"
RESULTS, RESULTS_END = "\n\n<function_results>", "\n</function_results>"
CALLS = DsmlCalls("function_calls")

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
DEVELOPER = "\n\n# The user's message is: "


class DeepSeekV32Config(RendererConfig):
    """Settings of DeepSeek V3.2, the encoder's own arguments.

    Attributes:
        revision: there is one.
        thinking_mode: whether the prompt opens the reasoning or closes it.
        drop_thinking: None, like the encoder's default, means True. Reasoning is dropped before the last user message
            in either case; False only keeps developer messages there, which True makes the encoder refuse.
    """

    name: Literal["deepseek-v3.2"] = "deepseek-v3.2"
    revision: Literal["v3.2"] = "v3.2"
    thinking_mode: Literal["thinking", "chat"] = "chat"
    drop_thinking: bool | None = None

    contradictions = (("drop_thinking", True, "all"), ("drop_thinking", False, "tool_cycle"))


@dataclass(frozen=True, slots=True)
class State:
    """What the next message depends on.

    Attributes:
        opener: what opens the assistant's turn here: a role token after a user, an empty line after the last result.
            Empty elsewhere, where the encoder opens none.
        calls: how many calls still wait for their result.
        settled: whether the next user message leaves all that is no reasoning as it is; None, it is not known.
    """

    opener: str = ""
    calls: int = 0
    settled: bool | None = True


class DeepSeekV32Renderer(FamilyRenderer[DeepSeekV32Config]):
    """Renders, parses and bridges DeepSeek V3.2 conversations."""

    family = "deepseek-v3.2"
    config_class = DeepSeekV32Config
    revisions: ClassVar[tuple[Revision, ...]] = (Revision("v3.2", None, models=("deepseek-ai/DeepSeek-V3.2",)),)
    required_tokens = (BEGIN, END, USER, ASSISTANT, THINK, THINK_END, "｜DSML｜")
    stop_tokens = (END,)
    turn_close = END
    reply_headers = (ASSISTANT, END + RESULTS)
    reply_grammar = ReplyGrammar(stop_tokens, Reasoning(THINK, THINK_END), CALLS)
    query_roles = frozenset({"user", "developer"})
    arguments_as_objects = True

    @property
    def _thinks(self) -> bool:
        return self.config.thinking_mode == "thinking"

    @property
    def _refuses_developers(self) -> bool:
        """Whether a developer message makes the encoder fail once a user message follows."""
        config = self.config
        return self._thinks and config.drop_thinking is not False and config.thinking_retention is None

    def template_floor(self, history: History) -> int:
        """Reasoning stays after the last user or developer message, whatever `drop_thinking` says."""
        return history.last_query if self._thinks else NEVER

    def is_reasoning(self, text: str) -> bool:
        """The encoder drops any text, be it a line feed."""
        return bool(text)

    def initial_state(self) -> State:
        """Nothing opens a turn."""
        return State()

    def advance(self, state: State, message: Message) -> State:
        """A turn that is opened by nothing, and an opening that a system message follows, are written otherwise later."""
        match message.role:
            case "user":
                return State(ASSISTANT)
            case "developer":
                return State(ASSISTANT, settled=not self._refuses_developers)
            case "assistant":
                return State("", len(message.tool_calls or ()), state.settled if state.opener else False)
            case "tool":
                return State("\n\n" if state.calls == 1 else "", state.calls - 1, state.settled)
        return State(settled=False if state.opener else state.settled)

    def recover_state(self, token_ids: Sequence[int]) -> State:
        """A developer's message cannot be told from a user's that spells the same."""
        return State(ASSISTANT, settled=None)

    def is_settled(self, state: State) -> bool | None:
        """See `State.settled`."""
        return state.settled

    def text_of(self, message: Message) -> str:
        """The encoder formats null content of users and tools into the text."""
        return "None" if message.text is None and message.role in {"user", "tool"} else message.text or ""

    def write_preamble(self, out: Writer, conversation: Conversation) -> None:
        """The tools follow the system message's text, or stand alone."""
        out.scaffold(BEGIN)
        if not conversation.tools:
            return
        if conversation.opening_system is not None:
            out.begin(0, "system")
            out.body(self.text_of(conversation.opening_system))
            out.begin(-1, "")
        out.scaffold(TOOLS_HEAD)
        for function in conversation.tools.function_json_texts:
            out.scaffold("\n")
            out.schema(function)
        out.scaffold(TOOLS_TAIL)

    def write_message(self, out: Writer, turn: Turn) -> None:
        """One message; its end opens the assistant's turn, which the assistant's message writes itself."""
        if turn.message.text is None and turn.content:
            detail = f'the encoder prints a {turn.role} message without content as None; send "" instead of null'
            out.damage("printed_none", turn.index, detail)
        match turn.role:
            case "system" if turn.is_first and turn.tools:
                pass  # stands in the preamble
            case "system":
                out.body(turn.content)
            case "user":
                out.scaffold(USER)
                out.body(turn.content)
            case "developer":
                self._check_developer(turn)
                out.scaffold(USER + DEVELOPER)
                out.body(turn.content)
            case "tool":
                self._write_result(out, turn)
            case "assistant":
                self._write_reply(out, turn)
        if turn.next_role not in {None, "assistant"}:
            opener = self.advance(turn.state, turn.message).opener
            thinks = self._thinks and (turn.keeps_reasoning or turn.follows_last_query)
            out.scaffold(opener and opener + (THINK if thinks else THINK_END))

    def _check_developer(self, turn: Turn) -> None:
        if not turn.content:
            problem = "the encoder refuses a developer message without content"
            raise UnsupportedMessageError(problem, message_index=turn.index, field="content")
        if self._refuses_developers and not turn.follows_last_query:
            problem = "with drop_thinking the encoder refuses a developer message before the last user message"
            raise UnsupportedMessageError(problem, message_index=turn.index, field="role")

    def _write_result(self, out: Writer, turn: Turn) -> None:
        if turn.state.calls < 1:
            problem = "this result answers no call: the encoder takes as many as the assistant message before them has"
            raise UnsupportedMessageError(problem, message_index=turn.index, field="role")
        if turn.previous_role != "tool":
            out.scaffold(RESULTS)
        out.scaffold("\n<result>")
        out.body(turn.content)
        out.scaffold("</result>")
        if turn.state.calls == 1:
            out.scaffold(RESULTS_END)
        elif turn.next_role != "tool":
            detail = "the encoder closes the results, and opens the assistant's turn, when each call has one"
            out.damage("unanswered_calls", turn.index, detail)

    def _write_reply(self, out: Writer, turn: Turn) -> None:
        calls = turn.message.tool_calls or []
        if self._thinks and turn.follows_last_query and not (turn.reasoning or calls or turn.is_open):
            problem = "in thinking mode the encoder refuses an answer without reasoning after the last user message"
            raise UnsupportedMessageError(problem, message_index=turn.index, field="reasoning_content")
        thinks = turn.keeps_reasoning and (self._thinks or turn.reasoning)
        if turn.state.opener:
            out.scaffold(turn.state.opener + ("" if thinks else THINK_END))
        out.reply()
        if thinks:
            out.scaffold(THINK if turn.state.opener or not self._thinks else "")
            out.body(turn.reasoning or "")
            out.scaffold(THINK_END)
        out.body(turn.content)
        if calls:
            CALLS.write(out, calls)
        out.scaffold(END)

    def write_generation_prompt(self, out: Writer, state: State) -> None:
        """The encoder opens a turn after a user and after the last result, and nowhere else."""
        out.scaffold(state.opener and state.opener + (THINK if self._thinks else THINK_END))
