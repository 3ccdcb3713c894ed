"""Resegmented tokens hold the same bytes in other tokens."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from renderers.testing import Choices
from renderers.testing.segmentation import Segmenter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class SmallTokenizer:
    """As much of an adapter as a segmenter needs: single bytes, a few words, one special token."""

    def __init__(self, *, drop: bytes = b"") -> None:
        words = [b"he", b"ll", b"hello", b" world", "é".encode(), "🙂".encode()]
        self._tokens = [bytes([byte]) for byte in range(256) if byte not in drop] + words + [b"<end>"]

    @cached_property
    def special_tokens(self) -> dict[str, int]:
        return {"<end>": len(self._tokens) - 1}

    @property
    def vocabulary_size(self) -> int:
        return len(self._tokens)

    def token_bytes(self, token_id: int) -> bytes:
        return self._tokens[token_id] if token_id < len(self._tokens) else b""

    def decode_bytes(self, token_ids: Sequence[int]) -> bytes:
        return b"".join(map(self.token_bytes, token_ids))

    def ids(self, *tokens: bytes) -> list[int]:
        return [self._tokens.index(token) for token in tokens]


SMALL: Any = SmallTokenizer()
SEGMENTER = Segmenter(SMALL)
TEXT = [*SMALL.ids(b"hello", b" world", "é".encode(), b"<end>", "🙂".encode(), b"hello"), 9999]


@given(st.binary(max_size=60))
def test_bytes_and_special_tokens_stay(data: bytes) -> None:
    found = SEGMENTER.resegmented(TEXT, Choices(data))
    assert SMALL.decode_bytes(found) == SMALL.decode_bytes(TEXT)
    assert [token_id for token_id in found if token_id >= SMALL.special_tokens["<end>"]] == [
        SMALL.special_tokens["<end>"],
        9999,
    ]


def test_no_choices_change_nothing() -> None:
    assert SEGMENTER.resegmented(TEXT, Choices(b"")) == TEXT


def test_tokens_are_split_and_borders_move() -> None:
    split = SEGMENTER.resegmented(TEXT[:1], Choices(bytes([64])))
    assert split == SMALL.ids(b"h", b"e", b"l", b"l", b"o")
    moved = SEGMENTER.resegmented(SMALL.ids(b"h", b"e", b"l"), Choices(bytes([255] * 3 + [255, 0])))
    assert moved == SMALL.ids(b"he", b"l")
    assert SEGMENTER.spelled([b"he", b"ll"]) == SMALL.ids(b"he", b"ll")


def test_a_vocabulary_without_a_byte_is_an_error() -> None:
    lacking: Any = SmallTokenizer(drop=b"e")
    with pytest.raises(ValueError, match="lacks a byte"):
        Segmenter(lacking).resegmented(lacking.ids(b"h", b"hello"), Choices(bytes([64, 0, 64])))


@pytest.mark.parametrize("model", ["Qwen/Qwen3-8B", "moonshotai/Kimi-K2.5", "zai-org/GLM-5"])
def test_official_tokenizers(model: str, official_tokenizer: Callable[[str], Any]) -> None:
    from renderers.tokenizers import adapt

    adapter = adapt(official_tokenizer(model))
    segmenter = Segmenter(adapter)
    text = "Hello, how are you? 今天 🙂 def f(x):\n    return {'a': x}<think>\n\n"
    ids, _ = adapter.encode_with_offsets(text)
    changed = 0

    @given(st.binary(min_size=120, max_size=120))
    def same_bytes(data: bytes) -> None:
        nonlocal changed
        found = segmenter.resegmented(ids, Choices(data))
        assert adapter.decode_bytes(found) == text.encode()
        changed += found != ids

    same_bytes()
    assert changed > 50
