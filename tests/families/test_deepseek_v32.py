"""DeepSeek V3.2: the kit, the recorded vectors, the public cases, and what is this format's own."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from dsml_support import (
    ASSISTANT,
    BEGIN,
    END,
    QUESTION,
    THINKING,
    TOOL,
    USER,
    V4,
    V32,
    answer,
    bridged,
    call,
    calling,
    check_vectors,
    kit_reference,
    make,
    parts_of,
    result,
    sampled_text,
    text_of,
)
from hypothesis import settings
from public_cases import cases, check_case

from families.deepseek_v32 import DeepSeekV32Config
from golden.profiles import PROFILES
from golden.reference import encode, load_tokenizer
from renderers import (
    ConfigError,
    DamageError,
    DamageWarning,
    MessageError,
    TokenizerError,
    UnsupportedMessageError,
    create_renderer,
)
from renderers.testing.suite import check_renderer

CALLS = (
    '\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name="f">\n<｜DSML｜parameter name="x" string="false">1</｜DSML｜parameter>\n'
    "</｜DSML｜invoke>\n</｜DSML｜function_calls>"
)
TWO_CALLS = '\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name="f">\n\n</｜DSML｜invoke>\n<｜DSML｜invoke name="f">\n\n</｜DSML｜invoke>\n</｜DSML｜function_calls>'
ONE = call("call_0", {"x": 1})


# The common properties --------------------------------------------------------------------------------------------------


def test_kit() -> None:
    check_renderer(
        make(V32),
        profile=PROFILES[V32],
        reference=kit_reference(V32),
        examples=settings().max_examples,
        report=lambda _: None,
    )


def test_vectors() -> None:
    check_vectors("deepseek-v3.2", V32)


@pytest.mark.parametrize("case", cases(["deepseek-v3.2"]), ids=lambda case: case["id"])
def test_public_case(case: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        check_case(case)


# Resolution and settings ------------------------------------------------------------------------------------------------


def test_resolution_by_model_id() -> None:
    assert make(V32).config == DeepSeekV32Config(revision="v3.2")


def test_missing_special_tokens_are_named() -> None:
    with pytest.raises(TokenizerError, match="｜DSML｜"):
        create_renderer(load_tokenizer("deepseek-ai/DeepSeek-V3.1"), DeepSeekV32Config())


@pytest.mark.parametrize(
    "contradiction",
    [
        {"drop_thinking": True, "thinking_retention": "all"},
        {"drop_thinking": False, "thinking_retention": "tool_cycle"},
        {"thinking_mode": "none"},
        {"reasoning_effort": "max"},
    ],
)
def test_contradictory_settings(contradiction: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        DeepSeekV32Config.create(contradiction)


# What the encoder writes ------------------------------------------------------------------------------------------------


def test_chat_and_thinking() -> None:
    chat = f"{BEGIN}{USER}q{ASSISTANT}</think>"
    assert text_of(make(V32), [QUESTION], add_generation_prompt=True) == chat
    thinking = f"{BEGIN}{USER}q{ASSISTANT}<think>"
    assert text_of(make(V32, THINKING), [QUESTION], add_generation_prompt=True) == thinking


def test_without_a_generation_prompt_the_opener_is_left_out() -> None:
    """The encoder has no such switch: it always opens the turn. This is our own choice."""
    assert text_of(make(V32), [QUESTION]) == f"{BEGIN}{USER}q"
    cycle = [QUESTION, calling(ONE), result("r")]
    assert text_of(make(V32), cycle).endswith("<result>r</result>\n</function_results>")


@pytest.mark.parametrize("last", [answer("a"), {"role": "system", "content": "s"}])
def test_where_the_encoder_opens_no_turn_there_is_no_generation_prompt(last: dict[str, Any]) -> None:
    messages = [QUESTION, answer("b"), last]
    assert text_of(make(V32), messages, add_generation_prompt=True) == text_of(make(V32), messages)


def test_a_tool_cycle_in_thinking_mode() -> None:
    messages = [QUESTION, calling(ONE, reasoning_content="r"), result("18 C"), answer("a", "s")]
    expected = (
        f"{BEGIN}{USER}q{ASSISTANT}<think>r</think>{CALLS}{END}\n\n<function_results>\n<result>18 C</result>\n"
        f"</function_results>\n\n<think>s</think>a{END}"
    )
    assert text_of(make(V32, THINKING), messages) == expected


def test_a_new_question_drops_reasoning_and_closes_what_was_opened() -> None:
    messages = [QUESTION, calling(ONE, reasoning_content="r"), result("18 C"), answer("a", "s"), QUESTION]
    expected = (
        f"{BEGIN}{USER}q{ASSISTANT}</think>{CALLS}{END}\n\n<function_results>\n<result>18 C</result>\n"
        f"</function_results>\n\n</think>a{END}{USER}q{ASSISTANT}<think>"
    )
    for switches in (THINKING, {**THINKING, "drop_thinking": False}):
        assert text_of(make(V32, switches), messages, add_generation_prompt=True) == expected


def test_messages_that_no_reply_follows_open_a_turn_all_the_same() -> None:
    later = [QUESTION, {"role": "system", "content": "s"}, answer("a", "r")]
    assert text_of(make(V32, THINKING), later) == f"{BEGIN}{USER}q{ASSISTANT}<think>sr</think>a{END}"
    twice = [QUESTION, QUESTION]
    assert text_of(make(V32, THINKING), twice) == f"{BEGIN}{USER}q{ASSISTANT}</think>{USER}q"


def test_message_indices() -> None:
    """The assistant's header is the assistant's own, although the encoder writes it behind the message before."""
    messages = [{"role": "system", "content": "s"}, QUESTION, calling(ONE), result("r"), answer("a")]
    parts = parts_of(make(V32), messages, tools=[TOOL])
    assert [index for index, _ in parts] == [-1, 0, -1, 1, 2, 3, 4]
    assert parts[1:2] + parts[3:] == [
        (0, "s"),
        (1, f"{USER}q"),
        (2, f"{ASSISTANT}</think>{CALLS}{END}"),
        (3, "\n\n<function_results>\n<result>r</result>\n</function_results>\n\n"),  # its last token takes these in
        (4, f"</think>a{END}"),
    ]


def test_developer_messages_are_users() -> None:
    messages = [{"role": "developer", "content": "d"}]
    assert text_of(make(V32), messages) == f"{BEGIN}{USER}\n\n# The user's message is: d"
    assert text_of(make(V32), [*messages, QUESTION]) == (
        f"{BEGIN}{USER}\n\n# The user's message is: d{ASSISTANT}</think>{USER}q"
    )


def test_arguments_come_as_text_or_object() -> None:
    as_text, as_object = calling(call("a", '{"x": 1}')), calling(call("a", {"x": 1}))
    assert text_of(make(V32), [QUESTION, as_text]) == text_of(make(V32), [QUESTION, as_object])


def test_typed_parameters() -> None:
    arguments = '{"s": "5", "n": 1e22, "big": 123456789012345678901234567890, "o": {"k": [null, "é"]}, "t": "a\\nb"}'
    rendered = text_of(make(V32), [QUESTION, calling(call("a", arguments))])
    for name, is_string, value in (
        ("s", "true", "5"),
        ("n", "false", "1e+22"),
        ("big", "false", "123456789012345678901234567890"),
        ("o", "false", '{"k": [null, "é"]}'),
        ("t", "true", "a\nb"),
    ):
        assert f'<｜DSML｜parameter name="{name}" string="{is_string}">{value}</｜DSML｜parameter>\n' in rendered


# What the encoder refuses and damages -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("messages", "index"),
    [
        ([result("r")], 0),
        ([result("r"), QUESTION, calling(ONE)], 0),  # the vendor's encoder reads past the start of the list here
        ([QUESTION, result("r")], 1),
        ([QUESTION, answer("a", "r"), result("r")], 2),
        ([QUESTION, calling(ONE), result("r"), result("r")], 3),
        ([QUESTION, calling(ONE), QUESTION, result("r")], 3),
        ([QUESTION, answer("a")], 1),
        ([QUESTION, answer("a", "")], 1),
        ([{"role": "developer", "content": ""}], 0),
        ([{"role": "developer"}], 0),
        ([{"role": "developer", "content": "d"}, QUESTION], 0),
    ],
)
def test_refused_messages(messages: list[dict[str, Any]], index: int) -> None:
    with pytest.raises(UnsupportedMessageError) as caught:
        make(V32, THINKING).render(messages)
    assert caught.value.message_index == index


def test_developer_messages_before_a_question_need_drop_thinking_off() -> None:
    messages = [{"role": "developer", "content": "d"}, QUESTION]
    for switches in ({}, {**THINKING, "drop_thinking": False}):
        assert "d" in text_of(make(V32, switches), messages)
    assert "d" in text_of(make(V32, THINKING, thinking_retention="all"), messages)


@pytest.mark.parametrize("arguments", ["", "not JSON", "[1]", "null", '{"x": 1'])
def test_arguments_that_are_no_object(arguments: str) -> None:
    with pytest.raises(MessageError, match="arguments"):
        make(V32).render([QUESTION, calling(call("a", arguments))])


@pytest.mark.parametrize(
    ("messages", "kind", "index"),
    [
        ([{"role": "user", "content": None}], "printed_none", 0),
        ([QUESTION, calling(ONE), {"role": "tool"}], "printed_none", 2),
        ([QUESTION, calling(ONE, ONE), result("r"), QUESTION], "unanswered_calls", 2),
    ],
)
def test_damage(messages: list[dict[str, Any]], kind: str, index: int) -> None:
    with pytest.warns(DamageWarning, match=rf"messages\[{index}\]: .*{kind}"):
        damages = make(V32).render(messages).warnings
    assert [(damage.kind, damage.message_indices) for damage in damages] == [(kind, (index,))]
    with pytest.raises(DamageError, match=kind):
        make(V32, on_damage="raise").render(messages)


def test_unanswered_calls_open_no_turn() -> None:
    messages = [QUESTION, calling(ONE, ONE), result("r")]
    assert text_of(make(V32), messages, add_generation_prompt=True).endswith("<function_results>\n<result>r</result>")


# What the model samples -------------------------------------------------------------------------------------------------


def test_sampled_part() -> None:
    answered = [QUESTION, answer("a", "r")]
    assert sampled_text(make(V32), answered) == f"a{END}"
    assert sampled_text(make(V32, THINKING), answered) == f"r</think>a{END}"
    assert sampled_text(make(V32, THINKING), [*answered, QUESTION]) == f"a{END}"
    cycle = [QUESTION, calling(ONE), result("r"), answer("a", "s")]
    assert sampled_text(make(V32, THINKING), cycle) == f"</think>{CALLS}{END}s</think>a{END}"


def test_prefill() -> None:
    prefill = [QUESTION, answer("It is", "r")]
    thinking = make(V32, THINKING)
    rendered = thinking.render(prefill, continue_final_message=True)
    assert thinking.decode(rendered.token_ids).endswith(f"{ASSISTANT}<think>r</think>It is")
    assert thinking.decode(
        thinking.render([QUESTION, answer("", "r")], continue_final_message=True).token_ids
    ).endswith(f"{ASSISTANT}<think>r")
    parsed = thinking.parse_response(encode(V32, f" so.{END}"), prompt_ids=rendered)
    assert (parsed.reasoning_content, parsed.content) == (None, " so.")


# Retention --------------------------------------------------------------------------------------------------------------

TURNS = [QUESTION, calling(ONE, reasoning_content="r"), result("x"), answer("a", "s"), QUESTION]


def test_all_keeps_reasoning_in_the_form_that_was_sampled() -> None:
    expected = (
        f"{BEGIN}{USER}q{ASSISTANT}<think>r</think>{CALLS}{END}\n\n<function_results>\n<result>x</result>\n"
        f"</function_results>\n\n<think>s</think>a{END}{USER}q"
    )
    assert text_of(make(V32, THINKING, thinking_retention="all"), TURNS) == expected


def test_tool_cycle_is_the_encoders_own_rule() -> None:
    assert text_of(make(V32, THINKING, thinking_retention="tool_cycle"), TURNS) == text_of(make(V32, THINKING), TURNS)


def test_policies_in_chat_mode_keep_reasoning_that_was_given() -> None:
    renderer = make(V32, thinking_retention="all")
    assert text_of(renderer, [QUESTION, answer("a", "r"), QUESTION, answer("b")]) == (
        f"{BEGIN}{USER}q{ASSISTANT}<think>r</think>a{END}{USER}q{ASSISTANT}</think>b{END}"
    )
    assert sampled_text(renderer, [QUESTION, answer("a", "r")]) == f"<think>r</think>a{END}"


# Bridges ----------------------------------------------------------------------------------------------------------------

OPENED = "\n\n<function_results>\n<result>x</result>\n</function_results>\n\n"


@pytest.mark.parametrize("model", [V32, V4])
def test_a_closed_prompt_is_refused(model: str) -> None:
    renderer = make(model)
    prompt = renderer.render([QUESTION, answer("a")])
    assert renderer.bridge(prompt, encode(model, f"b{END}"), [QUESTION]).reason == "unknown_history"


def test_bridge_over_a_tool_cycle() -> None:
    thinking = make(V32, THINKING)
    assert bridged(thinking, V32, [QUESTION], f"r</think>{CALLS}{END}", [result("x")]) == f"{OPENED}<think>"
    assert bridged(make(V32), V32, [QUESTION], f"{CALLS}{END}", [result("x")]) == f"{OPENED}</think>"


def test_bridge_after_results_goes_on() -> None:
    thinking = make(V32, THINKING)
    first = thinking.bridge(
        thinking.render([QUESTION], add_generation_prompt=True), encode(V32, f"r</think>{CALLS}{END}"), [result("x")]
    )
    for prompt in (first, first.token_ids):
        second = thinking.bridge(prompt, encode(V32, f"s</think>{CALLS}{END}"), [result("y")])
        assert thinking.decode(second.extension_ids) == OPENED.replace("x", "y") + "<think>"
        parsed = thinking.parse_response(encode(V32, f"t</think>a{END}"), prompt_ids=second)
        assert (parsed.reasoning_content, parsed.content) == ("t", "a")


def test_declared_exception_empty_think_block() -> None:
    """After a new question the encoder writes `</think>` for `<think></think>`; the bridge keeps what the model saw."""
    thinking = make(V32, THINKING)
    cycle = [QUESTION, calling(ONE), result("x")]
    completion = f"</think>{CALLS}{END}"
    assert bridged(thinking, V32, cycle, completion, [QUESTION]) == f"{USER}q{ASSISTANT}<think>"
    full = text_of(thinking, [*cycle, calling(ONE), QUESTION], add_generation_prompt=True)
    prompt = text_of(thinking, cycle, add_generation_prompt=True)
    assert full == f"{prompt}{completion}{USER}q{ASSISTANT}<think>".replace("<think></think>", "</think>")


@pytest.mark.parametrize(
    ("prior", "completion", "new", "reason"),
    [
        ([QUESTION], f"r</think>a{END}", [QUESTION], "retention"),
        ([QUESTION], f"\n</think>a{END}", [QUESTION], "retention"),
        ([QUESTION], f"r</think>a{END}", [{"role": "developer", "content": "d"}], "retention"),
        ([{"role": "developer", "content": "d"}], f"</think>{CALLS}{END}", [QUESTION], "history_rewrite"),
        ([QUESTION, {"role": "system", "content": "s"}], f"</think>{CALLS}{END}", [QUESTION], "history_rewrite"),
        ([QUESTION], f"r</think>a{END}", [result("x")], "unsupported_message"),
        ([QUESTION], f"r</think>{CALLS}{END}", [result("x"), result("y")], "unsupported_message"),
        ([QUESTION], "r", [QUESTION], "open_reasoning"),
        ([QUESTION], f"r</think>{CALLS[:-30]}", [result("x")], "open_tool_call"),
        ([QUESTION], f"r</think>a{END}b", [QUESTION], "tokens_after_close"),
    ],
)
def test_refusals(prior: list[Any], completion: str, new: list[Any], reason: str) -> None:
    assert bridged(make(V32, THINKING), V32, prior, completion, new) == reason


def test_ids_do_not_tell_whether_a_developer_wrote() -> None:
    """A question after empty reasoning rewrites nothing, or a developer's message: from IDs alone nobody knows."""
    thinking = make(V32, THINKING)
    prompt = thinking.render([QUESTION], add_generation_prompt=True)
    completion = encode(V32, f"</think>{CALLS}{END}")
    assert hasattr(thinking.bridge(prompt, completion, [QUESTION]), "token_ids")
    assert thinking.bridge(prompt.token_ids, completion, [QUESTION]).reason == "unknown_history"
    assert hasattr(thinking.bridge(prompt.token_ids, completion, [result("x")]), "token_ids")


def test_a_malformed_call_waits_for_no_result() -> None:
    """`to_message` leaves it out, so the results close when each well-formed call has one."""
    broken = CALLS.replace(
        "\n</｜DSML｜function_calls>", '\n<｜DSML｜invoke name="f">\nprose\n</｜DSML｜function_calls>'
    )
    assert bridged(make(V32), V32, [QUESTION], f"{broken}{END}", [result("x")]) == f"{OPENED}</think>"


def test_bridge_of_some_results() -> None:
    with pytest.warns(DamageWarning, match="unanswered_calls"):
        tail = bridged(make(V32), V32, [QUESTION], f"{TWO_CALLS}{END}", [result("x")])
    assert tail == "\n\n<function_results>\n<result>x</result>"
    both = bridged(make(V32), V32, [QUESTION], f"{TWO_CALLS}{END}", [result("x"), result("y")])
    assert both == f"{OPENED}</think>".replace("</result>", "</result>\n<result>y</result>")


# Parsing ----------------------------------------------------------------------------------------------------------------


def test_without_a_prompt_the_configs_own_is_assumed() -> None:
    ids = encode(V32, f"r</think>a{END}")
    parsed = make(V32, THINKING).parse_response(ids)
    assert (parsed.reasoning_content, parsed.content, parsed.reasoning_complete) == ("r", "a", True)
    assert make(V32).parse_response(encode(V32, f"a{END}")).content == "a"


def test_calls_out_of_unclosed_reasoning() -> None:
    parsed = make(V32, THINKING).parse_response(encode(V32, f"r{CALLS}{END}"))
    assert (parsed.reasoning_content, parsed.reasoning_complete) == ("r", False)
    assert [call.arguments for call in parsed.valid_tool_calls] == [{"x": 1}]
    closed = make(V32, THINKING).parse_response(encode(V32, f"r{CALLS}</think>a{END}"))
    assert (closed.reasoning_content, closed.content, closed.tool_calls) == (f"r{CALLS}", "a", [])
