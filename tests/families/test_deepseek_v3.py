"""DeepSeek V3, R1 and V3.1: the kit, the public cases, and what is theirs alone."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from deepseek_support import (
    ASSISTANT,
    BEGIN,
    CALLS,
    CALLS_END,
    END,
    MODELS,
    OUTPUTS,
    OUTPUTS_END,
    QUESTION,
    R1,
    TOOL,
    USER,
    V3,
    V31,
    answer,
    bridged,
    call,
    calling,
    kinds,
    make,
    output,
    printed,
    render,
    result,
    sampled_text,
    text_of,
)
from hypothesis import given, settings
from public_cases import cases, check_case

from families.deepseek_v3 import DeepSeekV3Config
from families.deepseek_v31 import DeepSeekV31Config
from golden.profiles import PROFILES
from golden.reference import reference_for, reference_text
from renderers import (
    ConfigError,
    DamageError,
    DamageWarning,
    TokenizerError,
    UnsupportedMessageError,
    create_renderer,
)
from renderers.testing import Conversation, conversations
from renderers.testing.checks import check_alignment, check_mask_by_rule, check_render_parity
from renderers.testing.suite import check_renderer

pytestmark = pytest.mark.needs_assets

# The common properties --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_kit(model: str) -> None:
    check_renderer(
        make(model),
        profile=PROFILES[model],
        reference=reference_for(model),
        examples=settings().max_examples,
        report=lambda _: None,
    )


@pytest.mark.parametrize("case", cases(["deepseek-v3", "deepseek-v3.1"]), ids=lambda case: case["id"])
def test_public_case(case: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        check_case(case)


@given(conversations(PROFILES[V31]))
def test_parity_with_prefixes(conversation: Conversation) -> None:
    """V3.1 reads a key of its own, `prefix`."""
    values = (True, False, None, 1, "", "no")
    for index, message in enumerate(conversation.messages):
        if message["role"] == "assistant":
            message["prefix"] = values[(index + len(conversation.messages)) % len(values)]
    renderer = make(V31, conversation.kwargs)
    tokens = check_render_parity(renderer, reference_for(V31), conversation)
    assert tokens is not None
    check_alignment(renderer, conversation, tokens)
    check_mask_by_rule(renderer, conversation, tokens)


# Resolution and settings ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "family", "revision"),
    [
        (V3, "deepseek-v3", "v3"),
        ("deepseek-ai/DeepSeek-V3-0324", "deepseek-v3", "v3"),
        (R1, "deepseek-v3", "r1"),
        ("deepseek-ai/DeepSeek-R1-0528", "deepseek-v3", "r1"),
        (V31, "deepseek-v3.1", "v3.1"),
        ("deepseek-ai/DeepSeek-V3.1-Terminus", "deepseek-v3.1", "v3.1"),
        ("deepseek-ai/DeepSeek-V3.2-Exp", "deepseek-v3.1", "v3.1"),
    ],
)
def test_resolution(model: str, family: str, revision: str) -> None:
    config = make(model).config
    assert (config.name, config.revision) == (family, revision)


@pytest.mark.parametrize("model", [V3, R1])
def test_v3_and_r1_have_no_switches(model: str) -> None:
    with pytest.raises(ConfigError, match="thinking"):
        make(model, {"thinking": True})


def test_missing_special_tokens_are_named(official_tokenizer: Callable[[str], Any]) -> None:
    with pytest.raises(TokenizerError, match="tool▁sep"):
        create_renderer(official_tokenizer("Qwen/Qwen3-8B"), DeepSeekV31Config())
    with pytest.raises(TokenizerError, match="</think>"):
        create_renderer(official_tokenizer(V3), DeepSeekV3Config(revision="r1"))


@pytest.mark.parametrize("model", MODELS)
def test_pickles(model: str) -> None:
    renderer = make(model, thinking_retention="all")
    again = pickle.loads(pickle.dumps(renderer))  # noqa: S301 - our own bytes
    assert again.render([QUESTION]).token_ids == renderer.render([QUESTION]).token_ids


# Rendering --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("role", ["system", "user", "tool"])
@pytest.mark.parametrize("message", [{}, {"content": None}])
def test_messages_without_content_are_errors(model: str, role: str, message: dict[str, Any]) -> None:
    """The templates add the content to a text, and fail on None."""
    messages = [QUESTION, {"role": role, **message}]
    with pytest.raises(UnsupportedMessageError, match=r"messages\[1\].content") as caught:
        make(model).render(messages)
    assert caught.value.message_index == 1
    with pytest.raises(TypeError):
        reference_text(model, messages)


@pytest.mark.parametrize("model", [R1, V31])
def test_answers_without_content_are_errors(model: str) -> None:
    with pytest.raises(UnsupportedMessageError):
        make(model).render([QUESTION, {"role": "assistant", "reasoning_content": "r"}])


def test_v3_prints_nothing_of_an_answer_without_content() -> None:
    renderer = make(V3)
    assert text_of(renderer, [QUESTION, {"role": "assistant"}, QUESTION]) == f"{BEGIN}{USER}q{USER}q"


@pytest.mark.parametrize("model", [V3, R1])
def test_a_call_without_type_is_a_function(model: str) -> None:
    """The templates fail on a missing type; there is one type only."""
    renderer = make(model)
    bare = {"name": "f", "arguments": {"x": 1}}
    expected = text_of(renderer, [QUESTION, calling(call())])
    assert expected.startswith(f"{BEGIN}{USER}q{ASSISTANT}{CALLS}{printed('f')}")
    assert text_of(renderer, [QUESTION, calling({"function": bare})]) == expected
    assert text_of(renderer, [QUESTION, calling(bare)]) == expected
    assert "custom<｜tool▁sep｜>f" in text_of(renderer, [QUESTION, calling(call(type="custom"))])


@pytest.mark.parametrize("model", MODELS)
def test_arguments_become_text(model: str) -> None:
    renderer = make(model)
    found = text_of(renderer, [QUESTION, calling(call(arguments={"b": "é", "a": [True, None, 2**70]}))])
    assert '{"b": "é", "a": [true, null, 1180591620717411303424]}' in found


@pytest.mark.parametrize("model", MODELS)
def test_late_system_messages_move_to_the_front(model: str) -> None:
    renderer = make(model)
    messages = [{"role": "system", "content": "one"}, QUESTION, answer("a"), {"role": "system", "content": "two"}]
    tokens = render(renderer, messages)
    assert renderer.decode(tokens.token_ids).startswith(f"{BEGIN}one\n\ntwo{USER}q")
    assert kinds(tokens) == [("moved_message", (3,))]
    owners = dict(zip(renderer.token_texts(tokens.token_ids), tokens.message_indices, strict=True))
    assert (owners["one"], owners["two"], owners["\n\n"]) == (0, 3, 3)


@pytest.mark.parametrize("model", MODELS)
def test_tools_are_not_printed(model: str) -> None:
    renderer = make(model)
    with pytest.warns(DamageWarning, match="dropped_tools"):
        tokens = renderer.render([QUESTION], tools=[TOOL])
    assert tokens.token_ids == renderer.render([QUESTION]).token_ids
    assert kinds(tokens) == [("dropped_tools", (0,))]


@pytest.mark.parametrize(
    ("model", "messages", "kind", "index"),
    [
        (V3, [QUESTION, calling(call(), content="text")], "dropped_tool_calls", 1),
        (V3, [QUESTION, calling(call(), content="")], "dropped_tool_calls", 1),
        (R1, [QUESTION, calling(content="text")], "dropped_content", 1),
        (R1, [QUESTION, calling(call()), result(), calling(call(), content="text")], "dropped_content", 3),
        (V31, [QUESTION, calling(content="text")], "dropped_content", 1),
        (V31, [{"role": "developer", "content": "text"}, QUESTION], "dropped_message", 0),
    ],
)
def test_damage(model: str, messages: list[dict[str, Any]], kind: str, index: int) -> None:
    assert kinds(render(make(model), messages)) == [(kind, (index,))]
    with pytest.raises(DamageError, match=kind) as caught:
        make(model, on_damage="raise").render(messages)
    assert caught.value.message_index == index


@pytest.mark.parametrize("model", MODELS)
def test_ordinary_conversations_are_not_damaged(model: str) -> None:
    messages = [{"role": "system", "content": "s"}, QUESTION, calling(call(), call()), result(), answer("a"), QUESTION]
    assert kinds(make(model, on_damage="raise").render(messages, add_generation_prompt=True)) == []


@pytest.mark.parametrize(
    ("model", "prefilled"),
    [
        (V3, f"{ASSISTANT}So far"),
        (R1, f"{ASSISTANT}So far"),
        (V31, f"{ASSISTANT}</think>So far"),
    ],
)
def test_prefill(model: str, prefilled: str) -> None:
    renderer = make(model)
    without: dict[str, Any] = {}
    for fields in (without, {"tool_calls": []}):
        messages = [QUESTION, answer("So far", **fields)]
        assert text_of(renderer, messages, continue_final_message=True) == f"{BEGIN}{USER}q{prefilled}"
    with pytest.raises(UnsupportedMessageError):
        renderer.render([QUESTION, {"role": "assistant"}], continue_final_message=True)


@pytest.mark.parametrize(
    ("model", "messages", "expected"),
    [
        (V3, [QUESTION, answer("a")], f"a{END}"),
        (V3, [QUESTION, calling(call())], f"{CALLS}{printed('f')}"),
        (V3, [QUESTION, calling(call(), call())], f"{CALLS}{printed('f')}\n{printed('f')}{CALLS_END}{END}"),
        (V3, [QUESTION, calling(call(), call(), call("g"))], f"{CALLS}{printed('f')}\n{printed('f')}{CALLS_END}{END}"),
        (R1, [QUESTION, answer("a")], f"a{END}"),
        (R1, [QUESTION, calling(call(), content="a")], f"a{CALLS}{printed('f')}{CALLS_END}{END}"),
        (V31, [QUESTION, answer("a")], f"a{END}"),
    ],
)
def test_what_counts_as_sampled(model: str, messages: list[dict[str, Any]], expected: str) -> None:
    assert sampled_text(make(model), messages) == expected


@pytest.mark.parametrize("thinking", [True, False])
def test_v31_never_samples_its_history_marker(thinking: bool) -> None:
    """`</think>` before an answer is scaffolding, whether or not the generation prompt has it."""
    assert sampled_text(make(V31, {"thinking": thinking}), [QUESTION, answer("a")]) == f"a{END}"


@pytest.mark.parametrize("model", [V3, R1])
def test_results_are_closed_without_a_generation_prompt(model: str) -> None:
    renderer = make(model)
    messages = [QUESTION, calling(call()), result()]
    tokens = render(renderer, messages)
    assert tokens.token_ids == render(renderer, messages, add_generation_prompt=True).token_ids
    assert renderer.decode(tokens.token_ids).endswith(f"{OUTPUTS}{output()}{OUTPUTS_END}")
    assert tokens.message_indices[-1] == -1


# Retention --------------------------------------------------------------------------------------------------------------

THOUGHT = {V3: "<think>\nr\n</think>\n\n", R1: "<think>\nr\n</think>\n\n", V31: "<think>r</think>"}


@pytest.mark.parametrize("model", MODELS)
def test_reasoning_is_kept_as_it_is_sampled(model: str) -> None:
    old, new = answer("a", reasoning_content="old"), answer("b", reasoning_content="r")
    messages = [QUESTION, old, QUESTION, new]
    assert "<think>" not in text_of(make(model), messages)
    cycle = text_of(make(model, thinking_retention="tool_cycle"), messages)
    assert cycle.endswith(f"{ASSISTANT}{THOUGHT[model]}b{END}")
    assert "old" not in cycle
    assert THOUGHT[model].replace("r", "old", 1) in text_of(make(model, thinking_retention="all"), messages)


@pytest.mark.parametrize("model", MODELS)
def test_a_turn_with_kept_reasoning_is_written_whole(model: str) -> None:
    """In the second round as in the first: content, the section's opener, all calls, its close."""
    messages = [QUESTION, calling(call()), result(), calling(call(), call(), content="c", reasoning_content="r")]
    found = text_of(make(model, thinking_retention="tool_cycle"), messages)
    one = printed("f") if model != V31 else '<｜tool▁call▁begin｜>f<｜tool▁sep｜>{"x": 1}<｜tool▁call▁end｜>'
    header, line = (OUTPUTS_END, "\n") if model != V31 else ("", "")
    assert found.endswith(f"{output()}{header}{THOUGHT[model]}c{CALLS}{one}{line}{one}{CALLS_END}{END}")


@pytest.mark.parametrize(("model", "written"), [(R1, "<think>\nr\n</think>\n\nb"), (V31, "<think>r</think>b")])
def test_reasoning_inside_the_content(model: str, written: str) -> None:
    messages = [QUESTION, answer(written), QUESTION]
    kept = text_of(make(model, thinking_retention="all"), messages)
    assert kept == f"{BEGIN}{USER}q{ASSISTANT}{written}{END}{USER}q"
    assert kept == text_of(
        make(model, thinking_retention="all"), [QUESTION, answer("b", reasoning_content="r"), QUESTION]
    )


@pytest.mark.parametrize(("model", "completion"), [(R1, f"r\n</think>\n\na{END}"), (V31, f"r</think>a{END}")])
def test_retention_at_a_boundary(model: str, completion: str) -> None:
    switches = {"thinking": True} if model == V31 else None
    opener = f"{USER}q{ASSISTANT}<think>" + ("\n" if model == R1 else "")
    outcomes = {
        policy: bridged(make(model, switches, thinking_retention=policy), [QUESTION], completion, [QUESTION])
        for policy in (None, "tool_cycle", "all")
    }
    assert outcomes == {None: "retention", "tool_cycle": "retention", "all": opener}
