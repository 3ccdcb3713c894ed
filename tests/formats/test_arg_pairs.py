"""Calls of keys and values between special tokens: typed, quoting their own tags, malformed, cut, neighbours of each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from golden.reference import encode
from renderers import CallStatus, ParsedResponse, create_renderer
from renderers.testing.checks import check_parse_never_raises, check_stream_equals_batch

pytestmark = pytest.mark.needs_assets

OK, INCOMPLETE, MALFORMED = CallStatus.OK, CallStatus.INCOMPLETE, CallStatus.MALFORMED
MODEL = "zai-org/GLM-5"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "f",
            "parameters": {
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "count": {"type": "integer"},
                    "flag": {"type": "boolean"},
                    "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                    "list": {"type": "array", "items": {"type": "string"}},
                },
            },
        },
    }
]
Parse = Callable[..., ParsedResponse]


@pytest.fixture(scope="module")
def renderer(official_tokenizer: Callable[[str], Any]) -> Any:
    return create_renderer(official_tokenizer(MODEL))


@pytest.fixture(scope="module")
def parse(renderer: Any) -> Parse:
    """Parses what follows closed reasoning: whole, and token by token."""
    prompt = encode(MODEL, "<|assistant|></think>")

    def parse_text(text: str, stop: str = "<|observation|>", **given: Any) -> ParsedResponse:
        ids = encode(MODEL, text + stop)
        check_parse_never_raises(renderer, ids, prompt_ids=prompt, **given)
        return check_stream_equals_batch(renderer, ids, range(len(ids)), prompt_ids=prompt, **given)

    return parse_text


def pairs(*named: tuple[str, str]) -> str:
    return "".join(f"<arg_key>{key}</arg_key><arg_value>{value}</arg_value>" for key, value in named)


def one(parse: Parse, body: str, **given: Any) -> Any:
    parsed = parse(f"<tool_call>{body}</tool_call>", **given)
    assert parsed.content == ""
    [call] = parsed.tool_calls
    assert call.raw == f"<tool_call>{body}</tool_call>"
    return call


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("text", "Ulm", "Ulm"),
        ("text", "007", "007"),
        ("text", "true", "true"),
        ("text", "", ""),
        ("text", "  two\n\nlines \n", "  two\n\nlines \n"),
        ("text", "5 &lt; 6 &amp; <b>x</b>", "5 &lt; 6 &amp; <b>x</b>"),
        ("text", '{"a": 1}', '{"a": 1}'),
        ("count", "3", 3),
        ("count", str(2**70), 2**70),
        ("count", " 3\n", 3),
        ("flag", "false", False),
        ("maybe", "null", None),
        ("maybe", "nothing", "nothing"),
        ("list", '["a", "b"]', ["a", "b"]),
        ("unknown", "5", 5),
        ("unknown", "Ulm", "Ulm"),
        ("unknown", '"Ulm"', '"Ulm"'),
    ],
)
def test_values_are_typed_by_the_schema(parse: Parse, key: str, text: str, value: Any) -> None:
    call = one(parse, "f" + pairs((key, text)), tools=TOOLS)
    assert call.status is OK
    assert call.arguments == {key: value}
    assert type(call.arguments[key]) is type(value)


@pytest.mark.parametrize(
    ("key", "text", "status", "word"),
    [
        ("flag", "True", CallStatus.INVALID_ARGUMENTS, "Python"),
        ("count", "None", CallStatus.INVALID_ARGUMENTS, "Python"),
        ("count", "many", CallStatus.INVALID_ARGUMENTS, "count"),
        ("list", '["a"', CallStatus.INVALID_ARGUMENTS, "list"),
        ("list", '[{"a": 1, "a": 2}]', CallStatus.DUPLICATE_KEY, "twice"),
    ],
)
def test_values_that_are_not_of_their_type_are_reported(
    parse: Parse, key: str, text: str, status: CallStatus, word: str
) -> None:
    call = one(parse, "f" + pairs((key, text)), tools=TOOLS)
    assert (call.name, call.arguments, call.status) == ("f", None, status)
    assert word in call.error


def test_a_key_that_stands_twice_is_reported(parse: Parse) -> None:
    assert one(parse, "f" + pairs(("a", "1"), ("a", "2"))).status is CallStatus.DUPLICATE_KEY


@pytest.mark.parametrize(
    ("body", "arguments"),
    [
        ("f", {}),
        ("f\n", {}),
        ("\nf\n<arg_key>a</arg_key>\n<arg_value>x</arg_value>\n", {"a": "x"}),
        ("f <arg_key>a</arg_key> <arg_value>x</arg_value> ", {"a": "x"}),
        ("f<arg_key>a b</arg_key><arg_value>x</arg_value><arg_key>键</arg_key><arg_value>y</arg_value>", {"a b": "x", "键": "y"}),
    ],
)  # fmt: skip
def test_space_between_tags_is_nobodys(parse: Parse, body: str, arguments: dict[str, Any]) -> None:
    call = one(parse, body)
    assert (call.name, call.arguments, call.status) == ("f", arguments, OK)


@pytest.mark.parametrize(
    "value",
    [
        "print('</tool_call>')",
        "a </arg_value> b",
        "</arg_value></arg_value>x",
        "<tool_call>g</tool_call>",
        "call <tool_call>g<arg_key>a</arg_key><arg_value>1</arg_value></tool_call> so",
        "<tool_call>g" + pairs(("a", "1"), ("b", "2")) + "</tool_call>",
        "the <arg_value> tag",
        "the <arg_key>a</arg_key> tags",
        "<think>no</think>",
        "<tool_response>x</tool_response>",
    ],
)
def test_values_quote_any_tag(parse: Parse, value: str) -> None:
    parsed = parse(
        f"<tool_call>f{pairs(('text', value), ('count', '1'))}</tool_call><tool_call>f</tool_call>", tools=TOOLS
    )
    assert [call.arguments for call in parsed.tool_calls] == [{"text": value, "count": 1}, {}]
    assert parsed.reasoning_content is None


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("", CallStatus.MISSING_NAME),
        (pairs(("a", "1")), CallStatus.MISSING_NAME),
        ("f x", MALFORMED),
        ('{"name": "f", "arguments": {}}', MALFORMED),
        ("f<arg_value>x</arg_value>", MALFORMED),
        ("f<arg_key>a</arg_key>x", MALFORMED),
        ("f<arg_key>a<arg_value>x</arg_value>", MALFORMED),
        ("f<arg_key>a</arg_key><arg_value>x", MALFORMED),
        (f"f{pairs(('a', '1'))}rest", MALFORMED),
    ],
)
@pytest.mark.parametrize("stop", ["<|observation|>", "<|user|>"])
def test_one_bad_call_does_not_spoil_its_neighbours(parse: Parse, body: str, status: CallStatus, stop: str) -> None:
    good = f"<tool_call>f{pairs(('a', 'x'))}</tool_call>"
    parsed = parse(f"{good}<tool_call>{body}</tool_call>{good}", stop)
    assert [call.status for call in parsed.tool_calls] == [OK, status, OK]
    assert parsed.tool_calls[1].raw == f"<tool_call>{body}</tool_call>"
    assert [call.arguments for call in parsed.valid_tool_calls] == [{"a": "x"}] * 2
    assert len(parsed.to_message()["tool_calls"]) == 2


def test_a_value_that_is_not_closed_gives_back_what_it_swallowed(parse: Parse) -> None:
    text = "<tool_call>f<arg_key>a</arg_key><arg_value>x</tool_call>So:<think>hm</think><tool_call>g</tool_call>"
    parsed = parse(text)
    assert [(call.name, call.status) for call in parsed.tool_calls] == [("f", MALFORMED), ("g", OK)]
    assert (parsed.content, parsed.reasoning_content) == ("So:", "hm")


def test_what_a_cut_value_quotes_is_never_a_call(parse: Parse) -> None:
    parsed = parse("<tool_call>f<arg_key>a</arg_key><arg_value>write <tool_call>g</tool_call> and", stop="")
    assert [(call.name, call.status) for call in parsed.tool_calls] == [("f", INCOMPLETE)]
    assert parsed.content == ""


def test_a_call_cut_anywhere_is_incomplete(renderer: Any) -> None:
    ids = encode(MODEL, f"<tool_call>get_weather{pairs(('city', 'Ulm'), ('days', '3'))}</tool_call>")
    prompt = encode(MODEL, "<|assistant|></think>")
    for end in range(1, len(ids)):
        [call] = renderer.parse_response(ids[:end], prompt_ids=prompt).tool_calls
        assert call.status is INCOMPLETE
        assert call.name in {"", "get_weather"}
        assert call.raw == renderer.decode(ids[:end])


def test_a_call_without_its_close_is_incomplete_before_the_next(parse: Parse) -> None:
    parsed = parse(f"<tool_call>f{pairs(('a', 'x'))}<tool_call>g</tool_call>")
    assert [(call.name, call.status) for call in parsed.tool_calls] == [("f", INCOMPLETE), ("g", OK)]


@pytest.mark.parametrize("piece", ["<arg_key>a</arg_key><arg_value><arg_value>", "</arg_value><arg_key>", "<tool_call>f<arg_key>a</arg_key><arg_value>"])  # fmt: skip
def test_time_is_linear(renderer: Any, piece: str) -> None:
    ids = encode(MODEL, "<tool_call>f<arg_key>a</arg_key><arg_value>") + encode(MODEL, piece) * 20_000
    check_parse_never_raises(renderer, [*ids, *encode(MODEL, "</tool_call><|observation|>")])
