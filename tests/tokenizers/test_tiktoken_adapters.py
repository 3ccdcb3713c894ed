"""Adapters of `tiktoken.Encoding`, and of classes around one."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_texts import TEXTS, fuzzed_text
from tiktoken import Encoding
from tiny_tokenizers import LLAMA_PATTERN, trained_tokenizer

from renderers.errors import TokenizerError
from renderers.tokenizers import adapt
from renderers.tokenizers.equivalence import ranks_of
from renderers.tokenizers.tiktoken_adapter import character_ranges

TRAINED = trained_tokenizer()
SPECIAL = {token.content: token_id for token_id, token in TRAINED.get_added_tokens_decoder().items()}
RANKS = ranks_of(TRAINED, ())
ENCODING = Encoding("tiny", pat_str=LLAMA_PATTERN, mergeable_ranks=RANKS, special_tokens=SPECIAL)
BARE = Encoding("bare", pat_str=LLAMA_PATTERN, mergeable_ranks=RANKS, special_tokens={})


class RemoteCodeTokenizer:
    """The interface of Kimi's class, written from its description: an encoding inside, texts cut before encoding."""

    chat_template = "{{ messages }}"
    name_or_path = "moonshotai/tiny"
    special_tokens_map = {"eos_token": "<|end|>", "additional_special_tokens": ["<|user|>"]}  # noqa: RUF012

    def __init__(self, longest_text: int = 400_000, longest_run: int = 25_000) -> None:
        self.model = ENCODING
        self.special_tokens = dict(SPECIAL)
        self.longest_text = longest_text
        self.longest_run = longest_run
        self.calls = 0

    def cut(self, text: str) -> list[str]:
        parts = []
        for begin in range(0, len(text), self.longest_text):
            part = ""
            run = 0
            for character in text[begin : begin + self.longest_text]:
                run = run + 1 if part and part[-1].isspace() == character.isspace() else 1
                if run > self.longest_run:
                    parts.append(part)
                    part, run = "", 1
                part += character
            parts.append(part)
        return parts

    def encode(self, text: str, allow_special_tokens: bool = True, **kwargs: Any) -> list[int]:
        assert not kwargs
        self.calls += 1
        ids = []
        for part in self.cut(text):
            if allow_special_tokens:
                ids += self.model.encode(part, allowed_special="all")
            else:
                ids += self.model.encode(part, disallowed_special=())
        return ids


class UpperCaseTokenizer(RemoteCodeTokenizer):
    """A class that does more than to cut."""

    def encode(self, text: str, allow_special_tokens: bool = True, **kwargs: Any) -> list[int]:
        return super().encode(text.upper(), allow_special_tokens, **kwargs)


ADAPTERS = {
    "encoding": adapt(ENCODING),
    "given table": adapt(BARE, special_tokens=SPECIAL),
    "remote code": adapt(RemoteCodeTokenizer()),
}
each_adapter = pytest.mark.parametrize("kind", list(ADAPTERS))


@each_adapter
@given(text=fuzzed_text(*SPECIAL))
def test_ids_and_offsets_are_those_of_the_same_tokenizer_in_the_other_library(kind: str, text: str) -> None:
    adapter = ADAPTERS[kind]
    reference = TRAINED.encode(text, add_special_tokens=False)
    assert adapter.encode_with_offsets(text) == (reference.ids, reference.offsets)
    assert adapter.find_special_tokens(text) == adapt(TRAINED).find_special_tokens(text)
    assert adapter.encode_ordinary(text) == ENCODING.encode_ordinary(text)
    assert adapter.normalize(text) is text
    assert not adapter.needs_whole_text(text)


@each_adapter
def test_what_else_an_adapter_knows(kind: str) -> None:
    adapter = ADAPTERS[kind]
    assert adapter.special_tokens == SPECIAL
    assert adapter.splits_at_special_tokens
    assert adapter.vocabulary_size == 1 + max(SPECIAL.values())
    assert adapter.token_bytes(SPECIAL["<think>"]) == b"<think>"
    assert (
        adapter.token_bytes(adapter.vocabulary_size) == adapter.token_bytes(1 << 70) == adapter.token_bytes(-1) == b""
    )
    assert adapter.decode_bytes(adapter.encode_ordinary("é中")) == "é中".encode()
    assert adapter.encode_ordinary_batch(list(TEXTS)) == [ENCODING.encode_ordinary(text) for text in TEXTS]
    assert adapter.encoder == ("custom" if kind == "remote code" else "tiktoken")
    assert len(adapter.fingerprint()) == 64
    adapter.warm_up()
    for method in (adapter.encode_ordinary, adapter.encode_with_offsets, adapter.normalize):
        with pytest.raises(TokenizerError, match="lone surrogate"):
            method("a\ud800")


@each_adapter
def test_pickling(kind: str) -> None:
    adapter = ADAPTERS[kind]
    copy = pickle.loads(pickle.dumps(adapter))  # noqa: S301
    text = "<|user|>don't</think> 中"
    assert copy.encode_with_offsets(text) == adapter.encode_with_offsets(text)
    assert copy.encode_ordinary(text) == adapter.encode_ordinary(text)
    assert copy.fingerprint() == adapter.fingerprint()
    assert copy.chat_template == adapter.chat_template


def test_the_fingerprint_covers_ranks_pattern_and_special_tokens() -> None:
    same = adapt(BARE, special_tokens=SPECIAL).fingerprint()
    assert same == ADAPTERS["encoding"].fingerprint() == ADAPTERS["remote code"].fingerprint()
    other_pattern = Encoding("x", pat_str=r"\S+|\s+", mergeable_ranks=RANKS, special_tokens=SPECIAL)
    others = [adapt(other_pattern), adapt(BARE), adapt(BARE, special_tokens={**SPECIAL, "<x>": 7_000})]
    assert len({same, *(other.fingerprint() for other in others)}) == 4


def test_a_special_token_that_begins_another_one() -> None:
    table = {"<a>": 900, "<a>b": 901}
    adapter = adapt(Encoding("x", pat_str=LLAMA_PATTERN, mergeable_ranks=RANKS, special_tokens=table))
    assert not adapter.splits_at_special_tokens
    assert adapter.needs_whole_text("<a>b")
    ids, _ = adapter.encode_with_offsets("x<a>bx")
    assert [span[2] for span in adapter.find_special_tokens("x<a>bx")] == [i for i in ids if i >= 900]


def test_what_comes_with_a_remote_code_class() -> None:
    adapter = ADAPTERS["remote code"]
    assert adapter.chat_template == "{{ messages }}"
    assert adapter.name_or_path == "moonshotai/tiny"
    assert adapter.named_special_tokens == {"eos_token": "<|end|>"}


RUN = "x" * 24_999
LONG_TEXTS = [
    RUN, RUN + "x", RUN + "xx", RUN * 3, " " * 25_001, "中文字" * 20_000, f"a {RUN}xx b {RUN}x c", f"<|user|>{RUN}yz",
    "word, word. " * 33_334, "word, word. " * 33_333 + "abcd<|user|>x", " \n" * 30_000, RUN + " " + RUN,
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(LONG_TEXTS)))
def test_long_texts_are_cut_as_the_class_cuts_them(number: int) -> None:
    text = LONG_TEXTS[number]
    tokenizer = RemoteCodeTokenizer()
    adapter = adapt(tokenizer)
    assert adapter.encode_ordinary(text) == tokenizer.encode(text, allow_special_tokens=False)
    ids, offsets = adapter.encode_with_offsets(text)
    assert ids == tokenizer.encode(text)
    assert "".join(text[start:end] for start, end in offsets) == text or not text.isascii()
    cuts = len(tokenizer.cut(text)) > 1
    assert adapter.needs_whole_text(text) == cuts


def test_texts_that_are_not_cut_do_not_pass_through_the_class() -> None:
    tokenizer = RemoteCodeTokenizer()
    adapter = adapt(tokenizer)
    adapter.encode_ordinary("a")
    calls = tokenizer.calls
    adapter.encode_ordinary_batch(["word, word. " * 30_000, "b"])
    assert tokenizer.calls == calls


def test_a_class_that_does_more_than_to_cut_is_always_asked() -> None:
    adapter = adapt(UpperCaseTokenizer())
    assert adapter.encode_ordinary("abc") == ENCODING.encode_ordinary("ABC")
    assert adapter.needs_whole_text("abc")
    with pytest.raises(TokenizerError, match="do not spell it"):
        adapter.encode_with_offsets("abc")


@given(text=st.text(max_size=20), data=st.data())
def test_character_ranges(text: str, data: st.DataObject) -> None:
    encoded = text.encode("utf-8", "replace")
    text = encoded.decode()
    cuts = sorted(data.draw(st.sets(st.integers(0, len(encoded)))) | {0, len(encoded)})
    pieces = [encoded[begin:end] for begin, end in pairwise(cuts)]
    lengths = [len(text[:count].encode()) for count in range(len(text) + 1)]
    for (begin, end), (first, last) in zip(pairwise(cuts), character_ranges(pieces), strict=True):
        # The smallest range of characters that holds the bytes.
        assert lengths[first] <= begin
        assert end <= lengths[last]
        assert first == last or (lengths[first + 1] > begin and lengths[last - 1] < end)
