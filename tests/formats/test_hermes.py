"""JSON calls: every fault that they can have, and what is streamed of them."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from renderers.formats.hermes import JsonCallReader, read_json_call
from renderers.formats.json_text import ValueScanner
from renderers.parsed import CallStatus

OK, INVALID_JSON, MALFORMED = CallStatus.OK, CallStatus.INVALID_JSON, CallStatus.MALFORMED
MISSING_NAME, INVALID_ARGUMENTS = CallStatus.MISSING_NAME, CallStatus.INVALID_ARGUMENTS
DUPLICATE_KEY, NON_FINITE = CallStatus.DUPLICATE_KEY, CallStatus.NON_FINITE_NUMBER


@pytest.mark.parametrize(
    ("body", "status", "name", "text"),
    [
        ('\n{"name": "f", "arguments": {"a": 1}}\n', OK, "f", '{"a": 1}'),
        ('{ "name" :"f","arguments": { "a":1 } }', OK, "f", '{ "a":1 }'),
        ('{"arguments": {"a":  [1,2]}, "name": "f"}', OK, "f", '{"a":  [1,2]}'),
        ('{"id": 7, "name": "f", "arguments": {}, "type": "function"}', OK, "f", "{}"),
        ('{"name": "a\\u00e9\\"", "arguments": {}}', OK, 'aé"', "{}"),
        ('{"name": "f", "arguments": "{\\"a\\": 1}"}', INVALID_ARGUMENTS, "f", '"{\\"a\\": 1}"'),
        ('{"name": "f", "arguments": null}', INVALID_ARGUMENTS, "f", "null"),
        ('{"name": "f", "arguments": [1]}', INVALID_ARGUMENTS, "f", "[1]"),
        ('{"name": "f", "parameters": {"a": 1}}', INVALID_ARGUMENTS, "f", ""),
        ('{"name": "f"}', INVALID_ARGUMENTS, "f", ""),
        ('{"arguments": {}}', MISSING_NAME, "", "{}"),
        ('{"name": "", "arguments": {}}', MISSING_NAME, "", "{}"),
        ('{"name": 5, "arguments": {}}', MISSING_NAME, "", "{}"),
        ("{}", MISSING_NAME, "", ""),
        ("", INVALID_JSON, "", ""),
        ("get the weather", INVALID_JSON, "", ""),
        ('{"name": "f", "arguments": {"a": 1}', INVALID_JSON, "f", '{"a": 1}'),
        ('{"name": "f", "arguments": {"a": 1}}}', INVALID_JSON, "f", '{"a": 1}'),
        ('{"name": "f", "arguments": {"a": True}}', INVALID_JSON, "f", '{"a": True}'),
        ("{'name': 'f', 'arguments': {}}", INVALID_JSON, "", ""),
        ('{"name": "f", "arguments": {"a": "line\nfeed"}}', INVALID_JSON, "f", '{"a": "line\nfeed"}'),
        ('{"name": "f", "arguments": {"a": 1,}}', INVALID_JSON, "f", '{"a": 1,}'),
        ('{"name": "f" "arguments": {}}', INVALID_JSON, "f", ""),
        ('{"name": "f", "arguments": {}} {"name": "g", "arguments": {}}', INVALID_JSON, "f", "{}"),
        ('[{"name": "f", "arguments": {}}]', MALFORMED, "", ""),
        ('"f"', MALFORMED, "", ""),
        ('{"name": "f", "arguments": {"a": 1, "a": 2}}', DUPLICATE_KEY, "f", '{"a": 1, "a": 2}'),
        ('{"name": "f", "arguments": {"a": [{"b": 1, "b": 1}]}}', DUPLICATE_KEY, "f", '{"a": [{"b": 1, "b": 1}]}'),
        ('{"name": "f", "arguments": {}, "arguments": {"a": 1}}', DUPLICATE_KEY, "f", "{}"),
        ('{"name": "f", "name": "g", "arguments": {}}', DUPLICATE_KEY, "f", "{}"),
        ('{"name": "f", "arguments": {"a": NaN}}', NON_FINITE, "f", '{"a": NaN}'),
        ('{"name": "f", "arguments": {"a": [-Infinity]}}', NON_FINITE, "f", '{"a": [-Infinity]}'),
        ('{"name": "f", "arguments": {"a": 1e999}}', NON_FINITE, "f", '{"a": 1e999}'),
    ],
)
def test_one_call(body: str, status: CallStatus, name: str, text: str) -> None:
    call = read_json_call(body, complete=True)
    assert (call.status, call.name, call.arguments_text) == (status, name, text)
    assert (call.arguments is not None) == (call.error is None) == (status is OK)


def test_numbers_keep_their_value() -> None:
    body = '{"name": "f", "arguments": {"big": 123456789012345678901234567890, "small": 0.1, "zero": -0, "e": 1E2}}'
    call = read_json_call(body, complete=True)
    assert call.arguments == {"big": 123456789012345678901234567890, "small": 0.1, "zero": 0, "e": 100.0}


def test_more_digits_than_python_converts() -> None:
    call = read_json_call('{"name": "f", "arguments": {"n": ' + "9" * 5000 + "}}", complete=True)
    assert call.status is INVALID_JSON
    assert "digits" in (call.error or "")


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_deep_nesting_is_reported(opening: str) -> None:
    depth = 10 * sys.getrecursionlimit()
    body = f'{{"name": "f", "arguments": {{"x": {opening * depth}'
    assert read_json_call(body, complete=True).status is INVALID_JSON
    closed = body + "1" + ("]" if opening == "[" else "}") * depth + "}}"
    assert read_json_call(closed, complete=True).status is INVALID_JSON


def test_errors_say_what_and_where() -> None:
    assert read_json_call('{"name": "f", "parameters": {}}', complete=True).error == (
        "the call has no key 'arguments' (it has 'parameters')"
    )
    assert read_json_call('{"name": "f", "arguments": {"a": tru}}', complete=True).error == (
        "not JSON at character 33 ('tru}}'): Expecting value"
    )
    assert read_json_call('{"name": "f", "arguments": {"k": 1, "k": 2}}', complete=True).error == (
        "the key 'k' stands twice in one object"
    )


BODIES = (
    '{"name": "f", "arguments": {"a": "}\\"{", "b": [1, {"c": "\\\\"}]}}',
    '\n{"name": "f", "arguments": {"a": 1}} extra}\n',
    '{"name": "f", "arguments": {"a": [}]}, "b": 2}',
    '{"name": "f", "arguments": "{}"}',
    '{"arguments": {"a": 1}, "name": "f"}',
    '{"name": "", "arguments": {"a": 1}}',
    '{"name": "\\x", "arguments": {"a": 1}}',
    '{"name": "' + "f" * 2000 + '", "arguments": {"a": 1}}',
    '{"name": "f", ' + " " * 2000 + '"arguments": {"a": 1}}',
    '{"name": "f", "arguments": {"a": "' + "\\\\" * 9 + '"}}',
    "[]",
    "",
)


@given(st.sampled_from(BODIES), st.lists(st.integers(0, 60)), st.booleans(), st.integers(0, 70))
def test_what_was_streamed_stands(body: str, cuts: list[int], complete: bool, end: int) -> None:
    """In any portions, with any end: the name and the beginning of the arguments are what the call has in the end."""
    body = body if complete else body[:end]
    reader = JsonCallReader()
    name, text, places = None, "", sorted({cut for cut in cuts if 0 < cut < len(body)})
    for start, stop in zip([0, *places], [*places, len(body)], strict=True):
        for event in reader.progress(body[start:stop]):
            assert name is None or event.name is None
            name, text = event.name or name, text + event.arguments
    (call,) = reader.read(body, complete=complete)
    assert call == read_json_call(body, complete=complete)
    assert name in (None, call.name)
    assert call.arguments_text.startswith(text)
    if not complete:
        assert call.status is CallStatus.INCOMPLETE


def test_name_and_arguments_are_streamed_early() -> None:
    reader = JsonCallReader()
    assert [event.name for event in reader.progress('{"name": "run"')] == ["run"]
    assert reader.progress(', "arg') == []
    assert [event.arguments for event in reader.progress('uments": {"a": ')] == ['{"a": ']
    assert [event.arguments for event in reader.progress("1}}\n")] == ["1}"]
    assert list(reader.progress("\n")) == []


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(st.text(max_size=5), _values, max_size=3),
    st.booleans(),
    st.lists(st.integers(1, 9), min_size=1, max_size=5),
)
def test_the_scanner_finds_the_end(arguments: dict[str, Any], ascii_only: bool, steps: list[int]) -> None:
    text = json.dumps(arguments, ensure_ascii=ascii_only)
    scanner, taken, position = ValueScanner(), 0, 0
    rest = text + '} "]}'
    while position < len(rest):
        step = steps[position % len(steps)]
        taken += scanner.take(rest[position : position + step])
        position += step
    assert (taken, scanner.done) == (len(text), True)
