"""The parity reference converts messages as the design says, and agrees with what was recorded."""

from __future__ import annotations

from typing import Any

import pytest

from golden.profiles import DEEPSEEK_V3, GLM45, QWEN3, QWEN3_2025_04, QWEN3_CODER, QWEN35
from golden.reference import (
    NoReferenceError,
    converted,
    encode,
    load_tokenizer,
    reference_ids,
    reference_text,
    vectors,
)

_PARTS = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]


def _with_arguments(arguments: Any) -> list[dict[str, Any]]:
    return [{"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": arguments}}]}]


def _arguments(messages: list[dict[str, Any]]) -> Any:
    return messages[0]["tool_calls"][0]["function"]["arguments"]


def test_null_fields_are_absent() -> None:
    given = [{"role": "assistant", "content": None, "tool_calls": None, "reasoning_content": None, "name": None}]
    assert converted(given, QWEN3) == [{"role": "assistant"}]


def test_reasoning_has_aliases() -> None:
    given = [{"role": "assistant", "content": "x", "reasoning": "r"}]
    assert converted(given, QWEN3) == [{"role": "assistant", "content": "x", "reasoning_content": "r"}]
    both = [{"role": "assistant", "content": "x", "reasoning": "r", "reasoning_content": ""}]
    assert converted(both, QWEN3) == [{"role": "assistant", "content": "x", "reasoning_content": ""}]


def test_parts_are_joined_where_the_template_takes_only_text() -> None:
    assert converted([{"role": "user", "content": _PARTS}], QWEN3)[0]["content"] == "a\nb"
    assert converted([{"role": "user", "content": []}], QWEN3)[0]["content"] == ""
    assert converted([{"role": "user", "content": _PARTS}], QWEN35)[0]["content"] == _PARTS
    assert converted([{"role": "tool", "content": _PARTS}], GLM45)[0]["content"] == "a\nb"


def test_missing_content_is_empty_where_the_template_crashes_on_it() -> None:
    given = [{"role": "system"}, {"role": "user", "content": None}, {"role": "system", "content": None}]
    assert ["content" in message for message in converted(given, QWEN3)] == [True, False, True]
    assert [message["content"] for message in converted(given, QWEN3_2025_04)] == ["", "", ""]
    assert ["content" in message for message in converted(given, QWEN3_CODER)] == [False, True, True]


def test_arguments_are_parsed_or_dumped_where_they_must_be() -> None:
    assert _arguments(converted(_with_arguments('{"x":1.0}'), QWEN3)) == '{"x":1.0}'
    assert _arguments(converted(_with_arguments({"x": "é"}), QWEN3)) == {"x": "é"}
    assert _arguments(converted(_with_arguments('{"x":1.0}'), GLM45)) == {"x": 1.0}
    assert _arguments(converted(_with_arguments({"x": "é"}), DEEPSEEK_V3)) == '{"x": "é"}'
    with pytest.raises(TypeError, match="no object"):
        converted(_with_arguments("[1]"), GLM45)


@pytest.mark.needs_assets
def test_text_and_ids() -> None:
    messages = [{"role": "user", "content": "hi"}]
    text = reference_text("Qwen/Qwen3-8B", messages, None, True, {"enable_thinking": False})
    assert text == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
    ids = reference_ids("Qwen/Qwen3-8B", messages, None, True, {"enable_thinking": False})
    assert ids == encode("Qwen/Qwen3-8B", text)
    assert load_tokenizer("Qwen/Qwen3-8B").decode(ids) == text


@pytest.mark.needs_assets
def test_where_there_is_no_template() -> None:
    with pytest.raises(NoReferenceError, match="no template"):
        reference_text("deepseek-ai/DeepSeek-V4-Flash", [{"role": "user", "content": "hi"}])
    with pytest.raises(NoReferenceError, match="TypeScript"):
        reference_text("moonshotai/Kimi-K2.5", [{"role": "user", "content": "hi"}], [{"type": "function"}])


@pytest.mark.needs_assets
@pytest.mark.parametrize("name", ["kimi-k2.5", "kimi-k2.6"])
def test_recorded_conversations_without_tools(name: str) -> None:
    model = f"moonshotai/{name.replace('kimi-k', 'Kimi-K')}"
    recorded = [vector for vector in vectors(name) if not vector["tools"]]
    assert len(recorded) > 20
    for vector in recorded:
        found = reference_ids(
            model, vector["messages"], vector["tools"], vector["add_generation_prompt"], vector["kwargs"]
        )
        assert found == vector["token_ids"], vector["id"]
