"""The report's figures equal those counted by brute force, and those of small rollouts counted by hand."""

from __future__ import annotations

from typing import Any

import pytest
from brute_force import brute_force, renderer_of, replies_of
from hypothesis import given, settings
from hypothesis import strategies as st

from renderers.retention import retention_report

#: All ways in which templates treat earlier reasoning. What these formats declare as exceptions does not come up here.
MODELS = (
    "golden:qwen3", "golden:qwen3.5", "golden:glm45", "golden:glm5", "golden:deepseek-r1", "golden:deepseek-v3.1",
    "golden:deepseek-v3.2", "golden:deepseek-v4",
)  # fmt: skip
#: Their prompts open no turn after an assistant's message, and such a prompt cannot be bridged.
WITHOUT_PROMPT_AFTER_ANSWER = ("golden:deepseek-v3.2", "golden:deepseek-v4")
POLICIES = (None, "tool_cycle", "all")
TOOLS = [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}]
texts = st.sampled_from(
    ("ok", "Weather in Ulm?", "18 C, sunny", "def f(x):\n    return x", "über 40 Zeichen, mit Umlauten: äöü")
)


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Questions, each with some tool calls and answers. Every reasoning is told from the others by a number."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": draw(texts)}] if draw(st.booleans()) else []
    number = 0

    def reply(content: str, **more: Any) -> dict[str, Any]:
        nonlocal number
        number += 1
        return {
            "role": "assistant",
            "content": content,
            "reasoning_content": f"Thought {number}: {draw(texts)}",
            **more,
        }

    for _ in range(draw(st.integers(1, 3))):
        messages.append({"role": "user", "content": draw(texts)})
        for _ in range(draw(st.integers(0, 3))):
            call = {
                "id": f"call_{number}",
                "type": "function",
                "function": {"name": "f", "arguments": {"x": draw(texts)}},
            }
            messages.append(reply("", tool_calls=[call]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": draw(texts)})
        messages.append(reply(draw(texts)))
        if draw(st.integers(0, 7)) == 0:
            messages.append(reply(draw(texts)))  # the harness asks again without adding anything
    return messages


@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=max(settings().max_examples // len(MODELS), 1))
@given(messages=conversations(), limit=st.integers(50, 400), block=st.sampled_from((1, 16)))
def test_figures_equal_brute_force(model: str, messages: list[dict[str, Any]], limit: int, block: int) -> None:
    if model in WITHOUT_PROMPT_AFTER_ANSWER:
        pairs = zip([{"role": "system"}, *messages], messages, strict=False)
        messages = [one for before, one in pairs if not before["role"] == one["role"] == "assistant"]
    given_conversation = {"messages": messages, "tools": TOOLS}
    report = retention_report([given_conversation], renderer_of(model, None), context_limit=limit, block_size=block)
    replies = replies_of(model, messages, TOOLS)
    for policy in POLICIES:
        expected = brute_force(model, policy, messages, TOOLS, replies, limit, block)
        figures = report.models[0].policies[policy]
        assert {name: getattr(figures, name) for name in expected} == expected, policy
