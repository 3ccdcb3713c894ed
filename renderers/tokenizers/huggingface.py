"""Adapter for `tokenizers.Tokenizer`, bare or inside a transformers fast tokenizer."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from renderers.tokenizers.acceleration import Accelerator
from renderers.tokenizers.base import AdapterBase, TokenizerInfo, require_no_surrogates
from renderers.tokenizers.components import added_tokens_of, component_list, model_settings, prepends_to_text
from renderers.tokenizers.normal_forms import is_surely_nfc
from renderers.tokenizers.token_bytes import byte_level_bytes, sentencepiece_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tiktoken import Encoding
    from tokenizers import Tokenizer

    from renderers.tokenizers.special_tokens import SpecialSpan

# Normalizers that leave ASCII as it is.
_UNICODE_FORMS = frozenset({"NFC", "NFKC", "NFD", "NFKD"})


class TokenizersAdapter(AdapterBase):
    """Encodes with the `tokenizers` library.

    The user's tokenizer object carries state that other code changes under way (truncation, padding, whether special
    tokens are split), so it is never called. Its model, normalizer and pre-tokenizer are shared, without a copy, by two
    tokenizers of our own: one without added tokens for ordinary text, and one with them for whole texts.
    """

    def __init__(self, tokenizer: Tokenizer, *, source: object, info: TokenizerInfo) -> None:
        library_tokens = tokenizer.get_added_tokens_decoder()
        super().__init__(source, info, added_tokens_of(library_tokens))
        self._library_tokens = library_tokens
        self._ordinary = _bare_copy(tokenizer)
        self._model = self._ordinary.model
        self._normalizer = self._ordinary.normalizer
        self._normalizer_steps = component_list(self._normalizer)
        self._pre_tokenizer_steps = component_list(self._ordinary.pre_tokenizer)
        self._accelerator = Accelerator(self._ordinary, self._special_tokens)
        self._normalizes_to_nfc = [step["type"] for step in self._normalizer_steps] == ["NFC"]
        self._ascii_is_normal = all(step["type"] in _UNICODE_FORMS for step in self._normalizer_steps)

    @cached_property
    def _whole(self) -> tuple[Tokenizer, dict[int, int]]:
        """A tokenizer with the added tokens, and the true IDs of those that it numbers otherwise."""
        tokenizer = _bare_copy(self._ordinary)
        tokenizer.add_tokens([self._library_tokens[token.token_id] for token in self._added_tokens])
        renumbered = {
            token_id: self._special_tokens[token.content]
            for token_id, token in tokenizer.get_added_tokens_decoder().items()
            if self._special_tokens[token.content] != token_id
        }
        return tokenizer, renumbered

    @cached_property
    def splits_at_special_tokens(self) -> bool:
        """Whether the text between two special tokens always encodes alone; see the protocol."""
        return (
            super().splits_at_special_tokens
            and self._finds_plainly
            and not prepends_to_text(self._normalizer_steps, self._pre_tokenizer_steps)
        )

    @cached_property
    def _finds_plainly(self) -> bool:
        """Whether special tokens match their own characters and nothing else."""
        return all(
            token.matches_plainly and not (token.normalized and self._normalizer_steps) for token in self._added_tokens
        )

    @property
    def line_starts(self) -> str:
        """Characters before which, after a newline, a text may be cut; see the protocol."""
        return self._accelerator.line_starts if self._lines_are_plain else ""

    @cached_property
    def _lines_are_plain(self) -> bool:
        """Whether neither a special token nor the normalizer reaches over the end of a line."""
        is_normal = not self._normalizer_steps or self._normalizes_to_nfc
        return is_normal and not any("\n" in text for text in self._special_tokens)

    def find_special_tokens(self, text: str) -> list[SpecialSpan]:
        """Start, end and ID of each special token in the text, from left to right."""
        if self._finds_plainly:
            return super().find_special_tokens(text)
        special_ids = frozenset(self._special_tokens.values())
        ids, offsets = self.encode_with_offsets(text)
        return [
            (start, end, token_id)
            for token_id, (start, end) in zip(ids, offsets, strict=True)
            if token_id in special_ids
        ]

    def encode_ordinary(self, text: str) -> list[int]:
        """IDs of `text` as ordinary text."""
        return self.encode_ordinary_batch([text])[0]

    def encode_ordinary_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode_ordinary` of each text."""
        for text in texts:
            require_no_surrogates(text)
        if not texts:
            return []
        fast = self._accelerator.encoder_for(sum(map(len, texts)))
        if fast is not None:
            normalized = [self._normalize(text) for text in texts]
            encoded = fast.encode(normalized)
            if encoded is not None:
                return encoded
            return [
                (fast.encode([known]) or [self._slowly(text)])[0] for text, known in zip(texts, normalized, strict=True)
            ]
        encodings = self._ordinary.encode_batch_fast(list(texts), add_special_tokens=False)
        return [self._checked(text, encoding.ids) for text, encoding in zip(texts, encodings, strict=True)]

    def _slowly(self, text: str) -> list[int]:
        return self._checked(text, self._ordinary.encode(text, add_special_tokens=False).ids)

    def encode_batch(self, texts: Sequence[str], searched: Sequence[str] | None = None) -> list[list[int]]:
        """IDs of each text, special tokens recognised; see the protocol."""
        plain = not self.doubtful_endings and self._finds_plainly and self._ascii_is_normal
        if texts and plain and self._finds_no_more(texts, searched):
            for text in texts:
                require_no_surrogates(text)
            fast = self._accelerator.encoder_for(sum(map(len, texts)))
            # Normalising a whole text can join a special token's last character with what follows. Where a Unicode form
            # changes nothing of it, it changes no part either.
            if fast is not None and all([self._normalize(text) is text for text in texts]):  # noqa: C419 - a list is faster
                encoded = fast.encode(texts, self._matcher.may_stand_in)
                if encoded is not None:
                    return encoded
        return super().encode_batch(texts, searched)

    def _finds_no_more(self, texts: Sequence[str], searched: Sequence[str] | None) -> bool:
        """Whether the texts surely hold no special token but those in `searched`."""
        if searched is None:
            return True
        finds_no_more = self._matcher.finds_no_more
        return all([one is text or finds_no_more(text, one) for text, one in zip(texts, searched, strict=True)])  # noqa: C419 - a list is faster

    @cached_property
    def _reachable_specials(self) -> frozenset[int]:
        """Special tokens that also stand in the model's vocabulary, where ordinary text might reach them.

        The unknown token is none of them: it is what text without a token becomes.
        """
        unknown = self._unknown_token_id
        return frozenset(
            token_id
            for text, token_id in self._special_tokens.items()
            if self._model.token_to_id(text) is not None and token_id != unknown
        )

    @cached_property
    def _unknown_token_id(self) -> int | None:
        name = getattr(self._model, "unk_token", None)
        if name is not None:
            token_id: int | None = self._model.token_to_id(name)
            return token_id
        unknown_id: int | None = getattr(self._model, "unk_id", None)
        return unknown_id

    def _checked(self, text: str, ids: list[int]) -> list[int]:
        """The IDs, encoded again without special tokens in the vocabulary where they hold one.

        That happens where `ignore_merges` is on, or the model looks words up, and a special token is one word.
        """
        if self._reachable_specials.isdisjoint(ids):
            return ids
        fresh: list[int] = self._without_specials.encode(text, add_special_tokens=False).ids
        return fresh

    @cached_property
    def _without_specials(self) -> Tokenizer:
        """The ordinary tokenizer with special tokens renamed to what no text spells, so that IDs stay as they are."""
        from tokenizers import Tokenizer

        state = json.loads(self._ordinary.to_str())
        model = state["model"]
        hidden = {text: f"\U0010ffff{number}\U0010ffff" for number, text in enumerate(self._special_tokens)}
        if isinstance(model["vocab"], dict):
            model["vocab"] = {hidden.get(text, text): token_id for text, token_id in model["vocab"].items()}
        else:
            model["vocab"] = [[hidden.get(text, text), score] for text, score in model["vocab"]]
        if model.get("unk_token") in hidden:
            model["unk_token"] = hidden[model["unk_token"]]
        if "merges" in model:
            pairs = [merge.split(" ", 1) if isinstance(merge, str) else merge for merge in model["merges"]]
            model["merges"] = [
                pair
                for pair in pairs
                if pair[0] not in hidden and pair[1] not in hidden and "".join(pair) not in hidden
            ]
        return Tokenizer.from_str(json.dumps(state))

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """IDs of the whole text, special tokens recognised, nothing added; and each token's character range."""
        require_no_surrogates(text)
        tokenizer, renumbered = self._whole
        encoding = tokenizer.encode(text, add_special_tokens=False)
        ids = encoding.ids
        if renumbered:
            ids = [renumbered.get(token_id, token_id) for token_id in ids]
        return ids, encoding.offsets

    def normalize(self, text: str) -> str:
        """`text` as the tokenizer's normalizer leaves it; the same object where nothing changes."""
        require_no_surrogates(text)
        return self._normalize(text)

    def _normalize(self, text: str) -> str:
        if not self._normalizer_steps or (self._ascii_is_normal and text.isascii()):
            return text
        if self._normalizes_to_nfc and is_surely_nfc(text):
            return text
        normalized: str = self._normalizer.normalize_str(text)
        return text if normalized == text else normalized

    @cached_property
    def _bytes_of_text(self) -> Callable[[str], bytes]:
        """How this vocabulary writes bytes: as byte-level characters, or as sentencepiece does."""
        kinds = {step["type"] for step in self._pre_tokenizer_steps}
        return byte_level_bytes if "ByteLevel" in kinds else sentencepiece_bytes

    @cached_property
    def _special_bytes(self) -> dict[int, bytes]:
        return {token.token_id: token.text.encode() for token in self._added_tokens}

    def _find_token_bytes(self, token_id: int) -> bytes | None:
        special = self._special_bytes.get(token_id)
        if special is not None:
            return special
        token: str | None = self._model.id_to_token(token_id)
        return None if token is None else self._bytes_of_text(token)

    @cached_property
    def vocabulary_size(self) -> int:
        """One more than the largest token ID."""
        ordinary = self._ordinary.get_vocab(with_added_tokens=False)
        return 1 + max((*ordinary.values(), *self._special_tokens.values()), default=-1)

    @cached_property
    def _fingerprint(self) -> str:
        model = json.loads(self._model.__getstate__())
        vocabulary = model["vocab"]
        entries = sorted(vocabulary.items(), key=itemgetter(1)) if isinstance(vocabulary, dict) else vocabulary
        merges = (merge.split(" ", 1) if isinstance(merge, str) else merge for merge in model.get("merges", ()))
        digest = hashlib.sha256()
        # Vocabulary and merges are long: as lines, they are written ten times faster than as JSON.
        digest.update("\n".join([f"{len(token)} {token} {value}" for token, value in entries]).encode())
        digest.update("\n".join([f"{len(left)} {len(right)} {left}{right}" for left, right in merges]).encode())
        others = {
            "settings": model_settings(self._ordinary),
            "unknown": model.get("unk_id"),
            "added_tokens": [
                [t.text, t.token_id, t.lstrip, t.rstrip, t.single_word, t.normalized and bool(self._normalizer_steps)]
                for t in self._added_tokens
            ],
            "normalizer": self._normalizer_steps,
            "pre_tokenizer": [
                {name: value for name, value in step.items() if name != "trim_offsets"}
                for step in self._pre_tokenizer_steps
            ],
        }
        digest.update(json.dumps(others, sort_keys=True).encode())
        return digest.hexdigest()

    def fingerprint(self) -> str:
        """sha256 of what decides the token IDs. Takes half a second once."""
        return self._fingerprint

    @property
    def encoder(self) -> str:
        """Which library encodes; see the protocol."""
        return "tiktoken" if self._accelerator.verdict.proved else "tokenizers"

    @property
    def tiktoken_encoding(self) -> Encoding | None:
        """The `tiktoken.Encoding` that gives the same IDs, or None where none is proved to. For measurements."""
        return self._accelerator.encoding

    def warm_up(self) -> None:
        """Set tiktoken up now; see the protocol."""
        self._accelerator.warm_up()

    def __reduce__(self) -> tuple[object, ...]:
        return self._reload() or (_rebuild, (self._source, self._info))


def _bare_copy(tokenizer: Tokenizer) -> Tokenizer:
    """A tokenizer that shares the model, the normalizer and the pre-tokenizer, and has nothing else."""
    from tokenizers import Tokenizer

    bare = Tokenizer(tokenizer.model)
    if tokenizer.normalizer is not None:
        bare.normalizer = tokenizer.normalizer
    if tokenizer.pre_tokenizer is not None:
        bare.pre_tokenizer = tokenizer.pre_tokenizer
    return bare


def _rebuild(source: Any, info: TokenizerInfo) -> TokenizersAdapter:
    return TokenizersAdapter(backend_of(source), source=source, info=info)


def backend_of(tokenizer: Any) -> Any:
    """The `tokenizers.Tokenizer` in a transformers fast tokenizer, the object itself if it is one, or None."""
    from tokenizers import Tokenizer

    for candidate in (
        tokenizer,
        getattr(tokenizer, "backend_tokenizer", None),
        getattr(tokenizer, "_tokenizer", None),
    ):
        if isinstance(candidate, Tokenizer):
            return candidate
    return None
