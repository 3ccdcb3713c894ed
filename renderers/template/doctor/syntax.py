"""What a template's text says of its conditions: what decides them, and how it reads with one of them changed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from jinja2 import nodes

from renderers.template.environment import make_environment
from renderers.template.rewriting import first_line
from renderers.template.trace import PlainTemplate
from renderers.template.unparsing import unparse

#: A condition: its line and its text.
Key = tuple[int, str]


class Setter(NamedTuple):
    """A place where a variable is set: its line, the conditions around it (outermost first), and the names it is made of."""

    line: int
    guards: tuple[Key, ...]
    names: frozenset[str]


class Syntax:
    """The syntax tree of one template, to be asked about conditions.

    Args:
        source: the template's text, which compiles.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._lines = re.split(r"\r\n|\r|\n", source)  # as jinja2 counts them
        self._environment = make_environment()
        self._changed: dict[tuple[Key, str], PlainTemplate] = {}

    def line(self, number: int) -> str:
        """A line of the template, without the space around it."""
        return self._lines[number - 1].strip() if 0 < number <= len(self._lines) else ""

    def names(self, text: str) -> frozenset[str]:
        """The variables that an expression reads, `space.name` for those of a namespace that the template sets."""
        return self._names(self._expression(text))

    def setters(self, name: str) -> Sequence[Setter]:
        """Where a variable is set."""
        return self._setters.get(name, ())

    def guards(self, line: int) -> frozenset[Key]:
        """The conditions that stand right around what a line prints."""
        return frozenset(self._guards.get(line, ()))

    def replacements(self, condition: str, operand: str, *, value: bool) -> list[str]:
        """What a condition becomes where one of its operands, or all of it, always has a value; the least change first."""
        reduced = unparse(_reduced(self._expression(condition), operand, value))
        return list(dict.fromkeys([reduced, "true" if value else "false"]))

    def has_condition(self, condition: Key) -> bool:
        """Whether this is a whole condition of the template, and not what chooses a value elsewhere."""
        return any(_key(owner.test) == condition for owner in _owners(self._tree))

    def changed(self, condition: Key, replacement: str) -> PlainTemplate:
        """The template with another condition in the place of one."""
        found = self._changed.get((condition, replacement))
        if found is None:
            tree = self._environment.parse(self._source)
            for owner in _owners(tree):
                if _key(owner.test) == condition:
                    owner.test = self._expression(replacement)
            found = self._changed[condition, replacement] = PlainTemplate(self._source, tree)
        return found

    def _expression(self, text: str) -> nodes.Expr:
        output: Any = self._environment.parse(f"{{{{ ({text}) }}}}").body[0]
        expression: nodes.Expr = output.nodes[0]
        return expression

    @cached_property
    def _guards(self) -> dict[int, set[Key]]:
        found: dict[int, set[Key]] = defaultdict(set)

        def walk(node: nodes.Node, around: Key | None) -> None:
            if isinstance(node, nodes.Output) and around is not None:
                for printed in node.nodes:
                    last = printed.lineno + (printed.data.count("\n") if isinstance(printed, nodes.TemplateData) else 0)
                    for line in range(first_line(printed), last + 1):
                        found[line].add(around)
            for child, tests in _children(node):
                walk(child, tests[-1] if tests else around)

        walk(self._tree, None)
        return found

    @cached_property
    def _setters(self) -> dict[str, list[Setter]]:
        found: dict[str, list[Setter]] = defaultdict(list)
        for name, setter in self._walk(self._tree, ()):
            found[name].append(setter)
        return found

    def _walk(self, node: nodes.Node, guards: tuple[Key, ...]) -> Iterator[tuple[str, Setter]]:
        if isinstance(node, nodes.Assign | nodes.AssignBlock):
            yield from self._assigned(node, guards)
        for child, tests in _children(node):
            yield from self._walk(child, (*guards, *tests))

    def _assigned(
        self, node: nodes.Assign | nodes.AssignBlock, guards: tuple[Key, ...]
    ) -> Iterator[tuple[str, Setter]]:
        read = self._names(node.node) if isinstance(node, nodes.Assign) else self._names(node)
        for target in [node.target, *node.target.find_all((nodes.Name, nodes.NSRef))]:
            if isinstance(target, nodes.NSRef):
                yield f"{target.name}.{target.attr}", Setter(node.lineno, guards, read)
            elif isinstance(target, nodes.Name):
                yield target.name, Setter(node.lineno, guards, read)
        if isinstance(node, nodes.Assign) and isinstance(node.target, nodes.Name) and isinstance(node.node, nodes.Call):
            for pair in node.node.kwargs:  # the namespace is made here
                yield f"{node.target.name}.{pair.key}", Setter(node.lineno, guards, self._names(pair.value))

    def _names(self, node: nodes.Node) -> frozenset[str]:
        if isinstance(node, nodes.Name):
            return frozenset((node.name,))
        if isinstance(node, nodes.Getattr) and isinstance(node.node, nodes.Name) and node.node.name in self._spaces:
            return frozenset((f"{node.node.name}.{node.attr}",))
        return frozenset[str]().union(*(self._names(child) for child in node.iter_child_nodes()))

    @cached_property
    def _spaces(self) -> frozenset[str]:
        """The namespaces that the template sets something of."""
        return frozenset(reference.name for reference in self._tree.find_all(nodes.NSRef))

    @cached_property
    def _tree(self) -> nodes.Template:
        return self._environment.parse(self._source)


def _children(node: nodes.Node) -> Iterator[tuple[nodes.Node, tuple[Key, ...]]]:
    """The nodes inside a node, each with the tests of this node that were asked before it, the last one last."""
    if isinstance(node, nodes.If):
        tests: tuple[Key, ...] = (_key(node.test),)
        yield from ((child, tests) for child in node.body)
        for other in node.elif_:
            yield from ((child, (*tests, _key(other.test))) for child in other.body)
            tests += (_key(other.test),)
        yield from ((child, tests) for child in node.else_)
        return
    test = (_key(node.test),) if isinstance(node, nodes.For) and node.test is not None else ()
    yield from ((child, test) for child in node.iter_child_nodes())


def _owners(tree: nodes.Template) -> list[Any]:
    """What has a condition: `if`, `x if y else z`, and loops with a filter."""
    owners: Iterator[Any] = tree.find_all((nodes.If, nodes.CondExpr, nodes.For))
    return [owner for owner in owners if owner.test is not None]


def _key(test: nodes.Node) -> Key:
    return first_line(test), unparse(test)


def _reduced(node: nodes.Expr, operand: str, value: bool) -> nodes.Expr:
    """A condition with a value in the place of each occurrence of an operand, and what follows from it."""
    if unparse(node) == operand:
        return nodes.Const(value)
    if isinstance(node, nodes.Not):
        inner = _reduced(node.node, operand, value)
        return nodes.Const(not inner.value) if isinstance(inner, nodes.Const) else nodes.Not(inner)
    if isinstance(node, nodes.And | nodes.Or):
        left, right = (_reduced(side, operand, value) for side in (node.left, node.right))
        deciding = isinstance(node, nodes.Or)  # `true or x` is true, `false and x` is false
        for one, other in ((left, right), (right, left)):
            if isinstance(one, nodes.Const) and isinstance(one.value, bool):
                return one if one.value is deciding else other
        return type(node)(left, right)
    return node
