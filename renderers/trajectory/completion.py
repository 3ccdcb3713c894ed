"""What is known of a completion beside its tokens, checked when it enters."""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass, field
from typing import Any

from renderers.errors import TokenIdsError, TrajectoryError

#: A logprob above 0 by more than rounding is a probability given by mistake.
_ROUNDING = 1e-3


@dataclass(slots=True)
class Completion:
    """What belongs to the tokens of one completion.

    Attributes:
        digest: of its IDs, as they were given.
        truncated: the model did not end its turn.
        logprobs: one value a token, NaN where it is not known and 0 where the token was forced; None: none is known.
        sampled: whether the model sampled each token; None: all of them.
        side: further values, one a token, by name.
        approximated: what was approximated, of a reply that is known as text alone; empty where tokens were given.
    """

    digest: str
    truncated: bool = False
    logprobs: array[float] | None = None
    sampled: list[bool] | None = None
    side: dict[str, list[Any]] = field(default_factory=dict)
    approximated: tuple[str, ...] = ()

    def lengths(self) -> dict[str, int]:
        """How many entries each list has that has one a token."""
        lists: dict[str, Sized | None] = {"logprobs": self.logprobs, "sampled": self.sampled}
        lists |= {f"side[{name!r}]": values for name, values in self.side.items()}
        return {name: len(values) for name, values in lists.items() if values is not None}

    def mask(self, length: int) -> list[bool]:
        """Which of its `length` tokens the model sampled. None, where it is known as text alone."""
        if self.approximated:
            return [False] * length
        return [True] * length if self.sampled is None else self.sampled

    def logprobs_of(self, length: int) -> list[float]:
        """One value a token: NaN where none is known, 0 where the token was not sampled."""
        if self.logprobs is not None:
            return self.logprobs.tolist()
        return [math.nan if sampled else 0.0 for sampled in self.mask(length)]


def digest_of(token_ids: Sequence[int]) -> str:
    """A short digest of token IDs: what a completion was when it was given.

    Raises:
        TokenIdsError: for a number over 63 bits.
    """
    try:
        return hashlib.blake2b(array("q", token_ids).tobytes(), digest_size=8).hexdigest()
    except OverflowError:
        raise TokenIdsError("token_ids holds a number over 63 bits, which no vocabulary has") from None


def check_mask(sampled: Sequence[Any] | None, length: int) -> list[bool] | None:
    """A mask of what was sampled, as booleans; None where all was.

    Raises:
        TrajectoryError: for another length, or anything that is neither true nor false.
    """
    if sampled is None:
        return None
    values = _as_list(sampled, "sampled", length)
    for index, value in enumerate(values):
        if value not in (0, 1):
            raise TrajectoryError(f"sampled[{index}] is {value!r}; a mask holds true and false")
    mask = [bool(value) for value in values]
    return None if all(mask) else mask


def check_logprobs(logprobs: Sequence[Any] | None, length: int, sampled: Sequence[bool] | None) -> array[float] | None:
    """Logprobs as floats, NaN for None, 0 where the token was not sampled.

    Raises:
        TrajectoryError: for another length, or a value that is no logprob.
    """
    if logprobs is None:
        return None
    checked = array("d")
    for index, value in enumerate(_as_list(logprobs, "logprobs", length)):
        if sampled is not None and not sampled[index]:
            checked.append(0.0)
            continue
        try:
            number = math.nan if value is None else float(value)
        except (TypeError, ValueError):
            raise TrajectoryError(f"logprobs[{index}] is {value!r}, not a number") from None
        if number > _ROUNDING or math.isinf(number):
            advice = "give logprobs, not probabilities" if 0 < number <= 1 else "a sampled token has a finite logprob"
            raise TrajectoryError(f"logprobs[{index}] is {number!r}: {advice}")
        checked.append(number)
    return checked


def check_side(
    side: Mapping[str, Sequence[Any]] | None, length: int, declared: Mapping[str, Any]
) -> dict[str, list[Any]]:
    """Side arrays, one value a token, as lists.

    Raises:
        TrajectoryError: for a name that was not declared, or another length.
    """
    checked = {}
    for name, values in (side or {}).items():
        if name not in declared:
            known = ", ".join(sorted(declared)) or "none"
            raise TrajectoryError(
                f"side array {name!r} was not declared (declared: {known}); give its padding when the trajectory is made: "
                f"side_arrays={{{name!r}: ...}}"
            )
        checked[name] = _as_list(values, f"side[{name!r}]", length)
    return checked


def _as_list(values: Sequence[Any], name: str, length: int) -> list[Any]:
    to_list = getattr(values, "tolist", None)
    try:
        found = [_plain(value) for value in (to_list() if callable(to_list) else values)]
    except TypeError:
        raise TrajectoryError(f"{name} is of type {type(values).__name__}, not one value a token") from None
    if len(found) != length:
        raise TrajectoryError(f"{name} has {len(found)} values for {length} tokens")
    return found


def _plain(value: Any) -> Any:
    """A number or nested list, also where an array's comes."""
    to_list = getattr(value, "tolist", None)
    return to_list() if callable(to_list) else value
