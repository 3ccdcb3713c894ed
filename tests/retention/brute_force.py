"""The figures of a rollout once more, as slowly and as simply as they can be counted: whole renders, token by token."""

from __future__ import annotations

import functools
import warnings
from collections import Counter
from typing import Any, NamedTuple

from renderers import DamageWarning, create_renderer

#: Settings under which these models reason.
SWITCHES: dict[str, dict[str, Any]] = {
    "golden:deepseek-v3.1": {"thinking": True},
    "golden:deepseek-v3.2": {"thinking_mode": "thinking"},
    "golden:deepseek-v4": {"thinking_mode": "thinking"},
}

#: Figures that are sums over turns.
SUMS = (
    "turns", "prompt_tokens", "cached_tokens", "trained_tokens", "reasoning_kept", "reasoning_dropped", "off_template",
)  # fmt: skip


@functools.cache
def renderer_of(model: str, policy: str | None) -> Any:
    switches = SWITCHES.get(model)
    return create_renderer(model, thinking_retention=policy, chat_template_kwargs=switches)  # type: ignore[arg-type]  # one of the two, or None


def render(model: str, policy: str | None, messages: list[Any], tools: Any, *, prompt: bool) -> list[int]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamageWarning)
        return list(renderer_of(model, policy).render_ids(messages, tools=tools, add_generation_prompt=prompt))


def completion_of(model: str, messages: list[Any], tools: Any, place: int, following: int | None) -> list[int]:
    """What the render with the reply has after the prompt, through the first stop token."""
    prompt = render(model, "all", messages[:place], tools, prompt=True)
    whole = render(model, "all", messages[: place + 1], tools, prompt=False)
    assert whole[: len(prompt)] == prompt, "the generated reply is not canonical"
    stops = renderer_of(model, None).get_stop_token_ids()
    rest = whole[len(prompt) :]
    for index, token_id in enumerate(rest):
        if token_id in stops:
            return rest[: index + 1]
    if following is None:
        return [*rest, stops[0]]
    shown = render(model, "all", messages[:following], tools, prompt=True)[len(whole)]
    return [*rest, shown] if shown in stops else rest


def reasoning_length(model: str, completion: list[int], reasoning: str) -> int:
    """How many tokens of a completion begin inside its reasoning."""
    tokenizer = renderer_of(model, None).tokenizer
    pieces = [tokenizer.token_bytes(token_id) for token_id in completion]
    start = b"".join(pieces).index(reasoning.encode())
    begins = [sum(map(len, pieces[:place])) for place in range(len(pieces))]
    return sum(start <= begin < start + len(reasoning.encode()) for begin in begins)


class Reply(NamedTuple):
    """A reply, its tokens, and the prompt before it as the template writes it."""

    place: int
    completion: list[int]
    reasoning: str
    reasoning_length: int
    template_prompt: list[int]


def replies_of(model: str, messages: list[Any], tools: Any) -> list[Reply]:
    """The replies of a conversation, the same under every policy."""
    places = [place for place, one in enumerate(messages) if one["role"] == "assistant"]
    replies = []
    for place, following in zip(places, [*places[1:], None], strict=True):
        completion = completion_of(model, messages, tools, place, following)
        reasoning = messages[place]["reasoning_content"]
        length = reasoning_length(model, completion, reasoning)
        prompt = render(model, None, messages[:place], tools, prompt=True)
        replies.append(Reply(place, completion, reasoning, length, prompt))
    return replies


def brute_force(
    model: str, policy: str | None, messages: list[Any], tools: Any, replies: list[Reply], limit: int, block: int
) -> dict[str, Any]:
    """Every figure of one rollout. Each generated reasoning is told from the others by a number."""
    samples: list[list[int]] = []
    requests: list[list[int]] = []
    causes: list[str] = []
    found = Counter[str](turns=len(replies))
    for number, (place, completion, _, _, template_prompt) in enumerate(replies):
        prompt = render(model, policy, messages[:place], tools, prompt=True)
        if number:
            new = messages[replies[number - 1].place + 1 : place]
            asks = any(one["role"] == "user" for one in new)
            if not new:
                causes.append("no_new_messages")
                samples.append([])
            elif prompt[: len(samples[-1])] != samples[-1] or (policy == "tool_cycle" and asks):
                causes.append("retention")
                samples.append([])
        else:
            samples.append([])
        samples[-1] = prompt + completion
        found["prompt_tokens"] += len(prompt)
        found["trained_tokens"] += len(completion)
        found["off_template"] += prompt != template_prompt
        found["cached_tokens"] += max((cached(prompt, one, block) for one in requests), default=0)
        text = renderer_of(model, None).decode(prompt)
        for earlier in replies[:number]:
            found["reasoning_kept" if earlier.reasoning in text else "reasoning_dropped"] += earlier.reasoning_length
        requests.append(prompt + completion)
    longest = max(map(len, requests))
    return {
        **{name: found[name] for name in SUMS},
        "samples": len(samples),
        "breaks": Counter(causes),
        "sample_tokens": sum(map(len, samples)),
        "longest_context": longest,
        "over_limit": int(longest > limit),
    }


def cached(prompt: list[int], request: list[int], block: int) -> int:
    """Tokens that a request left in the cache for this prompt: whole blocks, and neither one's last token."""
    length = 0
    for left, right in zip(prompt[:-1], request[:-1], strict=False):
        if left != right:
            break
        length += 1
    return length // block * block
