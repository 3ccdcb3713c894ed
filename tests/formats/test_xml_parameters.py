"""Calls with a parameter a tag: typed, spelled in Python, quoting their own tags, malformed, cut, neighbours of each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden.reference import encode, load_tokenizer
from renderers import CallStatus, ParsedResponse, create_renderer
from renderers.formats.named import named_grammar
from renderers.testing.checks import check_parse_never_raises, check_stream_equals_batch
from renderers.tokenizers import adapt

pytestmark = pytest.mark.needs_assets

OK, INCOMPLETE, MALFORMED = CallStatus.OK, CallStatus.INCOMPLETE, CallStatus.MALFORMED
INVALID = CallStatus.INVALID_ARGUMENTS
JSON, SCALARS, PYTHON = "Qwen/Qwen3.6-35B-A3B", "Qwen/Qwen3.5-35B-A3B", "Qwen/Qwen3-Coder-30B-A3B-Instruct"
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
                    "list": {"type": "array"},
                    "object": {"type": "object"},
                },
            },
        },
    }
]
Parse = Callable[..., ParsedResponse]


@pytest.fixture(scope="module")
def renderers_by_model(official_tokenizer: Callable[[str], Any]) -> dict[str, Any]:
    return {model: create_renderer(official_tokenizer(model)) for model in (JSON, SCALARS, PYTHON)}


@pytest.fixture(scope="module")
def parse(renderers_by_model: dict[str, Any]) -> Parse:
    """Parses what follows closed reasoning: whole, and token by token."""

    def parse_text(text: str, stop: str = "<|im_end|>", model: str = JSON, **given: Any) -> ParsedResponse:
        renderer = renderers_by_model[model]
        ids = encode(model, text + stop)
        given["prompt_ids"] = encode(
            model, "<|im_start|>assistant\n" + ("" if model == PYTHON else "<think>\n\n</think>\n\n")
        )
        check_parse_never_raises(renderer, ids, **given)
        return check_stream_equals_batch(renderer, ids, range(len(ids)), **given)

    return parse_text


def call_text(*parameters: tuple[str, str], name: str = "f") -> str:
    """A call in the form in which the template writes it."""
    inner = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in parameters)
    return f"<tool_call>\n<function={name}>\n{inner}</function>\n</tool_call>"


def one(parse: Parse, text: str, **given: Any) -> Any:
    parsed = parse(text, **given)
    assert parsed.content == ""
    [call] = parsed.tool_calls
    assert call.raw == text
    return call


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("text", "Ulm", "Ulm"),
        ("text", "007", "007"),
        ("text", "true", "true"),
        ("text", "None", "None"),
        ("text", "", ""),
        ("text", "\n", "\n"),
        ("text", "  two\n\nlines \n", "  two\n\nlines \n"),
        ("text", "\r\n", "\r\n"),
        ("text", "5 &lt; 6 &amp; <b>x</b>", "5 &lt; 6 &amp; <b>x</b>"),
        ("text", '{"a": 1}', '{"a": 1}'),
        ("text", "['a']", "['a']"),
        ("count", "3", 3),
        ("count", str(2**70), 2**70),
        ("flag", "false", False),
        ("maybe", "null", None),
        ("maybe", "nothing", "nothing"),
        ("list", '["a", {"b": null}]', ["a", {"b": None}]),
        ("unknown", "5", 5),
        ("unknown", "Ulm", "Ulm"),
        ("unknown", '"Ulm"', '"Ulm"'),
        ("unknown", "'Ulm'", "'Ulm'"),
    ],
)
@pytest.mark.parametrize("model", [JSON, SCALARS, PYTHON])
def test_values_are_typed_by_the_schema(parse: Parse, model: str, key: str, text: str, value: Any) -> None:
    call = one(parse, call_text((key, text)), model=model, tools=TOOLS)
    assert call.status is OK
    assert call.arguments == {key: value}
    assert type(call.arguments[key]) is type(value)


@pytest.mark.parametrize(
    ("key", "text", "found"),
    [
        ("flag", "True", (INVALID, True, True)),
        ("count", "None", (INVALID, None, None)),
        ("maybe", "None", ("None", None, None)),
        ("unknown", "False", ("False", False, False)),
        ("list", "['a', True, None, \"it's\", 'é\\n']", (INVALID, INVALID, ["a", True, None, "it's", "é\n"])),
        ("list", "['True', \"'None'\", -1.5, []]", (INVALID, INVALID, ["True", "'None'", -1.5, []])),
        ("object", "{'a': {'b': [1e+22, False]}}", (INVALID, INVALID, {"a": {"b": [1e22, False]}})),
        ("object", "{'a': 1, 'a': 2}", (INVALID, INVALID, CallStatus.DUPLICATE_KEY)),
        ("object", "{'a': nan}", (INVALID, INVALID, INVALID)),
        ("object", "{'a': '\\q'}", (INVALID, INVALID, INVALID)),
        ("object", "{'a': (1, 2)}", (INVALID, INVALID, INVALID)),
        ("object", "{'a': 1", (INVALID, INVALID, INVALID)),
        ("unknown", "{'a': 1", ("{'a': 1", "{'a': 1", "{'a': 1")),
        ("flag", "TRUE", (INVALID, INVALID, INVALID)),
        ("count", "many", (INVALID, INVALID, INVALID)),
        ("list", '[{"a": 1, "a": 2}]', (CallStatus.DUPLICATE_KEY,) * 3),
    ],
)
def test_python_is_read_where_the_template_writes_it(parse: Parse, key: str, text: str, found: tuple[Any, ...]) -> None:
    for model, expected in zip((JSON, SCALARS, PYTHON), found, strict=True):
        call = one(parse, call_text((key, text)), model=model, tools=TOOLS)
        if isinstance(expected, CallStatus):
            assert (call.name, call.arguments, call.status) == ("f", None, expected)
        else:
            assert (call.arguments, call.status) == ({key: expected}, OK)


def test_a_parameter_that_stands_twice_is_reported(parse: Parse) -> None:
    assert one(parse, call_text(("a", "1"), ("a", "2"))).status is CallStatus.DUPLICATE_KEY


@pytest.mark.parametrize(
    ("body", "arguments"),
    [
        ("<function=f></function>", {}),
        ("\n<function=f>\n\n</function>\n\n", {}),
        ("<function=f><parameter=a>x</parameter></function>", {"a": "x"}),
        ("\n<function=f>\n<parameter=a>x\n</parameter>\n\n  <parameter=b>\ny</parameter>\n</function>\n", {"a": "x", "b": "y"}),
        ("\n<function=f>\n<parameter=a b>\nx\n</parameter>\n<parameter=键>\ny\n</parameter>\n</function>\n", {"a b": "x", "键": "y"}),
        ("\n<function=f>\n<parameter=a>\n</parameter>\n</function>\n", {"a": ""}),
        ("\n<function=f>\n<parameter=a>\n\n</parameter>\n</function>\n", {"a": ""}),
        ("\n<function=f>\n<parameter=a>\n\n\n</parameter>\n</function>\n", {"a": "\n"}),
    ],
)  # fmt: skip
def test_one_line_feed_on_either_side_is_the_formats(parse: Parse, body: str, arguments: dict[str, Any]) -> None:
    call = one(parse, f"<tool_call>{body}</tool_call>")
    assert (call.name, call.arguments, call.status) == ("f", arguments, OK)


@pytest.mark.parametrize(
    "value",
    [
        "print('</tool_call>')",
        "a </parameter> b",
        "a\n</parameter>\nb",
        "</parameter></parameter>x",
        "</function>",
        "a\n</function>\n</tool_call>\nb",
        "<tool_call>g</tool_call>",
        f"write\n{call_text()}\nso",
        f"write\n{call_text(('a', '1'))}\nso",
        f"write {call_text(('a', '1'), ('b', '2'))}",
        "the <parameter=x> tag",
        "the\n<parameter=x>\ntag",
        "<think>no</think>",
        "<tool_response>x</tool_response>",
        "<parameter=",
        "<|im_start|>",
    ],
)
def test_values_quote_any_tag(parse: Parse, value: str) -> None:
    parsed = parse(f"{call_text(('text', value), ('count', '1'))}\n{call_text()}", tools=TOOLS)
    assert [call.arguments for call in parsed.tool_calls] == [{"text": value, "count": 1}, {}]
    assert (parsed.content, parsed.reasoning_content) == ("", None)


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("", ""),
        ("f", ""),
        ('\n{"name": "f", "arguments": {}}\n', ""),
        ("\n<function=>\n</function>\n", ""),
        ("\n<function=f g>\n</function>\n", ""),
        ("\n<function=f\n</function>\n", ""),
        ("\nx<function=f>\n</function>\n", ""),
        ("\n<function=f>\n", "f"),
        ("\n<function=f>\n</function>\nrest", "f"),
        ("\n<function=f>\nx\n</function>\n", "f"),
        ("\n<function=f>\n<parameter=a>\n1\n</function>\n", "f"),
        ("\n<function=f>\n<parameter=a>\n1\n</parameter>\nx\n</function>\n", "f"),
        ("\n<function=f>\n<parameter=a>\n1\n</parameter>\n", "f"),
        ("\n<function=f>\n</function>\n<function=g>\n</function>\n", "f"),
    ],
)
def test_one_bad_call_does_not_spoil_its_neighbours(parse: Parse, body: str, name: str) -> None:
    good = call_text(("a", "x"))
    parsed = parse(f"{good}\n<tool_call>{body}</tool_call>\n{good}")
    assert [call.status for call in parsed.tool_calls] == [OK, MALFORMED, OK]
    assert (parsed.tool_calls[1].name, parsed.tool_calls[1].raw) == (name, f"<tool_call>{body}</tool_call>")
    assert [call.arguments for call in parsed.valid_tool_calls] == [{"a": "x"}] * 2
    assert len(parsed.to_message()["tool_calls"]) == 2


def test_tags_without_the_token_that_opens_a_call_are_text(parse: Parse) -> None:
    bare = "<function=f>\n<parameter=a>\nx\n</parameter>\n</function>"
    assert parse(bare).content == bare
    assert not parse(f"{bare}\n</tool_call>").tool_calls


def test_a_value_that_is_not_closed_gives_back_what_it_swallowed(parse: Parse) -> None:
    parsed = parse(f"<tool_call>\n<function=f>\n<parameter=a>\nx</tool_call>\nSo:\n\n{call_text(name='g')}")
    assert [(call.name, call.status) for call in parsed.tool_calls] == [("f", MALFORMED), ("g", OK)]
    assert parsed.content == "So:"


def test_what_a_cut_value_quotes_is_never_a_call(parse: Parse) -> None:
    parsed = parse(f"<tool_call>\n<function=f>\n<parameter=a>\nwrite {call_text(name='g')} and", stop="")
    assert [(call.name, call.status) for call in parsed.tool_calls] == [("f", INCOMPLETE)]
    assert parsed.content == ""


def test_a_call_cut_anywhere_is_incomplete(renderers_by_model: dict[str, Any]) -> None:
    renderer = renderers_by_model[PYTHON]
    ids = encode(PYTHON, call_text(("city", "Ulm"), ("days", "3"), name="get_weather"))
    for end in range(1, len(ids)):
        [call] = renderer.parse_response(ids[:end]).tool_calls
        assert call.status is INCOMPLETE
        assert call.name in {"", "get_weather"}
        assert call.raw == renderer.decode(ids[:end])


def test_a_call_without_its_close_is_incomplete_before_the_next(parse: Parse) -> None:
    parsed = parse(call_text(("a", "x")).removesuffix("</tool_call>") + call_text(name="g"))
    assert [(call.name, call.status) for call in parsed.tool_calls] == [("f", INCOMPLETE), ("g", OK)]


@pytest.mark.parametrize("piece", ["<parameter=a>", "</parameter>\n<parameter=", "<parameter=a", "</parameter></function>\n", "<tool_call>\n<function=f>\n<parameter=a>", "['\\q"])  # fmt: skip
def test_time_is_linear(renderers_by_model: dict[str, Any], piece: str) -> None:
    ids = encode(PYTHON, "<tool_call>\n<function=f>\n<parameter=a>\n") + encode(PYTHON, piece) * 20_000
    end = encode(PYTHON, "</parameter>\n</function>\n</tool_call><|im_end|>")
    check_parse_never_raises(renderers_by_model[PYTHON], [*ids, *end])


def test_markers_may_be_plain_text() -> None:
    """As the parser named `qwen3_coder` takes them from a tokenizer without these tokens."""
    adapter = adapt(load_tokenizer("openai/gpt-oss-20b"))
    text = "Look.\n\n" + call_text(("a", "quotes </tool_call>"), ("l", "['x', None]"))
    for end in range(0, len(text), 7):
        stream = named_grammar("qwen3_coder").bind(adapter).stream()
        stream.feed(adapter.encode_ordinary(text[:end]))
        stream.feed(adapter.encode_ordinary(text[end:]))
        parsed = stream.finish(stopped=True)
        assert [call.arguments for call in parsed.tool_calls] == [{"a": "quotes </tool_call>", "l": ["x", None]}]
        assert parsed.content == "Look."


FRAGMENTS = (
    "<tool_call>", "</tool_call>", "\n<function=f>\n", "</function>", "\n", "<parameter=text>\n", "<parameter=count>",
    "\n</parameter>\n", "</parameter>", "x", "5", " ", "<think>", "</think>", "<parameter=", "<function", "<|im_end|>",
)  # fmt: skip


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=24))
def test_any_order_of_tags(renderers_by_model: dict[str, Any], fragments: list[str]) -> None:
    renderer = renderers_by_model[JSON]
    ids = encode(JSON, "x</think>" + "".join(fragments))
    parsed = check_stream_equals_batch(renderer, ids, range(0, len(ids), 2), tools=TOOLS)
    check_parse_never_raises(renderer, ids, tools=TOOLS)
    for call in parsed.tool_calls:
        assert call.raw in renderer.decode(ids)
        assert (call.status is OK) == (call.arguments is not None)
        assert call.status is not OK or call.raw.endswith("</tool_call>")
