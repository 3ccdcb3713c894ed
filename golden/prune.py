"""A small real tokenizer: the official one, reduced to what given texts need.

It keeps every byte, every special token with its true ID, and each merge that encoding the texts uses. Merges that were
left out could only have taken part in other texts, so the given texts encode exactly as before, and others may not:
the result carries a marker token by which the library refuses it unless it is asked for by name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from tokenizers import Tokenizer

from renderers.tokenizers.golden import GOLDEN_ONLY


def pruned(tokenizer_json: str, texts: Iterable[str]) -> str:
    """The JSON of the pruned tokenizer."""
    full: dict[str, Any] = json.loads(tokenizer_json)
    tokenizer = Tokenizer.from_str(tokenizer_json)
    model = full["model"]
    vocabulary: dict[str, int] = model["vocab"]
    merges = [tuple(pair.split(" ")) if isinstance(pair, str) else tuple(pair) for pair in model["merges"]]
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    special = {token["content"]: token["id"] for token in full["added_tokens"]}

    used: set[tuple[str, ...]] = set()
    tokens = {token for token in vocabulary if len(token) == 1}
    for word in _words(tokenizer, texts, special):
        if model.get("ignore_merges") and word in vocabulary:
            tokens.add(word)
            continue
        for pair in _merges_of(word, ranks):
            used.add(pair)
            tokens |= {*pair, "".join(pair)}
    kept = {token: index for token, index in vocabulary.items() if token in tokens}
    marker_id = max([*special.values(), *vocabulary.values()]) + 1
    model["vocab"] = {**kept, **special, GOLDEN_ONLY: marker_id}
    model["merges"] = [list(pair) for pair in merges if pair in used]
    marker = {**full["added_tokens"][0], "id": marker_id, "content": GOLDEN_ONLY, "special": True, "normalized": False}
    full["added_tokens"] = [*full["added_tokens"], marker]
    return json.dumps(full, ensure_ascii=False, indent=None, separators=(",", ":"))


def _words(tokenizer: Tokenizer, texts: Iterable[str], special: dict[str, int]) -> set[str]:
    """What the pre-tokenizer makes of the texts between special tokens, and of the texts with these as ordinary ones."""
    words: set[str] = set()
    for text in texts:
        for part in [text, *_between(text, special)]:
            normalizer = tokenizer.normalizer
            plain = normalizer.normalize_str(part) if normalizer is not None else part
            words |= {word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(plain)}
    return words


def _between(text: str, special: dict[str, int]) -> list[str]:
    parts = [text]
    for marker in sorted(special, key=len, reverse=True):
        parts = [piece for part in parts for piece in part.split(marker)]
    return [part for part in parts if part]


def _merges_of(word: str, ranks: dict[tuple[str, ...], int]) -> list[tuple[str, str]]:
    """The merges that byte-pair encoding makes of a word, lowest rank first."""
    parts, made = list(word), []
    while len(parts) > 1:
        pairs = [(ranks[pair], place) for place, pair in enumerate(pairwise(parts)) if pair in ranks]
        if not pairs:
            break
        _, place = min(pairs)
        made.append((parts[place], parts[place + 1]))
        parts[place : place + 2] = ["".join(parts[place : place + 2])]
    return made
