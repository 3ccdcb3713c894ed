"""What a template's control flow looks at in a conversation, read from its syntax tree without rendering anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import nodes

from renderers.messages import REASONING_FIELDS
from renderers.template.unparsing import unparse

#: Fields that hold text, and the names under which templates keep it.
_TEXT = frozenset({"content", *REASONING_FIELDS, "text", "arguments"})
_COUNTING_TESTS = frozenset({"odd", "even", "divisibleby"})
_COUNTING_FILTERS = frozenset({"int", "float", "sum", "min", "max", "unique", "batch", "slice", "wordcount"})
_COUNTING_CALLS = frozenset({"cycle", "changed"})
#: Of texts, what they are like: no marker says it.
_MEASURING_CALLS = frozenset(
    {"isdigit", "isdecimal", "isnumeric", "isalpha", "isalnum", "isupper", "islower", "splitlines"}
)
_ASKING = (nodes.Compare, nodes.Test, nodes.Filter)
_ARITHMETIC = (nodes.Compare, nodes.BinExpr, nodes.Getitem, nodes.Test)
#: From here on a number means counting: up to it, it asks whether something is there or comes first.
_COUNTING_FROM = 2


@dataclass(frozen=True, slots=True)
class Looks:
    """What a template looks at, beside roles and which fields there are.

    Attributes:
        markers: texts that it looks for in other texts.
        words: texts that it compares whole texts with, case-folded.
        counts: where it counts or measures messages (`line 3: loop.index > 5`) or compares their texts with each other,
            which nothing smaller than the conversation tells; or None.
    """

    markers: tuple[str, ...] = ()
    words: frozenset[str] = frozenset()
    counts: str | None = None


def looks_of(tree: nodes.Template, variables: Mapping[str, Any] | None = None) -> Looks:
    """What a template looks at, under its variables."""
    settings = {name: value for name, value in (variables or {}).items() if type(value) in {str, int}}
    counting = next(_counting(tree, settings), None)
    return Looks(
        markers=tuple(dict.fromkeys(_markers(tree, settings))),
        words=frozenset(text.casefold() for asking in tree.find_all(_ASKING) for text in _texts(asking, settings)),
        counts=None if counting is None else f"line {counting.lineno}: {unparse(counting)}",
    )


# Texts ---------------------------------------------------------------------------------------------------------------


def _markers(tree: nodes.Template, settings: Mapping[str, Any]) -> Iterator[str]:
    for compare in tree.find_all(nodes.Compare):
        is_search = any(operand.op in {"in", "notin"} and _is_text(operand.expr) for operand in compare.ops)
        is_of_part = isinstance(compare.expr, nodes.Getitem) and _is_text(compare.expr)
        yield from _kept(_texts(compare, settings), words=is_search or is_of_part)
    for call in tree.find_all(nodes.Call):
        if isinstance(call.node, nodes.Getattr) and call.node.attr != "get":
            for argument in call.args:
                yield from _kept(_texts(argument, settings), words=_is_text(call.node.node))
    for assigned in tree.find_all(nodes.Assign):
        if isinstance(assigned.node, nodes.Const):
            yield from _kept(_texts(assigned.node, settings), words=False)


def _kept(texts: Iterable[str], *, words: bool) -> Iterator[str]:
    """Texts that say something where they are found; plain words (roles, names of fields) if asked for."""
    for text in texts:
        if text.strip() and (words or not text.replace("_", "").isalnum()):
            yield text


def _texts(node: nodes.Node, settings: Mapping[str, Any]) -> Iterator[str]:
    for leaf in _all(node, (nodes.Const, nodes.Name)):
        value = leaf.value if isinstance(leaf, nodes.Const) else settings.get(leaf.name)
        if isinstance(value, str):
            yield value


def _is_text(node: nodes.Node) -> bool:
    """Whether an expression is a message's text, by its name, or made of one."""
    if isinstance(node, nodes.Filter):  # `messages | map(attribute="content") | join` is one
        given = [*node.args, *(keyword.value for keyword in node.kwargs)]
        named = any(isinstance(value, nodes.Const) and value.value in _TEXT for value in given)
        return named or (node.node is not None and _is_text(node.node))
    if isinstance(node, nodes.Call):
        return _is_text(node.node)
    if isinstance(node, nodes.Getattr):
        return node.attr in _TEXT or _is_text(node.node)
    if isinstance(node, nodes.Getitem):
        return (isinstance(node.arg, nodes.Const) and node.arg.value in _TEXT) or _is_text(node.node)
    return isinstance(node, nodes.Name) and node.name in _TEXT


# Counting ------------------------------------------------------------------------------------------------------------


def _counting(tree: nodes.Template, settings: Mapping[str, Any]) -> Iterator[nodes.Node]:
    """Expressions that count or measure what comes from the messages, or compare their texts with each other."""
    of_messages = _names_of_messages(tree)

    def concerning(kinds: Any) -> Iterator[Any]:
        for node in tree.find_all(kinds):
            if any(name.name in of_messages for name in _all(node, nodes.Name)):
                yield node

    yield from (node for node in concerning(_ARITHMETIC) if any(_is_count(leaf, settings) for leaf in _numbers(node)))
    for assign in tree.find_all(nodes.Assign):
        if isinstance(assign.node, nodes.Const) and _is_count(assign.node, settings):
            yield assign.node
    yield from (test for test in concerning(nodes.Test) if test.name in _COUNTING_TESTS)
    yield from (applied for applied in concerning(nodes.Filter) if applied.name in _COUNTING_FILTERS)
    yield from (call for call in concerning(nodes.Call) if _measures(call))
    yield from (compare for compare in tree.find_all(nodes.Compare) if _compares_texts(compare))
    yield from _own_successors(tree)


def _measures(call: nodes.Call) -> bool:
    """Whether a method counts iterations, or says what a text is like."""
    if not isinstance(call.node, nodes.Getattr):
        return False
    name = call.node.attr
    of_text = name in _MEASURING_CALLS or (name == "split" and not call.args)
    return name in _COUNTING_CALLS or (of_text and _is_text(call.node.node))


def _compares_texts(compare: nodes.Compare) -> bool:
    """Whether a text is compared with another, or sorted among others."""
    sides = [compare.expr, *(operand.expr for operand in compare.ops)]
    if not any(map(_is_text, sides)):
        return False
    sorts = any(operand.op in {"lt", "lteq", "gt", "gteq"} for operand in compare.ops)
    return sum(map(_is_variable, sides)) > 1 or (sorts and not any(map(_is_length, sides)))


def _own_successors(tree: nodes.Template) -> Iterator[nodes.Node]:
    """State in a namespace that is made of itself (counters, toggles) and that a condition asks."""
    tests: list[nodes.Node] = [node.test for node in tree.find_all(nodes.If)]
    tests += [node.test for node in tree.find_all(nodes.CondExpr)]
    asked = {_dotted(name) for test in tests for name in _all(test, nodes.Getattr)}
    for assign in tree.find_all(nodes.Assign):
        if isinstance(assign.target, nodes.NSRef):
            target = (assign.target.name, assign.target.attr)
            if target in asked and target in map(_dotted, _all(assign.node, nodes.Getattr)):
                yield assign.node


def _dotted(node: nodes.Getattr) -> tuple[str, str] | None:
    return (node.node.name, node.attr) if isinstance(node.node, nodes.Name) else None


def _names_of_messages(tree: nodes.Template) -> set[str]:
    """The names of what comes from the messages, directly or through others, by spelling alone."""
    names = {"messages", "loop"}
    macros = {macro.name: [argument.name for argument in macro.args] for macro in tree.find_all(nodes.Macro)}
    flows: list[tuple[nodes.Node, list[str]]] = []
    for target, source in [
        *((assign.target, assign.node) for assign in tree.find_all(nodes.Assign)),
        *((loop.target, loop.iter) for loop in tree.find_all(nodes.For)),
    ]:
        flows.append((source, [name.name for name in _all(target, (nodes.Name, nodes.NSRef))]))
    for block in tree.find_all(nodes.AssignBlock):
        targets = [name.name for name in _all(block.target, (nodes.Name, nodes.NSRef))]
        flows += [(part, targets) for part in block.body]
    for call in tree.find_all(nodes.Call):
        if isinstance(call.node, nodes.Name) and call.node.name in macros:
            flows += [(argument, macros[call.node.name]) for argument in call.args]
            flows += [(keyword.value, macros[call.node.name]) for keyword in call.kwargs]
    before = -1
    while before != len(names):
        before = len(names)
        for source, targets in flows:
            if any(name.name in names for name in _all(source, nodes.Name)):
                names.update(targets)
    return names


def _numbers(node: nodes.Node) -> Iterator[nodes.Const | nodes.Name]:
    """The numbers in an expression, without those in a filter's arguments and the distances from the end."""
    if isinstance(node, nodes.Neg) and isinstance(node.node, nodes.Const) and node.node.value == _COUNTING_FROM:
        return  # after a reply and a new message, the last two are known
    if isinstance(node, nodes.Const | nodes.Name):
        yield node
    elif isinstance(node, nodes.Filter) and node.node is not None:
        yield from _numbers(node.node)
    else:
        for child in node.iter_child_nodes():
            yield from _numbers(child)


def _is_count(leaf: nodes.Const | nodes.Name, settings: Mapping[str, Any]) -> bool:
    value = leaf.value if isinstance(leaf, nodes.Const) else settings.get(leaf.name)
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) >= _COUNTING_FROM


def _is_length(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Filter) and node.name in {"length", "count"}


def _is_variable(node: nodes.Node) -> bool:
    """Whether an expression holds no constant that it could be compared with."""
    return not isinstance(node, nodes.Const | nodes.List | nodes.Tuple | nodes.Dict)


def _all(node: nodes.Node, kinds: Any) -> Iterator[Any]:
    """The nodes of some kinds in an expression, itself included."""
    if isinstance(node, kinds):
        yield node
    yield from node.find_all(kinds)
