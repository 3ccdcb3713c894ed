"""Where two renders of a template part, and which condition sent them different ways."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from renderers.template.branches import Branch, BranchKind
from renderers.template.doctor.report import Flip
from renderers.template.doctor.syntax import Key, Setter, Syntax
from renderers.template.trace import SourceSpan, TracedText

#: The kinds of conditions that stand for themselves.
WHOLE: frozenset[BranchKind] = frozenset({"if", "inline", "filter"})
#: How many steps back from a condition to what decides it.
_STEPS = 3


def span_at(traced: TracedText, character: int) -> SourceSpan | None:
    """The span of a character, or None at the end of the text."""
    for span in traced.spans:
        if span.start <= character < span.end:
            return span
    return None


def find_flips(earlier: TracedText, later: TracedText, character: int, syntax: Syntax) -> list[Flip]:
    """The conditions that two renders answered differently before their first difference.

    First those that decide the output there, then those that decide these.

    Args:
        earlier: a render with its branches.
        later: another one.
        character: where they part.
        syntax: the template.
    """
    flips = _deciding(earlier, later, character)
    known = {(flip.line, flip.part_of or flip.condition) for flip in flips}
    names = {name for flip in flips for name in syntax.names(_read_by(flip))}
    for flip in _upstream(names, earlier.branches, later.branches, syntax):
        if (flip.line, flip.condition) not in known:
            known.add((flip.line, flip.condition))
            flips.append(flip)
    return flips


def _read_by(flip: Flip) -> str:
    """The expression that a flip depends on: of a loop what it goes through."""
    return flip.condition.partition(" in ")[2] if flip.condition.startswith("for ") else flip.condition


# What decided the output ----------------------------------------------------------------------------------------------


class Iteration(NamedTuple):
    """The evaluations in one message's iteration of a loop, up to a character."""

    loop: Branch
    branches: Sequence[Branch]


def _deciding(earlier: TracedText, later: TracedText, character: int) -> list[Flip]:
    spans = [span_at(traced, character) for traced in (earlier, later)]
    indices = [span.message_index for span in spans if span is not None and span.message_index >= 0]
    # What stands at the border of two messages may have been decided in the first one.
    candidates = dict.fromkeys([*indices, *(index - 1 for index in indices if index)])
    for index in candidates:
        one, other = (iteration(traced.branches, index, character) for traced in (earlier, later))
        if one is None or other is None:
            continue
        if one.loop.condition != other.loop.condition:
            if indices != [index, index]:
                continue  # one of the two is not at this message yet
            return [_of_loop(one.loop, later=False), _of_loop(other.loop, later=True)]
        flips = _first_difference(one.branches, other.branches, one.loop.depth)
        if flips:
            return flips
    outside = [[b for b in traced.branches if b.depth == 0 and b.offset <= character] for traced in (earlier, later)]
    return _first_difference(outside[0], outside[1], depth=0)


def iteration(branches: Sequence[Branch], index: int, character: int) -> Iteration | None:
    """The last iteration over a message that began before a character."""
    own = [
        place
        for place, branch in enumerate(branches)
        if branch.condition.kind == "loop" and branch.message_index == index and branch.offset <= character
    ]
    if not own:
        return None
    depth = min(branches[place].depth for place in own)
    start = max(place for place in own if branches[place].depth == depth)
    inside: list[Branch] = []
    for branch in branches[start + 1 :]:
        over = branch.depth < depth or (branch.depth == depth and branch.condition.kind == "loop")
        if over or branch.offset > character:
            break
        inside.append(branch)
    return Iteration(branches[start], inside)


def _of_loop(branch: Branch, *, later: bool) -> Flip:
    line, text, *_ = branch.condition
    return Flip(line, text, None, branch.message_index, not later, later)


def _first_difference(one: Sequence[Branch], other: Sequence[Branch], depth: int) -> list[Flip]:
    """The first condition that was answered differently, looking into loops only where nothing around them was."""
    deepest = max((branch.depth for branch in (*one, *other)), default=depth)
    for level in range(depth, deepest + 1):
        flips = _difference_at(one, other, level)
        if flips:
            return flips
    return []


def _difference_at(one: Sequence[Branch], other: Sequence[Branch], level: int) -> list[Flip]:
    ours, theirs = (
        [place for place, branch in enumerate(side) if branch.depth <= level and branch.condition.kind != "operand"]
        for side in (one, other)
    )
    for mine, its in zip(ours, theirs, strict=False):
        earlier, later = one[mine], other[its]
        if earlier.condition != later.condition:  # a loop ran on in one and not in the other
            looping = earlier if earlier.condition.kind == "loop" else later
            return [_of_loop(looping, later=looping is later)]
        if earlier.value != later.value:
            return _operands(one[:mine], other[:its], earlier, later)
    return []


def _operands(one: Sequence[Branch], other: Sequence[Branch], earlier: Branch, later: Branch) -> list[Flip]:
    """The operands of a condition that made the difference, or the condition itself."""
    line, text, *_ = earlier.condition
    index = earlier.message_index
    ours, theirs = _values(one, earlier), _values(other, later)
    flips = [
        Flip(place, operand, text, index, ours[place, operand], theirs[place, operand])
        for place, operand in ours
        if theirs.get((place, operand), ours[place, operand]) != ours[place, operand]
    ]
    return flips or [Flip(line, text, None, index, earlier.value, later.value)]


def _values(before: Sequence[Branch], whole: Branch) -> dict[Key, bool]:
    """The values of a condition's operands, which were noted just before it."""
    values: dict[Key, bool] = {}
    for branch in reversed(before):
        if branch.condition.kind != "operand":
            break
        if branch.condition.text in whole.condition.text:
            values.setdefault((branch.condition.line, branch.condition.text), branch.value)
    return values


# What decided that ----------------------------------------------------------------------------------------------------


def _upstream(names: set[str], earlier: Sequence[Branch], later: Sequence[Branch], syntax: Syntax) -> Iterator[Flip]:
    """The conditions around the places that set these variables, where they were answered differently."""
    asked, seen = set(names), set(names)
    for _ in range(_STEPS):
        following: set[str] = set()
        for name in sorted(asked):
            for setter in syntax.setters(name):
                flips = _of_setter(setter, f"{name} (line {setter.line})", earlier, later)
                yield from flips
                following |= setter.names if not flips else set()
        asked = following - seen
        seen |= asked


def _of_setter(setter: Setter, decides: str, earlier: Sequence[Branch], later: Sequence[Branch]) -> list[Flip]:
    """The conditions around one setter that were answered differently, the innermost first."""
    found = [_differs(guard, earlier, later, decides) for guard in reversed(setter.guards)]
    flips = [flip for flip in found if flip is not None]
    # A message that only one render has set nothing where one of the conditions did not hold for it.
    idle = {
        flip.message_index for flip in flips if None in {flip.earlier, flip.later} and not (flip.earlier or flip.later)
    }
    return [flip for flip in flips if flip.message_index not in idle]


def _differs(guard: Key, earlier: Sequence[Branch], later: Sequence[Branch], decides: str) -> Flip | None:
    ours, theirs = _answers(guard, earlier), _answers(guard, later)
    changed = [index for index in sorted(ours.keys() | theirs.keys()) if ours.get(index) != theirs.get(index)]
    if not changed:
        return None
    # Where it held is what tells; a message that only the later render has, more than others.
    telling = [index for index in changed if True in theirs.get(index, ())] or changed
    index = telling[-1]
    before, after = (any(answers[index]) if index in answers else None for answers in (ours, theirs))
    return Flip(*guard, None, index, before, after, decides)


def _answers(guard: Key, branches: Sequence[Branch]) -> dict[int, tuple[bool, ...]]:
    """What a condition came to, by message."""
    answers: dict[int, tuple[bool, ...]] = defaultdict(tuple)
    for branch in branches:
        if branch.condition.kind in WHOLE and (branch.condition.line, branch.condition.text) == guard:
            answers[branch.message_index] += (branch.value,)
    return dict(answers)
