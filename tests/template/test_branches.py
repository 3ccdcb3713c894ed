"""Recorded branches: what a template decided, in order, where, and for which message."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from template_cases import (
    MESSAGES,
    NOW,
    SETTINGS,
    TEMPLATES,
    TOOL,
    TRACED,
    VARIABLES,
    accepted_conversation,
    check_spans,
)

from renderers.errors import TemplateError
from renderers.template import Branch, Condition, TracedTemplate, TracedText

FUZZ = "FUZZ_EXAMPLES" in os.environ
CHAT = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes."}]


def record(source: str, messages: list[dict[str, Any]] | None = None, **variables: Any) -> TracedText:
    """A render with its branches."""
    return TracedTemplate(source).render(CHAT if messages is None else messages, variables=variables, branches=True)


def answers(traced: TracedText, *kinds: str) -> list[tuple[str, bool, int]]:
    """(text, value, message) of each branch of some kinds."""
    return [(b.condition.text, b.value, b.message_index) for b in traced.branches if b.condition.kind in kinds]


def test_a_branch_says_what_was_asked_where_and_what_it_came_to() -> None:
    source = "start\n{% for m in messages %}\n{{ m.content }}{% if m.role == 'user' %}?{% elif loop.last %}!{% endif %}\n{% endfor %}"
    traced = record(source)
    assert traced.text == "start\nHi?Yes.!"
    loop = Condition(2, "for m in messages", "loop", 0)
    is_user, is_last = Condition(3, "m.role == 'user'", "if", 2), Condition(3, "loop.last", "if", 1)
    assert traced.branches == (
        Branch(loop, True, 0, 6, 1),
        Branch(is_user, True, 0, 8, 1),
        Branch(loop, True, 1, 9, 1),
        Branch(is_user, False, 1, 13, 1),
        Branch(is_last, True, 1, 13, 1),
    )


def test_the_operands_of_a_condition_come_before_it_and_only_those_that_were_looked_at() -> None:
    traced = record("{% if a or (not b and c is defined) %}{% endif %}", a=0, b=1)
    assert answers(traced, "operand", "if") == [
        ("a", False, -1), ("b", True, -1), ("a or not b and c is defined", False, -1)
    ]  # fmt: skip
    assert answers(record("{% if not (a and b) %}{% endif %}", a=1, b=0), "operand", "if") == [
        ("a", True, -1), ("b", False, -1), ("not (a and b)", True, -1)
    ]  # fmt: skip
    assert answers(record("{% if not a %}{% endif %}"), "operand", "if") == [("not a", True, -1)]


def test_choices_in_expressions_are_branches() -> None:
    traced = record("{{ 'x' if a else 'y' }}{% set b = a or (c and 'z') %}{{ b }}", a="", c=1)
    assert traced.text == "yz"
    assert answers(traced, "inline", "value") == [("a", False, -1), ("a", False, -1), ("c", True, -1)]


def test_the_filter_of_a_loop_is_asked_of_each_item() -> None:
    traced = record("{% for m in messages if m.role != 'user' %}{{ m.content }}{% endfor %}")
    assert answers(traced, "filter", "loop") == [
        ("m.role != 'user'", False, 0), ("m.role != 'user'", True, 1), ("for m in messages", True, 1)
    ]  # fmt: skip


def test_what_a_macro_asks_belongs_to_the_message_that_it_was_called_for() -> None:
    source = (
        "{% macro text(c) %}{% if c is string %}{{ c }}{% else %}{% for p in c %}{{ p.text if p.text }}{% endfor %}{% endif %}"
        "{% endmacro %}{% for m in messages %}{{ text(m.content) }}{% if text(m.content) == 'Hi' %}{% endif %}{% endfor %}"
        "{{ text('end') }}"
    )
    traced = record(source, [*CHAT, {"role": "user", "content": [{"type": "text", "text": "a"}]}])
    assert traced.text == "HiYes.aend"
    assert answers(traced, "if", "inline") == [
        ("c is string", True, 0), ("c is string", True, 0), ("text(m.content) == 'Hi'", True, 0),
        ("c is string", True, 1), ("c is string", True, 1), ("text(m.content) == 'Hi'", False, 1),
        ("c is string", False, 2), ("p.text", True, 2), ("c is string", False, 2), ("p.text", True, 2),
        ("text(m.content) == 'Hi'", False, 2), ("c is string", True, -1),
    ]  # fmt: skip


def test_loops_that_are_left_early_and_nested_ones_keep_the_message() -> None:
    source = (
        "{% for m in messages %}{% for n in messages %}{% if n.role %}{% break %}{% endif %}{% endfor %}{% if m.role %}{% endif %}"
        "{% endfor %}{% if messages %}{% endif %}"
    )
    traced = record(source)
    assert answers(traced, "if") == [
        ("n.role", True, 0), ("m.role", True, 0), ("n.role", True, 0), ("m.role", True, 1), ("messages", True, -1)
    ]  # fmt: skip
    assert [branch.depth for branch in traced.branches if branch.condition.kind == "if"] == [2, 1, 2, 1, 0]


@pytest.mark.parametrize(
    "condition",
    ["m.role == 'user'", "m.role == 'user' or loop.first", "not m.content", "m.nothing", "m.content | length > 2 and loop.last"],
)  # fmt: skip
def test_the_value_is_that_which_the_template_acted_on(condition: str) -> None:
    traced = record("{% for m in messages %}{% if " + condition + " %}T{% else %}F{% endif %}{% endfor %}")
    assert traced.text == "".join("T" if value else "F" for _, value, _ in answers(traced, "if"))


def test_without_asking_nothing_is_recorded_and_nothing_compiled() -> None:
    template = TracedTemplate("{% if messages %}x{% endif %}")
    assert template.render(CHAT).branches == ()
    assert "_recording" not in vars(template)
    assert template.render(CHAT, branches=True).branches
    assert "_recording" in vars(template)


def attempt(
    template: TracedTemplate, messages: list[dict[str, Any]], chosen: dict[str, Any], *, branches: bool
) -> TracedText | TemplateError:
    """A render, or its error."""
    try:
        return template.render(messages, variables=VARIABLES, now=NOW, branches=branches, **chosen)
    except TemplateError as error:
        return error


@settings(max_examples=settings().max_examples // (1 if FUZZ else 4))
@given(MESSAGES, SETTINGS, st.sampled_from(sorted(TEMPLATES)))
def test_recording_changes_neither_text_nor_sources_nor_errors(
    messages: list[dict[str, Any]], chosen: dict[str, Any], one: str
) -> None:
    for name in TEMPLATES if FUZZ else [one]:
        note(name)
        plain, recorded = (attempt(TRACED[name], messages, chosen, branches=branches) for branches in (False, True))
        if isinstance(plain, TemplateError) or isinstance(recorded, TemplateError):
            assert str(plain) == str(recorded)
            continue
        assert (recorded.text, recorded.spans, recorded.generation_ranges) == (
            plain.text, plain.spans, plain.generation_ranges
        )  # fmt: skip
        check_spans(recorded)
        offsets = [branch.offset for branch in recorded.branches]
        assert offsets == sorted(offsets)
        assert all(0 <= offset <= len(recorded.text) for offset in offsets)
        assert all(-1 <= branch.message_index < len(messages) for branch in recorded.branches)


def calls_of(function: Callable[[], object]) -> int:
    """How many functions are called in a call: a measure of work that no other load on the machine changes."""
    count = 0

    def counting(_: object, event: str, __: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(counting)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


# The template `strings` is no chat template: it takes every text apart in fifty ways.
@pytest.mark.parametrize("name", sorted(TEMPLATES.keys() - {"strings"}))
def test_work_grows_with_the_messages(name: str) -> None:
    """Ten times the messages are at most 13 times the work, and with branches too, unless they grow faster themselves."""

    def render(turns: int, *, branches: bool) -> TracedText:
        messages, null_content = accepted_conversation(name, turns)
        return TRACED[name].render(
            messages, tools=[TOOL], variables=VARIABLES, now=NOW, null_content=null_content, branches=branches
        )

    few, many = (len(render(turns, branches=True).branches) for turns in (1, 10))
    for branches, limit in ((False, 13), (True, max(13, many / few))):
        work = [calls_of(partial(render, turns, branches=branches)) for turns in (1, 10)]
        # gpt-oss looks through all later messages at each call: its branches grow with the square.
        assert work[1] <= work[0] * limit
