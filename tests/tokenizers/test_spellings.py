"""Tokens by their bytes."""

from __future__ import annotations

from renderers import create_renderer
from renderers.tokenizers.spellings import LONGEST_SPELLING, ordinary_spellings


def test_every_short_ordinary_token_is_listed_once() -> None:
    adapter = create_renderer("golden:qwen3").tokenizer
    listed = ordinary_spellings(adapter)
    special = set(adapter.special_tokens.values())
    assert ordinary_spellings(adapter) is listed
    assert all(adapter.token_bytes(token_id) == spelled for spelled, token_id in listed.items())
    assert special.isdisjoint(listed.values())
    for token_id in range(adapter.vocabulary_size):
        spelled = adapter.token_bytes(token_id)
        if spelled and token_id not in special:
            assert (spelled in listed) == (len(spelled) <= LONGEST_SPELLING)
            assert listed.get(spelled, token_id) <= token_id
