"""The proof behind a delta bridge: what is checked before a template's output for new messages may be appended.

The premises are checked on renders: of the conversation itself where it is known, and of other histories, with and
without reasoning and tool calls. The first that fails is the refusal.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from renderers.errors import MessageError, TemplateError
from renderers.labels import TEMPLATE, Runs, is_sampled, make_label, message_of, with_message
from renderers.messages import NO_TOOLS, Tools, validate_tools
from renderers.parsed import ParsedResponse
from renderers.refusal import BridgeRefusal, RefusalReason
from renderers.template import TracedText
from renderers.template.looks import Looks
from renderers.template.replies import is_reasoning

if TYPE_CHECKING:
    from renderers.default import DefaultRenderer, Encoded

#: Scaffolding outside any message.
OUTSIDE = make_label(-1, TEMPLATE)
USER: Mapping[str, Any] = {"role": "user", "content": "probe question"}
SYSTEM: Mapping[str, Any] = {"role": "system", "content": "probe instructions"}
_ANSWER: Mapping[str, Any] = {"role": "assistant", "content": "probe answer"}
_CALL: Mapping[str, Any] = {
    "id": "call00001",
    "type": "function",
    "function": {"name": "probe", "arguments": {"key": "value"}},
}
_TOOLS = validate_tools(
    [{"type": "function", "function": {"name": "probe", "description": "probe", "parameters": {"type": "object"}}}]
)


#: An empty list of tools: a template may tell it from none.
EMPTY_TOOLS = Tools(marshal.dumps((), 2))


class Premise(NamedTuple):
    """One condition of a bridge.

    Attributes:
        name: `prefix`, `reply_kept`, `stop`, `own_sources`, `same_delta` or `same_way`.
        holds: whether it holds.
        detail: what was compared, or how it fails.
    """

    name: str
    holds: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Certificate:
    """Why a delta may be appended to a conversation of this shape: every premise was checked.

    Attributes:
        premises: the conditions, all of which hold.
        knows_history: whether the conversation itself was among the histories, and not only probes (a plain list of IDs
            does not tell it).
    """

    premises: tuple[Premise, ...]
    knows_history: bool


class Case(NamedTuple):
    """A reply and what follows it.

    Attributes:
        parsed: the reply.
        form: the reply as the message that a history holds.
        equal_forms: other messages that a history may hold for it, where they are written alike: a reply does not tell
            empty reasoning from none.
        assumed_form: the reply with the calls that the results answer, where no parser could read them.
        new: the new messages.
        tools: the conversation's tools.
        completion: the sampled tokens.
        opening: tokens of the prompt that belong to the reply.
    """

    parsed: ParsedResponse
    form: Mapping[str, Any]
    equal_forms: Sequence[Mapping[str, Any]]
    assumed_form: Mapping[str, Any] | None
    new: Sequence[Mapping[str, Any]]
    tools: Tools
    completion: list[int]
    opening: list[int]


class Delta(NamedTuple):
    """What follows a reply's stop token in one render, with labels for new messages that count from 0; and the reply."""

    ids: list[int]
    runs: Runs
    reply: list[int]


class _Measured(NamedTuple):
    """What the render of one history, a reply and the new messages shows."""

    delta: Delta | None
    traced: TracedText
    #: The character at which the reply begins.
    start: int | None
    #: An earlier message of which something is printed after the reply.
    foreign: int | None
    #: The conditions that were evaluated after the reply, and what they came to.
    way: Sequence[tuple[object, bool]]


class _FailedError(Exception):
    """A premise does not hold."""

    def __init__(self, reason: RefusalReason, premise: str, detail: str) -> None:
        super().__init__(detail)
        self.refusal = BridgeRefusal(reason, f"premise {premise}: {detail}")


def prove(
    renderer: DefaultRenderer, own: Sequence[Mapping[str, Any]] | None, case: Case, looks: Looks, *, knows_tools: bool
) -> Certificate | BridgeRefusal:
    """Check every premise.

    Args:
        renderer: renders, with masks.
        own: the conversation before the reply, where it is known.
        case: the reply and the new messages.
        looks: what the template looks for in texts.
        knows_tools: whether `case.tools` are the conversation's; else the delta must be the same with and without.
    """
    seen: list[_Measured] = []
    try:
        if own is not None:
            seen += _checked(renderer, own, case)
        for history, tools in _probes(own, case, looks, knows_tools=knows_tools):
            variant = case._replace(tools=tools)
            try:
                if own is None:
                    seen += _checked(renderer, history, variant)
                else:
                    seen += [_measured(renderer, history, case.form, variant)]
            except (TemplateError, MessageError):
                continue  # a probe that this template refuses proves nothing
        detail = _compare(seen)
    except _FailedError as failure:
        return failure.refusal
    except (TemplateError, MessageError) as error:
        return BridgeRefusal(RefusalReason.UNSUPPORTED_MESSAGE, str(error))
    found = {
        "prefix": "the prompt is a prefix of the extended conversation",
        "reply_kept": "the reply stands in it as at the end of a conversation, and as it was sampled",
        "stop": "the delta begins after the stop token with which the model ended",
        "own_sources": "the delta holds fields of the reply's calls and the new messages only",
        "same_delta": detail,
        "same_way": "the conditions evaluated for the new messages came out alike in all of them",
    }
    return Certificate(
        tuple(Premise(name, holds=True, detail=words) for name, words in found.items()), knows_history=own is not None
    )


def measure_delta(renderer: DefaultRenderer, history: Sequence[Mapping[str, Any]], case: Case) -> Delta | BridgeRefusal:
    """The delta after a short history; what depends on the texts of this reply is checked every time.

    Raises:
        MessageError: a new message cannot be encoded.
    """
    try:
        whole = renderer.encoded([*history, case.form, *case.new], case.tools, add_generation_prompt=True)
        delta = _cut(whole, len(history))
        _check_reply(renderer, delta, case)
    except _FailedError as failure:
        return failure.refusal
    except MessageError as error:
        if error.message_index is None:
            raise
        place = error.message_index - len(history) - 1  # the caller counts the new messages from 0
        raise MessageError(error.problem, message_index=max(place, 0), field=error.field) from None
    except TemplateError as error:
        return BridgeRefusal(RefusalReason.UNSUPPORTED_MESSAGE, str(error))
    assert delta is not None  # noqa: S101 - the check has seen to it
    return delta


def _probes(
    own: Sequence[Mapping[str, Any]] | None, case: Case, looks: Looks, *, knows_tools: bool
) -> Iterator[tuple[Sequence[Mapping[str, Any]], Tools]]:
    """Other histories with their tools; where the conversation is not known, what may make a difference in it."""
    reply = case.assumed_form or case.form
    if own is not None:
        opening = [SYSTEM] if own[0]["role"] == "system" else []
        yield from (([*opening, *history], case.tools) for history in _histories(reply))
        return
    unknown = () if knows_tools else (_TOOLS,)
    for tools in (case.tools,) if knows_tools and case.tools else (NO_TOOLS, EMPTY_TOOLS, *unknown):
        yield from ((history, tools) for history in _histories(reply))
    openings: list[list[Mapping[str, Any]]] = [[SYSTEM]]
    if looks.markers:
        marked = " ".join([USER["content"], *looks.markers, USER["content"]])
        openings.append([{**SYSTEM, "content": marked}])
        openings.append([one for text in looks.markers for one in ({**USER, "content": text}, _ANSWER)])
        yield from ((history, case.tools) for history in _histories(reply, last=marked))
    for opening in openings:
        yield from (([*opening, *history], case.tools) for history in _histories(reply))


def _histories(reply: Mapping[str, Any], *, last: str | None = None) -> Iterator[list[Mapping[str, Any]]]:
    """Short histories, and with reasoning, tool calls and an answer; the calls are named as in the reply.

    `last` is the text of the last message.
    """
    found, asked = last or "probe result", {**USER, "content": last or USER["content"]}
    calls = reply.get("tool_calls") or [_CALL]
    asking = {"role": "assistant", "reasoning_content": "probe reasoning", "content": None, "tool_calls": calls}
    results = [
        {"role": "tool", "tool_call_id": call.get("id"), "name": call["function"]["name"], "content": found}
        for call in calls
    ]
    yield [asked]
    yield [USER, asking, *results]
    yield [USER, {**asking, "content": ""}, *results]  # some templates fail on calls without content
    yield [USER, {**asking, "content": ""}, *results, {**_ANSWER, "reasoning_content": "probe reasoning"}, asked]
    yield [USER, _ANSWER, asked]


def _checked(renderer: DefaultRenderer, history: Sequence[Mapping[str, Any]], case: Case) -> list[_Measured]:
    """Every premise on one history, in every form that the reply may have in it."""
    prompt = renderer.encoded(history, case.tools, add_generation_prompt=True).traced.text
    alone = renderer.encoded([*history, case.form], case.tools)
    first = _measured(renderer, history, case.form, case)
    _check_history(first, prompt, alone, len(history))
    _check_reply(renderer, first.delta, case)
    seen = [first]
    forms = [(form, False) for form in case.equal_forms]
    for form, is_assumed in [*forms, *([(case.assumed_form, True)] if case.assumed_form is not None else [])]:
        try:
            other = renderer.encoded([*history, form], case.tools)
        except TemplateError:
            if is_assumed:
                raise
            continue  # the caller's history does not hold what the template refuses
        if is_assumed or other.traced.text == alone.traced.text:
            seen.append(_measured(renderer, history, form, case))
            _check_history(seen[-1], prompt, other, len(history))
    return seen


def _measured(
    renderer: DefaultRenderer, history: Sequence[Mapping[str, Any]], reply: Mapping[str, Any], case: Case
) -> _Measured:
    count = len(history)
    whole = renderer.encoded([*history, reply, *case.new], case.tools, add_generation_prompt=True, branches=True)
    traced, end = whole.traced, _end(whole.traced, count)
    way = [(branch.condition, branch.value) for branch in traced.branches if branch.offset >= end]
    start = (whole.replies or {}).get(count)
    return _Measured(_cut(whole, count), traced, start, _foreign_source(traced, count, end), way)


def _check_history(measured: _Measured, prompt: str, alone: Encoded, count: int) -> None:
    """That the new messages only add to what stands there: the prompt, and the reply as the last message."""
    text = measured.traced.text
    dropped = _reasoning(alone.traced) - _reasoning(measured.traced)
    rewrite = RefusalReason.RETENTION if dropped else RefusalReason.HISTORY_REWRITE
    if not text.startswith(prompt):
        at = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(prompt, text, strict=False)))
        detail = (
            f"with the new messages the template writes the conversation so far otherwise, from character {at} on "
            f"({prompt[at : at + 30]!r} becomes {text[at : at + 30]!r})"
        )
        raise _FailedError(rewrite, "prefix", detail)
    if measured.start is not None and measured.start != len(prompt):
        between = text[len(prompt) : measured.start][:30]
        detail = f"with the new messages the template writes {between!r} between the prompt and the reply"
        raise _FailedError(rewrite, "prefix", detail)
    delta, last = measured.delta, _cut(alone, count)
    if delta is not None and (last is None or last.reply not in (delta.reply, delta.reply[:-1])):
        detail = "the template writes the reply otherwise once these messages follow it"
        raise _FailedError(rewrite, "reply_kept", detail)
    if measured.foreign is not None:
        detail = f"after the reply the template prints something of messages[{measured.foreign}] again"
        raise _FailedError(RefusalReason.HISTORY_REWRITE, "own_sources", detail)


def _reasoning(traced: TracedText) -> set[int]:
    """The messages whose reasoning is printed."""
    return {span.message_index for span in traced.spans if is_reasoning(span)}


def _check_reply(renderer: DefaultRenderer, delta: Delta | None, case: Case) -> None:
    """That the rendered reply ends, and is what was sampled."""
    if delta is None or delta.reply[-1] not in renderer.stop_ids:
        detail = "the template writes no stop token after this reply, so it is not known where it ends"
        raise _FailedError(RefusalReason.WRONG_STOP, "stop", detail)
    if case.parsed.stop is not None and case.completion[case.parsed.closed_at - 1] != delta.reply[-1]:
        detail = (
            f"the model stopped with {case.parsed.stop!r}; before these messages the template writes "
            f"{renderer.decode(delta.reply[-1:])!r}"
        )
        raise _FailedError(RefusalReason.WRONG_STOP, "stop", detail)
    if not _says_the_same(renderer, delta.reply, case):
        reasoned = (case.parsed.reasoning_content or "").strip()
        reason = RefusalReason.RETENTION if reasoned else RefusalReason.HISTORY_REWRITE
        detail = "before these messages the template writes the reply otherwise than it was sampled"
        raise _FailedError(reason, "reply_kept", detail)


def _says_the_same(renderer: DefaultRenderer, reply: list[int], case: Case) -> bool:
    """Whether a rendered reply is the sampled one: the same text, or at least the same reply when it is parsed."""
    if reply == case.completion or renderer.decode(reply) == renderer.decode(case.completion):
        return True
    stream = renderer.grammar.stream(tools=case.tools.schemas, opening_ids=case.opening)
    stream.feed(reply)
    return _said(stream.finish()) == _said(case.parsed)


def _said(reply: ParsedResponse) -> tuple[Any, ...]:
    """What a reply says; the space around its texts aside, which formats add and strip."""
    calls = [(call.name, call.arguments, call.status) for call in reply.tool_calls]
    return ((reply.reasoning_content or "").strip(), reply.content.strip(), calls)


def _compare(seen: Sequence[_Measured]) -> str:
    """That the delta is the same in every history; says what was compared."""
    deltas = [measured.delta for measured in seen if measured.delta is not None]
    if len(deltas) < 2:
        detail = "the template takes no second history to compare with"
        raise _FailedError(RefusalReason.UNKNOWN_HISTORY, "same_delta", detail)
    if any(delta.ids != deltas[0].ids for delta in deltas):
        detail = "what the template writes for these messages depends on the conversation before"
        raise _FailedError(RefusalReason.UNKNOWN_HISTORY, "same_delta", detail)
    if any(measured.way != seen[0].way for measured in seen):
        ways = next(measured.way for measured in seen if measured.way != seen[0].way)
        differing = next((pair[0] for pair in zip(ways, seen[0].way, strict=False) if pair[0] != pair[1]), None)
        condition = "" if differing is None else f": {differing[0]}"
        detail = (
            f"a condition that the template evaluates for these messages depends on the conversation before{condition}"
        )
        raise _FailedError(RefusalReason.UNKNOWN_HISTORY, "same_way", detail)
    return f"it is the same, token for token, in {len(deltas)} renders with different histories"


def _cut(whole: Encoded, count: int) -> Delta | None:
    """Cut a render after the reply, message `count`; None where it prints nothing that would be sampled."""
    ids = [token_id for part in whole.parts for token_id in part]
    position, start, end = 0, None, 0
    runs = Runs()
    for length, label in whole.runs.items():
        if is_sampled(label) and message_of(label) == count:
            start = position if start is None else start
            end, runs = position + length, Runs()
        elif start is not None:
            message = message_of(label) - count - 1
            runs.add(length, with_message(label, message) if message >= 0 else OUTSIDE)
        position += length
    return None if start is None else Delta(ids[end:], runs, ids[start:end])


def _end(traced: TracedText, count: int) -> int:
    """The character after the reply, message `count`."""
    return max((span.end for span in traced.spans if span.message_index == count), default=0)


def _foreign_source(traced: TracedText, count: int, end: int) -> int | None:
    """A message before the reply of which a field is printed after it, or None."""
    for span in traced.spans:
        if span.start >= end and 0 <= span.message_index < count and span.field is not None:
            return span.message_index
    return None
