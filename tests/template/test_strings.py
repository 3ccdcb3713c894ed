"""Traced strings: each operation gives what `str` gives, and a source for every character that is true."""

from __future__ import annotations

import string
from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from renderers.template.sources import Dump, Printed, flatten
from renderers.template.strings import TracedString, derived, escape, field_text, safe, traced

# Letters that change their length with their case, whitespace of all kinds, and separators that occur in the texts.
ALPHABET = "ab-- \n\t%,ßŉİÉé\u2028\x1c"

FIELD = st.text(ALPHABET, max_size=8)
WORD = st.sampled_from(["", "a", "-", "--", "ab", " ", "\n", "x"])
STEP = st.sampled_from([-2, -1, 1, 2])
PLACE = st.none() | st.integers(-9, 9)


@st.composite
def traced_strings(draw: st.DrawFn) -> TracedString:
    """Strings of one or more sources: fields of two messages, the template's own text, and lost ones."""
    pieces = []
    for number, (kind, text) in enumerate(draw(st.lists(st.tuples(st.sampled_from("FFFTL"), FIELD), max_size=4))):
        if kind == "F":
            pieces.append(field_text(text, number % 2, text))  # the path is the field's own text, for the check
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


@dataclass(frozen=True)
class Arguments:
    """What the operations are given besides the traced string: plain text here, or a template's traced text."""

    word: str
    other: str
    words: Any
    count: int
    start: int | None
    stop: int | None
    step: int
    width: int

    @property
    def separator(self) -> str:
        """A separator that is not empty."""
        return self.word or "a"


ARGUMENTS = st.builds(
    Arguments, WORD, WORD, st.lists(WORD, max_size=3), st.integers(-1, 3), PLACE, PLACE, STEP, st.integers(0, 40)
)

OPERATIONS: dict[str, Callable[[Any, Arguments], Any]] = {
    "+": lambda text, given: text + given.word,
    "+, reflected": lambda text, given: given.word + text,
    "*": lambda text, given: text * given.count,
    "*, reflected": lambda text, given: given.count * text,
    "slice": lambda text, given: text[given.start : given.stop],
    "slice with a step": lambda text, given: text[given.start : given.stop : given.step],
    "item": lambda text, given: text[given.count] if given.count < len(text) and text else text,
    "iteration": lambda text, _: [*text],
    "reversed": lambda text, _: list(reversed(text)),
    "strip": lambda text, _: text.strip(),
    "strip of None": lambda text, _: text.strip(None),
    "strip of characters": lambda text, given: text.strip(given.word),
    "lstrip": lambda text, _: text.lstrip(),
    "lstrip of characters": lambda text, given: text.lstrip(given.word),
    "rstrip": lambda text, _: text.rstrip(),
    "rstrip of characters": lambda text, given: text.rstrip(given.word),
    "removeprefix": lambda text, given: text.removeprefix(given.word),
    "removesuffix": lambda text, given: text.removesuffix(given.word),
    "split": lambda text, _: text.split(),
    "split, limited": lambda text, given: text.split(None, given.count),
    "split at": lambda text, given: text.split(given.separator, given.count),
    "split by keyword": lambda text, given: text.split(sep=given.separator, maxsplit=2),
    "rsplit": lambda text, _: text.rsplit(),
    "rsplit, limited": lambda text, given: text.rsplit(None, given.count),
    "rsplit at": lambda text, given: text.rsplit(given.separator, given.count),
    "splitlines": lambda text, _: text.splitlines(),
    "splitlines with endings": lambda text, _: text.splitlines(True),
    "partition": lambda text, given: text.partition(given.separator),
    "rpartition": lambda text, given: text.rpartition(given.separator),
    "join": lambda text, given: text.join(given.words),
    "join of characters": lambda text, given: text.join(given.word),
    "join of an iterator": lambda text, given: text.join(iter(given.words)),
    "replace": lambda text, given: text.replace(given.word, given.other),
    "replace, limited": lambda text, given: text.replace(given.word, given.other, given.count),
    "upper": lambda text, _: text.upper(),
    "lower": lambda text, _: text.lower(),
    "title": lambda text, _: text.title(),
    "capitalize": lambda text, _: text.capitalize(),
    "casefold": lambda text, _: text.casefold(),
    "swapcase": lambda text, _: text.swapcase(),
    "center": lambda text, given: text.center(given.width, "*"),
    "ljust": lambda text, given: text.ljust(given.width),
    "rjust": lambda text, given: text.rjust(given.width),
    "zfill": lambda text, given: text.zfill(given.width),
    "expandtabs": lambda text, _: text.expandtabs(4),
    "translate": lambda text, _: text.translate({97: "bb", 98: None}),
    "%": lambda text, given: (text.replace("%", "") + "<%s|%5s|%d|%%>") % (given.word, given.other, 7),
    "% of a mapping": lambda text, given: (text.replace("%", "") + "%(key)s") % {"key": given.word},
}


@given(traced_strings(), ARGUMENTS)
def test_operations_are_those_of_str(text: TracedString, arguments: Arguments) -> None:
    # A template's own text is traced, what it only looks for is not: both must work.
    literals = Arguments(*[_as_literal(argument) for argument in astuple(arguments)])
    for name, operation in OPERATIONS.items():
        plain = operation(str.__str__(text), arguments)
        for some_arguments in (arguments, literals):
            result = operation(text, some_arguments)
            assert result == plain, name
            assert type(result) is TracedString or not isinstance(result, str), name
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


CONTENT = field_text("  one two  ", 0, "content")


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
    city, unit, both = (field_text("x", 1, path) for path in paths)
    elsewhere, second = field_text("x", 2, "content"), field_text("x", 1, "calls[1]")
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
    for _ in range(300):
        text = (text + traced("y", None))[1:]
    check(text)


def test_template_characters_keep_their_line() -> None:
    text = traced("ab", Printed((traced("a", None), field_text("b", 0, "content")), (3, 4), 5))
    outer = traced("ab" + string.digits, Printed((text, traced(string.digits, None)), (7, 8), 2))
    assert [run[:4] for run in flatten(outer).runs] == [(1, 3, 5, None), (2, 4, 0, "content"), (12, 8, 2, None)]
