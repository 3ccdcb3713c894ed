"""DSML blocks: typed, quoting their own tags, malformed, cut, neighbours of each other."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from golden.reference import encode
from renderers import CallStatus, ParsedResponse, create_renderer
from renderers.testing.checks import check_parse_never_raises, check_stream_equals_batch, joined_deltas

pytestmark = pytest.mark.needs_assets

OK, INCOMPLETE, MALFORMED = CallStatus.OK, CallStatus.INCOMPLETE, CallStatus.MALFORMED
MODEL = "deepseek-ai/DeepSeek-V4-Flash"
END = "<｜end▁of▁sentence｜>"
OPEN, CLOSE = "<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"
INVOKE_END, PARAMETER_END = "</｜DSML｜invoke>", "</｜DSML｜parameter>"
Parse = Callable[..., ParsedResponse]


def parameter(name: str, value: str, *, string: bool = True) -> str:
    return f'<｜DSML｜parameter name="{name}" string="{str(string).lower()}">{value}{PARAMETER_END}'


def invoke(name: str, *parameters: str) -> str:
    return f'<｜DSML｜invoke name="{name}">\n' + "\n".join(parameters) + f"\n{INVOKE_END}"


def block(*calls: str) -> str:
    return f"\n\n{OPEN}\n" + "\n".join(calls) + f"\n{CLOSE}"


@pytest.fixture(scope="module")
def renderer(official_tokenizer: Callable[[str], Any]) -> Any:
    return create_renderer(official_tokenizer(MODEL))


@pytest.fixture(scope="module")
def parse(renderer: Any) -> Parse:
    """Parses what follows closed reasoning: whole, and token by token."""
    prompt = encode(MODEL, "<｜Assistant｜></think>")

    def parse_text(text: str, stop: str = END, **given: Any) -> ParsedResponse:
        ids = encode(MODEL, text + stop)
        parsed = check_parse_never_raises(renderer, ids, prompt_ids=prompt, **given)
        if not given:
            check_stream_equals_batch(renderer, ids, range(len(ids)), prompt_ids=prompt)
        return parsed

    return parse_text


def outcomes(parsed: ParsedResponse) -> list[tuple[str, str, Any]]:
    return [(call.status.value, call.name, call.arguments) for call in parsed.tool_calls]


@pytest.mark.parametrize(
    "value",
    [
        "",
        "Ulm",
        "  a &amp; b\n\n",
        "\n\nline\n",
        "5",
        "true",
        '{"a": 1}',
        "<b>x</b> & <tag/>",
        "</parameter>",
        "</|DSML|parameter>",
        f"quotes {PARAMETER_END} in prose",
        f"ends in {PARAMETER_END} ",
        f"{INVOKE_END}\n{CLOSE}",
        f"a whole block: {OPEN}\n{invoke('g', parameter('k', 'v'), parameter('l', '1', string=False))}\n{CLOSE} and more",
        block(invoke("g", parameter("k", "v"))),
        invoke("g"),
        "<think>no thought</think>",
        "｜DSML｜",
        "echo 2>&1",
        "<",
        "</",
        "今天 🙂 cafe\u0301",
    ],
)
def test_strings_keep_their_bytes(parse: Parse, value: str) -> None:
    parsed = parse(block(invoke("f", parameter("a", value), parameter("b", value))))
    assert outcomes(parsed) == [("ok", "f", {"a": value, "b": value})]
    assert parsed.content == ""


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-0.5", -0.5),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        ("true", True),
        ("null", None),
        ('"text"', "text"),
        ("[1, [2]]", [1, [2]]),
        (' \n{"k": "</x>"}\n', {"k": "</x>"}),
        (f'"{PARAMETER_END} quoted"', f"{PARAMETER_END} quoted"),
    ],
)
def test_other_values_are_json(parse: Parse, text: str, value: Any) -> None:
    assert outcomes(parse(block(invoke("f", parameter("x", text, string=False))))) == [("ok", "f", {"x": value})]


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("True", "invalid_arguments"),
        ("None", "invalid_arguments"),
        ("Ulm", "invalid_arguments"),
        ("", "invalid_arguments"),
        ("[1,", "invalid_arguments"),
        ("{'a': 1}", "invalid_arguments"),
        ("NaN", "non_finite_number"),
        ("[1e999]", "non_finite_number"),
        ('{"a": 1, "a": 2}', "duplicate_key"),
    ],
)
def test_what_is_no_json_is_reported(parse: Parse, text: str, status: str) -> None:
    good = invoke("g", parameter("x", "1", string=False))
    bad = invoke("f", parameter("x", text, string=False))
    parsed = parse(block(good, bad, good))
    assert outcomes(parsed) == [("ok", "g", {"x": 1}), (status, "f", None), ("ok", "g", {"x": 1})]
    assert parsed.tool_calls[1].raw == bad


def test_parameters_of_one_name_are_reported(parse: Parse) -> None:
    parsed = parse(block(invoke("f", parameter("x", "1"), parameter("x", "2"))))
    assert outcomes(parsed) == [("duplicate_key", "f", None)]


@pytest.mark.parametrize(
    "call",
    [
        '<｜DSML｜invoke name="f">\n\n</｜DSML｜invoke>',
        '<｜DSML｜invoke name="f">\n</｜DSML｜invoke>',
        '<｜DSML｜invoke name="f"></｜DSML｜invoke>',
        '<｜DSML｜invoke name="f"/>',
        '<｜DSML｜invoke  name="f" >\n\n</｜DSML｜invoke>',
    ],
)
def test_calls_without_arguments(parse: Parse, call: str) -> None:
    assert outcomes(parse(block(call, call))) == [("ok", "f", {}), ("ok", "f", {})]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("<｜DSML｜invoke>\n</｜DSML｜invoke>", ""),
        ('<｜DSML｜invoke name=f">\n</｜DSML｜invoke>', ""),
        ('<｜DSML｜invoke name="f">\nprose\n</｜DSML｜invoke>', "f"),
        ('<｜DSML｜invoke name="f">\n{"x": 1}\n</｜DSML｜invoke>', "f"),
        (f'<｜DSML｜invoke name="f">\n<｜DSML｜parameter name="x">1{PARAMETER_END}\n</｜DSML｜invoke>', "f"),
        (
            f'<｜DSML｜invoke name="f">\n<｜DSML｜parameter name="x" string="no">1{PARAMETER_END}\n</｜DSML｜invoke>',
            "f",
        ),
        ('<｜DSML｜invoke name="f">\n<｜DSML｜parameter name="x" string="true">1\n</｜DSML｜invoke>', "f"),
        (f'<｜DSML｜invoke name="f">\n{parameter("x", "1")} prose\n</｜DSML｜invoke>', "f"),
        (f'<｜DSML｜invoke name="f">\n{parameter("x", "1")}', "f"),
        ('<｜DSML｜invoke name="f">', "f"),
    ],
)
def test_malformed_calls_do_not_spoil_their_neighbours(parse: Parse, call: str, name: str) -> None:
    good = invoke("g", parameter("x", "1"))
    parsed = parse(block(good, call, good))
    assert outcomes(parsed) == [("ok", "g", {"x": "1"}), ("malformed", name, None), ("ok", "g", {"x": "1"})]
    assert parsed.tool_calls[1].raw == call
    assert len(parsed.to_message()["tool_calls"]) == 2


def test_a_call_without_a_name_is_reported(parse: Parse) -> None:
    assert outcomes(parse(block(invoke("", parameter("x", "1"))))) == [("missing_name", "", None)]


@pytest.mark.parametrize("body", ["", "\n", "prose", "<｜DSML｜parameter>"])
def test_a_block_without_calls_is_one_malformed_call(parse: Parse, body: str) -> None:
    (call,) = parse(f"{OPEN}{body}{CLOSE}").tool_calls
    assert (call.status, call.raw) == (MALFORMED, f"{OPEN}{body}{CLOSE}")


@pytest.mark.parametrize("between", ["", "\n", "\n\n"])
def test_line_feeds_before_a_block_are_the_formats(parse: Parse, between: str) -> None:
    parsed = parse(f"text{between}{block(invoke('f')).lstrip()}")
    assert (parsed.content, outcomes(parsed)) == ("text", [("ok", "f", {})])


def test_more_line_feeds_are_text(parse: Parse) -> None:
    assert parse(f"text\n{block(invoke('f'))}").content == "text\n"


@pytest.mark.parametrize(
    "text",
    [
        "<｜DSML｜tool_calls",
        "<｜DSML｜toolcalls>",
        "<｜DSML｜function_calls>",
        "<|DSML|tool_calls>",
        'bare <｜DSML｜invoke name="f">\n\n</｜DSML｜invoke>',
        "</｜DSML｜tool_call>",
        "｜DSML｜",
    ],
)
def test_what_only_resembles_a_block_is_text(parse: Parse, text: str) -> None:
    parsed = parse(text)
    assert (parsed.content, parsed.tool_calls) == (text, [])


def test_markers_spelled_in_ordinary_tokens_are_text(renderer: Any) -> None:
    text = block(invoke("f", parameter("x", "1")))
    ids = renderer.tokenizer.encode_ordinary(text)
    parsed = renderer.parse_response(ids, prompt_ids=encode(MODEL, "<｜Assistant｜></think>"), stopped=True)
    assert (parsed.content, parsed.tool_calls) == (text, [])


def test_a_cut_block_yields_no_last_call(renderer: Any) -> None:
    """Cut anywhere, nothing is executable that the whole reply does not hold, and a block that was cut has a fault."""
    whole = encode(MODEL, "text" + block(invoke("f", parameter("x", "1")), invoke("g", parameter("y", "a</｜DSML｜"))))
    prompt = encode(MODEL, "<｜Assistant｜></think>")
    end = renderer.parse_response(whole, prompt_ids=prompt)
    for size in range(len(whole)):
        parsed = check_stream_equals_batch(renderer, whole[:size], range(size), prompt_ids=prompt)
        text = renderer.decode(whole[:size])
        if OPEN in text and CLOSE not in text:
            assert parsed.valid_tool_calls in (end.tool_calls[:1], [])
            assert parsed.tool_calls[-1].status is INCOMPLETE
    assert [call.status for call in end.tool_calls] == [OK, OK]


def test_a_value_that_is_not_closed_swallows_nothing(parse: Parse) -> None:
    """The model stops: then the markers inside the open value count, and the block that follows is read."""
    unclosed = '<｜DSML｜invoke name="f">\n<｜DSML｜parameter name="x" string="true">open'
    parsed = parse(f"{OPEN}\n{unclosed}\n{CLOSE}{block(invoke('g', parameter('y', '1')))}")
    assert outcomes(parsed) == [("malformed", "f", None), ("ok", "g", {"y": "1"})]


def test_deltas_come_with_the_end_of_the_block(renderer: Any) -> None:
    ids = encode(MODEL, "hi" + block(invoke("f", parameter("x", "1", string=False)), invoke("g")))
    stream = renderer.stream(prompt_ids=encode(MODEL, "<｜Assistant｜></think>"))
    deltas = [delta for token_id in ids for delta in stream.feed(token_id)]
    assert joined_deltas(deltas) == {
        "reasoning": "",
        "content": "hi",
        "calls": {
            0: {"name": "f", "id": "call_0", "arguments": '{"x": 1}'},
            1: {"name": "g", "id": "call_1", "arguments": "{}"},
        },
    }


@pytest.mark.parametrize(
    "body",
    [
        invoke("f", parameter("x", "1")) * 4000,
        '<｜DSML｜invoke name="f">\n<｜DSML｜parameter name="x" string="true">open\n' * 4000,
        '<｜DSML｜invoke name="f">' * 8000,
        f'<｜DSML｜invoke name="f">\n<｜DSML｜parameter name="x" string="true">{PARAMETER_END * 8000}',
        f'<｜DSML｜invoke name="f">\n<｜DSML｜parameter name="x" string="true">{CLOSE * 8000}',
        " \n" * 100_000,
    ],
    ids=["good", "open values", "open calls", "closing tags", "quoted blocks", "space"],
)
def test_time_is_linear(renderer: Any, body: str) -> None:
    ids = encode(MODEL, f"{OPEN}{body}{CLOSE}{END}")
    start = time.process_time()
    renderer.parse_response(ids, prompt_ids=encode(MODEL, "<｜Assistant｜></think>"))
    assert time.process_time() - start < 5
