"""What to write in a template instead: changes of one condition, each tried, and a sentence of advice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from renderers.errors import TemplateError
from renderers.template.bound import BoundTemplate
from renderers.template.doctor.causes import span_at
from renderers.template.doctor.rendering import Pair, rendered_with
from renderers.template.doctor.report import Change, Flip
from renderers.template.doctor.syntax import Key, Syntax

#: How many changes are offered.
_CHANGES = 2

#: Where the texts agree and the tokens do not.
TOKENS_DIFFER = (
    "The texts agree and the tokens do not: one token joins the end of the earlier text to what follows, so the earlier "
    "text must end where a token ends."
)
# What in a condition asks where a message stands.
_POSITION = (
    "loop.last",
    "loop.nextitem",
    "loop.revindex",
    "loop.index0 + 1",
    "loop.length",
    "messages | length",
    "[-1]",
)


def changes(template: BoundTemplate, syntax: Syntax, pair: Pair, flips: Sequence[Flip]) -> tuple[Change, ...]:
    """Conditions to write otherwise: those with which the earlier render is a prefix, else the likeliest."""
    tried: list[Change] = []
    for flip in flips:
        if flip.decides and any(change.enough for change in tried):
            break
        if syntax.has_condition((flip.line, flip.part_of or flip.condition)):
            tried += _changes_of(template, syntax, pair, flip)
    enough = [change for change in tried if change.enough]
    return tuple((enough or tried[:1])[:_CHANGES])


def _changes_of(template: BoundTemplate, syntax: Syntax, pair: Pair, flip: Flip) -> Iterator[Change]:
    """The smallest change that keeps the earlier render's answer, and the smallest that keeps the later one's."""
    condition = (flip.line, flip.part_of or flip.condition)
    answers: tuple[tuple[Literal["earlier", "later"], bool | None], ...] = (
        ("earlier", flip.earlier),
        ("later", flip.later),
    )
    for keeps, value in answers:
        # A condition that one render never came to is tried with what it did not come to in the other.
        fixed = value if value is not None else not (flip.earlier or flip.later)
        candidates = [
            Change(*condition, text, keeps, _is_enough(template, syntax, pair, condition, text, keeps))
            for text in syntax.replacements(condition[1], flip.condition, value=fixed)
        ]
        yield next((change for change in candidates if change.enough), candidates[0])


def _is_enough(
    template: BoundTemplate, syntax: Syntax, pair: Pair, condition: Key, replacement: str, keeps: str
) -> bool:
    """Whether the earlier render then is a prefix, the side to be kept stays, and none of the caller's text is lost."""
    changed = syntax.changed(condition, replacement)
    try:
        before, after = (rendered_with(template, changed, side) for side in pair.sides)
    except TemplateError:
        return False
    stays = before == pair.earlier.text if keeps == "earlier" else after == pair.later.text
    own = (span for span in pair.earlier.spans if span.field is not None and not span.derived)
    if not stays or not all(pair.earlier.text[span.start : span.end] in before for span in own):
        return False
    if template.tokenizer is None:
        return after.startswith(before)
    ids, longer = template.token_ids(before), template.token_ids(after)
    return longer[: len(ids)] == ids


def advice(pair: Pair, character: int, flips: Sequence[Flip]) -> str:
    """What a difference of texts calls for, or "" where there is nothing to say about it."""
    if flips:
        return _advice_on_conditions(flips)
    if pair.is_reply:
        return "Let the assistant's turn begin with what the generation prompt prints."
    before, after = (span_at(traced, character) for traced in (pair.earlier, pair.later))
    if after is None or after.message_index < len(pair.sides[0].messages):
        return ""
    if before is not None and before.message_index < 0:
        return "What the template prints at the end of a conversation is gone once the conversation goes on."
    return "A new message is printed before or inside earlier ones: print each message where it stands."


def _advice_on_conditions(flips: Sequence[Flip]) -> str:
    first, last = flips[0], flips[-1]
    if first.condition.startswith("for "):
        return "One loop wrote the message and then another one: let both write it in the same way."
    if any(place in (first.part_of or first.condition) for place in _POSITION):
        return "Whether a message is the last one must not change how it is written."
    if last.decides:
        return f"Keep {last.decides.partition(' ')[0]} out of what decides how earlier messages are written."
    return ""
