"""The environment of chat templates: what transformers gives them, in the same words."""

from __future__ import annotations

import dataclasses
import enum
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from renderers.errors import TemplateError
from renderers.template import PlainTemplate, TracedTemplate
from renderers.template.inputs import plain_data, prepare_messages, prepare_tools

NOW = datetime(2026, 3, 4, 5, 6)  # noqa: DTZ001 - templates print dates, not instants


def render(source: str, **variables: Any) -> str:
    """The text of a template, which must be the same with and without tracing, and transformers' own."""
    text = PlainTemplate(source).render([], variables=variables, now=NOW)
    assert TracedTemplate(source).render([], variables=variables, now=NOW).text == text
    try:
        from transformers.utils.chat_template_utils import render_jinja_template
    except ImportError:
        return text
    if "strftime_now(" not in source:
        assert render_jinja_template([[]], chat_template=source, **variables)[0] == [text]
    return text


def failure(source: str, **variables: Any) -> str:
    """The error of a template."""
    texts = []
    for kind in (PlainTemplate, TracedTemplate):
        with pytest.raises(TemplateError) as caught:
            kind(source).render([], variables=variables, now=NOW)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
    return texts[0]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ x | tojson }}", '{"a": "<é>&\'", "b": [1, 2.5, true, null]}'),
        ("{{ x | tojson(ensure_ascii=true) }}", '{"a": "<\\u00e9>&\'", "b": [1, 2.5, true, null]}'),
        ("{{ x | tojson(separators=(',', ':')) }}", '{"a":"<é>&\'","b":[1,2.5,true,null]}'),
        ("{{ x.b | tojson(indent=2) }}", "[\n  1,\n  2.5,\n  true,\n  null\n]"),
        ("{{ {'b': 1, 'a': 2} | tojson(sort_keys=true) }}", '{"a": 2, "b": 1}'),
        ("{{ 'é\"\\n' | tojson }}", '"é\\"\\n"'),
        ("{{ dict(a=1, b=2) }}{{ dict.fromkeys(['x'], 0) }}", "{'a': 1, 'b': 2}{'x': 0}"),
        ("{{ dict({'a': 1}, b=2) | tojson }}", '{"a": 1, "b": 2}'),
        ("{% set n = namespace({'a': 1}, b=2) %}{% set n.c = n.a + n.b %}{{ n.c }}", "3"),
        ("{% set n = namespace(self=1) %}{{ n.self }}", "1"),
        ("{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 4 %}{% break %}{% endif %}{{ i }}{% endfor %}", "013"),
        ("  {% if true %}\n  a\n  {% endif %}\nb", "  a\nb"),
        ("{% generation %}{% set y = 1 %}a{% endgeneration %}{{ y is defined }}", "aFalse"),
        ("{%- generation -%} a {%- endgeneration -%} b", "ab"),
        ("{{ 'a<b' }}{{ 'a<b' | e }}", "a<ba&lt;b"),
        ("{{ documents is none }}{{ tools is none }}{{ add_generation_prompt }}", "TrueTrueFalse"),
        ("{{ strftime_now is defined }}{{ raise_exception is defined }}", "TrueTrue"),
        ("{{ x.a is string }}{{ x is mapping }}{{ x.b is sequence }}{{ 'a' in x }}{{ x.a == x['a'] }}", "TrueTrueTrueTrueTrue"),
        ("{{ missing }}{{ missing is defined }}{{ x.missing is undefined }}", "FalseTrue"),
        ("{{ x.a.source }}{{ x.a.traced_value is defined }}", "False"),
    ],
)  # fmt: skip
def test_what_templates_can_do(source: str, expected: str) -> None:
    assert render(source, x={"a": "<é>&'", "b": [1, 2.5, True, None]}) == expected


def test_the_date_is_the_callers() -> None:
    assert render("{{ strftime_now('%d %b %Y') ~ strftime_now('%H:%M') }}") == "04 Mar 202605:06"
    with pytest.raises(TemplateError, match="no date was given"):
        PlainTemplate("{{ strftime_now('%Y') }}").render([])


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("{{ raise_exception('These words: ' ~ 1) }}", "These words: 1"),
        ("{% set n = namespace(_a=1) %}", "underscore-prefixed"),
        ("{% set n = namespace() %}{% set n._a = 1 %}", "underscore-prefixed"),
        ("{{ dict.mro() }}", "has no attribute 'mro'"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{{ [].append(1) }}", "unsafe"),
        ("{{ {}.update({}) }}", "unsafe"),
        ("{{ '{0.__class__.x}'.format(1) }}", "unsafe"),
        ("{{ range(1000000) }}", "Range too big"),
        ("{{ {1: {2, 3}} }}", "expected token"),
        ("{% do x %}", "unknown tag 'do'"),
        ("{% trans %}{% endtrans %}", "unknown tag 'trans'"),
    ],
)
def test_what_templates_cannot_do(source: str, words: str) -> None:
    assert words in failure(source)


class Role(enum.StrEnum):
    USER = "user"


class Number(enum.IntEnum):
    THREE = 3


@dataclasses.dataclass
class Part:
    type: str
    text: str


class Model:
    """What pydantic models look like."""

    def model_dump(self) -> dict[str, Any]:
        return {"role": Role.USER, "content": [Part("text", "a")]}


def test_values_become_plain() -> None:
    plain = plain_data({"role": Role.USER, "n": Number.THREE, "t": (1, [True]), "object": object(), Role.USER: None})
    assert plain == {"role": "user", "n": 3, "t": (1, [True]), "object": "<object>", "user": None}
    assert [type(value) for value in plain.values()] == [str, int, tuple, str, type(None)]
    assert all(type(key) is str for key in plain)
    assert plain_data(Model()) == {"role": "user", "content": [{"type": "text", "text": "a"}]}
    assert type(plain_data(float("nan"))) is float


def test_numpys_scalars_become_plain() -> None:
    numpy = pytest.importorskip("numpy")
    plain = plain_data([numpy.int64(3), numpy.bool_(False), numpy.float32(0.5), numpy.str_("a"), numpy.zeros(2)])
    assert plain == [3, False, 0.5, "a", "<ndarray>"]
    assert [type(value) for value in plain] == [int, bool, float, str, str]


def test_messages_lose_their_null_fields_and_gain_aliases() -> None:
    messages = [
        {"role": "user", "content": None, "name": None},
        {"role": "assistant", "reasoning": "r", "content": [None]},
    ]
    assert prepare_messages(messages) == [
        {"role": "user"},
        {"role": "assistant", "reasoning": "r", "thinking": "r", "reasoning_content": "r", "content": [None]},
    ]
    assert prepare_messages([{"role": "user"}, {"content": None}], null_content=True) == [
        {"role": "user", "content": None},
        {"content": None},
    ]
    assert prepare_messages([Model()])[0]["content"] == [{"type": "text", "text": "a"}]
    assert prepare_tools(None) is None
    assert prepare_tools(()) == []
    assert prepare_tools([{"name": Role.USER}]) == [{"name": "user"}]


@pytest.mark.parametrize(
    "given", [Model(), Part("text", "a"), {Role.USER: "a", "role": Role.USER, 3: ["b", {4: Role.USER}]}]
)
def test_rich_messages_are_traced_as_well(given: Any) -> None:
    source = "{% for m in messages %}{{ m }}{{ m.role }}{{ m.text }}{{ m.user }}{% for k in m %}{{ k }}{% endfor %}{% endfor %}"
    traced = TracedTemplate(source).render([given])
    assert traced.text == PlainTemplate(source).render([given])
    assert {span.message_index for span in traced.spans} == {0}
    assert all(type(span.field) in {str, type(None)} for span in traced.spans)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)


@pytest.mark.current_transformers
@given(
    st.lists(
        st.dictionaries(st.sampled_from(["reasoning_content", "thinking", "reasoning", "content"]), JSON), max_size=2
    )
)
def test_inputs_are_prepared_as_transformers_does(messages: list[dict[str, Any]]) -> None:
    utilities = pytest.importorskip("transformers.utils.chat_template_utils")
    plain = utilities._plain_template_data(utilities._normalize_chat_messages(messages))
    expected = utilities._alias_reasoning_fields(plain)
    prepared = prepare_messages(messages)
    assert repr(prepared) == repr(expected)  # the order of keys counts as well: templates dump whole messages
    dump = "{{ messages | tojson }}{{ messages }}"
    assert TracedTemplate(dump).render(messages).text == PlainTemplate(dump).render(messages)
