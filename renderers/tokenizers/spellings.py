"""Tokens by the bytes that they stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from renderers.tokenizers.protocol import TokenizerAdapter

#: Longest token, in bytes, that is listed. Longer ones are rare, and looking for them costs time.
LONGEST_SPELLING = 16

_made: WeakKeyDictionary[TokenizerAdapter, Mapping[bytes, int]] = WeakKeyDictionary()


def ordinary_spellings(adapter: TokenizerAdapter) -> Mapping[bytes, int]:
    """Every token that is no special one, up to 16 bytes, by its bytes; the lowest ID where two share them.

    Looks at every token of the vocabulary, once a tokenizer.
    """
    made = _made.get(adapter)
    if made is None:
        made = _made[adapter] = _ordinary_spellings(adapter)
    return made


def _ordinary_spellings(adapter: TokenizerAdapter) -> Mapping[bytes, int]:
    special = frozenset(adapter.special_tokens.values())
    ids: dict[bytes, int] = {}
    for token_id in range(adapter.vocabulary_size):
        if token_id not in special:
            spelled = adapter.token_bytes(token_id)
            if spelled and len(spelled) <= LONGEST_SPELLING:
                ids.setdefault(spelled, token_id)
    return ids
