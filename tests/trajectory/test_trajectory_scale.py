"""Long rollouts cost what their tokens cost: nothing is encoded twice, built twice or held twice."""

from __future__ import annotations

import gc
import time
import tracemalloc
from typing import Any

import pytest
from trajectory_support import model

from renderers import Trajectory, create_renderer

#: Words of a message; 200 turns of them make some 100,000 tokens.
WORDS = 64
RENDERER = create_renderer("golden:qwen3", thinking_retention="all")
STOP = RENDERER.get_stop_token_ids()[0]


def text(turn: int) -> str:
    """A text that no other turn has, a few bytes a token."""
    return " ".join(f"file {turn}.{word}" for word in range(WORDS))


def completion(turn: int) -> list[int]:
    """What the model samples at a turn."""
    return [*RENDERER.tokenizer.encode_ordinary(f"<think>\n{turn}\n</think>\n\n{text(-turn)}"), STOP]


def rolled_out(completions: list[list[int]], *, look: bool = False) -> Trajectory:
    """A rollout with a user's turn before each completion."""
    trajectory = Trajectory(RENDERER)
    trajectory.begin([{"role": "user", "content": text(0)}])
    for turn, ids in enumerate(completions):
        if turn:
            assert trajectory.add_messages([{"role": "user", "content": text(turn)}])
        if look:
            _ = trajectory.extension_ids
        trajectory.add_completion(ids, [-1.0] * len(ids))
    return trajectory


class Counted:
    """Counts the characters that a renderer's tokenizer encodes, and the tokens that it decodes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tokenizer: Any) -> None:
        self.characters = self.tokens = 0
        encode, decode = tokenizer.encode_ordinary_batch, tokenizer.decode_bytes

        def counted_encode(texts: list[str]) -> Any:
            self.characters += sum(map(len, texts))
            return encode(texts)

        def counted_decode(ids: list[int]) -> Any:
            self.tokens += len(ids)
            return decode(ids)

        monkeypatch.setattr(tokenizer, "encode_ordinary_batch", counted_encode)
        monkeypatch.setattr(tokenizer, "decode_bytes", counted_decode)


def test_work_grows_with_the_new_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    completions = [completion(turn) for turn in range(200)]
    counted = Counted(monkeypatch, RENDERER.tokenizer)
    trajectory = rolled_out(completions, look=True)
    assert trajectory.breaks == []
    assert len(trajectory) > 100_000
    written = sum(len(str(message["content"])) for message in trajectory.messages if message["role"] == "user")
    assert counted.characters < 1.2 * written  # each message once; what a model sampled, never
    assert counted.tokens <= 3 * sum(map(len, completions))  # parsed for the caller and for the bridge
    assert trajectory.tree.stored_tokens == len(trajectory)
    # No prompt has built its whole list of IDs, masks or owners.
    prompts = [step.prompt for step in trajectory.steps]
    assert len(prompts) == 200
    assert all(prompt is not None and not prompt._lists for prompt in prompts)
    [sample] = trajectory.samples()
    assert sum(sample.action_mask) == sum(map(len, completions))


def test_each_token_is_held_once() -> None:
    completions = [completion(turn) for turn in range(60)]
    rolled_out(completions[:2])
    gc.collect()
    tracemalloc.start()
    trajectory = rolled_out(completions)
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # A list's pointer and a logprob are 8 bytes each, an integer is 28 to 32; messages and runs come on top.
    assert held / len(trajectory) < 60


def test_time_is_linear() -> None:
    completions = [completion(turn) for turn in range(200)]
    rolled_out(completions[:10])

    def seconds(turns: int) -> float:
        times = []
        for _ in range(3):
            start = time.process_time()
            rolled_out(completions[:turns], look=True)
            times.append(time.process_time() - start)
        return min(times)

    assert seconds(200) < 8 * seconds(50)  # four times the tokens; a quadratic cost would be sixteen


def test_a_renderer_that_never_bridges_holds_each_token_once_too() -> None:
    trajectory = Trajectory(model("default").renderer)
    trajectory.begin([{"role": "user", "content": text(0)}])
    for turn in range(1, 20):
        ids = [*RENDERER.tokenizer.encode_ordinary(text(turn)), STOP]
        trajectory.add_completion(ids)
        trajectory.add_messages([{"role": "user", "content": text(turn)}])
    assert trajectory.breaks == []
    assert trajectory.tree.stored_tokens == len(trajectory)
    assert sum(step.prompt is not None for step in trajectory.steps) == 1
