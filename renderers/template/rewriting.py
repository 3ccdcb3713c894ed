"""The rewriting of a template's syntax tree, so that what it prints carries its sources.

* Text constants become traced strings, made once at compile time.
* What one output prints goes through the filter `PRINT` in one piece, with the line of each part and the message whose
  iteration it stands in.
* `a + b + c` becomes the filter `ADD` and `a ~ b` the filter `JOIN`: the one for speed, the other because jinja2's own
  would lose the sources.
* A loop assigns the message that it is at, if it is at one, to the variable `MESSAGE`. It is a variable of the template,
  so that jinja2's own scoping restores it after the loop, after `{% break %}` and in recursion.
* What is put into a namespace goes through the filter `KEEP`, because it outlives the iteration.

Where a value is only looked at (conditions, comparisons, tests, subscripts) nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from jinja2 import TemplateAssertionError, nodes
from jinja2.visitor import NodeTransformer

#: Names of filters that no template can spell, so that it can neither call nor miss them.
PRINT, ADD, JOIN = "print, traced", "add, traced", "join, traced"
ENTER, ENTER_INDEXED, KEEP, VALUE_OF = "enter a message", "enter a message by index", "keep", "value of a key"
TEXT_OF = "text of a key"
#: The variables that hold the index of the message that a loop is at, and all messages. A template could spell them,
#: and has no reason to.
MESSAGE, MESSAGES = "_renderers_message_index", "_renderers_messages"
_CAPTURE = "_renderers_captured_"

# What is said to these methods never gets into the text.
_LOOKING = frozenset(
    {"startswith", "endswith", "split", "rsplit", "strip", "lstrip", "rstrip", "find", "count", "index"}
)

_Statement = TypeVar("_Statement", bound=nodes.Node)


class Rewriter(NodeTransformer):
    """Rewrites one template.

    Args:
        keep_literal: takes a text constant and gives the name of the environment's attribute that holds it, traced.
    """

    def __init__(self, keep_literal: Callable[[str], str]) -> None:
        self._keep_literal = keep_literal
        self._captures = 0
        self._loop_depth = 0
        self._keys: dict[str, str] = {}  # of loops over the items of a dict: the key's name by the value's

    # Text -----------------------------------------------------------------------------------------------------------

    def visit_Const(self, node: nodes.Const) -> nodes.Expr:  # noqa: N802 - named by jinja2, as all below
        return self._literal(node.value, node.lineno) if isinstance(node.value, str) else node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Expr:  # noqa: N802
        return apply_filter(_list([self.visit(item) for item in _merged(node.nodes)], node.lineno), JOIN)

    def visit_Add(self, node: nodes.Add) -> nodes.Expr:  # noqa: N802
        return apply_filter(_list([self.visit(term) for term in _terms(node)], node.lineno), ADD)

    def visit_Output(self, node: nodes.Output) -> nodes.Output:  # noqa: N802
        values: list[nodes.Expr] = []
        lines: list[int] = []
        counts: list[int] = []
        for child in node.nodes:
            parts, of_parts, terms = self._printed(child)
            values += parts
            lines += of_parts
            counts += terms
        return self._output(values, lines, counts, node.lineno)

    def _printed(self, child: nodes.Expr) -> tuple[list[nodes.Expr], list[int], list[int]]:
        """The values that one child of an output prints, their lines, and how many are added to make each."""
        line = child.lineno
        if isinstance(child, nodes.TemplateData):
            values: list[nodes.Expr] = []
            lines: list[int] = []
            for text in child.data.splitlines(keepends=True):
                values.append(self._literal(text, line))
                lines.append(line)
                line += text.endswith("\n")
            return values, lines, [1] * len(values)
        line = first_line(child)
        if isinstance(child, nodes.Add):
            values = [self._with_key(TEXT_OF, self.visit(term), term) for term in _terms(child)]
            return values, [line] * len(values), [len(values)]
        if isinstance(child, nodes.Concat):
            values = [self._with_key(VALUE_OF, self.visit(item), item) for item in _merged(child.nodes)]
            return values, [line] * len(values), [1] * len(values)
        return [self._with_key(VALUE_OF, self.visit(child), child)], [line], [1]

    def _with_key(self, how: str, value: nodes.Expr, child: nodes.Expr) -> nodes.Expr:
        """Numbers, booleans and None have no source of their own: give them the key that they were found under."""
        for name in _names_of_value(child) if self._keys else ():
            if name in self._keys:
                return apply_filter(value, how, [load(self._keys[name], child.lineno)])
        return value

    def _output(self, values: list[nodes.Expr], lines: list[int], counts: list[int], line: int) -> nodes.Output:
        if not values:
            return nodes.Output([], lineno=line)
        shape: list[nodes.Expr] = [nodes.Const(tuple(lines), lineno=line), nodes.Const(tuple(counts), lineno=line)]
        printed = apply_filter(nodes.Tuple(values, "load", lineno=line), PRINT, [*shape, load(MESSAGE, line)])
        return nodes.Output([printed], lineno=line)

    # What only looks ------------------------------------------------------------------------------------------------

    def visit_EvalContextModifier(self, node: nodes.EvalContextModifier) -> nodes.Node:  # noqa: N802
        raise TemplateAssertionError("a template with {% autoescape %} cannot be traced", node.lineno)

    visit_ScopedEvalContextModifier = visit_EvalContextModifier  # noqa: N815

    def visit_Compare(self, node: nodes.Compare) -> nodes.Expr:  # noqa: N802
        return node

    def visit_Test(self, node: nodes.Test) -> nodes.Expr:  # noqa: N802
        return node

    def visit_Not(self, node: nodes.Not) -> nodes.Expr:  # noqa: N802
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Expr:  # noqa: N802
        node.node = self.visit(node.node)
        if not isinstance(node.arg, nodes.Const):
            node.arg = self.visit(node.arg)
        return node

    def visit_CondExpr(self, node: nodes.CondExpr) -> nodes.Expr:  # noqa: N802
        node.expr1 = self.visit(node.expr1)
        if node.expr2 is not None:
            node.expr2 = self.visit(node.expr2)
        return node

    def visit_Call(self, node: nodes.Call) -> nodes.Node:  # noqa: N802
        method = node.node.attr if isinstance(node.node, nodes.Getattr) else None
        if method in _LOOKING:
            node.node = self.visit(node.node)
            return node
        if method == "get" and node.args and isinstance(node.args[0], nodes.Const):
            key, node.args = node.args[0], node.args[1:]
            self.generic_visit(node)
            node.args.insert(0, key)
            return node
        return self.generic_visit(node)

    # Statements -----------------------------------------------------------------------------------------------------

    def visit_If(self, node: nodes.If) -> nodes.If:  # noqa: N802
        node.body = self._statements(node.body)
        node.elif_ = self._statements(node.elif_)
        node.else_ = self._statements(node.else_)
        return node

    def visit_For(self, node: nodes.For) -> nodes.For | list[nodes.Stmt]:  # noqa: N802
        return self.with_message(node)

    def with_message(self, node: nodes.For) -> nodes.For:
        """A loop that assigns the message that it is at, if anything in it asks."""
        node.iter = self.visit(node.iter)
        targets, indexed, line = _names(node.target), _indexed_by(node), node.lineno
        keys = self._keys
        if len(targets) == 2:
            self._keys = {**keys, targets[1]: targets[0]}
        self._loop_depth += 1
        node.body = self._statements(node.body)
        self._loop_depth -= 1
        self._keys = keys
        node.else_ = self._statements(node.else_)
        if any(MESSAGE in _names(statement) for statement in node.body):
            current = _entered_by_index(targets[0], indexed, line) if indexed else entered(node)
            node.body.insert(0, nodes.Assign(_store(MESSAGE, line), current, lineno=line))
        return node

    def visit_Assign(self, node: nodes.Assign) -> nodes.Assign:  # noqa: N802
        value: nodes.Expr = self.visit(node.node)
        no_text = isinstance(value, nodes.Compare | nodes.Not | nodes.Test | nodes.Name | nodes.Const)
        if self._loop_depth and isinstance(node.target, nodes.NSRef) and not no_text:
            value = apply_filter(value, KEEP, [load(MESSAGE, node.lineno)])
        node.node = value
        return node

    def visit_AssignBlock(self, node: nodes.AssignBlock) -> nodes.Node:  # noqa: N802
        node.body = self._statements(node.body)
        if node.filter is not None:
            node.filter = self.visit(node.filter)
        if not self._loop_depth or not isinstance(node.target, nodes.NSRef):
            return node
        # `{% set space.name %}...{% endset %}` has no expression that could be wrapped: go through a variable.
        name, line, target = self._capture_name(), node.lineno, node.target
        node.target = _store(name, line)
        kept = apply_filter(load(name, line), KEEP, [load(MESSAGE, line)])
        return nodes.Scope([node, nodes.Assign(target, kept, lineno=line)], lineno=line)

    def visit_CallBlock(self, node: nodes.CallBlock) -> nodes.Node:  # noqa: N802
        return self._captured(self.generic_visit(node))

    def visit_FilterBlock(self, node: nodes.FilterBlock) -> nodes.Node:  # noqa: N802
        return self._captured(self.generic_visit(node))

    def visit_Block(self, node: nodes.Block) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return self._captured(node) if self._loop_depth else node

    def _captured(self, node: nodes.Node) -> nodes.Node:
        """A statement that prints by itself: put into a variable, which is then printed as everything else is."""
        name, line = self._capture_name(), node.lineno
        capture = nodes.AssignBlock(_store(name, line), None, [node], lineno=line)
        return nodes.Scope([capture, self._output([load(name, line)], [line], [1], line)], lineno=line)

    def _statements(self, statements: Sequence[_Statement]) -> list[_Statement]:
        rewritten: list[_Statement] = []
        for statement in statements:
            result = self.visit(statement)
            rewritten += result if isinstance(result, list) else [result]
        return rewritten

    def _capture_name(self) -> str:
        self._captures += 1
        return f"{_CAPTURE}{self._captures}"

    def _literal(self, text: str, line: int) -> nodes.Expr:
        return nodes.EnvironmentAttribute(self._keep_literal(text), lineno=line)


def apply_filter(value: nodes.Node, name: str, args: Sequence[nodes.Expr] = ()) -> nodes.Filter:
    """`value | name(*args)`."""
    return nodes.Filter(value, name, list(args), [], None, None, lineno=value.lineno)


def _list(items: list[nodes.Expr], line: int) -> nodes.Expr:
    return nodes.Tuple(items, "load", lineno=line)


def load(name: str, line: int) -> nodes.Expr:
    """The value of a variable."""
    return nodes.Name(name, "load", lineno=line)


def _store(name: str, line: int) -> nodes.Name:
    return nodes.Name(name, "store", lineno=line)


def entered(loop: nodes.For) -> nodes.Expr:
    """The message that a loop is at: what it goes through is a message, or it is the one around the loop."""
    line = loop.lineno
    current = load(MESSAGE, line)
    for name in reversed(_names(loop.target)):
        current = apply_filter(load(name, line), ENTER, [current, load(MESSAGES, line)])
    return current


def _entered_by_index(target: str, lists: Sequence[str], line: int) -> nodes.Expr:
    """The same where the loop's variable may count through lists of messages."""
    counted = nodes.Tuple([load(name, line) for name in lists], "load", lineno=line)
    return apply_filter(load(target, line), ENTER_INDEXED, [load(MESSAGE, line), load(MESSAGES, line), counted])


def _terms(node: nodes.Expr) -> list[nodes.Expr]:
    """The operands of `a + b + c`, from left to right."""
    terms: list[nodes.Expr] = []
    while isinstance(node, nodes.Add):
        terms.append(node.right)
        node = node.left
    return [node, *reversed(terms)]


def _merged(items: Iterable[nodes.Expr]) -> list[nodes.Expr]:
    """The operands of `~`, neighbouring text constants made one."""
    merged: list[nodes.Expr] = []
    for item in items:
        last = merged[-1] if merged else None
        if _is_text(item) and _is_text(last):
            merged[-1] = nodes.Const(last.value + item.value, lineno=last.lineno)  # type: ignore[union-attr,attr-defined]
        else:
            merged.append(item)
    return merged


def _is_text(node: nodes.Node | None) -> bool:
    return isinstance(node, nodes.Const) and isinstance(node.value, str)


def first_line(node: nodes.Node) -> int:
    """The line that an expression begins on: jinja2 gives chains of operators the line of their last one."""
    return min([node.lineno, *(child.lineno for child in node.find_all(nodes.Expr))])


def _names(node: nodes.Node) -> list[str]:
    """The names of variables in a part of the tree."""
    return [node.name] if isinstance(node, nodes.Name) else [name.name for name in node.find_all(nodes.Name)]


def _names_of_value(node: nodes.Expr) -> list[str]:
    """The names that an expression's value is taken from, and not only chosen or changed by."""
    if isinstance(node, nodes.Name):
        return [node.name]
    if isinstance(node, nodes.CondExpr):
        return _names_of_value(node.expr1) + (_names_of_value(node.expr2) if node.expr2 is not None else [])
    if isinstance(node, nodes.Filter | nodes.Getattr | nodes.Getitem) and node.node is not None:
        return _names_of_value(node.node)
    return []


def _indexed_by(loop: nodes.For) -> list[str]:
    """Lists that the loop's body takes the item of that its own variable counts: `messages[index]`."""
    if not isinstance(loop.target, nodes.Name):
        return []
    return list(
        dict.fromkeys(
            item.node.name
            for statement in loop.body
            for item in statement.find_all(nodes.Getitem)
            if isinstance(item.node, nodes.Name)
            and isinstance(item.arg, nodes.Name)
            and item.arg.name == loop.target.name
        )
    )
