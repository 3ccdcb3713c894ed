"""Measuring side by side: what is compared runs in turn, so that a change of the machine's speed meets all of it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

#: What one piece of work took, in seconds of processor time, by its name.
Round: TypeAlias = Mapping[str, float]


def seconds(work: Callable[..., Any], *arguments: Any, **named: Any) -> float:
    """Processor time of one call: what else runs on the machine does not count."""
    begin = time.process_time()
    work(*arguments, **named)
    return time.process_time() - begin


def repeated(work: Callable[..., Any], *arguments: Any, at_least: float = 0.02, **named: Any) -> float:
    """Processor time of a call that is too short for the clock: the mean of as many as take `at_least` seconds."""
    count, spent = 0, 0.0
    while spent < at_least:
        spent += seconds(work, *arguments, **named)
        count += 1
    return spent / count


def median(rounds: Sequence[Round], name: str) -> float | None:
    """The median time of one piece of work, in milliseconds; None where it was not measured."""
    times = [one[name] for one in rounds if name in one]
    return 1000 * statistics.median(times) if times else None


def ratio(rounds: Sequence[Round], name: str, other: str) -> float | None:
    """How many times as long `name` took as `other`: the median of the ratios within a round."""
    ratios = [one[name] / one[other] for one in rounds if name in one and one.get(other)]
    return statistics.median(ratios) if ratios else None
