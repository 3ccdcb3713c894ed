"""Qwen3: the kit on every revision, the public cases, and what is Qwen3's own."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from hypothesis import settings
from public_cases import cases, check_case

from families.qwen3 import Qwen3Config
from golden.reference import load_tokenizer, profile_of, reference_for
from renderers import BridgeRefusal, DamageError, DamageWarning, RefusalReason, RenderedTokens, create_renderer
from renderers.testing.suite import check_renderer

MODELS = (
    "Qwen/Qwen3-8B",
    "Qwen/Qwen3-8B@2025-04",
    "Qwen/Qwen3-4B-Instruct-2507",
    "Qwen/Qwen3-4B-Thinking-2507",
)
HYBRID, APRIL, INSTRUCT, THINKING = MODELS
OFF = {"enable_thinking": False}
TOOLS = [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}]
CASES = cases(["qwen3"])


def make(model: str = HYBRID, switches: dict[str, Any] | None = None, **framework: Any) -> Any:
    """A renderer of a model."""
    return create_renderer(load_tokenizer(model), chat_template_kwargs=switches, **framework)


def ids(_: Any, text: str) -> list[int]:
    """The tokens of a text with special tokens spelled out."""
    return list(load_tokenizer(HYBRID).encode(text, add_special_tokens=False))


def user(content: Any = "q") -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any = "", reasoning: str | None = None, calls: int = 0) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if reasoning is not None:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = [
            {"id": f"call_{index}", "type": "function", "function": {"name": "f", "arguments": {}}}
            for index in range(calls)
        ]
    return message


def tool(content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "content": content}


@pytest.mark.parametrize("model", MODELS)
def test_kit(model: str) -> None:
    examples = settings().max_examples // (1 if settings().max_examples > 200 else 2)
    check_renderer(make(model), profile=profile_of(model), reference=reference_for(model), examples=examples)


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_public_case(case: dict[str, Any]) -> None:
    check_case(case)


def sampled(renderer: Any, messages: list[dict[str, Any]]) -> str:
    """The text of what the model samples."""
    rendered = renderer.render(messages)
    return str(
        renderer.decode([one for one, mask in zip(rendered.token_ids, rendered.sampled_mask, strict=True) if mask])
    )


def test_the_empty_think_block_is_sampled_where_the_prompt_does_not_hold_it() -> None:
    messages = [user(), assistant("yes")]
    assert sampled(make(), messages) == "<think>\n\n</think>\n\nyes<|im_end|>"
    assert sampled(make(switches=OFF), messages) == "yes<|im_end|>"
    assert (
        sampled(make(THINKING), messages) == "</think>\n\nyes<|im_end|>"
    )  # its first newline merged with the prompt's
    assert sampled(make(INSTRUCT), messages) == "yes<|im_end|>"


def test_the_first_stop_token_ends_the_sampled_part() -> None:
    assert sampled(make(INSTRUCT), [user(), assistant("a<|im_end|>b")]) == "a<|im_end|>"


@pytest.mark.parametrize(
    ("model", "policy", "kept"),
    [
        (HYBRID, None, ["r2"]),
        (HYBRID, "tool_cycle", ["r2"]),
        (HYBRID, "all", ["r1", "r2"]),
        (THINKING, None, ["r2"]),
        (THINKING, "all", ["r1", "r2"]),
        (INSTRUCT, "all", []),
    ],
)
def test_retention(model: str, policy: Any, kept: list[str]) -> None:
    renderer = make(model, thinking_retention=policy)
    text = renderer.decode(renderer.render_ids([user(), assistant("a", "r1"), user(), assistant("", "r2", 1), tool()]))
    assert [reasoning for reasoning in ("r1", "r2") if reasoning in text] == kept


def test_bridges_within_a_tool_cycle_are_never_refused() -> None:
    for model in (HYBRID, THINKING):
        renderer = make(model)
        prompt = renderer.render([user()], tools=TOOLS, add_generation_prompt=True)
        opening = "" if model == THINKING else "<think>\n"
        call = f'{opening}hm\n</think>\n\n<tool_call>\n{{"name": "f", "arguments": {{}}}}\n</tool_call><|im_end|>'
        for turn in range(6):
            prompt = renderer.bridge(prompt, ids(renderer, call), [tool(), tool()], tools=TOOLS)
            assert isinstance(prompt, RenderedTokens), turn
        assert prompt.message_offset == 1 + 5 * 3 + 1
        assert prompt.message_roles == ["tool", "tool"]
        assert prompt.message_tool_names == ["f", None]


@pytest.mark.parametrize(
    ("completion", "new", "reason"),
    [
        ("", [user()], RefusalReason.EMPTY_COMPLETION),
        ("yes<|im_end|>", [], RefusalReason.NO_NEW_MESSAGES),
        ("yes<|im_end|>", [assistant("no")], RefusalReason.ASSISTANT_MESSAGE),
        ("<think>\nhm", [user()], RefusalReason.OPEN_REASONING),
        ("<think>\nhm<|im_end|>", [user()], RefusalReason.OPEN_REASONING),
        ('<tool_call>\n{"name": "f"', [user()], RefusalReason.OPEN_TOOL_CALL),
        ("yes<|im_end|>\n", [user()], RefusalReason.TOKENS_AFTER_CLOSE),
        ("yes<|endoftext|>", [user()], RefusalReason.WRONG_STOP),
        ("<think>\nhm\n</think>\n\nyes<|im_end|>", [user()], RefusalReason.RETENTION),
    ],
)
def test_refusals(completion: str, new: list[Any], reason: RefusalReason) -> None:
    renderer = make()
    prompt = renderer.render([user()], add_generation_prompt=True)
    for given in (prompt, prompt.token_ids):
        refusal = renderer.bridge(given, ids(renderer, completion), new)
        assert isinstance(refusal, BridgeRefusal)
        assert refusal.reason == reason
        assert renderer.bridge_to_next_turn(given, ids(renderer, completion), new) is None


def test_prompts_that_cannot_be_extended() -> None:
    renderer = make()
    completion = ids(renderer, "yes<|im_end|>")
    assert renderer.bridge([], completion, [user()]).reason == RefusalReason.EMPTY_PROMPT
    for prompt in (renderer.render([user()]), renderer.render_ids([user()]), [1, 2, 3]):
        assert renderer.bridge(prompt, completion, [user()]).reason == RefusalReason.UNKNOWN_HISTORY


def test_without_a_query_ids_alone_do_not_tell_what_is_dropped() -> None:
    """The template then takes the last message for the query, and drops the reasoning before it."""
    messages = [{"role": "system", "content": "s"}]
    completion = "<think>\nhm\n</think>\n\nyes<|im_end|>"
    for policy, reasons in ((None, ("retention", "unknown_history")), ("all", ("", ""))):
        renderer = make(thinking_retention=policy)
        prompt = renderer.render(messages, add_generation_prompt=True)
        for given, reason in zip((prompt, prompt.token_ids), reasons, strict=True):
            result = renderer.bridge(given, ids(renderer, completion), [tool()])
            assert (str(result.reason) if isinstance(result, BridgeRefusal) else "") == reason


def test_tools_belong_to_the_prompt() -> None:
    renderer = make()
    other = [{"type": "function", "function": {"name": "g", "description": "d", "parameters": {"type": "object"}}}]
    completion = ids(renderer, "yes<|im_end|>")
    for tools, wrong in ((TOOLS, other), (TOOLS, []), (None, TOOLS), (TOOLS, TOOLS + other)):
        prompt = renderer.render([user()], tools=tools, add_generation_prompt=True)
        for given in (prompt, prompt.token_ids):
            assert renderer.bridge(given, completion, [user()], tools=wrong).reason == RefusalReason.HISTORY_REWRITE
            for right in (None, tools or []):
                assert isinstance(renderer.bridge(given, completion, [user()], tools=right), RenderedTokens)


def test_declared_exception_the_bridge_keeps_the_empty_think_block_that_the_model_saw() -> None:
    renderer = make(switches=OFF)
    prompt = renderer.render([user()], add_generation_prompt=True)
    bridged = renderer.bridge(prompt, ids(renderer, "yes<|im_end|>"), [user("b")])
    again = renderer.render([user(), assistant("yes"), user("b")], add_generation_prompt=True)
    text = renderer.decode(bridged.token_ids)
    assert renderer.decode(again.token_ids) == text.replace("<think>\n\n</think>\n\nyes", "yes")


def test_end_of_text_is_kept_and_closed_under_all() -> None:
    renderer = make(thinking_retention="all")
    prompt = renderer.render([user()], add_generation_prompt=True)
    bridged = renderer.bridge(prompt, ids(renderer, "yes<|endoftext|>"), [user("b")])
    assert renderer.decode(bridged.extension_ids) == (
        "<|im_end|>\n<|im_start|>user\nb<|im_end|>\n<|im_start|>assistant\n"
    )


def test_developer_messages_are_dropped_and_said_to_be() -> None:
    messages = [user(), {"role": "developer", "content": "obey"}]
    with pytest.warns(DamageWarning, match=r"messages\[1\]"):
        rendered = make().render(messages)
    assert [(damage.kind, damage.message_indices) for damage in rendered.warnings] == [("dropped_message", (1,))]
    with pytest.raises(DamageError):
        make(on_damage="raise").render(messages)


def test_prefills_equal_transformers() -> None:
    tokenizer = load_tokenizer(HYBRID)
    for reply in (assistant("Well,  "), assistant("Well", "hm")):
        expected = tokenizer.apply_chat_template(
            [user(), reply], continue_final_message=True, tokenize=True, return_dict=False
        )
        assert make().render_ids([user(), reply], continue_final_message=True) == expected


def test_a_prefilled_call_is_continued() -> None:
    renderer = make()
    prompt = ids(renderer, '<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n<tool_call>\n{"name": "f", ')
    reply = renderer.parse_response(ids(renderer, '"arguments": {}}\n</tool_call><|im_end|>'), prompt_ids=prompt)
    assert [call.name for call in reply.valid_tool_calls] == ["f"]


def test_the_config_is_the_templates_own() -> None:
    assert Qwen3Config.template_fields() == ["enable_thinking"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert make(APRIL).config.revision == "hybrid-2025-04"


def test_a_prompt_of_another_family_is_not_extended() -> None:
    other = create_renderer(load_tokenizer("Qwen/Qwen3-Coder-30B-A3B-Instruct"))
    prompt = other.render([user()], add_generation_prompt=True)
    refusal = make().bridge(prompt, ids(other, "yes<|im_end|>"), [user()])
    assert isinstance(refusal, BridgeRefusal)
    assert refusal.reason == RefusalReason.UNKNOWN_HISTORY
