"""The rewriting of a template's syntax tree, so that what it prints carries its sources.

* Text constants become traced strings, made once at compile time.
* What is printed goes through the filter `PRINT`, with its line and the message whose iteration it stands in.
* `a ~ b` becomes the filter `JOIN`, because jinja2's own would lose the sources.
* A loop assigns the message that it is at, if it is at one, to the variable `MESSAGE`. It is a variable of the template,
  so that jinja2's own scoping restores it after the loop, after `{% break %}` and in recursion.
* What is put into a namespace goes through the filter `KEEP`, because it outlives the iteration.

Where a value is only looked at (conditions, comparisons, tests, subscripts) nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jinja2 import nodes
from jinja2.visitor import NodeTransformer

#: Names of filters that no template can spell, so that it can neither call nor miss them.
PRINT, JOIN, ENTER, KEEP = "print, traced", "join, traced", "enter a message", "keep in a namespace"
#: The variable that holds the index of the message that a loop is at. Templates could spell it, and have no reason to.
MESSAGE = "_renderers_message_index"
_CAPTURE = "_renderers_captured_"

# What the arguments of these methods say never gets into the text.
_LOOKING = frozenset({"startswith", "endswith", "split", "rsplit", "strip", "lstrip", "rstrip", "find", "count", "index"})


class Rewriter(NodeTransformer):
    """Rewrites one template.

    Args:
        keep_literal: takes a text constant and gives the name of the environment's attribute that holds it, traced.
    """

    def __init__(self, keep_literal: Callable[[str], str]) -> None:
        self._keep_literal = keep_literal
        self._captures = 0
        self._in_loop = 0

    # Text -----------------------------------------------------------------------------------------------------------

    def visit_Const(self, node: nodes.Const) -> nodes.Node:
        return self._literal(node.value, node.lineno) if isinstance(node.value, str) else node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        items = [self.visit(item) for item in _merged(node.nodes)]
        return nodes.Filter(nodes.List(items, lineno=node.lineno), JOIN, [], [], None, None, lineno=node.lineno)

    def visit_Output(self, node: nodes.Output) -> nodes.Node:
        printed: list[nodes.Expr] = []
        for child in node.nodes:
            if not isinstance(child, nodes.TemplateData):
                printed.append(self._printed(self.visit(child), _first_line(child)))
                continue
            line = child.lineno
            for text in child.data.splitlines(keepends=True) if child.data else ():
                printed.append(self._printed(self._literal(text, line), line))
                line += text.endswith("\n")
        return nodes.Output(printed, lineno=node.lineno)

    # What only looks ------------------------------------------------------------------------------------------------

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        return node

    visit_Test = visit_Not = visit_Compare  # type: ignore[assignment]  # noqa: N815 - named by jinja2

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        node.node = self.visit(node.node)
        if not isinstance(node.arg, nodes.Const):
            node.arg = self.visit(node.arg)
        return node

    def visit_CondExpr(self, node: nodes.CondExpr) -> nodes.Node:
        node.expr1 = self.visit(node.expr1)
        if node.expr2 is not None:
            node.expr2 = self.visit(node.expr2)
        return node

    def visit_Call(self, node: nodes.Call) -> nodes.Node:
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

    def visit_If(self, node: nodes.If) -> nodes.Node:
        node.body = self._statements(node.body)
        node.elif_ = self._statements(node.elif_)
        node.else_ = self._statements(node.else_)
        return node

    def visit_For(self, node: nodes.For) -> nodes.Node:
        node.iter = self.visit(node.iter)
        indexed = _indexed_by(node)
        self._in_loop += 1
        node.body = self._statements(node.body)
        self._in_loop -= 1
        node.else_ = self._statements(node.else_)
        names = [name.name for name in _targets(node.target)]
        items = nodes.Tuple([_load(name, node.lineno) for name in names], "load", lineno=node.lineno)
        lists = nodes.Tuple([_load(name, node.lineno) for name in indexed], "load", lineno=node.lineno)
        current = _filter(items, ENTER, [_load(MESSAGE, node.lineno), lists])
        node.body.insert(0, nodes.Assign(nodes.Name(MESSAGE, "store", lineno=node.lineno), current, lineno=node.lineno))
        return node

    def visit_Assign(self, node: nodes.Assign) -> nodes.Node:
        node.node = self.visit(node.node)
        if self._in_loop and isinstance(node.target, nodes.NSRef):
            node.node = _filter(node.node, KEEP, [_load(MESSAGE, node.lineno)])
        return node

    def visit_AssignBlock(self, node: nodes.AssignBlock) -> nodes.Node:
        node.body = self._statements(node.body)
        if node.filter is not None:
            node.filter = self.visit(node.filter)
        if self._in_loop and isinstance(node.target, nodes.NSRef):
            # Through a variable: `{% set space.name %}...{% endset %}` has no expression that could be wrapped.
            name = self._capture_name()
            node_line, target = node.lineno, node.target
            node.target = nodes.Name(name, "store", lineno=node_line)
            kept = _filter(_load(name, node_line), KEEP, [_load(MESSAGE, node_line)])
            return nodes.Scope([node, nodes.Assign(target, kept, lineno=node_line)], lineno=node_line)
        return node

    def visit_CallBlock(self, node: nodes.CallBlock) -> nodes.Node:
        return self._captured(self.generic_visit(node))

    def visit_FilterBlock(self, node: nodes.FilterBlock) -> nodes.Node:
        return self._captured(self.generic_visit(node))

    def _captured(self, node: nodes.Node) -> nodes.Node:
        """A statement that prints by itself: put into a variable, which is then printed as everything else is."""
        name, line = self._capture_name(), node.lineno
        capture = nodes.AssignBlock(nodes.Name(name, "store", lineno=line), None, [node], lineno=line)
        output = nodes.Output([self._printed(_load(name, line), line)], lineno=line)
        return nodes.Scope([capture, output], lineno=line)

    def _statements(self, statements: list[nodes.Node]) -> list[nodes.Node]:
        return [self.visit(statement) for statement in statements]

    def _capture_name(self) -> str:
        self._captures += 1
        return f"{_CAPTURE}{self._captures}"

    def _literal(self, text: str, line: int) -> nodes.Expr:
        return nodes.EnvironmentAttribute(self._keep_literal(text), lineno=line)

    def _printed(self, value: nodes.Expr, line: int) -> nodes.Expr:
        return _filter(value, PRINT, [nodes.Const(line, lineno=line), _load(MESSAGE, line)], line)


def _filter(value: nodes.Expr, name: str, args: list[nodes.Expr], line: int | None = None) -> nodes.Filter:
    return nodes.Filter(value, name, args, [], None, None, lineno=value.lineno if line is None else line)


def _load(name: str, line: int) -> nodes.Name:
    return nodes.Name(name, "load", lineno=line)


def _merged(items: list[nodes.Expr]) -> list[nodes.Expr]:
    """The operands of `~`, neighbouring text constants made one."""
    merged: list[nodes.Expr] = []
    for item in items:
        last = merged[-1] if merged else None
        if _is_text(item) and _is_text(last):
            merged[-1] = nodes.Const(last.value + item.value, lineno=last.lineno)  # type: ignore[union-attr, attr-defined]
        else:
            merged.append(item)
    return merged


def _is_text(node: nodes.Node | None) -> bool:
    return isinstance(node, nodes.Const) and isinstance(node.value, str)


def _first_line(node: nodes.Node) -> int:
    """The line that an expression begins on: jinja2 gives chains of operators the line of their last one."""
    return min([node.lineno, *(child.lineno for child in node.find_all(nodes.Expr))])


def _targets(target: nodes.Node) -> list[nodes.Name]:
    return [target] if isinstance(target, nodes.Name) else list(target.find_all(nodes.Name))


def _indexed_by(loop: nodes.For) -> list[str]:
    """Lists that the loop's body takes the item of that its own variable counts: `messages[index]`."""
    if not isinstance(loop.target, nodes.Name):
        return []
    names: dict[str, Any] = {}
    for statement in loop.body:
        for item in [statement, *statement.find_all(nodes.Getitem)]:
            if (
                isinstance(item, nodes.Getitem)
                and isinstance(item.node, nodes.Name)
                and isinstance(item.arg, nodes.Name)
                and item.arg.name == loop.target.name
            ):
                names[item.node.name] = None
    return list(names)
