"""The adapter of the tokenizers library, on a small tokenizer."""

from __future__ import annotations

import functools
import json
import pickle
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_texts import TEXTS, fuzzed_text
from tiny_tokenizers import (
    OTHER_ADDED_TOKENS,
    SPECIAL_TOKENS,
    bpe_tokenizer,
    byte_vocabulary,
    nfc_tokenizer,
    trained_tokenizer,
    without_added_tokens,
)
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from renderers.errors import TokenizerError
from renderers.tokenizers import TokenizerAdapter, adapt
from renderers.tokenizers.acceleration import _BORDER

UNKNOWN = "<unk>"
ADDED = (*SPECIAL_TOKENS, *OTHER_ADDED_TOKENS)
TOKENIZERS = {
    "plain": trained_tokenizer(),
    "nfc": nfc_tokenizer(),
    "whole words": trained_tokenizer(ignore_merges=True),
}
PLAIN = {name: without_added_tokens(tokenizer) for name, tokenizer in TOKENIZERS.items()}
each_tokenizer = pytest.mark.parametrize("name", list(TOKENIZERS))


def warm(tokenizer: Any) -> TokenizerAdapter:
    """An adapter that encodes with tiktoken from the beginning."""
    adapter = adapt(tokenizer)
    adapter.warm_up()
    return adapter


@functools.cache
def adapters(name: str) -> tuple[TokenizerAdapter, TokenizerAdapter]:
    """An adapter that encodes with the library, and one that does with tiktoken."""
    return adapt(TOKENIZERS[name]), warm(TOKENIZERS[name])


def plain_ids(name: str, text: str) -> list[int]:
    return list(PLAIN[name].encode(text, add_special_tokens=False).ids)


@each_tokenizer
@given(text=fuzzed_text(*ADDED))
def test_ordinary_encoding_is_that_of_the_tokenizer_without_its_added_tokens(name: str, text: str) -> None:
    expected = plain_ids(name, text)
    for adapter in adapters(name):
        assert adapter.encode_ordinary(text) == expected


@each_tokenizer
def test_batches_encode_as_single_texts_do(name: str) -> None:
    texts = [*TEXTS, *ADDED, "<|user|>x</think>"]
    expected = [plain_ids(name, text) for text in texts]
    for adapter in adapters(name):
        assert adapter.encode_ordinary_batch(texts) == expected
        assert adapter.encode_ordinary_batch(texts[:1]) == expected[:1]
        assert adapter.encode_ordinary_batch([]) == []


@each_tokenizer
@given(texts=st.lists(fuzzed_text(*ADDED), max_size=4))
def test_texts_of_a_batch_have_their_special_tokens(name: str, texts: list[str]) -> None:
    masked = ["\0" * len(text) for text in texts]
    for adapter in adapters(name):
        if adapter.splits_at_special_tokens:
            assert adapter.encode_batch(texts) == [adapter.encode_with_offsets(text)[0] for text in texts]
            assert adapter.encode_batch(texts, masked) == [plain_ids(name, text) for text in texts]


@each_tokenizer
@given(pieces=st.lists(st.tuples(fuzzed_text(*ADDED, "<|en", "d|>", "<th", "ink>"), st.booleans()), max_size=6))
def test_masked_special_tokens_are_none(name: str, pieces: list[tuple[str, bool]]) -> None:
    text = "".join(piece for piece, _ in pieces)
    masked = "".join("\0" * len(piece) if is_masked else piece for piece, is_masked in pieces)
    slow, fast = adapters(name)
    if slow.splits_at_special_tokens:
        assert fast.encode_batch([text], [masked]) == slow.encode_batch([text], [masked])


def test_a_special_token_that_the_template_only_begins_is_none() -> None:
    _, fast = adapters(next(iter(TOKENIZERS)))
    assert fast.encode_batch(["<|end|>"], ["<|en\0\0\0"])[0] == fast.encode_ordinary("<|end|>")


@pytest.mark.parametrize("normalizer", [normalizers.Strip(), normalizers.Replace(Regex("^ "), "")])
def test_a_normalizer_that_looks_at_the_ends_of_a_text_sees_each_part(normalizer: Any) -> None:
    tokenizer = trained_tokenizer(normalizer=normalizer)
    adapter = adapt(tokenizer)
    adapter.warm_up()
    text = "a<|end|> b <think> c"
    assert adapter.encode_batch([text])[0] == tokenizer.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize(
    "token",
    ["a<|", "e\x1d", "x\x1d border", "\x1ex", "texts \x1e", "\x1d", "border", f"a{_BORDER}b", f"a{_BORDER}", _BORDER],
)
def test_a_special_token_that_meets_the_border_between_texts_harms_nothing(token: str) -> None:
    tokenizer = trained_tokenizer()
    tokenizer.add_tokens([AddedToken(token, normalized=False)])
    adapter = adapt(tokenizer)
    adapter.warm_up()
    texts = ["a", "b", "x", "e", "x"]
    expected = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    assert adapter.encode_batch(texts) == expected
    assert adapter.encode_ordinary_batch(texts) == expected


def test_a_pattern_that_tiktoken_cannot_compile_is_left_to_the_library() -> None:
    tokenizer = trained_tokenizer(pattern=r"\p{L}{1,300}|[\s\S]")
    adapter = adapt(tokenizer)
    adapter.warm_up()
    assert adapter.encoder == "tokenizers"
    assert adapter.encode_ordinary("Hello world") == tokenizer.encode("Hello world").ids


def test_a_text_that_holds_the_border_between_texts_or_a_part_of_it() -> None:
    slow, fast = adapters(next(iter(TOKENIZERS)))
    parts = [part for end in range(1, len(_BORDER)) for part in (_BORDER[:end], _BORDER[end:])]
    assert not any(_BORDER.startswith(_BORDER[end:]) for end in range(1, len(_BORDER)))  # it would meet itself
    for texts in ([f"a{_BORDER}b", "c", _BORDER, ""], parts, [f"a{part}" for part in parts], [*parts, _BORDER]):
        assert fast.encode_ordinary_batch(texts) == slow.encode_ordinary_batch(texts)
        assert fast.encode_batch(texts) == slow.encode_batch(texts)


@each_tokenizer
@given(text=fuzzed_text(*ADDED))
def test_whole_texts_are_those_of_the_library(name: str, text: str) -> None:
    reference = TOKENIZERS[name].encode(text, add_special_tokens=False)
    for adapter in adapters(name):
        assert adapter.encode_with_offsets(text) == (reference.ids, reference.offsets)


@each_tokenizer
@given(text=fuzzed_text(*ADDED))
def test_text_between_special_tokens_encodes_alone(name: str, text: str) -> None:
    adapter = adapters(name)[1]
    assert adapter.splits_at_special_tokens
    assert not adapter.needs_whole_text(text)
    ids: list[int] = []
    position = 0
    for start, end, token_id in adapter.find_special_tokens(text):
        assert adapter.special_tokens[text[start:end]] == token_id
        ids += [*adapter.encode_ordinary(text[position:start]), token_id]
        position = end
    assert ids + adapter.encode_ordinary(text[position:]) == adapter.encode_with_offsets(text)[0]


@each_tokenizer
@given(text=fuzzed_text())
def test_bytes_of_tokens_spell_the_normalised_text(name: str, text: str) -> None:
    for adapter in adapters(name):
        ids = adapter.encode_ordinary(text)
        assert adapter.decode_bytes(ids).decode() == adapter.normalize(text)
        assert b"".join(adapter.token_bytes(token_id) for token_id in ids) == adapter.decode_bytes(ids)


def test_encoder_and_fallback() -> None:
    assert adapt(TOKENIZERS["nfc"]).encoder == "tiktoken"
    unproved = adapt(trained_tokenizer(pattern=r"(?<=a)b|[\s\S]"))
    assert unproved.encoder == "tokenizers"
    unproved.warm_up()
    assert unproved.encode_ordinary("abab") == unproved.encode_with_offsets("abab")[0]


def test_small_amounts_of_text_do_not_set_tiktoken_up(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[object] = []

    def settle(accelerator: object) -> None:
        built.append(accelerator)

    monkeypatch.setattr("renderers.tokenizers.acceleration.Accelerator._settle", settle)
    adapter = adapt(TOKENIZERS["plain"])
    adapter.encode_ordinary("word " * 20_000)
    assert not built
    adapter.encode_ordinary_batch(["word " * 20_000, "word " * 20_000])
    assert built


def test_special_tokens_bytes_and_unknown_ids() -> None:
    adapter = adapt(TOKENIZERS["plain"])
    assert set(adapter.special_tokens) == set(ADDED)
    for text, token_id in adapter.special_tokens.items():
        assert adapter.token_bytes(token_id) == text.encode()
    size = adapter.vocabulary_size
    assert adapter.token_bytes(size - 1)
    for unknown in (size, 1 << 31, 1 << 40, 1 << 80, -1):
        assert adapter.token_bytes(unknown) == b""
    user = adapter.special_tokens["<|user|>"]
    assert adapter.decode_bytes([user, size + 7, user]) == b"<|user|><|user|>"


def test_a_vocabulary_with_holes() -> None:
    vocabulary = {**byte_vocabulary(), "ab": 400, "<|x|>": 300}
    tokenizer = bpe_tokenizer(vocabulary, [("a", "b")])
    tokenizer.add_special_tokens(["<|x|>"])
    adapter = adapt(tokenizer)
    assert adapter.vocabulary_size == 401
    assert adapter.special_tokens == {"<|x|>": 300}
    assert adapter.token_bytes(350) == b""
    assert adapter.encode_with_offsets("ab<|x|>ab")[0] == [400, 300, 400]


def test_added_tokens_with_holes_between_them_keep_their_ids() -> None:
    data = json.loads(TOKENIZERS["plain"].to_str())
    tokens = data["added_tokens"]
    tokenizer = Tokenizer.from_str(json.dumps({**data, "added_tokens": [tokens[0], tokens[2], tokens[5]]}))
    adapter = adapt(tokenizer)
    text = "".join(token["content"] for token in tokens)
    assert adapter.encode_with_offsets(text)[0] == tokenizer.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("text", ["a\ud800b", "\udfff", "中\udc00"])
def test_lone_surrogates_are_an_error_that_names_them(text: str) -> None:
    for adapter in adapters("nfc"):
        for method in (
            adapter.encode_ordinary,
            adapter.encode_with_offsets,
            adapter.normalize,
            adapter.find_special_tokens,
            lambda given, adapter=adapter: adapter.encode_ordinary_batch(["x", given]),
        ):
            with pytest.raises(TokenizerError, match="lone surrogate, U\\+D"):
                method(text)


def test_state_of_the_users_object_does_not_matter() -> None:
    tokenizer = trained_tokenizer()
    adapter = adapt(tokenizer)
    text = "Hello <|user|> world, hello token"
    expected, ordinary = adapter.encode_with_offsets(text), adapter.encode_ordinary(text)
    tokenizer.enable_truncation(2)
    tokenizer.enable_padding(length=50)
    tokenizer.encode_special_tokens = True
    tokenizer.post_processor = processors.TemplateProcessing(single="<|end|> $A", special_tokens=[("<|end|>", 0)])
    for fresh in (adapter, adapt(tokenizer)):
        assert fresh.encode_with_offsets(text) == expected
        assert fresh.encode_ordinary(text) == ordinary
        assert fresh.encode_ordinary_batch([text, text]) == [ordinary, ordinary]
    assert tokenizer.truncation is not None


@pytest.mark.parametrize("ignore_merges", [False, True])
def test_a_special_token_in_the_vocabulary_is_not_reached_by_ordinary_text(ignore_merges: bool) -> None:
    """As in pruned tokenizers, where special tokens stand in the vocabulary too, and `/nothink` is a word."""
    vocabulary = {**byte_vocabulary(), "/n": 256, "/nothink": 300}
    tokenizer = bpe_tokenizer(vocabulary, [("/", "n")], ignore_merges=ignore_merges)
    tokenizer.add_tokens(["/nothink"])
    expected = [256, *(vocabulary[letter] for letter in "othink")]
    for adapter in (adapt(tokenizer), warm(tokenizer)):
        assert adapter.encode_ordinary("/nothink") == expected
        assert adapter.encode_with_offsets("/nothink")[0] == [300]
    assert adapt(tokenizer).encoder == "tiktoken"


def test_a_word_tokenizer_with_special_tokens_in_its_vocabulary() -> None:
    tokenizer = Tokenizer(models.WordLevel({UNKNOWN: 0, "<s>": 1, "a": 2}, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens([UNKNOWN, "<s>"])
    adapter = adapt(tokenizer)
    assert adapter.encoder == "tokenizers"
    assert adapter.encode_ordinary("a <s> b") == [2, 0, 0]
    assert adapter.encode_with_offsets("a <s> b")[0] == [2, 1, 0]


def sentencepiece_like() -> Tokenizer:
    vocabulary = {UNKNOWN: 0, "<s>": 1, "\u2581": 2, "a": 3, "\u2581a": 4} | {f"<0x{n:02X}>": 5 + n for n in range(256)}
    tokenizer = Tokenizer(
        models.BPE(vocabulary, [("\u2581", "a")], unk_token=UNKNOWN, byte_fallback=True, fuse_unk=True)
    )
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens([UNKNOWN, "<s>"])
    return tokenizer


def test_a_sentencepiece_like_tokenizer() -> None:
    adapter = adapt(sentencepiece_like())
    assert adapter.encoder == "tokenizers"
    assert not adapter.splits_at_special_tokens
    assert adapter.needs_whole_text("a")
    ids = adapter.encode_ordinary("a 中")
    assert adapter.decode_bytes(ids) == " a 中".encode()
    assert adapter.find_special_tokens("a<s>a") == [(1, 4, 1)]
    assert 1 not in adapter.encode_ordinary("a<s>a")


@pytest.mark.parametrize(
    ("token", "normalizer"),
    [
        (AddedToken("<x>", lstrip=True), None),
        (AddedToken("<x>", rstrip=True), None),
        (AddedToken("<x>", single_word=True), None),
        (AddedToken("<É>", normalized=True), normalizers.NFC()),
    ],
)
def test_tokens_that_take_more_than_their_text(token: AddedToken, normalizer: Any) -> None:
    tokenizer = trained_tokenizer(normalizer=normalizer)
    tokenizer.add_tokens([token])
    adapter = adapt(tokenizer)
    assert not adapter.splits_at_special_tokens
    assert adapter.needs_whole_text("a")
    token_id = adapter.special_tokens[token.content]
    text = "a <x> b<x>c <E\u0301> d <|user|>"
    reference = tokenizer.encode(text, add_special_tokens=False)
    assert adapter.encode_with_offsets(text) == (reference.ids, reference.offsets)
    found = [span[2] for span in adapter.find_special_tokens(text)]
    assert found.count(token_id) == reference.ids.count(token_id) > 0
    assert token_id not in adapter.encode_ordinary(text)


def test_normalized_tokens_split_where_there_is_no_normalizer() -> None:
    tokenizer = trained_tokenizer(normalizer=normalizers.Sequence([]))
    tokenizer.add_tokens([AddedToken("<n>", normalized=True)])
    assert adapt(tokenizer).splits_at_special_tokens


@pytest.mark.parametrize(
    "component", [pre_tokenizers.ByteLevel(add_prefix_space=True), pre_tokenizers.Metaspace(prepend_scheme="first")]
)
def test_tokenizers_that_prepend_a_space_do_not_split(component: Any) -> None:
    tokenizer = trained_tokenizer()
    tokenizer.pre_tokenizer = component
    assert not adapt(tokenizer).splits_at_special_tokens
    assert adapt(tokenizer).encoder == "tokenizers"


def test_pickling_gives_the_same_tokenizer() -> None:
    for adapter in adapters("nfc"):
        copy = pickle.loads(pickle.dumps(adapter))  # noqa: S301
        text = "Hello <|user|> e\u0301 world"
        assert copy.encode_ordinary(text) == adapter.encode_ordinary(text)
        assert copy.encode_with_offsets(text) == adapter.encode_with_offsets(text)
        assert copy.fingerprint() == adapter.fingerprint()
        assert copy.special_tokens == adapter.special_tokens


def test_many_threads_share_an_adapter() -> None:
    adapter = adapt(TOKENIZERS["nfc"])
    text = "".join(TEXTS) * 40
    expected = plain_ids("nfc", text)
    results: list[list[int]] = []

    def work() -> None:
        for _ in range(2):
            results.append(adapter.encode_ordinary(text))
            results.append(adapter.encode_with_offsets(text)[0])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 32
    assert all(result == expected for result in results[::2])
    assert adapter._accelerator._encoder is not None  # type: ignore[attr-defined]


def test_the_fingerprint_tells_tokenizers_apart() -> None:
    same = Tokenizer.from_str(TOKENIZERS["plain"].to_str())
    same.enable_truncation(5)
    fingerprint = adapt(TOKENIZERS["plain"]).fingerprint()
    assert fingerprint == adapt(same).fingerprint()
    assert len(fingerprint) == 64
    more = Tokenizer.from_str(TOKENIZERS["plain"].to_str())
    more.add_tokens(["<new>"])
    others = [more, TOKENIZERS["nfc"], TOKENIZERS["whole words"], trained_tokenizer(size=400)]
    assert len({fingerprint, *(adapt(other).fingerprint() for other in others)}) == 5


@pytest.mark.parametrize("given_object", [None, 3, object(), ["a"], b"bytes", Regex("a")])
def test_other_objects_are_an_error_that_says_what_is_accepted(given_object: Any) -> None:
    with pytest.raises(TokenizerError, match=r"expected a transformers fast tokenizer"):
        adapt(given_object)


def test_an_adapter_is_taken_as_it_is_or_with_another_template() -> None:
    adapter = adapt(TOKENIZERS["plain"])
    assert adapt(adapter) is adapter
    assert adapter.chat_template is None
    patched = adapt(adapter, chat_template="{{ messages }}")
    assert patched.chat_template == "{{ messages }}"
    assert adapter.chat_template is None
    assert patched.encode_ordinary("a") == adapter.encode_ordinary("a")
    assert patched.source is TOKENIZERS["plain"]
    with pytest.raises(TokenizerError, match=r"tiktoken\.Encoding"):
        adapt(adapter, special_tokens={"<x>": 1})
