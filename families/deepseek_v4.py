"""DeepSeek V4 Flash and Pro: results inside the user's turn, reasoning in `<think>`, typed calls in DSML.

The vendor ships a Python encoder and no template. See docs/families/deepseek-v3.2-v4.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, ClassVar, Literal

from pydantic import model_validator

from renderers.config import Revision
from renderers.conversation import NEVER, History, Turn
from renderers.dsml_turns import THINK, THINK_END, DsmlConfig, DsmlRenderer, DsmlState
from renderers.errors import UnsupportedMessageError
from renderers.formats.dsml import DsmlCalls
from renderers.messages import NO_TOOLS, Function, Message, Tools
from renderers.writer import Writer

BEGIN, END = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"
USER, ASSISTANT = "<｜User｜>", "<｜Assistant｜>"
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

RETENTION = "since the last user message or result; with tools all of it"


class DeepSeekV4Config(DsmlConfig):
    """Settings of DeepSeek V4. See `DsmlConfig`.

    `drop_thinking` drops reasoning, and developer messages, before the last user message or result. With tools nothing
    is dropped.

    Attributes:
        revision: the first release, or Flash of 0731, which has other texts for `reasoning_effort`.
        reasoning_effort: of the text before everything else, in thinking mode. Only 0731 has "low".
    """

    name: Literal["deepseek-v4"] = "deepseek-v4"
    revision: Literal["v4", "v4-0731"] = "v4"
    reasoning_effort: Literal["low", "high", "max"] | None = None

    @model_validator(mode="after")
    def _check_effort(self) -> DeepSeekV4Config:
        efforts = EFFORTS[self.revision]
        if self.reasoning_effort is not None and self.reasoning_effort not in efforts:
            raise ValueError(f"reasoning_effort: revision {self.revision!r} has {', '.join(efforts)}")
        return self


@dataclass(frozen=True, slots=True)
class State(DsmlState):
    """What the next message depends on.

    Attributes:
        opener_without_developers: the opener, were there no developer messages.
        call_ids: IDs of the last calls, in order.
        shows_tools: whether a prompt that is known as IDs alone declares tools.
    """

    opener_without_developers: str = ""
    call_ids: tuple[str | None, ...] = ()
    shows_tools: bool = False


class DeepSeekV4Renderer(DsmlRenderer[DeepSeekV4Config]):
    """Renders, parses and bridges DeepSeek V4 conversations."""

    family = "deepseek-v4"
    config_class = DeepSeekV4Config
    revisions: ClassVar[tuple[Revision, ...]] = (
        Revision(
            "v4",
            None,
            models=("deepseek-ai/DeepSeek-V4-Flash", "deepseek-ai/DeepSeek-V4-Pro"),
            retention=RETENTION,
        ),
        Revision(
            "v4-0731",
            None,
            models=(),
            unverified=("deepseek-ai/DeepSeek-V4-Flash-0731",),
            retention=RETENTION,
        ),
    )
    required_tokens = (BEGIN, END, USER, ASSISTANT, THINK, THINK_END, "｜DSML｜")
    begin_token = BEGIN
    stop_tokens = (END,)
    turn_close = END
    reply_headers = (ASSISTANT,)
    calls = DsmlCalls("tool_calls", TOOLS_HEAD, TOOLS_TAIL)
    state_class = State

    @property
    def preface(self) -> str:
        """How hard to think."""
        effort = self.config.reasoning_effort
        return EFFORTS[self.config.revision][effort] if self.thinks and effort is not None else ""

    def _drops(self, tools: Tools, state: State) -> bool:
        return self.drops and not tools and not state.shows_tools

    def template_floor(self, history: History) -> int:
        """To the encoder a result is a user's message, too."""
        if not self.thinks:
            return NEVER
        return max(history.last_query, history.last_result) if self._drops(history.tools, history.state) else -1

    def advance(self, state: State, message: Message) -> State:
        """A developer message is dropped later, and the `</think>` of a reply that nothing opened."""
        match message.role:
            case "user" | "tool":
                return replace(state, opener=ASSISTANT, opener_without_developers=ASSISTANT, settled=True)
            case "developer":
                return replace(state, opener=ASSISTANT, settled=False)
            case "assistant":
                calls = tuple(call.id for call in message.tool_calls or ()) or state.call_ids
                return State("", state.settled if state.opener else False, "", calls, state.shows_tools)
        return replace(state, opener="", opener_without_developers="")

    def recover_state(self, token_ids: Sequence[int]) -> State:
        """What was a developer's message looks like a user's."""
        return State(ASSISTANT, None, shows_tools=not self.shows_tools(token_ids, NO_TOOLS))

    def text_of(self, message: Message) -> str:
        """Of a result's content the encoder takes the parts, and puts an empty line between them."""
        return message.text_joined("\n\n" if message.role == "tool" else "\n") or ""

    def arrange(self, messages: Sequence[Message], histories: Sequence[History]) -> Sequence[int]:
        """Within a turn the results stand in the order of their calls."""
        order = list(range(len(messages)))
        for shares, turn in groupby(order.copy(), lambda at: messages[at].role in SHARED):
            results = [at for at in turn if messages[at].role == "tool"] if shares else []
            if len(results) > 1:
                in_order = _in_call_order(messages, results, histories[results[0]], is_bridge=histories[0].length > 0)
                for place, at in zip(results, in_order, strict=True):
                    order[place] = at
        return order

    def write_input(self, out: Writer, turn: Turn) -> None:
        """Users' messages and results that follow each other share a turn, an empty line between them."""
        if turn.role == "developer" and turn.precedes_floor and self._drops(turn.tools, turn.state):
            detail = "with drop_thinking the encoder drops a developer message before the last user message or result"
            out.damage("dropped_message", turn.index, detail)
            return
        if turn.role == "developer":
            self.require_content(turn)
        shares = turn.role in SHARED and turn.previous_role in SHARED
        out.scaffold("\n\n" if shares else USER)
        out.scaffold("<tool_result>" if turn.role == "tool" else "")
        out.body(turn.content)
        out.scaffold("</tool_result>" if turn.role == "tool" else "")

    def opener_of(self, turn: Turn) -> str:
        """A developer message that is dropped opens nothing."""
        state: State = turn.state
        dropped = self._drops(turn.tools, state) and not turn.keeps_reasoning
        return state.opener_without_developers if dropped else state.opener

    def arguments_of(self, out: Writer, turn: Turn, function: Function) -> Mapping[str, Any]:
        """Text that is no JSON becomes a parameter of its own."""
        arguments: Any = function.arguments
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except (ValueError, RecursionError):
                detail = "the encoder prints arguments that are no JSON as a parameter named `arguments`"
                out.damage("wrapped_arguments", turn.index, detail)
                return {"arguments": arguments}
        if not isinstance(arguments, dict):
            problem = f"the encoder needs an object for a call's arguments, found {type(arguments).__name__}"
            raise UnsupportedMessageError(problem, message_index=turn.index, field="tool_calls")
        return arguments


def _in_call_order(
    messages: Sequence[Message], results: Sequence[int], history: History, *, is_bridge: bool
) -> Sequence[int]:
    """Positions of results by the order of their calls; one with the ID of no call counts as the first call's.

    A bridge knows the IDs that parsing gave. Where the harness gave others, its results are taken to stand in order. They
    are refused if their numbers descend, if some have no ID, or if there are more of them than calls.
    """
    if len(history.call_names) == 1:
        return results  # all count as the only call's
    ranks: dict[str | None, int] = {call_id: rank for rank, call_id in enumerate(history.state.call_ids) if call_id}
    ids = [messages[at].tool_call_id for at in results]
    is_too_many = len(results) > len(history.call_names)
    if not is_bridge or (ranks.keys() >= set(ids) and not is_too_many):
        return sorted(results, key=lambda at: ranks.get(messages[at].tool_call_id, 0))
    numbers = [int(found[1]) for call_id in ids if (found := re.search(r"(?<![0-9A-Za-z])(\d+)\Z", call_id or ""))]
    descend = len(numbers) == len(ids) and numbers != sorted(numbers)
    if is_too_many or descend or (None in ids and set(ids) != {None}):
        problem = "in which order the encoder puts these results is known to a render alone: the reply has other calls"
        raise UnsupportedMessageError(problem, message_index=results[0], field="tool_call_id")
    return results
