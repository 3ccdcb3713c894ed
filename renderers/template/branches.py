"""Which way a template went: every condition that one render evaluated, and what it came to.

A second rewriting of the tree sends each condition through a filter that notes its value, so that a traced render
without recording costs nothing more. Recorded are the conditions of `{% if %}` and `{% elif %}`, of `x if y else z`, of
loops (`{% for x in y if z %}`), the left side of `and` and `or` where they choose a value, each iteration of each loop, and
of a condition made of several the ones that were looked at. What a comparison or a call asks inside is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, NamedTuple

from jinja2 import nodes, pass_context
from jinja2.runtime import Context

from renderers.template.filters import TracingEnvironment
from renderers.template.rewriting import MESSAGE, Rewriter, apply_filter, entered, first_line, load
from renderers.template.sources import NO_MESSAGE
from renderers.template.unparsing import unparse

#: The variable under which a render's recorder stands. No template can spell it.
RECORDER = "recorder of branches"
_NOTE, _BEGIN, _END = "note a condition", "begin a loop", "end a loop"

BranchKind = Literal["if", "inline", "filter", "value", "operand", "loop"]


class Condition(NamedTuple):
    """A place in a template that decides which way it goes.

    Attributes:
        line: the template line that it begins on.
        text: its source text, with the spaces and quotes that the template's author may have written otherwise.
        kind: `if` (also elif), `inline` (`x if y else z`), `filter` (of a loop), `value` (the left side of `and` or `or` that
            choose a value), `operand` (a part of a condition made of several), or `loop` (an iteration, always true; the
            text is `for x in y`).
        number: tells it from others of the same text on the same line.
    """

    line: int
    text: str
    kind: BranchKind
    number: int


class Branch(NamedTuple):
    """One evaluation of a condition. They stand in the order of evaluation; a condition after its operands.

    Attributes:
        condition: what was evaluated.
        value: whether it held.
        message_index: the message whose loop iteration it ran in, also inside macros, or -1 outside any.
        offset: how many characters had been printed. What a macro or a block prints counts once it is printed as a whole.
        depth: how many loops ran around it; an iteration counts its own.
    """

    condition: Condition
    value: bool
    message_index: int
    offset: int
    depth: int


class Recorder:
    """Takes the branches of one render."""

    def __init__(self) -> None:
        self.branches: list[Branch] = []
        self._printed = 0
        self._message = NO_MESSAGE
        self._outside: list[int] = []  # of each loop that runs: the message around it

    def counted(self, pieces: Iterable[str]) -> Iterator[str]:
        """The pieces of a render, one at a time, counted as they come."""
        for piece in pieces:
            self._printed += len(piece)
            yield piece

    def begin_loop(self) -> None:
        """A loop is about to begin."""
        self._outside.append(self._message)

    def end_loop(self) -> None:
        """The innermost loop has ended."""
        self._message = self._outside.pop()

    def note(self, condition: Condition, value: bool, message: int) -> None:
        """A condition has been evaluated in the iteration over a message."""
        if message == NO_MESSAGE:
            message = self._message  # a macro does not know who called it
        if condition.kind == "loop":
            self._message = message
        self.branches.append(Branch(condition, value, message, self._printed, len(self._outside)))


class RecordingRewriter(Rewriter):
    """Rewrites one template so that it records its branches as well.

    Args:
        keep_literal: see `Rewriter`.
        conditions: where the template's conditions go, each at its number.
    """

    def __init__(self, keep_literal: Callable[[str], str], conditions: list[Condition]) -> None:
        super().__init__(keep_literal)
        self._conditions = conditions

    def visit_If(self, node: nodes.If) -> nodes.If:  # noqa: N802 - named by jinja2, as all below
        super().visit_If(node)
        node.test = self._noted(node.test, "if")
        return node

    def visit_CondExpr(self, node: nodes.CondExpr) -> nodes.Expr:  # noqa: N802
        super().visit_CondExpr(node)
        node.test = self._noted(node.test, "inline")
        return node

    def visit_And(self, node: nodes.And) -> nodes.Expr:  # noqa: N802
        return self._choice(node)

    def visit_Or(self, node: nodes.Or) -> nodes.Expr:  # noqa: N802
        return self._choice(node)

    def _choice(self, node: nodes.And | nodes.Or) -> nodes.Expr:
        left = self._condition(node.left, "value")
        self.generic_visit(node)
        node.left = self._note(node.left, left)
        return node

    def visit_For(self, node: nodes.For) -> list[nodes.Stmt]:  # noqa: N802
        line = node.lineno
        iteration = self._kept(line, f"for {unparse(node.target)} in {unparse(node.iter)}", "loop")
        if node.test is not None:
            node.test = self._noted(node.test, "filter", entered(node))
        node.body.insert(0, nodes.ExprStmt(self._note(nodes.Const(True, lineno=line), iteration), lineno=line))
        loop = self.with_message(node)
        loop.iter = apply_filter(loop.iter, _BEGIN)
        return [loop, nodes.ExprStmt(apply_filter(nodes.Const(None, lineno=line), _END), lineno=line)]

    def _noted(self, test: nodes.Node, kind: BranchKind, message: nodes.Expr | None = None) -> nodes.Expr:
        """A condition and, where it is made of several, those."""
        condition = self._condition(test, kind)
        if _is_made_of_several(test):
            self._note_operands(test, message)
        return self._note(test, condition, message)

    def _note_operands(self, test: nodes.Node, message: nodes.Expr | None) -> None:
        for name in ("node",) if isinstance(test, nodes.Not) else ("left", "right"):
            operand = getattr(test, name)
            if isinstance(operand, nodes.And | nodes.Or | nodes.Not):
                self._note_operands(operand, message)
            else:
                setattr(test, name, self._note(operand, self._condition(operand, "operand"), message))

    def _condition(self, node: nodes.Node, kind: BranchKind) -> Condition:
        return self._kept(first_line(node), unparse(node), kind)

    def _kept(self, line: int, text: str, kind: BranchKind) -> Condition:
        condition = Condition(line, text, kind, len(self._conditions))
        self._conditions.append(condition)
        return condition

    def _note(self, value: nodes.Node, condition: Condition, message: nodes.Expr | None = None) -> nodes.Expr:
        number = nodes.Const(condition.number, lineno=value.lineno)
        return apply_filter(value, _NOTE, [number, message or load(MESSAGE, value.lineno)])


class RecordingEnvironment(TracingEnvironment):
    """The tracing environment of a template that records its branches."""

    def __init__(self) -> None:
        super().__init__()
        self.filters.update({_NOTE: _note, _BEGIN: _begin, _END: _end})
        self.conditions: list[Condition] = []


def _is_made_of_several(test: nodes.Node) -> bool:
    while isinstance(test, nodes.Not):
        test = test.node
    return isinstance(test, nodes.And | nodes.Or)


# The filters' own part -----------------------------------------------------------------------------------------------


def _recorder(context: Context) -> Recorder:
    recorder: Recorder = context.parent[RECORDER]
    return recorder


@pass_context
def _note(context: Context, value: Any, number: int, message: int) -> Any:
    environment: Any = context.environment
    _recorder(context).note(environment.conditions[number], bool(value), message)
    return value


@pass_context
def _begin(context: Context, value: Any) -> Any:
    _recorder(context).begin_loop()
    return value


@pass_context
def _end(context: Context, value: Any) -> Any:
    _recorder(context).end_loop()
    return value
