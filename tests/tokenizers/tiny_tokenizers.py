"""Small tokenizers, made here, so that these tests mean something without the official ones."""

from __future__ import annotations

import json
import random
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer

from renderers.tokenizers.token_bytes import byte_to_character

LLAMA_PATTERN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"

SPECIAL_TOKENS = ("<|end|>", "<|user|>", "<|im_end|>")
OTHER_ADDED_TOKENS = ("<think>", "</think>", "/nothink")

_CORPUS = (
    "Hello world, hello token! Don't split the user's words; they're 12345 long.\n\n",
    "def think(user):\n    return [x for x in range(1000)]\n\n\tend user think nothink /nothink <think>\r\n",
    "中文的词和字，中文的句子。かな カナ 漢字。 Ünïcödé éàü 🙂🙂 🚀\n",
    "e\u0301 a\u0300 o\u0302\u0323 \u00a0\u2028\u200b\n",
)


def trained_tokenizer(
    *, size: int = 600, pattern: str = LLAMA_PATTERN, normalizer: Any = None, ignore_merges: bool = False
) -> Tokenizer:
    """A byte-level BPE trained on a few lines, with added tokens, special ones and others."""
    tokenizer = Tokenizer(BPE(ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(vocab_size=size, initial_alphabet=sorted(byte_to_character()), show_progress=False)
    tokenizer.train_from_iterator(_CORPUS * 3, trainer)
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in OTHER_ADDED_TOKENS])
    return tokenizer


def nfc_tokenizer() -> Tokenizer:
    """The same with NFC before it, as Qwen's."""
    return trained_tokenizer(normalizer=normalizers.NFC())


def without_added_tokens(tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer made anew from its JSON without the added tokens; what ordinary encoding must equal."""
    data = json.loads(tokenizer.to_str())
    data["added_tokens"] = []
    data["post_processor"] = None
    return Tokenizer.from_str(json.dumps(data))


def bpe_tokenizer(
    vocabulary: dict[str, int], merges: list[tuple[str, str]], *, pattern: str = r"[\s\S]+", ignore_merges: bool = False
) -> Tokenizer:
    """A byte-level BPE with exactly this vocabulary and these merges."""
    tokenizer = Tokenizer(BPE(vocab=vocabulary, merges=merges, ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    return tokenizer


def byte_vocabulary() -> dict[str, int]:
    """A token for each byte."""
    return {character: value for value, character in enumerate(byte_to_character())}


def random_bpe(
    source: random.Random, letters: str = "ab", steps: int = 8
) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Bytes and some random merges of a few letters; sometimes with tokens that no merge makes, or other orders."""
    vocabulary = byte_vocabulary()
    merges: list[tuple[str, str]] = []
    tokens = list(letters)
    for _ in range(steps):
        left, right = source.choice(tokens), source.choice(tokens)
        joined = left + right
        if (left, right) in merges or len(joined) > 8:
            continue
        if joined not in vocabulary:
            vocabulary[joined] = len(vocabulary)
            tokens.append(joined)
        merges.append((left, right))
        if source.random() < 0.2:
            extra = "".join(source.choices(letters, k=source.randrange(2, 6)))
            vocabulary.setdefault(extra, len(vocabulary))
            if source.random() < 0.5:
                tokens.append(extra)
    if source.random() < 0.6:
        merges.sort(key=lambda pair: vocabulary[pair[0] + pair[1]])
    return vocabulary, merges
