"""Token IDs as callers have them: lists, tuples, arrays, tensors; checked once at the border."""

from __future__ import annotations

import marshal
import operator
from collections.abc import Sequence
from typing import Any

from renderers.errors import TokenIdsError, TokenIdsTypeError


def as_token_ids(value: Any, name: str = "token_ids", *, or_one: bool = False) -> list[int]:
    """`value` as a list of non-negative Python integers; `name` is the parameter that an error names.

    Accepted are sequences of integers (numpy's included) and one-dimensional integer arrays and tensors, and with
    `or_one` also a single integer. A list of plain integers is returned as it is, not copied.

    Raises:
        TokenIdsTypeError: it is no sequence of integers (text, floats, booleans, None, nested lists, ...).
        TokenIdsError: a number is negative.
    """
    ids = value if type(value) is list else _as_list(value, name, or_one=or_one)
    if _are_plain_ids(ids):
        return ids
    ids = [_as_int(item, name, index) for index, item in enumerate(ids)]
    if ids and min(ids) < 0:
        index = next(index for index, item in enumerate(ids) if item < 0)
        raise TokenIdsError(f"{name}[{index}] is {ids[index]}: a token ID cannot be negative")
    return ids


def _are_plain_ids(ids: list[Any]) -> bool:
    """Whether this is surely a list of non-negative Python integers; False only sends it to the slow check.

    In C: marshal writes an integer of 32 bits as `i` and four bytes, the highest last, after five bytes for the list.
    Booleans and numbers of other types become something else.
    """
    try:
        data = marshal.dumps(ids, 2)
    except ValueError:  # an object of another type
        return False
    count = len(ids)
    return len(data) == 5 + 5 * count and data[5::5] == b"i" * count and data[9::5].isascii()


def _as_list(value: Any, name: str, *, or_one: bool) -> list[Any]:
    """The items of a sequence, an array or a tensor."""
    if isinstance(value, list | tuple | range):
        return list(value)
    to_list = getattr(value, "tolist", None)
    if callable(to_list) and not isinstance(value, memoryview):  # numpy arrays, torch tensors, array.array
        value = to_list()
        if isinstance(value, list):
            return value
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | memoryview):
        return list(value)
    if isinstance(value, int | float):  # what arrays and tensors of no dimension give
        if or_one:
            return [value]
        raise TokenIdsTypeError(f"{name} is a single number ({value!r}), not a sequence of integers")
    hint = ": give its `input_ids`" if hasattr(value, "keys") else ""
    raise TokenIdsTypeError(f"{name} is of type {type(value).__name__}, not a sequence of integers{hint}")


def _as_int(item: Any, name: str, index: int) -> int:
    """One item as a plain integer: numpy's are converted, booleans and everything else is refused."""
    # A list of booleans is a mask given by mistake, not a list of IDs 0 and 1.
    if isinstance(item, bool):
        raise TokenIdsTypeError(f"{name}[{index}] is {item!r}, not an integer")
    try:
        return operator.index(item)
    except TypeError:
        raise TokenIdsTypeError(f"{name}[{index}] is of type {type(item).__name__}, not an integer") from None
