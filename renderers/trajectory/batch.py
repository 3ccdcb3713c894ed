"""Samples as right-padded arrays, aligned to the predicted positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from renderers.errors import MissingExtraError, TrajectoryError
from renderers.optional import load_optional
from renderers.trajectory.sample import Sample, Use

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Truncation:
    """A sample that `collate` cut to `max_length`.

    Attributes:
        index: which sample.
        tokens: how many tokens were cut off at its end.
        actions: how many of them were to be trained on.
    """

    index: int
    tokens: int
    actions: int


@dataclass(frozen=True, slots=True)
class Batch:
    """`B` samples, padded on the right to the `T` tokens of the longest.

    Position `t` of what is `T - 1` long belongs to the token that is predicted there, `ids[:, t + 1]`.

    Attributes:
        ids: `[B, T]`, int64; padding is the pad ID.
        attention_mask: `[B, T]`, int64, 1 on tokens; padding is 0.
        action_mask: `[B, T - 1]`, bool, true where the predicted token is trained on; padding is false.
        sample_logp: `[B, T - 1]`, float32, its sampling logprob, 0 where it is not trained on; padding is 0.
        turn_ids: `[B, T - 1]`, int64, its turn, -1 in the prompt; padding is -1.
        rewards: `[B]`, float32, NaN where a sample has none.
        side: `[B, T, ...]` each; padding is what was declared.
        truncations: the samples that were cut to `max_length`.
    """

    ids: Any
    attention_mask: Any
    action_mask: Any
    sample_logp: Any
    turn_ids: Any
    rewards: Any
    side: dict[str, Any]
    truncations: tuple[Truncation, ...] = ()

    def torch(self) -> Batch:
        """The same batch as torch tensors, which share the arrays' memory.

        Raises:
            MissingExtraError: torch is not installed.
        """
        from_numpy = load_optional("torch", "local", "a batch of tensors").from_numpy
        names = [field.name for field in fields(self) if field.name not in {"side", "truncations"}]
        arrays = {name: from_numpy(getattr(self, name)) for name in names}
        return replace(self, **arrays, side={name: from_numpy(array) for name, array in self.side.items()})


def collate(
    samples: Sequence[Sample], pad_id: int, max_length: int | None = None, *, require: Use = "on_policy"
) -> Batch:
    """Samples as one batch of numpy arrays; `.torch()` makes tensors of it.

    Args:
        samples: at least one.
        pad_id: the token ID of the padding.
        max_length: cut longer samples off at this length; the batch's `truncations` say what was lost.
        require: what the samples must be good for, see `Sample.require`.

    Raises:
        NotOnPolicyError: a sample is not good for that; the message says why.
        TrajectoryError: there are no samples, or their side arrays do not fit together.
    """
    try:
        import numpy as np
    except ImportError as error:
        raise MissingExtraError("numpy", "training", "collate") from error
    if not samples:
        raise TrajectoryError("there are no samples to collate")
    if not isinstance(pad_id, int):
        raise TrajectoryError(
            f"pad_id is {pad_id!r}, not a token ID; a tokenizer without padding can be padded with any of its tokens"
        )
    if max_length is not None and (not isinstance(max_length, int) or max_length < 2):
        raise TrajectoryError(f"max_length is {max_length!r}; a sample needs two tokens for one prediction")
    for index, sample in enumerate(samples):
        try:
            sample.require(require)
        except TrajectoryError as error:
            raise type(error)(f"samples[{index}]: {error}") from None
    lengths = [len(sample) if max_length is None else min(len(sample), max_length) for sample in samples]
    rows, width = len(samples), max(lengths)
    ids = np.full((rows, width), pad_id, np.int64)
    attention = np.zeros((rows, width), np.int64)
    mask = np.zeros((rows, width), np.bool_)
    logprobs = np.zeros((rows, width), np.float32)
    turn_ids = np.full((rows, width), -1, np.int64)
    for row, (sample, length) in enumerate(zip(samples, lengths, strict=True)):
        ids[row, :length] = sample.ids[:length]
        attention[row, :length] = 1
        mask[row, :length] = sample.action_mask[:length]
        logprobs[row, :length] = sample.logprobs[:length]
        turn_ids[row, :length] = sample.turn_ids[:length]
    return Batch(
        ids=ids,
        attention_mask=attention,
        action_mask=mask[:, 1:],
        sample_logp=logprobs[:, 1:],
        turn_ids=turn_ids[:, 1:],
        rewards=np.array([np.nan if one.reward is None else one.reward for one in samples], np.float32),
        side={name: _side(samples, lengths, width, name) for name in samples[0].side},
        truncations=tuple(
            Truncation(index, len(sample) - length, sum(sample.action_mask[length:]))
            for index, (sample, length) in enumerate(zip(samples, lengths, strict=True))
            if length < len(sample)
        ),
    )


def _side(samples: Sequence[Sample], lengths: Sequence[int], width: int, name: str) -> NDArray[np.generic]:
    """One side array of all samples, `[B, T, ...]`."""
    import numpy as np

    if any(name not in sample.side for sample in samples):
        raise TrajectoryError(f"side array {name!r} is not in every sample")
    padding = samples[0].side_padding[name]
    given = [value for sample in samples for value in sample.side[name] if value is not None]
    try:
        values = np.array(given or [padding])
    except ValueError:
        raise TrajectoryError(f"the values of side array {name!r} are not of one shape") from None
    kind = np.result_type(values.dtype, np.array(padding).dtype)
    array = np.full((len(samples), width, *values.shape[1:]), padding, kind)
    for row, (sample, length) in enumerate(zip(samples, lengths, strict=True)):
        known = [place for place, value in enumerate(sample.side[name][:length]) if value is not None]
        if known:
            array[row, known] = [sample.side[name][place] for place in known]
    return array
