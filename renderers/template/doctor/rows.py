"""Each way to append: whether the earlier render is a prefix of the later one, and if not, where and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from renderers.errors import TemplateError
from renderers.template.bound import BoundTemplate
from renderers.template.branches import Recorder
from renderers.template.doctor import remedies
from renderers.template.doctor.causes import find_flips, span_at
from renderers.template.doctor.places import place_of_character, place_of_error
from renderers.template.doctor.probes import Messages, Probe
from renderers.template.doctor.rendering import Pair, rendered, sides_of
from renderers.template.doctor.report import Break, Row, RowStatus, Side
from renderers.template.doctor.syntax import Syntax
from renderers.template.trace import TracedText

#: How many characters and tokens of each render are shown around the difference.
_CHARACTERS, _TOKENS = 60, 6


def examine(template: BoundTemplate, syntax: Syntax, probe: Probe) -> Row:
    """What one way to append comes to."""
    row = _examine(template, syntax, probe)
    if row.status is not RowStatus.CALL_LOST or probe.code == "result-empty":
        return row
    # Templates that print calls only beside null content would say nothing on all that follows.
    with_null = _examine(template, syntax, probe._replace(before=_nulled(probe.before), added=_nulled(probe.added)))
    if with_null.status is RowStatus.CALL_LOST:
        return row
    return replace(with_null, detail=f"with null content; with text, {row.detail}")


def _examine(template: BoundTemplate, syntax: Syntax, probe: Probe) -> Row:
    row = Row(probe.code, probe.group, probe.title, RowStatus.PREFIX)
    sides = sides_of(probe)
    renders: list[TracedText] = []
    for side in sides:
        recorder = Recorder()
        try:
            renders.append(rendered(template, side, recorder))
        except TemplateError as error:
            place = place_of_error(syntax, error, recorder.branches)
            return replace(row, status=RowStatus.REFUSED, detail=str(error), place=place)
    pair = Pair(sides, *renders)
    if _loses_a_call(pair):
        return replace(row, status=RowStatus.CALL_LOST, detail="the template does not print the tool call")
    difference = compare(template, syntax, pair)
    if difference is None:
        return row
    if not any(change.enough for change in difference.changes):
        difference = replace(difference, advice=f"{difference.advice} {probe.advice}".strip())
    kept = pair.later.text.startswith(pair.earlier.text)
    return replace(row, status=RowStatus.TOKENS_DIFFER if kept else RowStatus.TEXT_DIFFERS, difference=difference)


def compare(template: BoundTemplate, syntax: Syntax, pair: Pair) -> Break | None:
    """Where the earlier render of a pair is no prefix of the later one; None where it is one.

    With a tokenizer the tokens count, without one the texts.
    """
    earlier, later = pair.earlier, pair.later
    kept = later.text.startswith(earlier.text)
    character = _common_length(earlier.text, later.text)
    token: int | None = None
    shown_from = character
    tokens: list[tuple[tuple[int, str], ...]] = [(), ()]
    if template.tokenizer is not None:
        (ours, places), (theirs, _) = (template.tokens(traced.text) for traced in (earlier, later))
        token = _common_length(ours, theirs)
        if token == len(ours):
            return None
        shown_from = min(character, places[token][0])
        character = shown_from if kept else character
        tokens = [_shown(template, ids[token : token + _TOKENS]) for ids in (ours, theirs)]
    elif kept:
        return None
    flips = find_flips(earlier, later, character, syntax)
    sides = [
        _side(syntax, traced, character, traced.text[shown_from : shown_from + _CHARACTERS], shown)
        for traced, shown in zip((earlier, later), tokens, strict=True)
    ]
    return Break(
        character=character,
        token=token,
        common=earlier.text[max(0, shown_from - _CHARACTERS) : shown_from],
        earlier=sides[0],
        later=sides[1],
        flips=tuple(flips),
        changes=remedies.changes(template, syntax, pair, flips),
        advice=remedies.TOKENS_DIFFER if kept else remedies.advice(pair, character, flips),
    )


def _side(syntax: Syntax, traced: TracedText, character: int, text: str, tokens: tuple[tuple[int, str], ...]) -> Side:
    span = span_at(traced, character)
    if span is None:
        return Side(text, None, -1, None, tokens)
    return Side(text, place_of_character(syntax, traced, character), span.message_index, span.field, tokens)


def _shown(template: BoundTemplate, ids: Sequence[int]) -> tuple[tuple[int, str], ...]:
    return tuple((token_id, template.token_text(token_id)) for token_id in ids)


def _nulled(messages: Messages) -> Messages:
    """The messages, with null content beside calls."""
    return [{**message, "content": None} if "tool_calls" in message else message for message in messages]


def _loses_a_call(pair: Pair) -> bool:
    """Whether the later render does not hold the calls of one of its messages."""
    printed = {span.message_index for span in pair.later.spans if (span.field or "").startswith("tool_calls")}
    return any("tool_calls" in message and place not in printed for place, message in enumerate(pair.sides[1].messages))


def _common_length(one: Sequence[Any], other: Sequence[Any]) -> int:
    """How many items two sequences begin with alike."""
    return next(
        (place for place, (ours, theirs) in enumerate(zip(one, other, strict=False)) if ours != theirs),
        min(len(one), len(other)),
    )
