"""Traced strings: each operation gives what `str` gives, and a source for every character that is true."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from renderers.template.sources import Dump, Field, Printed, flatten
from renderers.template.strings import TracedString, derived, escape, safe, traced

# Letters that change their length with their case, whitespace of all kinds, and separators that occur in the texts.
ALPHABET = "ab-- \n\t%,ßŉİÉé\u2028\x1c"

FIELD = st.text(ALPHABET, max_size=8)
WORD = st.sampled_from(["", "a", "-", "--", "ab", " ", "\n", "x"])
COUNT = st.integers(-1, 3)
PLACE = st.none() | st.integers(-9, 9)


@st.composite
def traced_strings(draw: st.DrawFn) -> TracedString:
    """Strings of one or more sources: fields of two messages, the template's own text, and lost ones."""
    pieces = []
    for number, (kind, text) in enumerate(draw(st.lists(st.tuples(st.sampled_from("FFFTL"), FIELD), max_size=4))):
        if kind == "F":
            pieces.append(traced(text, Field(number % 2, text)))  # the path is the field's own text, for the check
        elif kind == "T":
            pieces.append(traced(text, None))
        else:
            pieces.append(traced(text, Dump(-1, None)))
    if len(pieces) == 1:
        return pieces[0]
    return traced("".join(pieces), tuple(pieces))


def check(result: Any) -> None:
    """Every character has a source, and what counts as a field's character is that character of that field."""
    if isinstance(result, list | tuple):
        for item in result:
            check(item)
        return
    assert isinstance(result, TracedString)
    start = 0
    for end, _, message, path, offset, lost, _ in flatten(result).runs:
        assert end > start
        if path is not None and not lost:
            assert offset >= 0
            assert str.__str__(result)[start:end] == path[offset : offset + end - start]
            assert message >= 0
        start = end
    assert start == len(result)


Operation = Callable[..., Any]

OPERATIONS: dict[str, tuple[Operation, tuple[st.SearchStrategy[Any], ...]]] = {
    "+": (lambda text, other: text + other, (WORD,)),
    "+, reflected": (lambda text, other: other + text, (WORD,)),
    "*": (lambda text, count: text * count, (COUNT,)),
    "*, reflected": (lambda text, count: count * text, (COUNT,)),
    "slice": (lambda text, start, stop: text[start:stop], (PLACE, PLACE)),
    "slice with a step": (lambda text, start, step: text[start::step], (PLACE, st.sampled_from([-2, -1, 2]))),
    "item": (lambda text, place: text[place] if -len(text) <= place < len(text) else text, (st.integers(-9, 9),)),
    "iteration": (lambda text: [*text], ()),
    "strip": (lambda text: text.strip(), ()),
    "strip, None": (lambda text: text.strip(None), ()),
    "strip of characters": (lambda text, characters: text.strip(characters), (WORD,)),
    "lstrip": (lambda text: text.lstrip(), ()),
    "lstrip of characters": (lambda text, characters: text.lstrip(characters), (WORD,)),
    "rstrip": (lambda text: text.rstrip(), ()),
    "rstrip of characters": (lambda text, characters: text.rstrip(characters), (WORD,)),
    "removeprefix": (lambda text, prefix: text.removeprefix(prefix), (WORD,)),
    "removesuffix": (lambda text, suffix: text.removesuffix(suffix), (WORD,)),
    "split": (lambda text: text.split(), ()),
    "split, limited": (lambda text, count: text.split(None, count), (COUNT,)),
    "split at": (lambda text, separator, count: text.split(separator or "a", count), (WORD, COUNT)),
    "split by keyword": (lambda text, separator: text.split(sep=separator or "a", maxsplit=2), (WORD,)),
    "rsplit": (lambda text: text.rsplit(), ()),
    "rsplit, limited": (lambda text, count: text.rsplit(None, count), (COUNT,)),
    "rsplit at": (lambda text, separator, count: text.rsplit(separator or "a", count), (WORD, COUNT)),
    "splitlines": (lambda text: text.splitlines(), ()),
    "splitlines with endings": (lambda text: text.splitlines(True), ()),
    "partition": (lambda text, separator: text.partition(separator or "a"), (WORD,)),
    "rpartition": (lambda text, separator: text.rpartition(separator or "a"), (WORD,)),
    "join": (lambda text, items: text.join(items), (st.lists(WORD, max_size=3),)),
    "join of characters": (lambda text, items: text.join(items), (WORD,)),
    "replace": (lambda text, old, new: text.replace(old, new), (WORD, WORD)),
    "replace, limited": (lambda text, old, new, count: text.replace(old, new, count), (WORD, WORD, COUNT)),
    "upper": (lambda text: text.upper(), ()),
    "lower": (lambda text: text.lower(), ()),
    "title": (lambda text: text.title(), ()),
    "capitalize": (lambda text: text.capitalize(), ()),
    "casefold": (lambda text: text.casefold(), ()),
    "swapcase": (lambda text: text.swapcase(), ()),
    "center": (lambda text, width: text.center(width, "*"), (st.integers(0, 40),)),
    "ljust": (lambda text, width: text.ljust(width), (st.integers(0, 40),)),
    "rjust": (lambda text, width: text.rjust(width), (st.integers(0, 40),)),
    "zfill": (lambda text, width: text.zfill(width), (st.integers(0, 40),)),
    "expandtabs": (lambda text: text.expandtabs(4), ()),
    "translate": (lambda text: text.translate({97: "bb", 98: None}), ()),
    "%": (lambda text, value: (text.replace("%", "") + "<%s|%5s|%d|%%>") % (value, value, 7), (WORD,)),
    "% of a mapping": (lambda text, value: (text.replace("%", "") + "%(key)s") % {"key": value}, (WORD,)),
}


@pytest.mark.parametrize("name", OPERATIONS)
@given(data=st.data())
def test_operations_are_those_of_str(name: str, data: st.DataObject) -> None:
    operation, strategies = OPERATIONS[name]
    text = data.draw(traced_strings())
    arguments = [data.draw(strategy) for strategy in strategies]
    plain = operation(str.__str__(text), *arguments)
    # Literals of a template are traced, what a template looks for is not: both must work.
    for given_arguments in (arguments, [_as_literal(argument) for argument in arguments]):
        result = operation(text, *given_arguments)
        assert result == plain
        assert type(result) is TracedString or not isinstance(result, str)
        check(result)


def _as_literal(argument: Any) -> Any:
    if isinstance(argument, list):
        return [_as_literal(item) for item in argument]
    return traced(argument, None) if isinstance(argument, str) else argument


@given(traced_strings(), traced_strings(), traced_strings())
def test_operations_combine(first: TracedString, second: TracedString, third: TracedString) -> None:
    joined = first + second.strip() + third[1:]
    pieces = second.join([joined.upper(), third, first.replace("a", second)]).split("-")
    plain_first, plain_second, plain_third = (str.__str__(text) for text in (first, second, third))
    plain = plain_first + plain_second.strip() + plain_third[1:]
    expected = plain_second.join([plain.upper(), plain_third, plain_first.replace("a", plain_second)]).split("-")
    assert pieces == expected
    check(pieces)
    check(first.format(1) if "{" not in first else first)


@given(traced_strings())
def test_it_is_a_string_to_everyone_who_asks(text: TracedString) -> None:
    plain = str.__str__(text)
    assert type(plain) is str
    assert text == plain
    assert hash(text) == hash(plain)
    assert {plain: 1}[text] == 1
    assert {text: 1}[plain] == 1
    assert repr(text) == repr(plain)
    assert f"{text}" == plain
    assert f"{text:>9}" == f"{plain:>9}"
    assert isinstance(text, str)
    assert str(text) is text
    assert (text < "b") == (plain < "b")
    assert ("a" in text) == ("a" in plain)
    assert len(text) == len(plain)


ERRORS: list[Callable[[Any], Any]] = [
    lambda text: text + 1,
    lambda text: text + None,
    lambda text: None + text,
    lambda text: 1 + text,
    lambda text: text - text,
    lambda text: text * "a",
    lambda text: text % (1, 2),
    lambda text: text["a"],
    lambda text: text[9],
    lambda text: text.strip(1),
    lambda text: text.split(""),
    lambda text: text.split(1, 2, 3),
    lambda text: text.join([1]),
    lambda text: text.join(1),
    lambda text: text.join(),
    lambda text: text.replace("a"),
    lambda text: text.replace(1, 2),
    lambda text: text.upper(1),
    lambda text: text.center("a"),
    lambda text: text.nothing,
    lambda text: text < 1,
    lambda text: text(),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors_are_those_of_str(number: int) -> None:
    raised = []
    for text in ("ab", traced("ab", None)):
        with pytest.raises((TypeError, ValueError, AttributeError, IndexError)) as caught:
            ERRORS[number](text)
        raised.append((caught.type, str(caught.value)))
    assert raised[0] == raised[1]


def runs_of(text: Any) -> list[tuple[str, str | None, int, bool]]:
    """(text, path, offset, derived) of each run."""
    runs, start = [], 0
    for end, _, _, path, offset, lost, _ in flatten(text).runs:
        runs.append((str.__str__(text)[start:end], path, offset, lost))
        start = end
    return runs


CONTENT = traced("  one two  ", Field(0, "content"))


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (CONTENT.strip(), [("one two", "content", 2, False)]),
        (CONTENT.strip().split(" ")[1][1:], [("wo", "content", 7, False)]),
        (CONTENT.upper(), [("  ONE TWO  ", "content", -1, True)]),
        (CONTENT.strip().replace("one", traced("1", None)), [("1", None, -1, False), (" two", "content", 5, False)]),
        (CONTENT.split()[0].center(5), [(" ", None, -1, False), ("one", "content", 2, False), (" ", None, -1, False)]),
        (traced("%s!", None) % CONTENT.split()[0], [("one", "content", 2, False), ("!", None, -1, False)]),
        (CONTENT.split()[0] + "?", [("one", "content", 2, False), ("?", None, -1, True)]),
        (traced("x", None).upper(), [("X", None, -1, False)]),
    ],
)
def test_where_the_characters_come_from(result: Any, expected: list[tuple[str, str | None, int, bool]]) -> None:
    assert runs_of(result) == expected


def test_text_that_cannot_be_followed_goes_to_what_its_sources_share() -> None:
    paths = ("calls[0].arguments.city", "calls[0].arguments.unit", "calls[0].arguments")
    city, unit, both = (traced("x", Field(1, path)) for path in paths)
    elsewhere, second = traced("x", Field(2, "content")), traced("x", Field(1, "calls[1]"))
    literal = traced("x", None)
    assert [runs_of(derived("y", *origins))[0][1] for origins in ((city, unit), (unit, both), (city, literal))] == [
        "calls[0].arguments",
        "calls[0].arguments",
        "calls[0].arguments.city",
    ]
    assert runs_of(derived("y", city, second)) == [("y", "calls", -1, True)]
    assert runs_of(derived("y", city, elsewhere)) == [("y", None, -1, True)]
    assert runs_of(derived("y", literal)) == [("y", None, -1, False)]
    assert runs_of(derived("y", literal, "plain")) == [("y", None, -1, True)]


@given(traced_strings(), st.sampled_from(["", "x", "<", "&"]))
def test_safe_text_escapes_what_it_is_joined_to(text: TracedString, other: str) -> None:
    from markupsafe import Markup

    plain = Markup(str.__str__(text))  # noqa: S704 - the reference
    for marked in (safe(text), escape(text)):
        assert isinstance(marked, Markup)
        check(str(marked))
    assert safe(text) == plain
    assert escape(text) == Markup.escape(str.__str__(text))
    literal = traced(other, None)
    for result, expected in ((safe(text) + literal, plain + other), (literal + safe(text), other + plain)):
        assert result == expected
        assert type(expected) is Markup
        assert isinstance(result, Markup)


def test_long_chains_do_not_recurse() -> None:
    text: Any = traced("", None)
    for _ in range(3000):
        text = traced("x" + str.__str__(text), (traced("x", None), text))
        text = traced(str.__str__(text), Printed((text,), (1,), -1))
    for _ in range(3000):
        text = (text + traced("y", None))[1:]
    assert len(flatten(text).runs) <= 6000
    check(text)




def test_template_characters_keep_their_line() -> None:
    text = traced("ab", Printed((traced("a", None), traced("b", Field(0, "content"))), (3, 4), 5))
    outer = traced("ab" + string.digits, Printed((text, traced(string.digits, None)), (7, 8), 2))
    assert [run[:4] for run in flatten(outer).runs] == [(1, 3, 5, None), (2, 4, 0, "content"), (12, 8, 2, None)]
