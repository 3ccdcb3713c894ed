"""Finding special tokens, beside the tokenizers library."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken as LibraryToken
from tokenizers import Tokenizer
from tokenizers.models import BPE

from renderers.tokenizers.special_tokens import AddedToken, Beginnings, SpecialTokenMatcher, overlap_endings

LETTERS = "<>ab|"
token_texts = st.text(LETTERS, min_size=1, max_size=5)
texts = st.text(LETTERS + "é", max_size=30)


def library_spans(tokens: list[AddedToken], text: str) -> list[tuple[int, int, int]]:
    """What the tokenizers library finds: everything else is unknown to its model, and dropped."""
    tokenizer = Tokenizer(BPE({}, []))
    tokenizer.add_tokens([LibraryToken(token.text, normalized=token.normalized) for token in tokens])
    encoding = tokenizer.encode(text, add_special_tokens=False)
    true_ids = {token.text: token.token_id for token in tokens}
    return [
        (start, end, true_ids[token]) for token, (start, end) in zip(encoding.tokens, encoding.offsets, strict=True)
    ]


@given(tokens=st.lists(st.tuples(token_texts, st.booleans()), max_size=8, unique_by=lambda item: item[0]), text=texts)
def test_finds_what_the_library_finds(tokens: list[tuple[str, bool]], text: str) -> None:
    added = [
        AddedToken(token, token_id, normalized=normalized) for token_id, (token, normalized) in enumerate(tokens, 7)
    ]
    assert SpecialTokenMatcher(added).find(text) == library_spans(added, text)


@given(
    tokens=st.lists(st.tuples(token_texts, st.booleans()), max_size=6, unique_by=lambda item: item[0]),
    pieces=st.lists(st.tuples(texts, st.booleans()), max_size=6),
)
def test_what_is_told_by_beginnings_alone(tokens: list[tuple[str, bool]], pieces: list[tuple[str, bool]]) -> None:
    added = [AddedToken(token, token_id, normalized=normalized) for token_id, (token, normalized) in enumerate(tokens)]
    matcher = SpecialTokenMatcher(added)
    text = "".join(piece for piece, _ in pieces)
    masked = "".join("\0" * len(piece) if is_masked else piece for piece, is_masked in pieces)
    found = matcher.find(text)
    assert {tokens[token_id][0] for _, _, token_id in found} <= matcher.may_stand_in(text)
    if matcher.finds_no_more(text, masked):
        assert matcher.find(masked) == found


@given(tokens=st.lists(st.text("<ab|>", min_size=1, max_size=7), min_size=1, max_size=3, unique=True), data=st.data())
def test_no_special_token_reaches_into_a_text_that_begins_none(tokens: list[str], data: st.DataObject) -> None:
    parts = st.sampled_from(
        [part for token in tokens for end in range(len(token)) for part in (token[:end], token[end:])]
    )
    pieces = data.draw(st.lists(st.tuples(parts | st.sampled_from(["x", "\n"]), st.booleans()), max_size=4))
    beginnings = Beginnings(tokens)
    matcher = SpecialTokenMatcher([AddedToken(token, token_id) for token_id, token in enumerate(tokens)])
    text = "".join(piece for piece, _ in pieces)
    masked = "".join("\0" * len(piece) if is_masked else piece for piece, is_masked in pieces)
    if matcher.find(text) != matcher.find(masked):
        assert any(beginnings.are_in(piece) if is_masked else beginnings.end(piece) for piece, is_masked in pieces)


def test_where_special_tokens_begin() -> None:
    beginnings = Beginnings(["<|end|>", "<think>"])
    assert [beginnings.are_in(text) for text in ("a < b", "a<|x", "a<|en", "a<", "a<th", "", "<|end|>")] == [
        False, False, True, True, True, False, True,
    ]  # fmt: skip
    assert [beginnings.end(text) for text in ("a<", "<|end|", "<|end|>", "<|end|>\n", "")] == [
        True, True, False, False, False,
    ]  # fmt: skip
    assert not Beginnings([]).are_in("<")
    assert not Beginnings([]).end("<")


def test_most_texts_begin_no_special_token() -> None:
    matcher = SpecialTokenMatcher([AddedToken(f"<|reserved_{number}|>", number) for number in range(800)])
    assert matcher.may_stand_in("a < b, <|x|>") == frozenset()
    assert matcher.finds_no_more("<|reserved_1|> <|x|>", "<|reserved_1|> \0\0\0\0\0")
    assert not matcher.finds_no_more("<|res", "\0\0\0\0\0")
    assert not matcher.finds_no_more(
        "<|reserved_1|>", "<|re" + "\0" * 10
    )  # the caller goes on where the template began


def test_the_longest_wins_and_normalized_ones_come_second() -> None:
    tokens = [AddedToken("<a>", 1), AddedToken("<a>b", 2), AddedToken("x<a", 3, normalized=True)]
    assert SpecialTokenMatcher(tokens).find("x<a>x<a>bx<a") == [(1, 4, 1), (5, 9, 2), (9, 12, 3)]
    assert SpecialTokenMatcher([]).find("<a>") == []


@given(tokens=st.lists(token_texts, min_size=1, max_size=6, unique=True), before=texts, after=texts, data=st.data())
def test_after_text_that_is_not_doubtful_a_written_token_is_found(
    tokens: list[str], before: str, after: str, data: st.DataObject
) -> None:
    written = data.draw(st.sampled_from(tokens))
    text = before + written + after
    span = (len(before), len(before) + len(written), tokens.index(written))
    found = SpecialTokenMatcher([AddedToken(token, number) for number, token in enumerate(tokens)]).find(text)
    endings = overlap_endings(tuple(tokens))
    if not endings or not before.endswith(endings):
        assert span in found


@pytest.mark.parametrize(
    ("tokens", "endings"),
    [
        (("<a>", "<b>", "/nothink"), ()),
        ((), ()),
        (("｜DSML｜",), ("｜DSML",)),
        (("]!p~[", "[e~["), ("[e~", "]!p~")),
        (("<a>", "<a>b"), ("",)),
        (("<a>", "x<a>y"), ("x",)),
        (("aa",), ("a",)),
    ],
)
def test_overlaps_are_seen(tokens: tuple[str, ...], endings: tuple[str, ...]) -> None:
    assert overlap_endings(tokens) == endings


def test_a_thousand_tokens_cost_little_on_text_full_of_their_beginnings() -> None:
    tokens = [AddedToken(f"<|reserved_{number}|>", number) for number in range(1000)]
    matcher, few = SpecialTokenMatcher(tokens), SpecialTokenMatcher(tokens[:10])
    text = '<div class="x"><p>|<|reserve</p></div>' * 2000

    def seconds(matcher: SpecialTokenMatcher) -> float:
        measured = []
        for _ in range(5):
            begin = time.perf_counter()
            assert matcher.find(text) == []
            measured.append(time.perf_counter() - begin)
        return min(measured)

    # In a plain alternation the ratio is the number of tokens.
    assert seconds(matcher) < 20 * seconds(few)
