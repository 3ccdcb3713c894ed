"""The proof that tiktoken gives a tokenizer's IDs: it holds where it says so, and says no where it must."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from tiktoken import Encoding
from tiny_tokenizers import bpe_tokenizer, byte_vocabulary, random_bpe, trained_tokenizer
from tokenizers import Tokenizer, models, pre_tokenizers

from renderers.tokenizers.equivalence import NotEquivalentError, judge, ranks_of, tokens_to_leave_out

SHORT_TEXTS = ["".join(letters) for length in range(1, 9) for letters in itertools.product("ab", repeat=length)]


def tiktoken_of(tokenizer: Tokenizer, left_out: list[int]) -> Encoding:
    ranks = ranks_of(tokenizer, left_out)
    return Encoding("test", pat_str=r"[\s\S]+", mergeable_ranks=ranks, special_tokens={})


@pytest.mark.parametrize("ignore_merges", [False, True])
def test_proofs_hold_on_every_short_text(ignore_merges: bool) -> None:
    """Random vocabularies of two letters, with unreachable tokens and disordered merges, on all texts of up to 8."""
    source = random.Random(20 + ignore_merges)  # noqa: S311
    proved = refused = left_out_somewhere = 0
    for _ in range(250):
        tokenizer = bpe_tokenizer(*random_bpe(source), ignore_merges=ignore_merges)
        try:
            left_out = tokens_to_leave_out(tokenizer, ())
        except NotEquivalentError:
            refused += 1
            continue
        proved += 1
        left_out_somewhere += bool(left_out)
        encoding = tiktoken_of(tokenizer, left_out)
        expected = [encoded.ids for encoded in tokenizer.encode_batch_fast(SHORT_TEXTS)]
        assert [encoding.encode_ordinary(text) for text in SHORT_TEXTS] == expected
    assert proved > 50
    assert refused > 5
    assert bool(left_out_somewhere) != ignore_merges


def test_refusals_are_needed() -> None:
    """Most vocabularies that are refused do encode otherwise with tiktoken: the proof is not needlessly strict."""
    source = random.Random(5)  # noqa: S311
    refused = differ = 0
    for _ in range(300):
        tokenizer = bpe_tokenizer(*random_bpe(source, steps=10))
        try:
            tokens_to_leave_out(tokenizer, ())
        except NotEquivalentError:
            refused += 1
            encoding = tiktoken_of(tokenizer, [])
            expected = [encoded.ids for encoded in tokenizer.encode_batch_fast(SHORT_TEXTS)]
            differ += [encoding.encode_ordinary(text) for text in SHORT_TEXTS] != expected
    assert refused > 20
    assert differ > 0.8 * refused


def test_a_token_that_no_merge_makes_is_left_out() -> None:
    vocabulary = {**byte_vocabulary(), "ab": 256, "abc": 257}
    merges = [("a", "b")]
    assert tokens_to_leave_out(bpe_tokenizer(vocabulary, merges), ()) == [257]
    # Taken as a whole piece, it must stay; and then tiktoken would make it of "ab" and "c".
    with pytest.raises(NotEquivalentError, match="no listed merge"):
        tokens_to_leave_out(bpe_tokenizer(vocabulary, merges, ignore_merges=True), ())


def test_a_token_made_of_unlisted_parts_is_left_out_where_merges_make_it_otherwise_never() -> None:
    # "abc" is listed as a + bc, but ab comes first and then nothing is listed for ab + c.
    vocabulary = {**byte_vocabulary(), "ab": 256, "bc": 257, "abc": 258}
    tokenizer = bpe_tokenizer(vocabulary, [("a", "b"), ("b", "c"), ("a", "bc")])
    assert tokens_to_leave_out(tokenizer, ()) == [258]
    assert tokenizer.encode("abc").ids == [256, vocabulary["c"]]


@pytest.mark.parametrize(
    ("vocabulary", "merges", "problem"),
    [
        ({"ab": 257, "bc": 256}, [("a", "b"), ("b", "c")], "order of token IDs"),
        ({"ab": 256, "<x>": 257}, [("<", "x"), ("<x", ">")], "gives no ordinary token"),
    ],
)
def test_what_cannot_be_proved(vocabulary: dict[str, int], merges: list[Any], problem: str) -> None:
    extra = {"<x": 300} if "<x>" in vocabulary else {}
    tokenizer = bpe_tokenizer({**byte_vocabulary(), **vocabulary, **extra}, merges)
    with pytest.raises(NotEquivalentError, match=problem):
        tokens_to_leave_out(tokenizer, [257] if "<x>" in vocabulary else [])


def test_a_byte_without_a_token_is_refused() -> None:
    vocabulary = byte_vocabulary()
    del vocabulary["a"]
    with pytest.raises(NotEquivalentError, match="'a' is no token"):
        tokens_to_leave_out(bpe_tokenizer(vocabulary, []), ())


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        (models.WordLevel({"a": 0}, unk_token="a"), "type = 'WordLevel'"),
        (models.BPE(byte_vocabulary(), [], dropout=0.5), "dropout"),
        (models.BPE(byte_vocabulary(), [], end_of_word_suffix="</w>"), "end_of_word_suffix"),
        (models.BPE(byte_vocabulary(), [], byte_fallback=True), "byte_fallback"),
    ],
)
def test_other_models_are_refused(model: Any, problem: str) -> None:
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    verdict = judge(tokenizer, ())
    assert not verdict.proved
    assert problem in verdict.reason


def test_special_tokens_in_the_vocabulary_are_left_out() -> None:
    tokenizer = trained_tokenizer()
    token_id = tokenizer.token_to_id("the") or tokenizer.token_to_id("or")
    vocabulary = {**byte_vocabulary(), "<|x|>": 256, "｜": 257}
    assert tokens_to_leave_out(bpe_tokenizer(vocabulary, [], ignore_merges=True), [256]) == [256]
    assert token_id is not None
    with pytest.raises(NotEquivalentError):
        tokens_to_leave_out(tokenizer, [token_id])
