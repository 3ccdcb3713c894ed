"""Bridges: exactly the previous tokens, then only what is new; or a refusal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from renderers.conversation import NEVER, History
from renderers.errors import UnsupportedMessageError
from renderers.labels import POLICY, TEMPLATE, Runs, make_label
from renderers.messages import (
    NO_TOOLS,
    Message,
    Tools,
    check_arguments,
    check_reasoning,
    validate_messages,
    validate_tools,
)
from renderers.parsed import CallStatus, ParsedResponse
from renderers.refusal import BridgeRefusal, RefusalReason
from renderers.rendered import Ids, RenderedTokens, Segment
from renderers.token_ids import as_token_ids
from renderers.writer import Writer

if TYPE_CHECKING:
    from renderers.family import FamilyRenderer
    from renderers.scribe import Scribe

#: What a plain list of IDs says of the conversation: an earlier query and answer, and perhaps reasoning after them. Two
#: messages stand for however many there were; only comparisons with what follows are ever made.
_EARLIER = History(length=2, last_query=0, last_answer=0)
_EARLIER_REASONING = 1
_OUTSIDE = make_label(-1, TEMPLATE)
_COMPLETION = make_label(-1, POLICY)


def bridge(  # noqa: C901, PLR0911, PLR0912, PLR0915 - one refusal after another, in the order in which they are cheap to find
    renderer: FamilyRenderer[Any],
    scribe: Scribe,
    previous_prompt: Sequence[int] | RenderedTokens,
    completion_ids: Sequence[int],
    new_messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]] | None,
) -> RenderedTokens | BridgeRefusal:
    """See `Renderer.bridge`."""
    messages = validate_messages(new_messages)
    check_reasoning(messages)
    check_arguments(messages)
    completion = as_token_ids(completion_ids, "previous_completion_ids")
    previous = previous_prompt if isinstance(previous_prompt, RenderedTokens) else None
    if previous is not None and previous.history is None:
        previous_prompt, previous = previous.token_ids, None
    prompt = [] if previous is not None else as_token_ids(previous_prompt, "previous_prompt_ids")
    given_tools = None if tools is None else validate_tools(tools)

    refusal = refuse_input(previous_prompt, completion, messages, takes_others=True)
    if refusal is not None:
        return refusal
    if previous is None and any(message.role == "assistant" for message in messages):
        detail = "the IDs alone do not tell what another model's turn changes of the turns before it"
        return BridgeRefusal(RefusalReason.UNKNOWN_HISTORY, detail)

    tail = prompt if previous is None else previous.segment.tail(renderer.headers.first_ids)
    opening = renderer.headers.find(tail)
    if opening is None or not renderer.ids_outside_reply.isdisjoint(tail[opening:]):
        return BridgeRefusal(
            RefusalReason.UNKNOWN_HISTORY,
            f"the previous prompt does not end in an open assistant's turn of the {renderer.family} format",
        )

    history = previous.history if previous is not None else _read_history(renderer, prompt, given_tools)
    if isinstance(history, BridgeRefusal):
        return history
    if previous is not None and history is not None and history.family != renderer.family:
        return BridgeRefusal(
            RefusalReason.UNKNOWN_HISTORY, f"the previous prompt was rendered in the {history.family} format"
        )
    assert history is not None  # noqa: S101 - a previous result without one was turned into its IDs above
    if given_tools is not None and given_tools.key != history.tools.key:
        return BridgeRefusal(RefusalReason.HISTORY_REWRITE, "the tools are not those of the previous prompt")

    remembered = renderer.reader.recall(completion, tail[opening:], history.tools)
    reply = remembered.reply
    refusal = refuse_reply(reply, len(completion))
    if refusal is not None:
        return refusal

    asked, reply_index = history, history.length
    history = scribe.history_after(history, remembered.message)
    if reply.reasoning_content is not None and renderer.is_reasoning(reply.reasoning_content):
        history = history.with_reasoning_at(reply_index)
    places = scribe.follow(history, messages)
    last = places[-1].after
    for message in messages:
        refusal = renderer.refuse_extension(message)
        if refusal is not None:
            return refusal
    refusal = _refuse_retention(renderer, asked, history, last, prompt if previous is None else None)
    if refusal is not None:
        return refusal

    close = Writer()
    keeps_stop = reply.stop in renderer.stops_outside_history and renderer.config.thinking_retention == "all"
    if not (keeps_stop and reply.stop in renderer.closing_stops):
        close.scaffold(reply.unclosed + renderer.close_after(reply))
    try:
        written, final = scribe.write(places, last)
    except UnsupportedMessageError as error:
        return BridgeRefusal(RefusalReason.UNSUPPORTED_MESSAGE, str(error))
    prompt_end = Writer()
    renderer.write_generation_prompt(prompt_end, final.state)
    parts, runs = scribe.join(close, written, prompt_end)
    if reply.stop is not None and not keeps_stop:
        sampled = completion[reply.closed_at - 1]
        expected = parts[0][0]
        if sampled != expected:
            return BridgeRefusal(
                RefusalReason.WRONG_STOP,
                f"the model stopped with {reply.stop!r}; before these messages the history shows "
                f"{renderer.decode([expected])!r}",
            )
        parts, runs = _without_first(parts, runs)

    if previous is not None:
        segment, offset = previous.segment, reply_index + 1
    else:
        segment, offset = labelled(prompt, _OUTSIDE, None), None
    segment = labelled(completion, _COMPLETION, segment)
    return RenderedTokens(
        Segment(parts, runs, segment),
        message_roles=[message.role for message in messages],
        message_tool_names=[placed.tool_name for placed in places],
        warnings=renderer.report([damage.shifted(-history.length) for one in written for damage in one.damages]),
        message_offset=offset,
        extension_start=segment.total,
        history=final,
    )


def refuse_input(
    previous_prompt: Sequence[int] | RenderedTokens,
    completion: Sequence[int],
    messages: Sequence[Message],
    *,
    takes_others: bool = False,
) -> BridgeRefusal | None:
    """Refuse where there is nothing to extend, or where the assistant's text would be encoded again.

    With `takes_others`, text that another model wrote is none that could be: it was never sampled by this one.
    """
    if len(previous_prompt) == 0:
        return BridgeRefusal(RefusalReason.EMPTY_PROMPT, "there is no previous prompt to extend")
    if not completion:
        return BridgeRefusal(RefusalReason.EMPTY_COMPLETION, "there is no completion to extend")
    if not messages:
        return BridgeRefusal(RefusalReason.NO_NEW_MESSAGES, "there are no new messages to append")
    for index, message in enumerate(messages):
        if message.role == "assistant" and not (takes_others and message.written_by is not None):
            return BridgeRefusal(
                RefusalReason.ASSISTANT_MESSAGE,
                f"new_messages[{index}] is the assistant's: its text would be encoded again, perhaps in other tokens",
            )
    return None


def refuse_reply(reply: ParsedResponse, length: int) -> BridgeRefusal | None:
    """Refuse a completion that is not one reply, whole or cut in a place where it can be closed."""
    if reply.closed_at < length:
        return BridgeRefusal(
            RefusalReason.TOKENS_AFTER_CLOSE,
            f"{length - reply.closed_at} tokens follow the stop token {reply.stop!r}; cut them off",
        )
    if reply.reasoning_complete is False and not reply.tool_calls:
        return BridgeRefusal(RefusalReason.OPEN_REASONING, "the completion stops inside unfinished reasoning")
    if reply.stop is None and reply.tool_calls and reply.tool_calls[-1].status is CallStatus.INCOMPLETE:
        return BridgeRefusal(RefusalReason.OPEN_TOOL_CALL, "the completion is cut inside a tool call")
    if reply.unclosed and not reply.tool_calls:
        return BridgeRefusal(RefusalReason.OPEN_TOOL_CALL, "the completion is cut before a tool call")
    return None


def _refuse_retention(  # noqa: PLR0911 - one refusal after another
    renderer: FamilyRenderer[Any], asked: History, before: History, after: History, prompt: Sequence[int] | None
) -> BridgeRefusal | None:
    """Refuse where the policy, from this boundary on, writes reasoning differently that is in the tokens now.

    `asked` is the history of the prompt, `before` with the reply, `after` with the new messages.
    """
    policy = renderer.config.thinking_retention
    if policy == "all":
        return None
    if policy == "tool_cycle":
        if after.last_query > before.last_query:
            return BridgeRefusal(RefusalReason.RETENTION, 'a new user message ends the tool cycle ("tool_cycle")')
        return None
    floor, earlier_floor = renderer.reasoning_floor(after), renderer.reasoning_floor(asked)
    dropped = BridgeRefusal(
        RefusalReason.RETENTION,
        "the template drops or changes earlier reasoning from these messages on; render the conversation again, or "
        "choose another thinking_retention",
    )
    if before.first_reasoning <= floor and before.first_reasoning != NEVER:
        return dropped
    if floor == earlier_floor:
        return None
    settled = renderer.is_settled(before.state)
    if settled is None:
        detail = "the IDs alone do not tell whether the template writes the messages so far otherwise from here on"
        return BridgeRefusal(RefusalReason.UNKNOWN_HISTORY, detail)
    if not settled and floor < earlier_floor:
        detail = "reasoning that the template left out comes back from these messages on"
        return BridgeRefusal(RefusalReason.RETENTION, detail)
    if not settled:
        detail = "the template writes a message of the conversation so far otherwise from these messages on"
        return BridgeRefusal(RefusalReason.HISTORY_REWRITE, detail)
    if prompt is not None and floor >= _EARLIER_REASONING and renderer.holds_reasoning(prompt):
        return dropped
    return None


def _read_history(renderer: FamilyRenderer[Any], prompt: Sequence[int], tools: Tools | None) -> History | BridgeRefusal:
    """What the IDs of a prompt tell of its conversation."""
    try:
        state = renderer.recover_state(prompt)
    except LookupError as error:
        return BridgeRefusal(RefusalReason.UNKNOWN_HISTORY, str(error))
    if tools is not None and not renderer.shows_tools(prompt, tools):
        return BridgeRefusal(RefusalReason.HISTORY_REWRITE, "the prompt does not show these tools")
    return _EARLIER._replace(family=renderer.family, tools=tools or NO_TOOLS, state=state)


def labelled(ids: list[int], label: int, parent: Segment | None) -> Segment:
    """A segment of equally labelled tokens after another one."""
    runs = Runs()
    runs.add(len(ids), label)
    return Segment([tuple(ids)], runs, parent)


def _without_first(parts: list[Ids], runs: Runs) -> tuple[list[Ids], Runs]:
    """Without the first token: it was sampled."""
    first = parts[0][1:]
    return ([first] if first else []) + parts[1:], Runs.deferred(runs.length - 1, runs.without_first)
