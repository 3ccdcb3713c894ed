"""Batches as tensors, and masked means of tensors; where torch is, see `make engines`."""

from __future__ import annotations

import pytest
import torch
from trajectory_support import ANSWER, begun

from renderers import EmptyMaskError
from renderers.trajectory import collate, compare_logprobs, masked_max, masked_mean, masked_std, masked_sum


def test_a_batch_of_tensors() -> None:
    trajectory = begun(side_arrays={"expert": -1})
    trajectory.add_completion(ANSWER, [-0.5] * len(ANSWER), side={"expert": [[1, 2]] * len(ANSWER)})
    batch = collate(trajectory.samples(), 0).torch()
    assert batch.ids.dtype == batch.turn_ids.dtype == torch.int64
    assert batch.action_mask.dtype == torch.bool
    assert batch.side["expert"].shape == (1, batch.ids.shape[1], 2)
    trainer = (batch.sample_logp - 0.25).requires_grad_()
    assert compare_logprobs(batch, trainer).mean_difference == pytest.approx(-0.25)
    loss = masked_mean(trainer, batch.action_mask)
    loss.backward()
    assert trainer.grad is not None
    assert (trainer.grad[~batch.action_mask] == 0).all()


def test_masked_means_of_tensors() -> None:
    values = torch.tensor([[1.0, 2.0, float("nan")], [5.0, float("nan"), 9.0]])
    mask = torch.tensor([[1, 1, 0], [1, 0, 1]])
    assert masked_sum(values, mask) == 17.0
    assert masked_mean(values, mask) == 4.25
    assert masked_max(values, mask) == 9.0
    assert masked_std(values, mask) == pytest.approx(3.1124749)
    assert masked_mean(values, mask, axis=1).tolist() == [1.5, 7.0]
    with pytest.raises(EmptyMaskError):
        masked_mean(values, torch.zeros_like(mask))
