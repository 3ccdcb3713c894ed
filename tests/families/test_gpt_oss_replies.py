"""gpt-oss's replies: headers in every order and spelling, what is missing, what is cut; and Harmony's own parser."""

from __future__ import annotations

from typing import Any

import pytest

from golden.harmony_library import HAS_LIBRARY, library_messages
from golden.reference import ASSETS, load_tokenizer
from renderers import ParsedResponse, create_renderer
from renderers.testing.checks import check_parse_never_raises, check_stream_equals_batch

MODEL = "openai/gpt-oss-20b"
ARGUMENTS = '{"x": "1"}'
ANALYSIS = "<|channel|>analysis<|message|>r<|end|>"
NEXT = "<|start|>assistant"

#: Headers of a call of `f`, as models write them. The first is how a history shows it.
HEADERS = (
    " to=functions.f<|channel|>commentary <|constrain|>json",
    "<|channel|>commentary to=functions.f <|constrain|>json",
    "<|channel|>commentary to=functions.f<|constrain|>json",
    "<|channel|>commentary <|constrain|>json to=functions.f",
    "<|channel|>commentary to=functions.f json",
    "<|channel|>commentary to=functions.f code",
    "<|channel|>commentary to=functions.f",
    "<|channel|>analysis to=functions.f code",
    "<|channel|>analysis to=functions.f <|constrain|>json",
    " to=functions.f<|channel|>analysis json",
    " to=functions.f<|channel|>final <|constrain|>json",
    " to=functions.f",
    " to=functions.f<|constrain|>json",
    "<|channel|>commentary functions.f <|constrain|>json",
    "<|channel|>commentaryto=functions.f json",
    "<|channel|>commentary to= functions.f json",
    "<|channel|>to=functions.f json",
    "<|channel|>functions.f json",
    "<|channel|>commentary to=functions.f<|channel|>analysis json",
    "<|channel|>commentary to=f json",
)


def ids_of(text: str) -> list[int]:
    """Special tokens where they are spelled."""
    return list(load_tokenizer(MODEL).backend_tokenizer.encode(text, add_special_tokens=False).ids)


@pytest.fixture(scope="module")
def renderer() -> Any:
    return create_renderer(load_tokenizer(MODEL))


def parse(renderer: Any, text: str, stopped: bool | None = None, prompt: str | None = None) -> ParsedResponse:
    """The reply, however it is fed."""
    ids = ids_of(text)
    prompt_ids = None if prompt is None else ids_of(prompt)
    for cuts in (range(len(ids)), range(0, len(ids), 3)):
        check_stream_equals_batch(renderer, ids, list(cuts), prompt_ids=prompt_ids)
    return check_parse_never_raises(renderer, ids, prompt_ids=prompt_ids, stopped=stopped)


def calls_of(parsed: ParsedResponse) -> list[tuple[str, str]]:
    return [(call.name, str(call.status)) for call in parsed.tool_calls]


@pytest.mark.parametrize("before", ["", ANALYSIS + NEXT])
@pytest.mark.parametrize("header", HEADERS)
def test_headers_of_calls(renderer: Any, header: str, before: str) -> None:
    parsed = parse(renderer, f"{before}{header}<|message|>{ARGUMENTS}<|call|>")
    assert calls_of(parsed) == [("f", "ok")]
    assert parsed.tool_calls[0].arguments == {"x": "1"}
    assert parsed.tool_calls[0].arguments_text == ARGUMENTS
    raw = f"{NEXT if before else ''}{header}<|message|>{ARGUMENTS}<|call|>"
    assert (parsed.tool_calls[0].raw, parsed.content, parsed.stop) == (raw, "", "<|call|>")
    assert parsed.reasoning_content == ("r" if before else None)


@pytest.mark.parametrize(
    ("name", "header"),
    [("python", "<|channel|>analysis to=python code"), ("browser.search", "<|channel|>analysis to=browser.search code"),
     ("python", "<|channel|>commentary python")],
)  # fmt: skip
def test_builtin_tools_have_no_prefix(renderer: Any, name: str, header: str) -> None:
    assert calls_of(parse(renderer, f"{header}<|message|>{{}}<|call|>")) == [(name, "ok")]
    assert calls_of(parse(renderer, f"{header}<|message|>print(1)<|call|>")) == [(name, "invalid_json")]


@pytest.mark.parametrize(
    ("text", "reasoning", "content"),
    [
        (f"{ANALYSIS}{NEXT}<|channel|>final<|message|>a<|return|>", "r", "a"),
        (f"{ANALYSIS}{NEXT}{ANALYSIS}{NEXT}<|channel|>final<|message|>a<|return|>", "r\nr", "a"),
        (
            "<|channel|>commentary<|message|>p<|end|><|start|>assistant<|channel|>final<|message|>a<|return|>",
            None,
            "p\na",
        ),
        ("<|channel|>analysis<|message|>r<|channel|>final<|message|>a<|return|>", "r", "a"),
        (f"<|channel|>analysis<|message|>r{NEXT}<|channel|>final<|message|>a<|return|>", "r", "a"),
        (f"{ANALYSIS}<|channel|>final<|message|>a<|return|>", "r", "a"),
        ("<|channel|>analysis<|message|><|end|><|start|>assistant<|channel|>final<|message|>a<|return|>", "", "a"),
        ("<|channel|>other<|message|>a<|return|>", None, "a"),
        ("<|channel|>commentary to=assistant<|message|>a<|return|>", None, "a"),
        ("<|channel|>final <|constrain|>json<|message|>{}<|return|>", None, "{}"),
        ("<|channel|>final a<|return|>", None, "a"),
        ("<|message|>a<|return|>", None, "a"),
        ("a b<|return|>", None, "a b"),
        ("set to=5<|return|>", None, "set to=5"),
        ("<|channel|>final<|message|>a<|message|>b<|constrain|>c<|return|>", None, "a<|message|>b<|constrain|>c"),
        ("<|channel|>final<|message|> a\n\n<|return|>", None, " a\n\n"),
    ],
)
def test_messages(renderer: Any, text: str, reasoning: str | None, content: str) -> None:
    parsed = parse(renderer, text)
    assert (parsed.reasoning_content, parsed.content, parsed.tool_calls) == (reasoning, content, [])
    assert (parsed.stop, parsed.reasoning_complete) == ("<|return|>", True)


CALL = f"{HEADERS[0]}<|message|>{ARGUMENTS}"


@pytest.mark.parametrize(
    ("text", "stopped", "status"),
    [
        (CALL, None, "incomplete"),
        (CALL, False, "incomplete"),
        (CALL, True, "ok"),
        (f"{CALL}<|end|>", None, "ok"),
        (f"{CALL}<|return|>", None, "ok"),
        (f"{CALL}{NEXT}<|channel|>final<|message|>a<|return|>", None, "incomplete"),
        (f"{CALL}<|call|>x", None, "ok"),
        (f"{HEADERS[0]}<|call|>", None, "malformed"),
        (HEADERS[1], None, "incomplete"),
        (f"{HEADERS[0]}<|message|>{{<|call|>", None, "invalid_json"),
        (f"{HEADERS[0]}<|message|>[]<|call|>", None, "invalid_arguments"),
        (f"{HEADERS[0]}<|message|>{{'x': True}}<|call|>", None, "invalid_json"),
        (f'{HEADERS[0]}<|message|>{{"x": 1, "x": 2}}<|call|>', None, "duplicate_key"),
        ("<|channel|>commentary to=functions.<|message|>{}<|call|>", None, "missing_name"),
    ],
)
def test_how_a_call_ends(renderer: Any, text: str, stopped: bool | None, status: str) -> None:
    parsed = parse(renderer, text, stopped)
    assert [str(call.status) for call in parsed.tool_calls] == [status]


def test_a_bad_call_spoils_no_neighbour(renderer: Any) -> None:
    parsed = parse(renderer, f"{HEADERS[0]}<|message|>{{<|end|>{NEXT}{CALL}<|call|>")
    assert calls_of(parsed) == [("f", "invalid_json"), ("f", "ok")]


def test_values_keep_their_bytes(renderer: Any) -> None:
    arguments = '{"a": " <|channel|>x\\n", "b": 123456789012345678901234567890, "c": "</arg> 東"}'
    parsed = parse(renderer, f"{HEADERS[0]}<|message|>{arguments}<|call|>")
    expected = {"a": " <|channel|>x\n", "b": 123456789012345678901234567890, "c": "</arg> 東"}
    assert parsed.valid_tool_calls[0].arguments == expected
    assert parsed.tool_calls[0].arguments_text == arguments


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("<|channel|>analysis<|message|>r", False),
        ("<|channel|>analysis<|message|>r<|return|>", False),
        ("<|channel|>analysis", False),
        (ANALYSIS, True),
        (f"{ANALYSIS}{NEXT}<|channel|>fin", True),
        (f"<|channel|>analysis<|message|>r{NEXT}{CALL}<|call|>", True),
        ("", True),
    ],
)
def test_reasoning_complete(renderer: Any, text: str, complete: bool) -> None:
    assert parse(renderer, text).reasoning_complete is complete


def test_truncation_shows_no_header_as_text(renderer: Any) -> None:
    ids = ids_of(f"{ANALYSIS}{NEXT}{CALL}<|call|>")
    for end in range(len(ids)):
        parsed = renderer.parse_response(ids[:end])
        assert parsed.content == ""
        assert not parsed.valid_tool_calls


@pytest.mark.parametrize(
    ("prompt", "text", "reasoning", "content"),
    [
        ("<|start|>assistant<|channel|>analysis<|message|>I", " see<|end|><|start|>assistant<|channel|>final<|message|>a", " see", "a"),
        ("<|start|>assistant<|channel|>final<|message|>The", " end<|return|>", None, " end"),
        ("<|start|>assistant<|channel|>", "final<|message|>a<|return|>", None, "a"),
        ("<|channel|>analysis<|message|>", "r<|end|>", "r", ""),
        ("<|start|>user<|message|>q<|end|>", "<|channel|>final<|message|>a<|return|>", None, "a"),
    ],
)  # fmt: skip
def test_openings(renderer: Any, prompt: str, text: str, reasoning: str | None, content: str) -> None:
    parsed = parse(renderer, text, prompt=prompt)
    assert (parsed.reasoning_content, parsed.content) == (reasoning, content)


def test_a_call_that_the_prompt_left_open_is_the_replys(renderer: Any) -> None:
    parsed = parse(renderer, '"1"}<|call|>', prompt=f'{NEXT}{HEADERS[0]}<|message|>{{"x": ')
    assert parsed.valid_tool_calls[0].arguments == {"x": "1"}


@pytest.mark.skipif(not HAS_LIBRARY, reason="the package openai-harmony is not installed")
@pytest.mark.parametrize("header", HEADERS)
def test_harmonys_own_parser_reads_no_header_better(renderer: Any, header: str) -> None:
    """Where it reads the header as a call at all, it reads the same call; elsewhere it raises, or takes something else
    for the recipient."""
    ids = ids_of(f"{header}<|message|>{ARGUMENTS}<|call|>")
    try:
        read = library_messages(ASSETS, ids)
    except Exception:  # noqa: BLE001 - whatever it raises
        return
    if read[0].recipient in {"functions.f", "f"}:
        assert read[0].content[0].text == renderer.parse_response(ids).tool_calls[0].arguments_text
