"""The strategies give what their profile allows, everything that it allows, and they shrink."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, find, given, settings

from golden.profiles import PROFILES, QWEN3, QWEN35
from golden.reference import NoReferenceError, reference_text
from renderers.testing import (
    Choices,
    Continuation,
    Conversation,
    Profile,
    clean_texts,
    continuations,
    conversations,
    replies,
    token_sequences,
    tools,
)
from renderers.testing.messages import build_conversation, is_query

#: Loading and rendering through 30 official templates is slow, and these are tests of tests.
_FEW = settings(phases=[Phase.generate], max_examples=settings().max_examples // 3)


def _collected(strategy: Any, count: int = 400) -> list[Any]:
    found: list[Any] = []

    @settings(max_examples=count, database=None, derandomize=True)
    @given(strategy)
    def collect(value: Any) -> None:
        found.append(value)

    collect()
    return found


@pytest.mark.needs_assets
@pytest.mark.parametrize("model", [model for model in PROFILES if not model.startswith("meta-llama/")])
def test_official_templates_render_what_their_profile_generates(model: str) -> None:
    @_FEW
    @given(conversations(PROFILES[model]))
    def renders(conversation: Conversation) -> None:
        try:
            text = reference_text(
                model,
                conversation.messages,
                conversation.tools,
                conversation.add_generation_prompt,
                conversation.kwargs,
            )
        except NoReferenceError:
            return
        assert "Undefined" not in text

    renders()


@pytest.mark.needs_assets
@pytest.mark.parametrize("model", ["Qwen/Qwen3-8B", "Qwen/Qwen3.5-35B-A3B", "zai-org/GLM-5", "openai/gpt-oss-20b"])
def test_official_templates_render_continuations(model: str) -> None:
    @_FEW
    @given(continuations(PROFILES[model]))
    def renders(continuation: Continuation) -> None:
        for conversation in (continuation.prompt, continuation.with_reply, continuation.extended):
            reference_text(
                model,
                conversation.messages,
                conversation.tools,
                conversation.add_generation_prompt,
                conversation.kwargs,
            )

    renders()


def test_no_bytes_are_the_simplest_conversation() -> None:
    assert build_conversation(QWEN3, b"", [b""]) == Conversation([{"role": "user", "content": "a"}])
    assert build_conversation(QWEN3, bytes(96), [bytes(80)]) == Conversation([{"role": "user", "content": "a"}])


def test_conversations_shrink() -> None:
    def has_parallel_calls(conversation: Conversation) -> bool:
        return any(len(message.get("tool_calls") or ()) > 1 for message in conversation.messages)

    found = find(conversations(QWEN3), has_parallel_calls, settings=settings(max_examples=2000, derandomize=True))
    assert len(found.messages) <= 2
    assert found.tools is None
    assert not found.kwargs


def test_failures_show_the_conversation() -> None:
    @settings(database=None, max_examples=10)
    @given(conversations(QWEN3))
    def fails(conversation: Conversation) -> None:
        assert not conversation.messages

    with pytest.raises(AssertionError) as caught:
        fails()
    assert "Conversation(messages=[{'role': 'user', 'content': 'a'}]" in "\n".join(caught.value.__notes__)


def test_conversations_hold_every_shape() -> None:
    seen: set[str] = set()
    for conversation in _collected(conversations(QWEN3), 1000):
        seen.add(f"tools {type(conversation.tools).__name__} {len(conversation.tools or ())}")
        seen.add(f"prompt {conversation.add_generation_prompt}")
        seen.add(f"thinking {conversation.kwargs.get('enable_thinking')}")
        for index, message in enumerate(conversation.messages):
            role = message["role"]
            seen.add(f"{role} {type(message.get('content', ...)).__name__}")
            seen.add(f"{role} after {conversation.messages[index - 1]['role'] if index else 'nothing'}")
            for key in ("reasoning_content", "reasoning", "name", "tool_call_id"):
                if key in message:
                    seen.add(f"{key} {type(message[key]).__name__} {bool(message[key])}")
            if "tool_calls" in message:
                seen.add(f"calls {len(message['tool_calls'])}")
                seen.update(type(call["function"]["arguments"]).__name__ for call in message["tool_calls"])
    wanted = {
        "tools NoneType 0", "tools list 0", "tools list 1", "tools list 3", "prompt True", "prompt False",
        "thinking None", "thinking True", "thinking False", "user after user", "system after assistant",
        "assistant after nothing", "tool after tool", "tool after user", "developer str", "user list", "user NoneType",
        "user ellipsis", "assistant NoneType", "assistant ellipsis", "assistant list", "tool list", "tool NoneType",
        "system NoneType", "reasoning_content str True", "reasoning_content str False", "reasoning_content NoneType False",
        "reasoning str True", "name str True", "tool_call_id str True", "calls 0", "calls 1", "calls 3", "str", "dict",
    }  # fmt: skip
    assert wanted <= seen, wanted - seen


@given(
    conversations(
        Profile(
            name="strict",
            late_system=False,
            needs_user_query=True,
            needs_call_before_result=True,
            parallel_calls=False,
            empty_tool_calls=False,
            optional_content=(),
            optional_content_beside_calls=False,
            optional_call_type=False,
            content_beside_reasoning_and_calls=False,
            names=False,
            tools=False,
            switches=(("mode", ("a", "b")),),
            fixed_switches=(("date", "today"),),
        )
    )
)
def test_profiles_are_kept(conversation: Conversation) -> None:
    assert conversation.tools is None
    assert conversation.kwargs["date"] == "today"
    assert set(conversation.kwargs) <= {"date", "mode"}
    assert any(is_query(message) for message in conversation.messages)
    callers = [message["role"] for message in conversation.messages if message.get("tool_calls")]
    assert all(role == "assistant" for role in callers)
    for index, message in enumerate(conversation.messages):
        assert (
            message["role"] not in {"system", "developer"} or index == 0 or conversation.messages[0]["role"] != "user"
        )
        assert message.get("content") is not None
        assert "name" not in message
        calls = message.get("tool_calls")
        assert calls is None or len(calls) == 1
        if calls:
            assert calls[0]["type"] == "function"
            assert not (message["content"] and message.get("reasoning_content"))


@given(conversations(Profile(name="turns", roles=("system", "user", "assistant"), late_system=False, alternates=True)))
def test_alternating_profiles_alternate(conversation: Conversation) -> None:
    turns = [message["role"] for message in conversation.messages if message["role"] != "system"]
    assert turns == [("user", "assistant")[index % 2] for index in range(len(turns))]


@given(clean_texts())
def test_clean_texts_hold_no_marker(text: str) -> None:
    text.encode()  # no lone surrogate
    for profile in PROFILES.values():
        assert not any(marker in text for marker in profile.markers if not marker.isalpha() and marker != "```json\n")


@given(replies(QWEN35))
def test_replies_are_what_a_model_gives(reply: tuple[Conversation, dict[str, Any]]) -> None:
    prompt, message = reply
    assert prompt.add_generation_prompt
    assert message["role"] == "assistant"
    assert isinstance(message["content"], str)
    assert all(isinstance(call["function"]["arguments"], dict) for call in message.get("tool_calls", []))
    assert "<" not in message["content"] or not any(marker in message["content"] for marker in QWEN35.markers)


@given(continuations(QWEN3))
def test_continuations_are_a_prompt_a_reply_and_no_assistant(continuation: Continuation) -> None:
    assert continuation.prompt.add_generation_prompt
    assert continuation.reply["role"] == "assistant"
    assert continuation.new_messages
    assert all(message["role"] != "assistant" for message in continuation.new_messages)
    assert continuation.extended.messages[: len(continuation.prompt.messages)] == continuation.prompt.messages
    assert len(continuation.extended.messages) == len(continuation.with_reply.messages) + len(continuation.new_messages)


def test_continuations_answer_calls() -> None:
    answered = [
        continuation
        for continuation in _collected(continuations(QWEN3))
        if continuation.reply.get("tool_calls") and continuation.new_messages[0]["role"] == "tool"
    ]
    assert len(answered) > 40
    assert any(len(continuation.new_messages) > 1 for continuation in answered)


def test_token_sequences_hold_special_and_unknown_tokens() -> None:
    sequences = _collected(token_sequences(1000, [7, 8]))
    ids = [token_id for sequence in sequences for token_id in sequence]
    assert all(token_id >= 0 for token_id in ids)
    assert {7, 8} <= set(ids)
    assert 0.2 < sum(token_id in {7, 8} for token_id in ids) / len(ids) < 0.8
    assert any(token_id >= 1000 for token_id in ids)
    assert max(map(len, sequences)) > 10


def test_tools_hold_every_shape() -> None:
    found = [tool["function"] for listed in _collected(tools(QWEN3)) for tool in listed or ()]
    assert any("description" not in function for function in found)
    assert any("parameters" not in function for function in found)
    assert any(next(iter(function)) != "name" for function in found)
    assert any(not str(function).isascii() for function in found)


def test_choices_read_bytes_and_end_in_zeros() -> None:
    choices = Choices(bytes([255, 128, 0, 255, 255]))
    assert choices.pick("abcd") == "d"
    assert choices.below(2) == 1
    assert not choices.chance(99)
    assert choices.below(1000) == 999
    assert choices.exhausted
    assert choices.pick("abcd") == "a"
    assert choices.shuffled([1, 2, 3]) == [1, 2, 3]
