"""DeepSeek V4: the kit, the recorded vectors, the public cases, and what is this format's own."""

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

from families.deepseek_v4 import ABSOLUTE_EFFORT, BEYOND_EFFORT, DeepSeekV4Config
from golden.profiles import PROFILES
from golden.reference import encode
from renderers import ConfigError, DamageError, DamageWarning, UnsupportedMessageError
from renderers.testing.suite import check_renderer

CALL = (
    '\n<｜DSML｜invoke name="f">\n<｜DSML｜parameter name="x" string="false">1</｜DSML｜parameter>\n</｜DSML｜invoke>'
)
CALLS = f"\n\n<｜DSML｜tool_calls>{CALL}\n</｜DSML｜tool_calls>"
TWO_CALLS = f"\n\n<｜DSML｜tool_calls>{CALL}{CALL}\n</｜DSML｜tool_calls>"
ONE = call("call_0", '{"x": 1}')
DEVELOPER = {"role": "developer", "content": "d"}


# The common properties --------------------------------------------------------------------------------------------------


def test_kit() -> None:
    check_renderer(
        make(V4),
        profile=PROFILES[V4],
        reference=kit_reference(V4),
        examples=settings().max_examples,
        report=lambda _: None,
    )


def test_vectors() -> None:
    check_vectors("deepseek-v4", V4)


@pytest.mark.parametrize("case", cases(["deepseek-v4"]), ids=lambda case: case["id"])
def test_public_case(case: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        check_case(case)


# Resolution and settings ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "revision"),
    [
        (V4, "v4"),
        ("deepseek-ai/DeepSeek-V4-Pro", "v4"),
        ("deepseek-ai/DeepSeek-V4-Flash-0731", "v4-0731"),
    ],
)
def test_resolution_by_model_id(model: str, revision: str) -> None:
    from golden.reference import load_tokenizer
    from renderers import create_renderer

    assert create_renderer(load_tokenizer(V4), model=model).config == DeepSeekV4Config(revision=revision)


@pytest.mark.parametrize(
    "contradiction",
    [
        {"drop_thinking": True, "thinking_retention": "all"},
        {"drop_thinking": False, "thinking_retention": "tool_cycle"},
        {"reasoning_effort": "low"},
        {"reasoning_effort": "medium", "revision": "v4-0731"},
    ],
)
def test_contradictory_settings(contradiction: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        DeepSeekV4Config.create(contradiction)


@pytest.mark.parametrize(
    ("revision", "effort", "text"),
    [
        ("v4", None, ""),
        ("v4", "high", ""),
        ("v4", "max", ABSOLUTE_EFFORT),
        ("v4-0731", None, ""),
        ("v4-0731", "low", ""),
        ("v4-0731", "high", ABSOLUTE_EFFORT),
        ("v4-0731", "max", BEYOND_EFFORT),
    ],
)
def test_reasoning_effort(revision: Any, effort: Any, text: str) -> None:
    from golden.reference import load_tokenizer
    from renderers import create_renderer

    config = DeepSeekV4Config(revision=revision, thinking_mode="thinking", reasoning_effort=effort)
    renderer = create_renderer(load_tokenizer(V4), config)
    parts = parts_of(renderer, [{"role": "system", "content": "s"}, QUESTION])
    assert parts == [(-1, BEGIN + text), (0, "s"), (1, f"{USER}q")]
    chat = config.model_copy(update={"thinking_mode": "chat"})
    assert text_of(create_renderer(load_tokenizer(V4), chat), [QUESTION]) == f"{BEGIN}{USER}q"


# What the encoder writes ------------------------------------------------------------------------------------------------


def test_without_a_generation_prompt_the_opener_is_left_out() -> None:
    """The encoder has no such switch: it always opens the turn. This is our own choice."""
    assert text_of(make(V4), [QUESTION], add_generation_prompt=True) == f"{BEGIN}{USER}q{ASSISTANT}</think>"
    assert text_of(make(V4), [QUESTION]) == f"{BEGIN}{USER}q"


@pytest.mark.parametrize("last", [answer("a"), {"role": "system", "content": "s"}])
def test_where_the_encoder_opens_no_turn_there_is_no_generation_prompt(last: dict[str, Any]) -> None:
    messages = [QUESTION, answer("b"), last]
    assert text_of(make(V4), messages, add_generation_prompt=True) == text_of(make(V4), messages)


def test_users_and_results_share_a_turn() -> None:
    messages = [QUESTION, QUESTION, calling(ONE), result("18 C"), QUESTION]
    assert parts_of(make(V4), messages) == [
        (-1, BEGIN),
        (0, f"{USER}q"),
        (1, "\n\nq"),
        (2, f"{ASSISTANT}</think>{CALLS}{END}"),
        (3, f"{USER}<tool_result>18 C</tool_result>\n\n"),  # its last token takes the separator in
        (4, "q"),
    ]


def test_text_parts_of_a_result_stand_apart() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    rendered = text_of(make(V4), [{"role": "user", "content": parts}, calling(ONE), result(parts)])
    assert f"{USER}a\nb{ASSISTANT}" in rendered
    assert rendered.endswith("<tool_result>a\n\nb</tool_result>")


def test_results_stand_in_the_order_of_their_calls() -> None:
    """Each result's tokens stay its message's own, wherever the encoder puts them."""
    cycle = [QUESTION, calling(call("a"), call("b"), call("c"))]
    results = [result("C", "c"), result("A", "a"), QUESTION, result("B", "b")]
    parts = parts_of(make(V4), [*cycle, *results])[3:]
    assert "".join(text for _, text in parts) == (
        f"{USER}<tool_result>A</tool_result>\n\n<tool_result>B</tool_result>\n\nq\n\n<tool_result>C</tool_result>"
    )
    assert [index for index, _ in parts] == [3, 5, 4, 2]
    tokens = make(V4).render([*cycle, *results])
    assert tokens.message_roles[2:] == ["tool", "tool", "user", "tool"]
    assert tokens.message_tool_names[2:] == ["f", "f", None, "f"]


def test_results_without_a_known_id_count_as_the_first_calls() -> None:
    cycle = [QUESTION, calling(call("a"), call("b"))]
    for odd in (result("?"), result("?", "z")):
        rendered = text_of(make(V4), [*cycle, result("B", "b"), odd])
        assert rendered.endswith("<tool_result>?</tool_result>\n\n<tool_result>B</tool_result>")


def test_order_of_calls_is_remembered() -> None:
    """The encoder goes by the last message with calls, answers in between aside."""
    messages = [QUESTION, calling(call("a"), call("b")), answer("wait"), result("B", "b"), result("A", "a")]
    assert text_of(make(V4), messages).endswith("<tool_result>A</tool_result>\n\n<tool_result>B</tool_result>")


def test_developer_messages_are_users_of_their_own() -> None:
    messages = [QUESTION, DEVELOPER, QUESTION, answer("a")]
    assert text_of(make(V4), messages) == f"{BEGIN}{USER}q{USER}d{USER}q{ASSISTANT}</think>a{END}"


def test_late_system_messages_are_bare_text() -> None:
    messages = [QUESTION, {"role": "system", "content": "s"}, answer("a", "r")]
    assert text_of(make(V4), messages) == f"{BEGIN}{USER}qsa{END}"
    assert text_of(make(V4, THINKING), messages) == f"{BEGIN}{USER}qsr</think>a{END}"


@pytest.mark.parametrize(
    ("switches", "tools", "kept"),
    [
        (THINKING, None, False),
        ({**THINKING, "drop_thinking": True}, None, False),
        ({**THINKING, "drop_thinking": False}, None, True),
        (THINKING, [TOOL], True),
        ({**THINKING, "drop_thinking": True}, [TOOL], True),
        ({}, [TOOL], False),
    ],
)
def test_old_reasoning(switches: dict[str, Any], tools: Any, kept: bool) -> None:
    messages = [QUESTION, answer("a", "r"), QUESTION]
    expected = f"{ASSISTANT}<think>r</think>a{END}" if kept else f"{ASSISTANT}</think>a{END}"
    assert expected in text_of(make(V4, switches), messages, tools=tools)


def test_without_tools_a_result_drops_reasoning_too() -> None:
    messages = [QUESTION, calling(ONE, reasoning_content="r"), result("x")]
    assert f"{ASSISTANT}</think>{CALLS}" in text_of(make(V4, THINKING), messages)
    assert f"{ASSISTANT}<think>r</think>{CALLS}" in text_of(make(V4, THINKING), messages, tools=[TOOL])


def test_arguments_as_an_object_are_dumped() -> None:
    as_text, as_object = calling(call("a", '{"x": 1}')), calling(call("a", {"x": 1}))
    assert text_of(make(V4), [QUESTION, as_text]) == text_of(make(V4), [QUESTION, as_object])


# What the encoder refuses and damages -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("messages", "index"),
    [
        ([{"role": "developer", "content": ""}], 0),
        ([QUESTION, {"role": "developer"}], 1),
        ([QUESTION, calling(call("a", "[1]"))], 1),
        ([QUESTION, calling(call("a", "null"))], 1),
    ],
)
def test_refused_messages(messages: list[dict[str, Any]], index: int) -> None:
    with pytest.raises(UnsupportedMessageError) as caught:
        make(V4, THINKING).render(messages)
    assert caught.value.message_index == index


@pytest.mark.parametrize(
    ("messages", "kind", "index"),
    [
        ([DEVELOPER, answer("a"), QUESTION], "dropped_message", 0),
        ([DEVELOPER, calling(ONE), result("x")], "dropped_message", 0),
        ([QUESTION, calling(call("a", "not JSON"))], "wrapped_arguments", 1),
        ([QUESTION, calling(call("a", ""))], "wrapped_arguments", 1),
    ],
)
def test_damage(messages: list[dict[str, Any]], kind: str, index: int) -> None:
    with pytest.warns(DamageWarning, match=rf"messages\[{index}\]: .*{kind}"):
        damages = make(V4, THINKING).render(messages).warnings
    assert [(damage.kind, damage.message_indices) for damage in damages] == [(kind, (index,))]
    with pytest.raises(DamageError, match=kind):
        make(V4, THINKING, on_damage="raise").render(messages)


def test_a_dropped_developer_message_opens_no_turn() -> None:
    messages = [DEVELOPER, answer("a"), QUESTION]
    assert text_of(make(V4, THINKING), messages) == f"{BEGIN}a{END}{USER}q"
    kept = f"{BEGIN}{USER}d{ASSISTANT}</think>a{END}{USER}q"
    assert text_of(make(V4), messages) == kept
    for renderer in (make(V4, {**THINKING, "drop_thinking": False}), make(V4, THINKING, thinking_retention="all")):
        assert text_of(renderer, messages) == kept.replace("</think>", "<think></think>")


def test_wrapped_arguments() -> None:
    rendered = text_of(make(V4), [QUESTION, calling(call("a", '{"x": 1'))])
    assert '<｜DSML｜parameter name="arguments" string="true">{"x": 1</｜DSML｜parameter>' in rendered


# What the model samples, and retention ----------------------------------------------------------------------------------


def test_sampled_part() -> None:
    answered = [QUESTION, answer("a", "r")]
    assert sampled_text(make(V4), answered) == f"a{END}"
    assert sampled_text(make(V4, THINKING), answered) == f"r</think>a{END}"
    assert sampled_text(make(V4, THINKING), [*answered, QUESTION]) == f"a{END}"
    assert sampled_text(make(V4, THINKING), [QUESTION, answer("a")]) == f"</think>a{END}"


TURNS = [QUESTION, calling(ONE, reasoning_content="r"), result("x"), answer("a", "s"), QUESTION, answer("b", "t")]


@pytest.mark.parametrize("tools", [None, [TOOL]])
def test_tool_cycle_keeps_what_follows_the_last_question(tools: Any) -> None:
    """With tools the encoder keeps more, without tools it drops at each result: this policy does neither."""
    renderer = make(V4, THINKING, thinking_retention="tool_cycle")
    assert text_of(renderer, TURNS, tools=tools).count("<think>") - bool(tools) * 2 == 1
    cycle = text_of(renderer, TURNS[:4], tools=tools)
    assert f"{ASSISTANT}<think>r</think>{CALLS}" in cycle
    assert f"{ASSISTANT}<think>s</think>a" in cycle


def test_all_keeps_everything() -> None:
    rendered = text_of(make(V4, THINKING, thinking_retention="all"), TURNS)
    assert [f"<think>{reasoning}</think>" in rendered for reasoning in "rst"] == [True] * 3


# Bridges ----------------------------------------------------------------------------------------------------------------


def test_bridge_over_a_tool_cycle() -> None:
    thinking = make(V4, THINKING)
    tail = f"{USER}<tool_result>x</tool_result>{ASSISTANT}"
    assert bridged(thinking, V4, [QUESTION], f"r</think>{CALLS}{END}", [result("x")], tools=[TOOL]) == f"{tail}<think>"
    assert bridged(make(V4), V4, [QUESTION], f"{CALLS}{END}", [result("x")]) == f"{tail}</think>"


def test_bridge_from_ids_sees_that_there_are_tools() -> None:
    """With tools nothing is dropped, without tools a result drops reasoning. The IDs show which it is."""
    thinking, completion = make(V4, THINKING), encode(V4, f"r</think>{CALLS}{END}")
    with_tools = thinking.render([QUESTION], tools=[TOOL], add_generation_prompt=True).token_ids
    for new in ([result("x")], [QUESTION]):
        assert hasattr(thinking.bridge(with_tools, completion, new), "token_ids")
    without = thinking.render([QUESTION], add_generation_prompt=True).token_ids
    assert thinking.bridge(without, completion, [result("x")]).reason == "retention"
    assert thinking.bridge(without, encode(V4, f"</think>{CALLS}{END}"), [result("x")]).reason == "unknown_history"


def test_declared_exception_empty_think_block() -> None:
    """After a new question the encoder writes `</think>` for `<think></think>`; the bridge keeps what the model saw."""
    thinking = make(V4, THINKING)
    assert bridged(thinking, V4, [QUESTION], f"</think>a{END}", [QUESTION]) == f"{USER}q{ASSISTANT}<think>"
    full = text_of(thinking, [QUESTION, answer("a"), QUESTION], add_generation_prompt=True)
    assert full == f"{BEGIN}{USER}q{ASSISTANT}</think>a{END}{USER}q{ASSISTANT}<think>"


@pytest.mark.parametrize(
    ("ids", "contents"),
    [
        (["call_1", "call_0"], ["y", "x"]),  # the parsed reply's own
        ([None, None], ["x", "y"]),
        (["toolu_b", "toolu_a"], ["x", "y"]),  # the harness's: it is taken to answer in order
        (["call_5", "call_6"], ["x", "y"]),
    ],
)
def test_bridge_of_parallel_results(ids: list[str | None], contents: list[str]) -> None:
    tail = bridged(
        make(V4), V4, [QUESTION], f"{TWO_CALLS}{END}", [result("x", ids[0]), result("y", ids[1])], tools=[TOOL]
    )
    first, second = contents
    results = f"<tool_result>{first}</tool_result>\n\n<tool_result>{second}</tool_result>"
    assert tail == f"{USER}{results}{ASSISTANT}</think>"


def test_results_of_one_call_stand_as_they_come() -> None:
    new = [result("x", "call_6"), result("y", "call_5")]
    tail = f"{USER}<tool_result>x</tool_result>\n\n<tool_result>y</tool_result>{ASSISTANT}</think>"
    assert bridged(make(V4), V4, [QUESTION], f"{CALLS}{END}", new) == tail


@pytest.mark.parametrize(
    "ids", [["call_6", "call_5"], ["call_1", None], ["a:1", "b:0"], ["call_0", "call_1", "call_9"]]
)
def test_results_whose_order_nobody_knows_are_refused(ids: list[str | None]) -> None:
    new = [result("x", call_id) for call_id in ids]
    assert bridged(make(V4), V4, [QUESTION], f"{TWO_CALLS}{END}", new) == "unsupported_message"


@pytest.mark.parametrize(
    ("prior", "completion", "new", "reason"),
    [
        ([QUESTION], f"r</think>a{END}", [QUESTION], "retention"),
        ([QUESTION], f" </think>a{END}", [QUESTION], "retention"),
        ([QUESTION], f"r</think>{CALLS}{END}", [result("x")], "retention"),
        ([QUESTION], f"r</think>a{END}", [DEVELOPER], "retention"),
        ([DEVELOPER], f"</think>a{END}", [QUESTION], "history_rewrite"),
        ([answer("a"), QUESTION], f"</think>a{END}", [DEVELOPER, {"role": "developer"}], "unsupported_message"),
        ([QUESTION, {"role": "system", "content": "s"}], f"a{END}", [QUESTION], "unknown_history"),
        ([QUESTION], "r", [QUESTION], "open_reasoning"),
        ([QUESTION], f"r</think>{CALLS[:-30]}", [result("x")], "open_tool_call"),
        ([QUESTION], f"r</think>a{END}b", [QUESTION], "tokens_after_close"),
    ],
)
def test_refusals(prior: list[Any], completion: str, new: list[Any], reason: str) -> None:
    assert bridged(make(V4, THINKING), V4, prior, completion, new) == reason


def test_changed_tools_are_refused() -> None:
    renderer = make(V4)
    prompt = renderer.render([QUESTION], tools=[TOOL], add_generation_prompt=True)
    for previous in (prompt, prompt.token_ids):
        assert renderer.bridge(previous, encode(V4, f"a{END}"), [QUESTION], tools=[]).reason == "history_rewrite"


# Parsing ----------------------------------------------------------------------------------------------------------------


def test_without_a_prompt_the_configs_own_is_assumed() -> None:
    parsed = make(V4, THINKING).parse_response(encode(V4, f"r</think>a{CALLS}{END}"))
    assert (parsed.reasoning_content, parsed.content) == ("r", "a")
    assert [call.arguments for call in parsed.valid_tool_calls] == [{"x": 1}]


def test_calls_out_of_unclosed_reasoning() -> None:
    parsed = make(V4, THINKING).parse_response(encode(V4, f"r{CALLS}{END}"))
    assert (parsed.reasoning_content, parsed.reasoning_complete) == ("r", False)
    assert [call.arguments for call in parsed.valid_tool_calls] == [{"x": 1}]
    cut = make(V4, THINKING).parse_response(encode(V4, f"r{CALLS}"))
    assert (cut.reasoning_content, cut.tool_calls) == (f"r{CALLS}", [])
