"""Replayed rollouts: what breaks them, what is said of odd conversations, and which settings exclude a policy."""

from __future__ import annotations

from collections import Counter
from itertools import takewhile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from renderers import ConfigError, DefaultRendererConfig, create_renderer
from renderers.retention import Figures, retention_report
from renderers.retention.conversations import Item, read_conversations
from renderers.retention.prefix_cache import PrefixCache
from renderers.retention.rollout import turns_of

TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


def user(content: str = "q") -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: str = "a", reasoning: str | None = None, *, call: bool = False) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": content, "reasoning_content": reasoning}
    if call:
        message["tool_calls"] = [
            {"id": "functions.f:0", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        ]
    return message


def tool() -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "functions.f:0", "content": "ok"}


def figures(model: str, *messages: dict[str, Any], switches: Any = None, **settings: Any) -> dict[Any, Figures]:
    """The figures of one conversation under every policy."""
    report = retention_report([list(messages)], create_renderer(model, chat_template_kwargs=switches), **settings)
    assert not report.failures
    return dict(report.models[0].policies)


@pytest.mark.parametrize(
    ("model", "messages", "breaks"),
    [
        # No reasoning: nothing to drop, but a tool cycle ends at a user message all the same.
        ("golden:qwen3", [user(), assistant(), user(), assistant()], ({}, {"retention": 1}, {})),
        ("golden:qwen3", [user(), assistant("", "r", call=True), tool(), assistant("a", "r")], ({}, {}, {})),
        # V3.1 drops reasoning inside the cycle, too.
        (
            "golden:deepseek-v3.1",
            [user(), assistant("", "r", call=True), tool(), assistant("a", "r")],
            ({"retention": 1}, {}, {}),
        ),
        ("golden:qwen3", [user(), assistant(), assistant()], ({"no_new_messages": 1},) * 3),
        # A history never shows the token that ended the answer.
        ("golden:gpt-oss", [user(), assistant(), user(), assistant()], ({"wrong_stop": 1}, {"retention": 1}, {})),
        # The first assistant message answers nothing.
        ("golden:qwen3", [assistant(), user(), assistant()], ({}, {}, {})),
    ],
)  # fmt: skip
def test_breaks_and_their_causes(model: str, messages: list[Any], breaks: tuple[dict[str, int], ...]) -> None:
    found = figures(model, *messages)
    assert [dict(one.breaks) for one in found.values()] == list(breaks)
    for one in found.values():
        assert one.samples == 1 + one.breaks.total()
        assert one.sample_counts == Counter({one.samples: 1})


def test_a_reply_through_its_stop_token_counts_once() -> None:
    """GLM's replies end with the next message's marker, which is theirs; the last one gets one, too."""
    one = figures("golden:glm45", user(), assistant("a", "r"), user(), assistant("a", "r"))["all"]
    renderer = create_renderer("golden:glm45", thinking_retention="all")
    whole = renderer.render([user(), assistant("a", "r"), user(), assistant("a", "r"), user()])
    assert one.trained_tokens == sum(whole.sampled_mask)
    assert one.samples == 1
    assert one.sample_tokens == one.longest_context


@pytest.mark.parametrize(
    ("model", "switches", "message", "completion"),
    [
        ("golden:qwen3", {}, assistant("a", "r"), "<think>\nr\n</think>\n\na<|im_end|>"),
        ("golden:qwen3", {}, assistant("a"), "<think>\n\n</think>\n\na<|im_end|>"),
        ("golden:qwen3", {"enable_thinking": False}, assistant("a"), "a<|im_end|>"),
        # A render has the first line feed in one token with the prompt's.
        ("golden:qwen3.5", {}, assistant("a"), "\n</think>\n\na<|im_end|>"),
        # The prompt opens the reasoning, and the model closes it at once: no render says so.
        ("golden:glm5", {}, assistant("a"), "</think>a<|user|>"),
        ("golden:deepseek-v3.1", {"thinking": True}, assistant("a"), "</think>a<｜end▁of▁sentence｜>"),
        # The template drops the reasoning even of the last answer.
        ("golden:deepseek-v3.1", {"thinking": True}, assistant("a", "r"), "r</think>a<｜end▁of▁sentence｜>"),
        # The stop token is the next message's marker.
        ("golden:glm45", {}, assistant("a", "r"), "\n<think>r</think>\na<|user|>"),
    ],
)
def test_replies_are_what_the_model_samples(
    model: str, switches: Any, message: dict[str, Any], completion: str
) -> None:
    template = create_renderer(model, chat_template_kwargs=switches)
    keeper = create_renderer(model, chat_template_kwargs=switches, thinking_retention="all")
    for following in ([], [user(), assistant()]):
        [conversation] = read_conversations(Item(1, [user(), message, *following]))
        turn, prompt = next(turns_of(conversation, template, keeper))
        assert template.decode(turn.completion) == completion
        assert (turn.reasoning > 0) == (message["reasoning_content"] is not None)
        parsed = template.parse_response(turn.completion, prompt_ids=prompt)
        assert parsed.content == message["content"]
        assert (parsed.reasoning_content or None) == message["reasoning_content"]


def test_nothing_is_cached_but_whole_blocks_of_what_was_run_over() -> None:
    messages = [user(), assistant("a", "reasoning"), user("q2"), assistant("b")]
    exact = figures("golden:qwen3", *messages)["all"]
    renderer = create_renderer("golden:qwen3", thinking_retention="all")
    prompt = renderer.render_ids(messages[:1], add_generation_prompt=True)
    first = len(prompt) + figures("golden:qwen3", *messages[:2])["all"].trained_tokens
    assert exact.cached_tokens == first - 1  # the stop token was sampled, and not run over
    blocks = figures("golden:qwen3", *messages, block_size=16)["all"]
    assert blocks.cached_tokens == (first - 1) // 16 * 16
    assert figures("golden:qwen3", *messages, block_size=1000)["all"].hit_rate == 0


@given(
    requests=st.lists(st.lists(st.integers(0, 2), max_size=12), max_size=6),
    prompt=st.lists(st.integers(0, 2), min_size=1),
)
def test_the_prefix_cache_finds_the_longest_common_prefix(requests: list[list[int]], prompt: list[int]) -> None:
    for block_size in (1, 3):
        cache = PrefixCache(block_size)
        for request in requests:
            cache.add(request)
        pairs = [zip(request, prompt[:-1], strict=False) for request in requests]
        longest = max((len(list(takewhile(lambda pair: pair[0] == pair[1], one))) for one in pairs), default=0)
        assert cache.hits(prompt) == longest // block_size * block_size


def test_reasoning_of_a_model_that_has_none_is_left_out() -> None:
    report = retention_report(
        [[user(), assistant("a", "r"), user(), assistant("a")]], create_renderer("golden:kimi-k2")
    )
    [model] = report.models
    assert model.damages == {"unsampled_reasoning": 1}
    bare = figures("golden:kimi-k2", user(), assistant("a"), user(), assistant("a"))
    assert model.policies == bare
    assert [one.off_template for one in bare.values()] == [0, 0, 0]


def test_reasoning_that_the_prompt_closes_is_pointed_at() -> None:
    chats = [[user(), assistant("a", "r")], [user(), assistant("a")]]
    for switches, damages in ((None, {"uninvited_reasoning": 1}), ({"thinking": True}, {})):
        renderer = create_renderer("golden:deepseek-v3.1", chat_template_kwargs=switches)
        assert retention_report(chats, renderer).models[0].damages == damages


def test_damage_by_the_template_is_counted() -> None:
    chat = [{"role": "developer", "content": "d"}, user(), assistant()]
    renderer = create_renderer("golden:glm45")
    assert retention_report([chat, chat, [user(), assistant()]], renderer).models[0].damages == {"dropped_message": 2}


def test_a_policy_that_contradicts_a_switch_is_not_there() -> None:
    renderer = create_renderer("golden:glm5", chat_template_kwargs={"clear_thinking": True})
    report = retention_report([[user(), assistant("a", "r"), user(), assistant("a", "r")]], renderer)
    [model] = report.models
    assert list(model.policies) == [None, "tool_cycle"]
    assert "clear_thinking" in model.unavailable["all"]
    assert report.to_json()["models"][0]["policies"][2] == {"policy": "all", "unavailable": model.unavailable["all"]}
    assert "all: " in report.to_html()


def test_the_renderers_own_policy_does_not_count() -> None:
    chat = [user(), assistant("a", "r"), user(), assistant("a", "r")]
    reports = [
        retention_report([chat], create_renderer("golden:qwen3", thinking_retention=one)) for one in (None, "all")
    ]
    assert reports[0].to_json() == reports[1].to_json()


def test_a_renderer_without_a_mask_is_refused() -> None:
    renderer = create_renderer("golden:qwen3", DefaultRendererConfig(), chat_template=TEMPLATE)
    with pytest.raises(ConfigError, match="needs a family's own renderer"):
        retention_report([[user(), assistant()]], renderer)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"context_limit": 0}, "context_limit"),
        ({"block_size": 0}, "block_size"),
        ({"workers": 0}, "workers"),
        ({"tokens_per_second": 0}, "tokens_per_second"),
        ({"tokens_per_second": float("nan")}, "tokens_per_second"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        retention_report([[user(), assistant()]], create_renderer("golden:qwen3"), **settings)
    with pytest.raises(ConfigError, match="cannot be told apart"):
        retention_report([[user(), assistant()]], [create_renderer("golden:qwen3")] * 2)
    with pytest.raises(ConfigError, match="no models"):
        retention_report([[user(), assistant()]], [])
