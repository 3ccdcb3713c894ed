"""Calls that are a head, a separator and JSON: read whole, cut, malformed, and streamed token by token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from renderers import CallStatus, create_renderer
from renderers.formats.headed_calls import read_call_id
from renderers.testing.checks import check_stream_equals_batch, joined_deltas

pytestmark = pytest.mark.needs_assets

OPEN, SEPARATOR, CLOSE = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"


@pytest.fixture(scope="module")
def renderer(official_tokenizer: Callable[[str], Any]) -> Any:
    return create_renderer(official_tokenizer("moonshotai/Kimi-K2-Instruct"))


def sampled(renderer: Any, *parts: str) -> list[int]:
    """Tokens of markers and ordinary text, each as it is given."""
    special, ids = renderer.tokenizer.special_tokens, []
    for part in parts:
        ids += [special[part]] if part in special else renderer.tokenizer.encode_ordinary(part)
    return ids


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("functions.get_weather:0", "get_weather"),
        ("functions.fs.write-all:12", "fs.write-all"),
        ("functions.天気:3", "天気"),
        ("functions.a:b:3", "a:b"),
        ("get_weather:0", "get_weather"),
        (" functions.f:0\n", "f"),
        ("functions.functions.f:0", "functions.f"),
        ("functions.f", ""),
        ("functions.f:", ""),
        ("functions.f:x", ""),
        ("functions.f:-1", ""),
        ("functions.f:²", ""),
        ("functions.f:٣", ""),
        ("functions.:0", ""),
        (":0", ""),
        ("call_abc", ""),
        ("", ""),
    ],
)
def test_names_in_ids(text: str, name: str) -> None:
    head = read_call_id(text)
    assert (head.name, head.call_id) == (name, text or None)


@pytest.mark.parametrize(
    ("parts", "status", "name", "arguments"),
    [
        ((OPEN, "functions.f:0", SEPARATOR, '{"x": 1}', CLOSE), "ok", "f", {"x": 1}),
        ((OPEN, "functions.f:0", SEPARATOR, ' \n{"x": 1}\n ', CLOSE), "ok", "f", {"x": 1}),
        ((OPEN, "functions.f:0", SEPARATOR, '{"x": "', SEPARATOR, '"}', CLOSE), "ok", "f", {"x": SEPARATOR}),
        (
            (OPEN, "functions.f:0", SEPARATOR, '{"x": "</think>' + CLOSE + '"}', CLOSE),
            "ok",
            "f",
            {"x": "</think>" + CLOSE},
        ),
        ((OPEN, "functions.f:0", SEPARATOR, '{"x": True}', CLOSE), "invalid_json", "f", None),
        ((OPEN, "functions.f:0", SEPARATOR, "", CLOSE), "invalid_json", "f", None),
        ((OPEN, "functions.f:0", SEPARATOR, '{"x": 1', CLOSE), "invalid_json", "f", None),
        ((OPEN, "functions.f:0", SEPARATOR, '{"x": 1} {}', CLOSE), "invalid_json", "f", None),
        ((OPEN, "functions.f:0", SEPARATOR, "[1]", CLOSE), "invalid_arguments", "f", None),
        ((OPEN, "functions.f:0", SEPARATOR, "null", CLOSE), "invalid_arguments", "f", None),
        ((OPEN, "functions.f:0", SEPARATOR, '{"x": 1, "x": 2}', CLOSE), "duplicate_key", "f", None),
        ((OPEN, "functions.f:0", SEPARATOR, '{"x": NaN}', CLOSE), "non_finite_number", "f", None),
        ((OPEN, "functions.f:0", CLOSE), "malformed", "f", None),
        ((OPEN, 'functions.f:0{"x": 1}', CLOSE), "missing_name", "", None),
        ((OPEN, "call_abc", SEPARATOR, "{}", CLOSE), "missing_name", "", None),
        ((OPEN, SEPARATOR, "{}", CLOSE), "missing_name", "", None),
        ((OPEN, CLOSE), "missing_name", "", None),
        ((OPEN, "functions.f:0", SEPARATOR, '{"x": 1}'), "incomplete", "f", None),
        ((OPEN, "functions.f:0", SEPARATOR), "incomplete", "f", None),
        ((OPEN, "functions.f:0"), "incomplete", "", None),
        ((OPEN,), "incomplete", "", None),
    ],
)
def test_one_call(renderer: Any, parts: tuple[str, ...], status: str, name: str, arguments: Any) -> None:
    ids = sampled(renderer, *parts)
    parsed = check_stream_equals_batch(renderer, ids, range(len(ids)))
    (found,) = parsed.tool_calls
    assert (found.status, found.name, found.arguments) == (status, name, arguments)
    assert found.raw == "".join(parts)
    assert parsed.content == ""


def test_a_bad_call_leaves_its_neighbours(renderer: Any) -> None:
    good = (OPEN, "functions.f:0", SEPARATOR, "{}", CLOSE)
    ids = sampled(
        renderer, *good, OPEN, "call_1", SEPARATOR, "{}", CLOSE, *good, OPEN, "functions.f:2", SEPARATOR, "{", *good
    )
    statuses = [one.status for one in check_stream_equals_batch(renderer, ids, range(len(ids))).tool_calls]
    assert statuses == [
        CallStatus.OK, CallStatus.MISSING_NAME, CallStatus.OK, CallStatus.INCOMPLETE, CallStatus.OK,
    ]  # fmt: skip


def test_name_and_arguments_are_streamed(renderer: Any) -> None:
    stream = renderer.stream()
    assert stream.feed(sampled(renderer, OPEN, "functions.get_weather:0")) == []
    (named,) = stream.feed(sampled(renderer, SEPARATOR))
    assert (named.name, named.call_id) == ("get_weather", "functions.get_weather:0")
    assert joined_deltas([named, *stream.feed(sampled(renderer, '{"city": '))])["calls"][0]["arguments"] == '{"city": '
