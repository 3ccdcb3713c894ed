"""Samples and batches: what a trainer gets, and what it must not do with it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from trajectory_support import ANSWER, CALL, RENDERER, RESULT, THOUGHT, USER, begun

from renderers import EmptyMaskError, MissingExtraError, NotOnPolicyError, Owner, TrajectoryError, create_renderer
from renderers.trajectory import (
    Sample,
    Trajectory,
    Truncation,
    collate,
    masked_max,
    masked_mean,
    masked_std,
    masked_sum,
)


def sample_of(*completions: list[int], logprob: float | None = -0.5, **settings: Any) -> Sample:
    """A sample with these completions, each answered by a tool or by the user."""
    trajectory = begun(**settings)
    for number, ids in enumerate(completions):
        if number:
            assert trajectory.add_messages([RESULT if completions[number - 1] is CALL else USER])
        side = {name: list(range(len(ids))) for name in trajectory.side_arrays}
        trajectory.add_completion(ids, None if logprob is None else [logprob] * len(ids), side=side)
    trajectory.reward = 0.25
    [sample] = trajectory.samples()
    return sample


def test_shapes_and_paddings() -> None:
    long, short = sample_of(CALL, ANSWER), sample_of(ANSWER)
    batch = collate([long, replace(short, reward=None)], pad_id=7)
    width, length = len(long), len(short)
    assert batch.ids.shape == batch.attention_mask.shape == (2, width)
    assert batch.action_mask.shape == batch.sample_logp.shape == batch.turn_ids.shape == (2, width - 1)
    assert batch.ids.dtype == batch.attention_mask.dtype == batch.turn_ids.dtype == np.int64
    assert batch.action_mask.dtype == np.bool_
    assert batch.sample_logp.dtype == batch.rewards.dtype == np.float32
    assert batch.ids[1].tolist() == short.ids + [7] * (width - length)
    assert batch.attention_mask[1].tolist() == [1] * length + [0] * (width - length)
    # Aligned to the predicted positions: what stands at t belongs to token t + 1.
    assert batch.action_mask[1].tolist() == short.action_mask[1:] + [False] * (width - length)
    assert batch.sample_logp[1].tolist() == short.logprobs[1:] + [0.0] * (width - length)
    assert batch.turn_ids[1].tolist() == short.turn_ids[1:] + [-1] * (width - length)
    assert batch.action_mask[0].sum() == len(CALL) + len(ANSWER)
    assert batch.ids[0, 1:][batch.action_mask[0]].tolist() == CALL + ANSWER
    assert batch.rewards[0] == 0.25
    assert np.isnan(batch.rewards[1])
    assert batch.truncations == ()


def test_truncation_is_reported() -> None:
    long, short = sample_of(CALL, ANSWER), sample_of(ANSWER)
    batch = collate([long, short], 0, max_length=len(long) - 2)
    assert batch.ids.shape[1] == len(long) - 2
    assert batch.truncations == (Truncation(index=0, tokens=2, actions=2),)
    with pytest.raises(TrajectoryError, match="two tokens"):
        collate([long], 0, max_length=1)
    with pytest.raises(TrajectoryError, match="no samples"):
        collate([], 0)
    with pytest.raises(TrajectoryError, match="pad_id is None"):
        collate([long], None)  # type: ignore[arg-type]  # a tokenizer's pad_token_id may be None


def test_logprobs_are_needed_on_policy() -> None:
    bare = sample_of(ANSWER, logprob=None)
    with pytest.raises(NotOnPolicyError, match=r"samples\[1\]: 3 of 3 sampled tokens have no logprob"):
        collate([sample_of(ANSWER), bare], 0)
    batch = collate([bare], 0, require="exact")
    assert np.isnan(batch.sample_logp[batch.action_mask]).all()
    assert not np.isnan(batch.sample_logp[~batch.action_mask]).any()


def test_side_arrays_are_collated() -> None:
    numbers = sample_of(ANSWER, side_arrays={"expert": -1})
    batch = collate([numbers, numbers], 0, max_length=len(numbers) - 1)
    assert batch.side["expert"].shape == (2, len(numbers) - 1)
    assert batch.side["expert"][0].tolist() == [-1] * (len(numbers) - 3) + [0, 1]
    vectors = replace(numbers, side={"expert": [None if one is None else [one, 0.5] for one in numbers.side["expert"]]})
    assert collate([vectors], 0).side["expert"].shape == (1, len(numbers), 2)
    nothing = replace(numbers, side={"expert": [None] * len(numbers)})
    assert collate([nothing], 0).side["expert"].tolist() == [[-1] * len(numbers)]
    with pytest.raises(TrajectoryError, match="not of one shape"):
        collate([numbers, vectors], 0)
    with pytest.raises(TrajectoryError, match="not in every sample"):
        collate([numbers, sample_of(ANSWER)], 0)


def test_tensors_need_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    class Torch:
        @staticmethod
        def from_numpy(array: Any) -> Any:
            return ("tensor", array)

    batch = collate([sample_of(ANSWER, side_arrays={"expert": -1})], 0)
    monkeypatch.setitem(sys.modules, "torch", Torch)
    tensors = batch.torch()
    assert tensors.ids[0] == tensors.side["expert"][0] == "tensor"
    assert tensors.action_mask[1] is batch.action_mask
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match="torch"):
        batch.torch()


def test_arrays_need_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = sample_of(ANSWER)
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(MissingExtraError, match="training"):
        collate([sample], 0)


def test_a_rollout_needs_no_extra() -> None:
    code = (
        "import sys; from renderers import Trajectory, create_renderer; "
        "t = Trajectory(create_renderer('golden:qwen3')); t.begin([{'role': 'user', 'content': 'hi'}]); "
        "t.add_completion([9707, 13, 151645]); t.samples(); Trajectory.from_json(t.to_json(), t.renderer); "
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "pyarrow", "torch", "transformers"} & set(loaded)


# Replies that came as text alone ---------------------------------------------------------------------------------------


def text_trajectory(name: str = "golden:qwen3", message: dict[str, Any] | None = None, **more: Any) -> Trajectory:
    """A trajectory whose first reply came as text."""
    trajectory = Trajectory(create_renderer(name))
    trajectory.begin([USER])
    trajectory.add_reply(message or {"role": "assistant", "content": "Hello."}, **more)
    return trajectory


def test_text_replies_are_not_exact() -> None:
    trajectory = text_trajectory()
    [sample] = trajectory.samples()
    assert not sample.exact
    [approximation] = sample.approximations
    assert approximation.what == ("segmentation", "hidden_reasoning")
    text = trajectory.renderer.decode(sample.ids[approximation.start : approximation.end])
    assert text == "<think>\n\n</think>\n\nHello.<|im_end|>"
    assert not any(sample.action_mask)
    assert Owner.POLICY not in sample.owners
    for use in ("on_policy", "exact"):
        with pytest.raises(NotOnPolicyError, match="came as text alone"):
            sample.require(use)  # type: ignore[arg-type]  # a literal, from a tuple
        with pytest.raises(NotOnPolicyError, match=r"samples\[0\].*supervised"):
            collate([sample], 0, require=use)  # type: ignore[arg-type]  # the same
    supervised = sample.supervised()
    assert sum(supervised.action_mask) == approximation.end - approximation.start
    batch = collate([supervised], 0, require="any")
    assert np.isnan(batch.sample_logp[batch.action_mask]).all()


def test_what_is_approximated() -> None:
    call = {"id": "call_0", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}
    message = {"role": "assistant", "content": None, "reasoning_content": "Hm.", "tool_calls": [call]}
    assert text_trajectory(message=message).samples()[0].approximations[0].what == ("segmentation", "argument_text")
    call["function"] = {"name": "f", "arguments": '{"a":1}'}
    assert text_trajectory(message=message).samples()[0].approximations[0].what == ("segmentation",)
    said = text_trajectory(message=message, approximated=["hidden_blocks"])
    assert said.samples()[0].approximations[0].what == ("segmentation", "hidden_blocks")


@pytest.mark.parametrize("name", ["golden:qwen3", "golden:qwen3.5", "golden:glm45", "golden:glm5", "golden:kimi-k2"])
def test_text_replies_continue_their_prompt(name: str) -> None:
    """A render of the whole conversation is split where the prompt ends, also inside a token."""
    trajectory = text_trajectory(name)
    prompt = create_renderer(name).render_ids([USER], add_generation_prompt=True)
    [sample] = trajectory.samples()
    assert sample.ids[: sample.turns[0].start] == prompt
    assert "Hello." in trajectory.renderer.decode(sample.ids[sample.turns[0].start :])
    assert trajectory.add_messages([USER])
    assert trajectory.break_reasons == []


def test_sampled_tokens_beside_text_replies_stay_exact() -> None:
    trajectory = text_trajectory()
    trajectory.add_messages([USER])
    trajectory.add_completion(THOUGHT, [-0.5] * len(THOUGHT))
    [sample] = trajectory.samples()
    assert sum(sample.action_mask) == len(THOUGHT)
    assert not sample.exact
    assert RENDERER.decode(sample.ids[-len(THOUGHT) :]).endswith("Hello.<|im_end|>")


def test_a_reply_is_the_assistants() -> None:
    from renderers import MessageError

    trajectory = begun()
    with pytest.raises(MessageError, match="found role 'user'"):
        trajectory.add_reply(USER)
    trajectory.add_completion(ANSWER)
    with pytest.raises(TrajectoryError, match="add_messages"):
        trajectory.add_reply({"role": "assistant", "content": "x"})


# Means over masks ------------------------------------------------------------------------------------------------------


def test_means_over_a_mask() -> None:
    values = np.array([[1.0, 2.0, np.nan], [5.0, np.nan, 9.0]])
    mask = np.array([[True, True, False], [True, False, True]])
    assert masked_sum(values, mask) == 17.0
    assert masked_mean(values, mask) == 4.25
    assert masked_max(values, mask) == 9.0
    assert masked_std(values, mask) == pytest.approx(np.std([1.0, 2.0, 5.0, 9.0]))
    assert masked_mean(values, mask, axis=1).tolist() == [1.5, 7.0]
    assert masked_sum(values, mask.astype(np.int64), axis=1).tolist() == [3.0, 14.0]
    assert np.isnan(values[0, 2])  # the caller's array stays


@pytest.mark.parametrize("mean", [masked_sum, masked_mean, masked_max, masked_std])
def test_means_of_nothing_raise(mean: Any) -> None:
    with pytest.raises(EmptyMaskError, match="true nowhere"):
        mean(np.ones((2, 2)), np.zeros((2, 2), np.bool_))
    with pytest.raises(TrajectoryError, match="shape"):
        mean(np.ones((2, 2)), np.ones((2, 1), np.bool_))


def test_means_are_of_arrays() -> None:
    with pytest.raises(TrajectoryError, match="found list"):
        masked_mean([1.0], [True])


@pytest.mark.parametrize("mean", [masked_sum, masked_mean])
def test_an_empty_row_raises(mean: Any) -> None:
    with pytest.raises(EmptyMaskError, match="along axis 1"):
        mean(np.ones((2, 2)), np.array([[True, True], [False, False]]), axis=1)
