"""What a trainer wants to know before its first step: are these the engine's tokens, and are its logprobs the trainer's?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from renderers.errors import EmptyMaskError, NotOnPolicyError, TokenMismatchError, TrajectoryError
from renderers.labels import Owner
from renderers.optional import load_optional
from renderers.trajectory.batch import Batch
from renderers.trajectory.completion import digest_of
from renderers.trajectory.sample import Sample


def assert_token_in_token_out(
    sample: Sample, calls: Sequence[tuple[Sequence[int], Sequence[int]]] | None = None
) -> None:
    """Raise unless a sample holds exactly what the engine was given and returned, and trains on nothing else.

    Checks that all lists are of one length; that the mask, aligned to predicted positions, is the owner `policy`; that
    it is true inside the sample's turns alone; and that the IDs of each turn are those that `add_completion` was given.

    Args:
        sample: the sample.
        calls: the harness's own record of this sample's engine calls, each as (prompt IDs, completion IDs), in order.

    Raises:
        NotOnPolicyError: a reply in it came as text alone.
        TokenMismatchError: saying at which token, what was found and what was expected.
    """
    sample.require("exact")
    length = len(sample.ids)
    for name in ("action_mask", "logprobs", "owners", "turn_ids"):
        if len(getattr(sample, name)) != length:
            raise TokenMismatchError(f"{name} has {len(getattr(sample, name))} entries for {length} tokens")
    if length and sample.action_mask[0]:
        raise TokenMismatchError("the first token is in the mask, and nothing predicts it")
    for position, (masked, owner) in enumerate(zip(sample.action_mask[1:], sample.owners[1:], strict=True)):
        if masked != (owner is Owner.POLICY):
            raise TokenMismatchError(
                f"predicted position {position} (token {position + 1}): the mask is {masked}, the owner {owner.value}"
            )
    outside = list(sample.action_mask)
    for number, turn in enumerate(sample.turns):
        outside[turn.start : turn.end] = [False] * (turn.end - turn.start)
        if digest_of(sample.ids[turn.start : turn.end]) != turn.digest:
            raise TokenMismatchError(
                f"turn {number} (tokens {turn.start} to {turn.end}): the IDs are not those that add_completion was given"
            )
    if any(outside):
        raise TokenMismatchError(f"token {outside.index(True)} is in the mask, and in no completion")
    if calls is not None:
        _check_calls(sample, calls)


def _check_calls(sample: Sample, calls: Sequence[tuple[Sequence[int], Sequence[int]]]) -> None:
    if len(calls) != len(sample.turns):
        raise TokenMismatchError(f"the sample has {len(sample.turns)} turns, and {len(calls)} engine calls were given")
    for number, (turn, (prompt, completion)) in enumerate(zip(sample.turns, calls, strict=True)):
        for what, found, expected in (
            ("prompt", sample.ids[: turn.start], list(prompt)),
            ("completion", sample.ids[turn.start : turn.end], list(completion)),
        ):
            if found != expected:
                shortest = min(len(found), len(expected))
                place = next((at for at in range(shortest) if found[at] != expected[at]), shortest)
                raise TokenMismatchError(
                    f"turn {number}: the sample's {what} has {len(found)} tokens, the engine's {len(expected)}; they differ "
                    f"from token {place} on ({found[place : place + 4]} and {expected[place : place + 4]})"
                )


@dataclass(frozen=True, slots=True)
class LogprobDifference:
    """One token's two logprobs. `row` and `position` are those of the batch's `[B, T - 1]` arrays."""

    row: int
    position: int
    token_id: int
    sampler: float
    trainer: float


@dataclass(frozen=True, slots=True)
class LogprobComparison:
    """The sampler's and the trainer's logprobs on the action mask; differences are trainer minus sampler.

    Attributes:
        tokens: how many tokens are compared.
        mean_difference: mean of the differences.
        mean_absolute: mean of their absolute values.
        max_absolute: the largest absolute value.
        mean_ratio: mean of the importance ratios `exp(difference)`; 1 with an unchanged model.
        min_ratio, max_ratio: the smallest and the largest of them.
        kl: an estimate of KL(sampler || trainer) by `ratio - 1 - difference`, never negative.
        worst: the tokens that differ most, the worst first.
    """

    tokens: int
    mean_difference: float
    mean_absolute: float
    max_absolute: float
    mean_ratio: float
    min_ratio: float
    max_ratio: float
    kl: float
    worst: tuple[LogprobDifference, ...]

    def __str__(self) -> str:
        return (
            f"{self.tokens} tokens: |difference| mean {self.mean_absolute:.3g}, max {self.max_absolute:.3g}; ratio mean "
            f"{self.mean_ratio:.6g} ({self.min_ratio:.6g} to {self.max_ratio:.6g}); KL {self.kl:.3g}"
        )


def compare_logprobs(batch: Batch, trainer_logp: Any, *, worst: int = 5) -> LogprobComparison:
    """The logprobs of sampling and those that the trainer computes for the same tokens, on the action mask.

    Args:
        batch: what `collate` made, of arrays or tensors.
        trainer_logp: `[B, T - 1]`, the trainer's logprob of each predicted token; an array or a tensor.
        worst: how many of the tokens that differ most are listed.

    Raises:
        EmptyMaskError: nothing is masked.
        NotOnPolicyError: a sampled token has no logprob.
        TrajectoryError: shapes differ, or the trainer's logprobs hold NaN on the mask.
    """
    np = load_optional("numpy", "training", "compare_logprobs")
    mask, sampler, ids = (np.asarray(value) for value in (batch.action_mask, batch.sample_logp, batch.ids))
    trainer = _numbers(np, trainer_logp)
    if trainer.shape != mask.shape:
        raise TrajectoryError(f"trainer_logp is of shape {trainer.shape}; the action mask is {mask.shape}")
    rows, positions = np.nonzero(mask)
    if not rows.size:
        raise EmptyMaskError("nothing is in the action mask, so there are no logprobs to compare")
    first, second = sampler[rows, positions].astype(np.float64), trainer[rows, positions]
    if np.isnan(first).any():
        raise NotOnPolicyError(f"{int(np.isnan(first).sum())} sampled tokens have no logprob to compare with")
    if np.isnan(second).any():
        raise TrajectoryError(f"trainer_logp is NaN for {int(np.isnan(second).sum())} tokens of the action mask")
    difference = second - first
    ratio = np.exp(difference)
    order = np.argsort(-np.abs(difference), kind="stable")[:worst]
    return LogprobComparison(
        tokens=int(rows.size),
        mean_difference=float(difference.mean()),
        mean_absolute=float(np.abs(difference).mean()),
        max_absolute=float(np.abs(difference).max()),
        mean_ratio=float(ratio.mean()),
        min_ratio=float(ratio.min()),
        max_ratio=float(ratio.max()),
        kl=float((ratio - 1 - difference).mean()),
        worst=tuple(
            LogprobDifference(
                row=int(rows[at]),
                position=int(positions[at]),
                token_id=int(ids[rows[at], positions[at] + 1]),
                sampler=float(first[at]),
                trainer=float(second[at]),
            )
            for at in order
        ),
    )


def _numbers(np: Any, value: Any) -> Any:
    """An array of floats, also of a tensor with a gradient, on another device or in half precision."""
    detach = getattr(value, "detach", None)
    try:
        return np.asarray(detach().double().cpu() if callable(detach) else value, np.float64)
    except (TypeError, ValueError) as error:
        raise TrajectoryError(f"trainer_logp is no array of numbers: {error}") from None
