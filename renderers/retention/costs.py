"""What the tokens cost: money by prices, time by a speed."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from renderers.errors import ConfigError

if TYPE_CHECKING:
    from renderers.retention.figures import Figures

_PER = 1_000_000


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of a million tokens, in any one currency.

    >>> Prices(prompt=1.25, cached=0.125, completion=10)
    Prices(prompt=1.25, cached=0.125, completion=10, training=0.0)

    Attributes:
        prompt: prompt tokens that are processed.
        cached: prompt tokens that come from the prefix cache; None, the default, costs as much as `prompt`.
        completion: sampled tokens.
        training: tokens of the training samples.

    Raises:
        ConfigError: for a price that is negative or no number.
    """

    prompt: float = 0.0
    cached: float | None = None
    completion: float = 0.0
    training: float = 0.0

    def __post_init__(self) -> None:
        for one in fields(self):
            price = getattr(self, one.name)
            if price is not None and not (math.isfinite(price) and price >= 0):
                raise ConfigError(f"the price of {one.name} tokens must be a number from 0 on, found {price!r}")

    def cost(self, figures: Figures, *, reuse: bool) -> float:
        """What the rollouts cost, with a prefix cache or without one."""
        cached = figures.cached_tokens if reuse else 0
        return (
            (figures.prompt_tokens - cached) * self.prompt
            + cached * (self.prompt if self.cached is None else self.cached)
            + figures.trained_tokens * self.completion
            + figures.sample_tokens * self.training
        ) / _PER
