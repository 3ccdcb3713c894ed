"""Proof that tiktoken gives a tokenizer's IDs.

tiktoken merges, among all neighbours whose joined bytes are a token, the pair whose token has the lowest rank, the
leftmost of equals; the rank is the token's ID. The BPE of `tokenizers` merges, among all neighbours that are a *listed*
merge, the one listed first, again the leftmost of equals. Both take a whole piece that is a token as it is: tiktoken
always, `tokenizers` where `ignore_merges` is on.

Let the merges be listed in the order of the IDs of their results. Watch tiktoken on a piece until it is about to join
two parts to a token X. Nothing was merged across the borders of X's bytes, so within them exactly those merges were
done that tiktoken does on the bytes of X alone, in the same order. Each merge takes away one part: on X alone there is
at most one moment with two parts, and these are they. So *which* two parts give X does not depend on the text. If they
are a listed merge for every X that has such a moment, then every merge of tiktoken is one that `tokenizers` may do, and
the first in its order; by induction both do the same merges. What is left to check:

* a token without such a moment, or whose two parts are not listed, is never made by merging. tiktoken must not take it
  for a whole piece either, unless `ignore_merges` is on: it is left out of the ranks (and the others are looked at again
  without it);
* a token that is left out must not be made by `tokenizers`: either tiktoken's merges on its bytes do not end in two
  parts, or the two are not listed.

The pieces are the same because `splitting` writes one pattern for them, set by set as both regex engines read it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from renderers.tokenizers.components import component_list, model_settings
from renderers.tokenizers.patterns import UnsupportedPatternError
from renderers.tokenizers.splitting import Splitting
from renderers.tokenizers.token_bytes import byte_level_bytes, byte_to_character, is_byte_level

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from tokenizers import Tokenizer

# Settings with which the BPE of `tokenizers` is more than merging bytes.
_PLAIN_SETTINGS = {
    "type": "BPE",
    "dropout": None,
    "continuing_subword_prefix": None,
    "end_of_word_suffix": None,
    "byte_fallback": False,
}

# The bytes that occur in UTF-8. A piece may be any of them, so each must be a token.
_UTF8_BYTES = [
    character for value, character in enumerate(byte_to_character()) if value not in (0xC0, 0xC1) and value < 0xF5
]

_NO_RANK = 1 << 62


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether tiktoken may encode for a tokenizer.

    Attributes:
        reason: why it may not; empty where it may.
        pattern: the pattern that splits text as the tokenizer does.
        left_out: IDs of tokens that no text ever becomes, which tiktoken must not know.
        line_starts: characters before which a text may be cut after a newline: the parts encode to what the whole does.
    """

    reason: str = ""
    pattern: str = ""
    left_out: tuple[int, ...] = ()
    line_starts: str = ""

    @property
    def proved(self) -> bool:
        """Whether tiktoken gives the same IDs."""
        return not self.reason


def judge(tokenizer: Tokenizer, special_token_ids: Collection[int]) -> Verdict:
    """Prove that tiktoken encodes ordinary text as this tokenizer does, or say why not. Takes a few seconds."""
    settings = model_settings(tokenizer)
    unlike = [name for name, value in _PLAIN_SETTINGS.items() if (settings[name] or value) != value]
    if unlike:
        return Verdict(reason=f"the model has {unlike[0]} = {settings[unlike[0]]!r}")
    try:
        splitting = Splitting(component_list(tokenizer.pre_tokenizer))
        pattern, line_starts = splitting.pattern, splitting.line_starts
        _require_compiled(pattern)
        left_out = tokens_to_leave_out(tokenizer, special_token_ids)
    except (UnsupportedPatternError, NotEquivalentError) as error:
        return Verdict(reason=str(error))
    return Verdict(pattern=pattern, left_out=tuple(left_out), line_starts=line_starts)


def _require_compiled(pattern: str) -> None:
    """Raise NotEquivalentError where tiktoken cannot compile a pattern (it is too large, for instance)."""
    from tiktoken import Encoding

    try:
        Encoding("probe", pat_str=pattern, mergeable_ranks={b"a": 0}, special_tokens={})
    except ValueError as error:
        raise NotEquivalentError(f"tiktoken cannot compile the pattern: {error}") from None


class NotEquivalentError(Exception):
    """The vocabulary is not rank-ordered BPE. Never leaves the package."""


def ranks_of(tokenizer: Tokenizer, left_out: Iterable[int]) -> dict[bytes, int]:
    """The ranks for tiktoken: every byte-level token of the model but those that are left out."""
    absent = frozenset(left_out)
    # Pieces are byte-level text: a token with other characters is never met.
    return {
        byte_level_bytes(token): token_id
        for token, token_id in tokenizer.get_vocab(with_added_tokens=False).items()
        if token_id not in absent and is_byte_level(token)
    }


# From here on a token is its byte-level text: one character a byte, so splits and joins are the same as of bytes.
Ranks = dict[str, int]
Splits = set[tuple[str, int | None]]


def tokens_to_leave_out(tokenizer: Tokenizer, special_token_ids: Collection[int]) -> list[int]:
    """IDs of the tokens without which rank-ordered BPE gives the tokenizer's IDs; NotEquivalentError if it never does."""
    state: dict[str, Any] = json.loads(tokenizer.model.__getstate__())
    specials = {text: token_id for text, token_id in state["vocab"].items() if token_id in set(special_token_ids)}
    ranks = {
        text: token_id for text, token_id in state["vocab"].items() if text not in specials and is_byte_level(text)
    }
    missing = next((byte for byte in _UTF8_BYTES if byte not in ranks), None)
    if missing is not None:
        raise NotEquivalentError(f"the byte {missing!r} is no token")
    listed = _listed_splits(state["merges"], ranks)

    absent: dict[str, int] = {}
    candidates: Iterable[str] = list(ranks)
    while True:
        unmade = [token for token in candidates if len(token) > 1 and (token, _last_split(token, ranks)) not in listed]
        if state.get("ignore_merges"):
            # Such a token is taken as a whole piece, so tiktoken must know it; it must only never be merged.
            unlisted = next((token for token in unmade if _last_split(token, ranks) is not None), None)
            if unlisted is not None:
                raise NotEquivalentError(f"the token {unlisted!r} is joined from parts that are no listed merge")
            break
        if not unmade:
            break
        absent |= {token: ranks.pop(token) for token in unmade}
        # Only tokens in which a removed one occurs can merge otherwise without it.
        removed = re.compile("|".join(map(re.escape, unmade)))
        candidates = [token for token in ranks if removed.search(token)]

    for token in (*absent, *specials):
        if (token, _last_split(token, ranks)) in listed:
            raise NotEquivalentError(f"the token {token!r} is made by merges, but not by rank-ordered ones")
    return sorted((*absent.values(), *specials.values()))


def _listed_splits(merges: list[Any], ranks: Ranks) -> Splits:
    """The merges as their result and the place where it is joined; NotEquivalentError if not in the order of IDs."""
    listed: Splits = set()
    last_rank = -1
    for merge in merges:
        left, right = merge.split(" ", 1) if isinstance(merge, str) else merge
        rank = ranks.get(left + right, -1)
        if rank < last_rank or rank < 0:
            problem = "is not in the order of token IDs" if rank >= 0 else "gives no ordinary token"
            raise NotEquivalentError(f"the merge of {left!r} and {right!r} {problem}")
        last_rank = rank
        listed.add((left + right, len(left)))
    return listed


def _last_split(token: str, ranks: Ranks) -> int | None:
    """Where rank-ordered merges join the last two parts of a token, or None where they stop before."""
    length = len(token)
    if length < 3:
        return 1 if length == 2 else None
    find = ranks.get
    parts = list(token)
    pairs = [find(token[place : place + 2], _NO_RANK) for place in range(length - 1)]
    while len(pairs) > 1:
        best = min(pairs)
        if best == _NO_RANK:
            return None
        place = pairs.index(best)
        parts[place] += parts.pop(place + 1)
        del pairs[place]
        if place < len(pairs):
            pairs[place] = find(parts[place] + parts[place + 1], _NO_RANK)
        if place:
            pairs[place - 1] = find(parts[place - 1] + parts[place], _NO_RANK)
    return len(parts[0])
