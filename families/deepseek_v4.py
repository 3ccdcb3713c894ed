"""DeepSeek V4 Flash and Pro: tool results inside the user's turn, reasoning in `<think>`, typed calls in DSML.

The vendor ships a Python encoder and no template. Consecutive user and tool messages are one turn, in which the results
stand in the order of their calls. See docs/families/deepseek-v3.2-v4.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any, ClassVar, Literal

from pydantic import model_validator

from renderers.config import RendererConfig, Revision
from renderers.conversation import NEVER, Conversation, History, Turn
from renderers.errors import UnsupportedMessageError
from renderers.family import FamilyRenderer
from renderers.formats.dsml import DsmlCalls
from renderers.messages import NO_TOOLS, Function, Message, Tools
from renderers.parsing import Reasoning, ReplyGrammar
from renderers.writer import Writer

BEGIN, END = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"
USER, ASSISTANT = "<｜User｜>", "<｜Assistant｜>"
THINK, THINK_END = "<think>", "</think>"
CALLS = DsmlCalls("tool_calls")
#: Roles whose messages share a turn where they follow each other.
SHARED = frozenset({"user", "tool"})

TOOLS_HEAD = """

## Tools

You have access to a set of tools to help answer the user's question. You can invoke tools by writing a \
"<｜DSML｜tool_calls>" block like the following:

<｜DSML｜tool_calls>
<｜DSML｜invoke name="$TOOL_NAME">
<｜DSML｜parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</｜DSML｜parameter>
...
</｜DSML｜invoke>
<｜DSML｜invoke name="$TOOL_NAME2">
...
</｜DSML｜invoke>
</｜DSML｜tool_calls>

String parameters should be specified as is and set `string="true"`. For all other types (numbers, booleans, arrays, \
objects), pass the value in JSON format and set `string="false"`.

If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning inside <think>...</think> \
BEFORE any tool calls or final response.

Otherwise, output directly after </think> with tool calls or final response.

### Available Tool Schemas

"""
TOOLS_TAIL = "\n\nYou MUST strictly follow the above defined tool name and parameter schemas to invoke tool calls.\n"

ABSOLUTE_EFFORT = """\
Reasoning Effort: Absolute maximum with no shortcuts permitted.
You MUST be very thorough in your thinking and comprehensively decompose the problem to resolve the root cause, \
rigorously stress-testing your logic against all potential paths, edge cases, and adversarial scenarios.
Explicitly write out your entire deliberation process, documenting every intermediate step, considered alternative, and \
rejected hypothesis to ensure absolutely no assumption is left unchecked.

"""
BEYOND_EFFORT = """\
Reasoning Effort: Beyond maximum — exhaustive, relentless, and uncompromising.
You MUST reason with the utmost depth and rigor, leaving absolutely nothing to chance: exhaustively decompose the \
problem into its most fundamental components, trace every causal chain to its root, and resolve the underlying cause \
rather than any surface symptom.
Do not stop reasoning until you have independently verified the solution from multiple angles and are certain that no \
assumption remains unchecked and no error remains undiscovered.

"""
#: What each revision says before everything else for a `reasoning_effort`, in thinking mode.
EFFORTS = {
    "v4": {"high": "", "max": ABSOLUTE_EFFORT},
    "v4-0731": {"low": "", "high": ABSOLUTE_EFFORT, "max": BEYOND_EFFORT},
}


class DeepSeekV4Config(RendererConfig):
    """Settings of DeepSeek V4, the encoder's own arguments.

    Attributes:
        revision: the first release, or Flash of 0731, which has other texts for `reasoning_effort`.
        thinking_mode: whether the prompt opens the reasoning or closes it.
        drop_thinking: None, like the encoder's default, means True: reasoning, and developer messages, are dropped
            before the last user message or tool result. With tools nothing is dropped in either case.
        reasoning_effort: of the text before everything else, in thinking mode. Only 0731 has "low".
    """

    name: Literal["deepseek-v4"] = "deepseek-v4"
    revision: Literal["v4", "v4-0731"] = "v4"
    thinking_mode: Literal["thinking", "chat"] = "chat"
    drop_thinking: bool | None = None
    reasoning_effort: Literal["low", "high", "max"] | None = None

    contradictions = (("drop_thinking", True, "all"), ("drop_thinking", False, "tool_cycle"))

    @model_validator(mode="after")
    def _check_effort(self) -> DeepSeekV4Config:
        efforts = EFFORTS[self.revision]
        if self.reasoning_effort is not None and self.reasoning_effort not in efforts:
            raise ValueError(f"reasoning_effort: revision {self.revision!r} has {', '.join(efforts)}")
        return self


@dataclass(frozen=True, slots=True)
class State:
    """What the next message depends on.

    Attributes:
        opens: whether an assistant's turn is opened here, which is after a user, a developer or a result.
        opens_without_developers: the same, developer messages left out.
        call_ids: IDs of the last calls, in order.
        settled: whether dropping reasoning up to here leaves all else as it is; None, it is not known.
        shows_tools: whether a prompt that is known as IDs alone declares tools.
    """

    opens: bool = False
    opens_without_developers: bool = False
    call_ids: tuple[str | None, ...] = ()
    settled: bool | None = True
    shows_tools: bool = False


class DeepSeekV4Renderer(FamilyRenderer[DeepSeekV4Config]):
    """Renders, parses and bridges DeepSeek V4 conversations."""

    family = "deepseek-v4"
    config_class = DeepSeekV4Config
    revisions: ClassVar[tuple[Revision, ...]] = (
        Revision("v4", None, models=("deepseek-ai/DeepSeek-V4-Flash", "deepseek-ai/DeepSeek-V4-Pro")),
        Revision("v4-0731", None, models=(), unverified=("deepseek-ai/DeepSeek-V4-Flash-0731",)),
    )
    required_tokens = (BEGIN, END, USER, ASSISTANT, THINK, THINK_END, "｜DSML｜")
    stop_tokens = (END,)
    turn_close = END
    reply_headers = (ASSISTANT,)
    reply_grammar = ReplyGrammar(stop_tokens, Reasoning(THINK, THINK_END), CALLS)
    query_roles = frozenset({"user", "developer"})

    @property
    def _thinks(self) -> bool:
        return self.config.thinking_mode == "thinking"

    def _drops(self, tools: Tools, state: State) -> bool:
        """Whether the encoder drops what is older than the last user message or result."""
        config = self.config
        if config.thinking_retention is not None or tools or state.shows_tools:
            return False
        return self._thinks and config.drop_thinking is not False

    def template_floor(self, history: History) -> int:
        """To the encoder a tool result is a user's message, too."""
        if not self._thinks:
            return NEVER
        return max(history.last_query, history.last_result) if self._drops(history.tools, history.state) else -1

    def is_reasoning(self, text: str) -> bool:
        """The encoder drops any text, be it a line feed."""
        return bool(text)

    def initial_state(self) -> State:
        """Nothing opens a turn."""
        return State()

    def advance(self, state: State, message: Message) -> State:
        """A developer message is dropped later, and so is the `</think>` of a turn that nothing opened."""
        match message.role:
            case "user" | "tool":
                return replace(state, opens=True, opens_without_developers=True, settled=True)
            case "developer":
                return replace(state, opens=True, settled=False)
            case "assistant":
                calls = tuple(call.id for call in message.tool_calls or ())
                settled = state.settled if state.opens else False
                return State(False, False, calls or state.call_ids, settled, state.shows_tools)
        return replace(state, opens=False, opens_without_developers=False)

    def recover_state(self, token_ids: Sequence[int]) -> State:
        """A developer's message looks like a user's."""
        return State(opens=True, settled=None, shows_tools=not self.shows_tools(token_ids, NO_TOOLS))

    def is_settled(self, state: State) -> bool | None:
        """See `State.settled`."""
        return state.settled

    def text_of(self, message: Message) -> str:
        """Of a tool's content the encoder takes the parts, and puts an empty line between them."""
        return message.text_joined("\n\n" if message.role == "tool" else "\n") or ""

    def arrange(self, messages: Sequence[Message], histories: Sequence[History]) -> Sequence[int]:
        """Within a turn the results stand in the order of their calls; one without a known ID counts as the first's."""
        order = list(range(len(messages)))
        for shares, turn in groupby(order.copy(), lambda at: messages[at].role in SHARED):
            results = [at for at in turn if messages[at].role == "tool"] if shares else []
            if len(results) > 1:
                ids = [messages[at].tool_call_id for at in results]
                ranks = {call_id: rank for rank, call_id in enumerate(histories[results[0]].state.call_ids) if call_id}
                if histories[0].count and not ranks.keys() >= {call_id for call_id in ids if call_id}:
                    # A bridge knows the IDs that parsing gave. The harness gave others, and its order is the calls'.
                    _check_ascending(ids, results[0])
                    ranks = {}
                in_order = sorted(results, key=lambda at: ranks.get(messages[at].tool_call_id, 0))
                for place, at in zip(results, in_order, strict=True):
                    order[place] = at
        return order

    def write_preamble(self, out: Writer, conversation: Conversation) -> None:
        """How hard to think, then the tools after the system message's text, or alone."""
        out.scaffold(BEGIN)
        if self._thinks and self.config.reasoning_effort is not None:
            out.scaffold(EFFORTS[self.config.revision][self.config.reasoning_effort])
        if not conversation.tools:
            return
        if conversation.opening_system is not None:
            out.begin(0, "system")
            out.body(conversation.opening_system.text or "")
            out.begin(-1, "")
        separator = TOOLS_HEAD
        for function in conversation.tools.function_json_texts:
            out.scaffold(separator)
            out.schema(function)
            separator = "\n"
        out.scaffold(TOOLS_TAIL)

    def write_message(self, out: Writer, turn: Turn) -> None:
        """One message. Users and results that follow each other share a turn, an empty line between them."""
        match turn.role:
            case "system" if turn.is_first and turn.tools:
                pass  # stands in the preamble
            case "system":
                out.body(turn.content)
            case "user" | "tool":
                out.scaffold("\n\n" if turn.previous_role in SHARED else USER)
                out.scaffold("<tool_result>" if turn.role == "tool" else "")
                out.body(turn.content)
                out.scaffold("</tool_result>" if turn.role == "tool" else "")
            case "developer":
                self._write_developer(out, turn)
            case "assistant":
                self._write_reply(out, turn)

    def _write_developer(self, out: Writer, turn: Turn) -> None:
        if not turn.content:
            problem = "the encoder refuses a developer message without content"
            raise UnsupportedMessageError(problem, message_index=turn.index, field="content")
        if self._drops(turn.tools, turn.state) and turn.index < turn.floor:
            detail = "with drop_thinking the encoder drops a developer message before the last user message or result"
            out.damage("dropped_message", turn.index, detail)
            return
        out.scaffold(USER)
        out.body(turn.content)

    def _write_reply(self, out: Writer, turn: Turn) -> None:
        state: State = turn.state
        dropping = self._drops(turn.tools, state) and not turn.keeps_reasoning
        is_opened = state.opens_without_developers if dropping else state.opens
        thinks = turn.keeps_reasoning and (self._thinks or turn.reasoning)
        if is_opened:
            out.scaffold(ASSISTANT + ("" if thinks else THINK_END))
        out.reply()
        if thinks:
            out.scaffold(THINK if is_opened or not self._thinks else "")
            out.body(turn.reasoning or "")
            out.scaffold(THINK_END)
        out.body(turn.content)
        if turn.message.tool_calls:
            CALLS.write(out, turn.message.tool_calls, partial(_arguments, out, turn))
        out.scaffold(END)

    def write_generation_prompt(self, out: Writer, state: State) -> None:
        """The encoder opens a turn after a user, a developer and a result, and nowhere else."""
        if state.opens:
            out.scaffold(ASSISTANT + (THINK if self._thinks else THINK_END))


def _arguments(out: Writer, turn: Turn, function: Function) -> dict[str, Any]:
    """The arguments as an object. Text that is no JSON becomes a parameter of its own."""
    arguments: Any = function.arguments
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            out.damage(
                "wrapped_arguments", turn.index, "the encoder prints arguments that are no JSON as one parameter"
            )
            arguments = {"arguments": arguments}
    if not isinstance(arguments, dict):
        problem = f"the encoder needs arguments that are an object, found {type(arguments).__name__}"
        raise UnsupportedMessageError(problem, message_index=turn.index, field="tool_calls")
    return arguments


def _check_ascending(call_ids: Sequence[str | None], position: int) -> None:
    """Refuse results whose calls' numbers descend: they do not stand in the order of their calls."""
    numbers = [int(found[1]) for call_id in call_ids if (found := re.search(r"(?<![0-9A-Za-z])(\d+)\Z", call_id or ""))]
    if len(numbers) == len(call_ids) and numbers != sorted(numbers):
        problem = "these results do not stand in the order of their calls, and only a render knows their IDs"
        raise UnsupportedMessageError(problem, message_index=position, field="tool_call_id")
