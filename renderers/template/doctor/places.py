"""From a render to the template: the line of a character, and the condition around it."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from renderers.errors import TemplateError
from renderers.template.branches import Branch, Condition
from renderers.template.doctor.causes import WHOLE, iteration, span_at
from renderers.template.doctor.report import Place
from renderers.template.doctor.syntax import Key, Syntax
from renderers.template.trace import TracedText

_LINE = re.compile(r"\(template line (\d+)\)")


def place_of_character(syntax: Syntax, traced: TracedText, character: int) -> Place | None:
    """Where a character of a render (with its branches) was printed; None at the end of the text."""
    span = span_at(traced, character)
    if span is None:
        return None
    asked = [b for b in traced.branches if b.offset <= character and b.message_index in {span.message_index, -1}]
    return _place(syntax, span.line, asked, syntax.guards(span.line))


def place_of_message(syntax: Syntax, traced: TracedText, index: int) -> Place | None:
    """Where a message went that printed less than it holds: the first condition that held for it, else the last asked."""
    own = iteration(traced.branches, index, len(traced.text))
    asked = [branch for branch in own.branches if branch.condition.kind in WHOLE] if own is not None else []
    if not asked:
        return None
    branch = next((branch for branch in asked if branch.value), asked[-1])
    line, text, *_ = branch.condition
    return Place(line, syntax.line(line), text, line, branch.value)


def place_of_error(syntax: Syntax, error: TemplateError, branches: Sequence[Branch]) -> Place | None:
    """Where a template raised, after these branches."""
    found = _LINE.search(str(error))
    return None if found is None else _place(syntax, int(found[1]), branches, syntax.guards(int(found[1])) or None)


def _place(syntax: Syntax, line: int, branches: Sequence[Branch], guards: Collection[Key] | None) -> Place:
    """A line with the last of its conditions (of all conditions, where None are given) that was asked."""
    for branch in reversed(branches):
        condition: Condition = branch.condition
        if condition.kind in WHOLE and (guards is None or (condition.line, condition.text) in guards):
            return Place(line, syntax.line(line), condition.text, condition.line, branch.value)
    return Place(line, syntax.line(line))
