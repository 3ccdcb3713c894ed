"""What a template's control flow looks at, read from its tree."""

from __future__ import annotations

import pytest
from default_renderers import MODELS

from golden.reference import template_text
from renderers.template.environment import make_environment
from renderers.template.looks import Looks, looks_of


def looks(template: str, **variables: object) -> Looks:
    """What a template looks at."""
    return looks_of(make_environment().parse(template), variables)


def in_loop(condition: str) -> str:
    """A template with one condition on a message."""
    return "{% for m in messages %}{% if " + condition + " %}x{% endif %}{% endfor %}"


@pytest.mark.parametrize(
    "condition",
    [
        "loop.index > 2",
        "messages[-3].role == 'user'",
        "messages[3:]",
        "loop.index0 % 2",
        "m.content | length > 9",
        "loop.index is odd",
        "loop.cycle(true, false)",
        "m.content | int",
        "m.content == messages[0].content",
        "m.content < 'b'",
        "m.content.isdigit()",
        "m.content.split()",
        "loop.index > limit",
    ],
)
def test_conditions_that_count(condition: str) -> None:
    assert looks(in_loop(condition), limit=7).counts is not None


@pytest.mark.parametrize(
    "condition",
    [
        "loop.first",
        "loop.index0 == 0",
        "messages[-2].role == 'tool'",
        "messages | length > 1",
        "m.content | length > 0",
        "m.content.split('</think>')[-1]",
        "m.role == messages[loop.index0 - 1].role",
        "loop.index > limit",
    ],
)
def test_conditions_that_do_not(condition: str) -> None:
    assert looks(in_loop(condition), limit=1).counts is None


def test_what_counts_in_the_tools_alone_does_not_concern_the_messages() -> None:
    macro = "{% macro kind(spec) %}{% if spec | length > 50 %}any{% endif %}{% endmacro %}"
    assert looks(macro + "{% for tool in tools %}{{ kind(tool) }}{% endfor %}").counts is None
    assert looks(macro + "{% for m in messages %}{{ kind(m.content) }}{% endfor %}").counts is not None


def test_state_that_is_made_of_itself_counts() -> None:
    counter = "{% set ns = namespace(n=false) %}{% for m in messages %}{% set ns.n = not ns.n %}{% endfor %}"
    assert looks(counter + "{% if ns.n %}x{% endif %}").counts is not None
    assert looks(counter + "{{ ns.n }}").counts is None


def test_markers_are_texts_that_are_looked_for_and_words_what_is_compared() -> None:
    seen = looks(in_loop("'json' in m.content or m.content.startswith('<a>') or 'name' in m or m.content == 'Stop'"))
    assert (seen.markers, {"stop"} <= seen.words) == (("json", "<a>"), True)
    assert looks(in_loop("marker in m.content"), marker="b").markers == ("b",)


@pytest.mark.needs_assets
@pytest.mark.parametrize("model", MODELS)
def test_no_official_template_counts_messages(model: str) -> None:
    assert looks(str(template_text(model))).counts is None
