"""What a model family can take: the one description from which conversations for it are generated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a family's official template takes, and what must be converted for it first.

    The defaults describe a template that takes everything. Conversations outside a profile are not generated: they are
    errors, and tested as such. `converted` in the parity reference applies the fields under "Conversions".

    Attributes:
        name: a name for reports.

        markers: text that means something in the format, special tokens first. Adversarial texts hold it, whole and in
            parts; replies do not.
        roles: the roles that it takes.
        late_system: a system message may stand anywhere; otherwise only at the beginning.
        hoists_systems: a late one is put before all others, so a bridge over one is refused whatever it says.
        needs_user_query: there must be a user message that is not wholly wrapped in `<tool_response>`.
        alternates: user and assistant must take turns.
        needs_call_before_result: a tool message must follow an assistant message with calls, with only tool messages
            in between.
        results_need_text: a tool message must have content.
        optional_content: roles whose content may be null or missing.
        optional_content_beside_calls: an assistant message with calls may have null or missing content.
        null_content_beside_calls: calls are printed beside null content alone, so that is what replies with calls have.
        parallel_calls: an assistant message may have more than one call.
        most_calls_in_reply: how many calls a reply may have, where the template closes the turn before further ones.
        empty_tool_calls: `tool_calls` may be an empty list.
        optional_call_type: a call may come without `type`.
        call_ids: how calls are named: as OpenAI's API does, or `functions.name:index`.
        content_beside_reasoning_and_calls: an assistant message may have content, reasoning and calls at once; if not,
            content beside calls becomes reasoning, so that replies have none.
        names: messages may have a `name`.
        reasoning: the family has reasoning. Messages may carry it in any case.
        opens_reasoning: the generation prompt opens the reasoning, so that replies have some.
        thinking_off: the switch that turns reasoning off, and the value that does: replies then have none.
        tools: the family takes tools.
        tools_need_system_or_user_first: with tools, the first message but a system message must be the user's.
        optional_description: a tool may come without a description.
        optional_parameters: a tool may come without parameters.
        any_schema: a tool's parameters may be any JSON schema; otherwise only plain ones (types, descriptions, enums of
            text, nested objects and arrays).
        typed_arguments: the format tells text from numbers in arguments without a schema, as JSON does.
        switches: template keyword arguments, each with values worth trying. Absent is always tried.
        fixed_switches: template keyword arguments that every conversation gets, such as a date.
        turn_end: text of the token that ends an assistant turn.
        positional: scaffolding that the template prints or drops by position alone, such as an empty think block. A
            bridge keeps what the model saw, and may differ from a full render in this.
        role_stops: where the token that ends the turn opens the next message: its text by the next message's role,
            `assistant` for the generation prompt.
        dropped_roles: roles of which the template prints nothing, so that the message after them is the next one.

        reasoning_names: Conversions: the names under which a message's reasoning may come. The first one that is there
            counts, and reaches the template as `reasoning_content`.
        parts: Conversions: roles whose content the template takes as a list of parts. Others get one text, the parts
            joined by a newline.
        empty_content: Conversions: roles whose null or missing content becomes "", because the template crashes on it.
            "late_system" is a system message that does not open the conversation, where only that one crashes.
        null_content: Conversions: null and missing content both reach the template as None, because it tests for that.
        arguments: Conversions: "any" takes arguments as they come; "parsed" needs an object, "text" needs text.
    """

    name: str
    markers: tuple[str, ...] = ()
    roles: tuple[str, ...] = ("system", "developer", "user", "assistant", "tool")
    late_system: bool = True
    hoists_systems: bool = False
    needs_user_query: bool = False
    alternates: bool = False
    needs_call_before_result: bool = False
    results_need_text: bool = False
    optional_content: tuple[str, ...] = ("system", "user", "assistant", "tool")
    optional_content_beside_calls: bool = True
    null_content_beside_calls: bool = False
    parallel_calls: bool = True
    most_calls_in_reply: int = 3
    empty_tool_calls: bool = True
    optional_call_type: bool = True
    call_ids: Literal["openai", "kimi"] = "openai"
    content_beside_reasoning_and_calls: bool = True
    names: bool = True
    reasoning: bool = True
    opens_reasoning: bool = False
    thinking_off: tuple[str, Any] | None = None
    tools: bool = True
    tools_need_system_or_user_first: bool = False
    optional_description: bool = True
    optional_parameters: bool = True
    any_schema: bool = True
    typed_arguments: bool = True
    switches: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    fixed_switches: tuple[tuple[str, Any], ...] = ()
    turn_end: str = "<|im_end|>"
    role_stops: tuple[tuple[str, str], ...] = ()
    dropped_roles: tuple[str, ...] = ()
    positional: tuple[str, ...] = ()

    reasoning_names: tuple[str, ...] = ("reasoning_content", "thinking", "reasoning")
    parts: tuple[str, ...] = ()
    empty_content: tuple[str, ...] = ()
    null_content: bool = False
    arguments: Literal["any", "parsed", "text"] = "any"

    def stop_before(self, messages: Iterable[Mapping[str, Any]]) -> str:
        """Text of the token that the model samples to end a turn which these messages and a new turn follow."""
        printed = (message["role"] for message in messages if message["role"] not in self.dropped_roles)
        return dict(self.role_stops).get(next(printed, "assistant"), self.turn_end)
