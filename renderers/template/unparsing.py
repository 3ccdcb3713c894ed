"""Expressions of a template as text again, to name them to people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jinja2 import nodes

# How tightly each kind of expression binds, as jinja2's parser has it.
(_CONDITIONAL, _OR, _AND, _NOT, _COMPARE, _SUM, _CONCAT, _PRODUCT, _POWER, _TEST, _FILTER, _UNARY, _POSTFIX) = range(13)

_COMPARISONS = {
    "eq": "==", "ne": "!=", "gt": ">", "gteq": ">=", "lt": "<", "lteq": "<=", "in": "in", "notin": "not in",
}  # fmt: skip
_BINARY: dict[type[nodes.BinExpr], tuple[str, int]] = {
    nodes.Or: ("or", _OR),
    nodes.And: ("and", _AND),
    nodes.Add: ("+", _SUM),
    nodes.Sub: ("-", _SUM),
    nodes.Mul: ("*", _PRODUCT),
    nodes.Div: ("/", _PRODUCT),
    nodes.FloorDiv: ("//", _PRODUCT),
    nodes.Mod: ("%", _PRODUCT),
    nodes.Pow: ("**", _POWER),
}
_NAMED_CONSTANTS = {True: "true", False: "false", None: "none"}


def unparse(node: nodes.Node) -> str:
    """An expression's source text, in one line and without needless parentheses; it parses to the same tree."""
    return _at(node, _CONDITIONAL)


def _at(node: nodes.Node, level: int) -> str:
    """The text of an expression where only one that binds at least as tightly as `level` may stand bare."""
    text, own = _text(node)
    return text if own >= level else f"({text})"


def _closed(node: nodes.Node, level: int) -> str:
    """The same where `if`, `in` or `not` follows, which a test that stands last would take for its argument."""
    text = _at(node, level)
    return f"({text})" if _ends_in_test(node) and not text.endswith(")") else text


def _ends_in_test(node: nodes.Node) -> bool:
    """Whether the last thing in an expression's text is a test without arguments."""
    if isinstance(node, nodes.Test):
        return not (node.args or node.kwargs or node.dyn_args or node.dyn_kwargs)
    if isinstance(node, nodes.BinExpr):
        return _ends_in_test(node.right)
    if isinstance(node, nodes.Not):
        return _ends_in_test(node.node)
    if isinstance(node, nodes.Compare):
        return _ends_in_test(node.ops[-1].expr)
    return isinstance(node, nodes.Concat) and _ends_in_test(node.nodes[-1])


def _text(node: nodes.Node) -> tuple[str, int]:
    """The text of an expression, and how tightly it binds."""
    if isinstance(node, nodes.BinExpr):
        sign, level = _BINARY[type(node)]
        return f"{_at(node.left, level)} {sign} {_at(node.right, level + 1)}", level
    for kind, write in _WRITERS.items():
        if isinstance(node, kind):
            return write(node)
    return f"<{type(node).__name__}>", _POSTFIX  # what an extension made has no text


def _conditional(node: nodes.CondExpr) -> tuple[str, int]:
    text = f"{_closed(node.expr1, _OR)} if {_at(node.test, _OR)}"
    return (text if node.expr2 is None else f"{text} else {_at(node.expr2, _CONDITIONAL)}"), _CONDITIONAL


def _negation(node: nodes.Not) -> tuple[str, int]:
    if isinstance(node.node, nodes.Test):
        return _test(node.node, "is not")
    return f"not {_at(node.node, _NOT)}", _NOT


def _comparison(node: nodes.Compare) -> tuple[str, int]:
    *before, last = [node.expr, *(operand.expr for operand in node.ops)]
    operands = [*(_closed(expression, _SUM) for expression in before), _at(last, _SUM)]
    signs = [_COMPARISONS[operand.op] for operand in node.ops]
    others = [f"{sign} {operand}" for sign, operand in zip(signs, operands[1:], strict=True)]
    return " ".join([operands[0], *others]), _COMPARE


def _test(node: nodes.Test, word: str = "is") -> tuple[str, int]:
    return f"{_at(node.node, _FILTER)} {word} {node.name}{_arguments(node, bare=True)}", _TEST


def _filtered(node: nodes.Filter) -> tuple[str, int]:
    value = "" if node.node is None else f"{_at(node.node, _FILTER)} | "
    return f"{value}{node.name}{_arguments(node, bare=True)}", _FILTER


def _arguments(node: nodes.Call | nodes.Filter | nodes.Test, *, bare: bool = False) -> str:
    """What stands in a call's parentheses; nothing where there is nothing and it may be left out."""
    values = [unparse(argument) for argument in node.args]
    values += [f"{pair.key}={unparse(pair.value)}" for pair in node.kwargs]
    values += [f"*{unparse(node.dyn_args)}"] if node.dyn_args is not None else []
    values += [f"**{unparse(node.dyn_kwargs)}"] if node.dyn_kwargs is not None else []
    return f"({', '.join(values)})" if values or not bare else ""


def _subscript(node: nodes.Getitem) -> tuple[str, int]:
    key = node.arg
    if isinstance(key, nodes.Slice):
        parts = ["" if part is None else unparse(part) for part in (key.start, key.stop)]
        inner = ":".join([*parts, *([] if key.step is None else [unparse(key.step)])])
    elif isinstance(key, nodes.Tuple) and not key.items:
        inner = "()"
    else:
        inner = unparse(key)
    return f"{_at(node.node, _POSTFIX)}[{inner}]", _POSTFIX


def _constant(node: nodes.Const) -> tuple[str, int]:
    value = node.value
    if value is None or isinstance(value, bool):
        return _NAMED_CONSTANTS[value], _POSTFIX
    return repr(value), _POSTFIX if isinstance(value, str) else _UNARY


def _items(items: Sequence[nodes.Expr]) -> str:
    return ", ".join([unparse(item) for item in items])


def _pairs(node: nodes.Dict) -> str:
    return ", ".join([f"{unparse(pair.key)}: {unparse(pair.value)}" for pair in node.items])


def _tuple(node: nodes.Tuple) -> tuple[str, int]:
    return f"({_items(node.items)}{',' if len(node.items) == 1 else ''})", _POSTFIX


_WRITERS: dict[type[nodes.Node], Callable[[Any], tuple[str, int]]] = {
    nodes.CondExpr: _conditional,
    nodes.Not: _negation,
    nodes.Compare: _comparison,
    nodes.Concat: lambda node: (" ~ ".join([_at(item, _PRODUCT) for item in node.nodes]), _CONCAT),
    nodes.Neg: lambda node: (f"-{_at(node.node, _UNARY)}", _UNARY),
    nodes.Pos: lambda node: (f"+{_at(node.node, _UNARY)}", _UNARY),
    nodes.Test: _test,
    nodes.Filter: _filtered,
    nodes.Call: lambda node: (_at(node.node, _POSTFIX) + _arguments(node), _POSTFIX),
    nodes.Getattr: lambda node: (f"{_at(node.node, _POSTFIX)}.{node.attr}", _POSTFIX),
    nodes.Getitem: _subscript,
    nodes.Const: _constant,
    nodes.Name: lambda node: (node.name, _POSTFIX),
    nodes.NSRef: lambda node: (f"{node.name}.{node.attr}", _POSTFIX),
    nodes.List: lambda node: (f"[{_items(node.items)}]", _POSTFIX),
    nodes.Tuple: _tuple,
    nodes.Dict: lambda node: (f"{{{_pairs(node)}}}", _POSTFIX),
}
