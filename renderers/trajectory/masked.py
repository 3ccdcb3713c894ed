"""Means over masked positions, which raise where there are none: a mean of nothing is no number.

They take numpy arrays and torch tensors alike, and give what these give.
"""

from __future__ import annotations

from typing import Any

from renderers.errors import EmptyMaskError, TrajectoryError


def masked_sum(values: Any, mask: Any, axis: int | None = None) -> Any:
    """Sum of the values where the mask is true; values elsewhere may be anything, NaN included.

    Args:
        values, mask: of one shape.
        axis: sum along this axis; None sums over all.

    Raises:
        EmptyMaskError: the mask is true nowhere, or nowhere in one of the sums.
        TrajectoryError: values and mask have different shapes.
    """
    return _selected(values, mask).sum() if axis is None else _zeroed(values, mask, axis).sum(axis)


def masked_mean(values: Any, mask: Any, axis: int | None = None) -> Any:
    """Mean of the values where the mask is true.

    >>> import numpy as np
    >>> float(masked_mean(np.array([1.0, 3.0, np.nan]), np.array([True, True, False])))
    2.0

    Args:
        values, mask: of one shape.
        axis: means along this axis, such as 1 for the mean of each sample; None takes one mean over all.

    Raises:
        EmptyMaskError, TrajectoryError: see `masked_sum`.
    """
    if axis is None:
        return _selected(values, mask).mean()
    return _zeroed(values, mask, axis).sum(axis) / (mask != 0).sum(axis)


def masked_std(values: Any, mask: Any) -> Any:
    """Standard deviation of the values where the mask is true, of the population (divided by their number).

    Raises:
        EmptyMaskError, TrajectoryError: see `masked_sum`.
    """
    selected = _selected(values, mask)
    return ((selected - selected.mean()) ** 2).mean() ** 0.5


def masked_max(values: Any, mask: Any) -> Any:
    """Largest of the values where the mask is true.

    Raises:
        EmptyMaskError, TrajectoryError: see `masked_sum`.
    """
    return _selected(values, mask).max()


def _selected(values: Any, mask: Any) -> Any:
    _check_shapes(values, mask)
    selected = values[mask != 0]
    if selected.shape[0] == 0:
        raise _empty("true nowhere")
    return selected


def _zeroed(values: Any, mask: Any, axis: int) -> Any:
    """The values, with 0 where the mask is false."""
    _check_shapes(values, mask)
    chosen = mask != 0
    counts = chosen.sum(axis)
    if bool((counts == 0).any()):
        raise _empty(f"true nowhere in one of the sums along axis {axis}")
    fill = getattr(values, "masked_fill", None)
    if fill is not None:  # torch
        return fill(~chosen, 0)
    zeroed = values.copy()
    zeroed[~chosen] = 0
    return zeroed


def _check_shapes(values: Any, mask: Any) -> None:
    for one in (values, mask):
        if not hasattr(one, "shape"):
            raise TrajectoryError(f"values and mask are arrays or tensors, found {type(one).__name__}")
    if tuple(values.shape) != tuple(mask.shape):
        raise TrajectoryError(f"values of shape {tuple(values.shape)} and a mask of shape {tuple(mask.shape)}")


def _empty(where: str) -> EmptyMaskError:
    return EmptyMaskError(
        f"the mask is {where}: a mean over no tokens is not defined. Leave such samples out of the batch, or count them "
        "before"
    )
