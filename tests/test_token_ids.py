"""Token IDs in every shape that callers have them."""

from __future__ import annotations

from array import array
from collections import UserList
from enum import IntEnum
from typing import Any

import pytest

from renderers.errors import TokenIdsError, TokenIdsTypeError
from renderers.token_ids import as_token_ids

numpy = pytest.importorskip("numpy")


class _Tensor:
    """What torch's tensors have: `tolist`."""

    def __init__(self, items: Any) -> None:
        self.items = items

    def tolist(self) -> Any:
        return self.items


class _Id(IntEnum):
    END = 7


def test_a_list_is_not_copied() -> None:
    ids = [1, 2, 3]
    assert as_token_ids(ids) is ids


@pytest.mark.parametrize(
    "value",
    [
        (5, 0, 7), range(5, 8), array("I", [5, 0, 7]), UserList([5, 0, 7]), _Tensor([5, 0, 7]),
        numpy.array([5, 0, 7]), numpy.array([5, 0, 7], dtype=numpy.uint8), list(numpy.array([5, 0, 7])),
        [5, numpy.int64(0), 7], [5, 0, _Id.END], [1], [0], [0, 1], [], (), numpy.array([], dtype=int), [2**64, 1], [2**200],
    ],
)  # fmt: skip
def test_accepted(value: Any) -> None:
    ids = as_token_ids(value)
    assert ids == [int(item) for item in (value.items if isinstance(value, _Tensor) else value)]
    assert type(ids) is list


@pytest.mark.parametrize("value", [5, numpy.int64(5), numpy.array(5), _Tensor(5), _Id(7), [5]])
def test_one_where_one_is_allowed(value: Any) -> None:
    assert as_token_ids(value, or_one=True) in ([5], [7])


@pytest.mark.parametrize("value", [5.0, True, None, "5", _Tensor(5.0), numpy.bool_(True)])
def test_one_that_is_no_integer(value: Any) -> None:
    with pytest.raises(TokenIdsTypeError):
        as_token_ids(value, or_one=True)


def test_numpy_integers_become_plain() -> None:
    assert [type(item) for item in as_token_ids([numpy.int32(5), 6, numpy.uint64(7)])] == [int, int, int]


@pytest.mark.parametrize(
    "value",
    [
        None, 5, 5.0, "12", b"12", bytearray(b"1"), memoryview(b"1"), {1, 2}, {5: 6}, {"input_ids": [1]}, iter([1]), object(),
        [1.0], ["1"], [None], [[1]], [True], [True, False], [5000, True], [True, 1.0], [True, *range(5000)],
        numpy.array([True]), numpy.array([1.0]), numpy.array([[1, 2]]),
        numpy.array(5), numpy.int64(5), _Tensor(5), _Tensor([[5]]), [float("nan")], [numpy.bool_(True)],
    ],
)  # fmt: skip
def test_not_a_sequence_of_integers(value: Any) -> None:
    with pytest.raises(TokenIdsTypeError, match="prompt_ids") as caught:
        as_token_ids(value, "prompt_ids")
    assert isinstance(caught.value, TypeError)


def test_what_apply_chat_template_returns_gets_a_hint() -> None:
    with pytest.raises(TokenIdsTypeError, match="input_ids"):
        as_token_ids({"input_ids": [1], "attention_mask": [1]})


@pytest.mark.parametrize("value", [[-1], [5, 6, -7], (-1,), numpy.array([3, -1]), [2**70, -1]])
def test_negative(value: Any) -> None:
    with pytest.raises(TokenIdsError, match=r"token_ids\[\d\] is -\d: a token ID cannot be negative") as caught:
        as_token_ids(value)
    assert not isinstance(caught.value, TypeError)
