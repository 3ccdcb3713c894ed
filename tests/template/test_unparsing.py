"""Expressions as text: what is written parses to the same tree."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import nodes
from template_cases import TEMPLATES

from renderers.template.environment import make_environment
from renderers.template.unparsing import unparse

ENVIRONMENT = make_environment()


def parse(text: str) -> Any:
    """The tree of an expression."""
    output: Any = ENVIRONMENT.parse(f"{{{{ ({text}) }}}}").body[0]
    node = output.nodes[0]
    return nodes.Const(node.data) if isinstance(node, nodes.TemplateData) else node


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("a or (not a and b)", "a or not a and b"),
        ("(a or b) and c", "(a or b) and c"),
        ("a or (b or c)", "a or (b or c)"),
        ("not(a==b)", "not a == b"),
        ("(not a) == b", "(not a) == b"),
        ("x is not divisibleby 3", "x is not divisibleby(3)"),
        ("not x is string", "x is not string"),
        ("(a is b) | c", "(a is b) | c"),
        ("(a|b).c", "(a | b).c"),
        ("-(x|abs)", "-(x | abs)"),
        ("-x|abs", "-x | abs"),
        ("(-x).y", "(-x).y"),
        ("1 .real", "(1).real"),
        ("(2 ** 3) ** 4", "2 ** 3 ** 4"),
        ("2 ** (3 ** 4)", "2 ** (3 ** 4)"),
        ("a - (b - c)", "a - (b - c)"),
        ("(a ~ b) ~ c", "(a ~ b) ~ c"),
        ("a ~ b + c", "a ~ b + c"),
        ("(a if b else c) if d else e", "(a if b else c) if d else e"),
        ("a if b", "a if b"),
        ("(a is b) if c", "(a is b) if c"),
        ("(a or b is c) if d else e", "(a or b is c) if d else e"),
        ("a is b(1) if c is d else e", "a is b(1) if c is d else e"),
        ("(a is b) in c", "(a is b) in c"),
        ("a < b <= c", "a < b <= c"),
        ("a not in b", "a not in b"),
        ("message['role']", "message['role']"),
        ("x[1:], x[::2], x[:-1], x[()]", "(x[1:], x[::2], x[:-1], x[()])"),
        ("f(1, a=2, *b, **c)", "f(1, a=2, *b, **c)"),
        ("x | f(1) | g", "x | f(1) | g"),
        ("{'a': [1, none], 'b': (true,)}", "{'a': [1, none], 'b': (true,)}"),
        (r"'it\'s \n é'", '"it\'s \\n é"'),
        ("()", "()"),
    ],
)
def test_expressions_are_written_in_one_way(written: str, expected: str) -> None:
    assert unparse(parse(written)) == expected
    assert parse(expected) == parse(written)


def is_expression(node: nodes.Expr) -> bool:
    """Whether a node is something that stands for a value: no target, no slice, no body of `{% filter %}`."""
    if isinstance(node, nodes.TemplateData | nodes.Slice | nodes.NSRef) or getattr(node, "ctx", "load") != "load":
        return False
    return "ExtensionAttribute" not in repr(node) and not (isinstance(node, nodes.Filter) and node.node is None)


def test_every_expression_of_a_template_parses_to_itself() -> None:
    parsed: dict[str, Any] = {}  # templates say the same things again and again
    for source in TEMPLATES.values():
        for node in filter(is_expression, ENVIRONMENT.parse(source).find_all(nodes.Expr)):
            text = unparse(node)
            if text not in parsed:
                parsed[text] = parse(text)
            assert parsed[text] == node


def _trees(inner: st.SearchStrategy[nodes.Expr]) -> st.SearchStrategy[nodes.Expr]:
    names = st.sampled_from(["f", "string"])
    lists = st.lists(inner, max_size=2)
    operands = st.lists(
        st.builds(nodes.Operand, st.sampled_from(["eq", "lt", "in", "notin"]), inner), min_size=1, max_size=2
    )
    return st.one_of(
        *(st.builds(kind, inner, inner) for kind in (nodes.And, nodes.Or, nodes.Add, nodes.Sub, nodes.Mul, nodes.Pow)),
        *(st.builds(kind, inner) for kind in (nodes.Not, nodes.Neg, nodes.Pos)),
        st.builds(nodes.Concat, st.lists(inner, min_size=2, max_size=3)),
        st.builds(nodes.CondExpr, inner, inner, inner | st.none()),
        st.builds(nodes.Compare, inner, operands),
        st.builds(lambda node, name, args: nodes.Filter(node, name, args, [], None, None), inner, names, lists),
        st.builds(lambda node, name, args: nodes.Test(node, name, args, [], None, None), inner, names, lists),
        st.builds(lambda node, args: nodes.Call(node, args, [], None, None), inner, lists),
        st.builds(lambda node, name: nodes.Getattr(node, name, "load"), inner, names),
        st.builds(lambda node, key: nodes.Getitem(node, key, "load"), inner, inner),
        st.builds(nodes.List, lists),
    )


TREES = st.recursive(
    st.builds(lambda name: nodes.Name(name, "load"), st.sampled_from(["a", "b"]))
    | st.builds(nodes.Const, st.sampled_from([True, None, 7, 1.5, "x", "it's\n", "é"])),
    _trees,
    max_leaves=12,
)


@given(TREES)
def test_any_tree_parses_to_itself(tree: nodes.Expr) -> None:
    assert parse(unparse(tree)) == tree
