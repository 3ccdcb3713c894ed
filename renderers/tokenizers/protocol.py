"""The one protocol through which the framework sees a tokenizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class TokenizerAdapter(Protocol):
    """A tokenizer as the framework uses it.

    "Special token" means every added token of the tokenizer, whatever its `special` flag. "Ordinary" encoding never
    yields a special token, even where the text spells one.

    Every method that takes text raises TokenizerError where the text holds a lone surrogate: it has no UTF-8 form, and
    no tokenizer has tokens for it. An adapter may be used from many threads and pickles.
    """

    @property
    def special_tokens(self) -> Mapping[str, int]:
        """Every added token: its text and its ID."""

    @property
    def splits_at_special_tokens(self) -> bool:
        """Whether the text between two special tokens always encodes alone.

        False where an added token has `lstrip`, `rstrip` or `single_word`, where it is `normalized` beside a non-empty
        normalizer, or where the tokenizer prepends something to the text: then only `encode_with_offsets` is exact.
        """

    @property
    def special_tokens_can_overlap(self) -> bool:
        """Whether text around a special token can make the tokenizer read another one in its place.

        Where false, a special token that was written into a text is found at its place, whatever stands around it.
        Where true (`｜DSML｜` of DeepSeek: text that ends in `｜DSML` before it takes its first character), only
        `find_special_tokens` on the whole text tells.
        """

    @property
    def doubtful_endings(self) -> tuple[str, ...]:
        """How a text may end so that, before a written special token, the tokenizer may read another one in its place.

        Empty where `special_tokens_can_overlap` is false. An empty text among them means that any text is doubtful.
        """

    @property
    def cuts_long_texts(self) -> bool:
        """Whether `needs_whole_text` depends on the text: the tokenizer's own class cuts long ones."""

    def needs_whole_text(self, text: str) -> bool:
        """Whether only `encode_with_offsets` encodes this text exactly.

        True for every text where `splits_at_special_tokens` is false. Else true only for texts that the tokenizer's
        own class cuts at fixed places before it encodes them, as Kimi's does after 400,000 characters.
        """

    @property
    def line_starts(self) -> str:
        """Characters before which, after a newline, a text may be cut: its parts encode to what the whole does.

        Only where `splits_at_special_tokens` holds. Empty where no such place is known; there may be more of them later.
        """

    def find_special_tokens(self, text: str) -> list[tuple[int, int, int]]:
        """Start, end and ID of each special token that the tokenizer recognises in the text, from left to right."""

    def encode_ordinary(self, text: str) -> list[int]:
        """IDs of `text` as ordinary text: special tokens spelled in it are not recognised."""

    def encode_ordinary_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode_ordinary` of each text, in one call."""

    def encode_batch(self, texts: Sequence[str], searched: Sequence[str] | None = None) -> list[list[int]]:
        """IDs of each text, where `splits_at_special_tokens` holds: special tokens recognised, all else ordinary.

        `searched` are texts of the same lengths in which special tokens are searched, where that is not the texts.
        """

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """IDs of the whole text, special tokens recognised, nothing added; and each token's character range."""

    def normalize(self, text: str) -> str:
        """`text` as the tokenizer's normalizer leaves it before splitting; the same object where nothing changes."""

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that a token stands for (a special token: its text), or b"" for an ID that does not exist.

        Exact for byte-level vocabularies. For those of sentencepiece, `▁` is a space, also at the beginning of a text,
        where decoding the whole would drop it; for other kinds, it is the token's own text.
        """

    def decode_bytes(self, token_ids: Sequence[int]) -> bytes:
        """`token_bytes` of each ID, joined. One call for a whole run of tokens: this is the fast way."""

    @property
    def vocabulary_size(self) -> int:
        """One more than the largest token ID."""

    @property
    def chat_template(self) -> str | None:
        """The tokenizer's chat template, or None. Where it has several, the one named `default`."""

    @property
    def chat_templates(self) -> Mapping[str, str]:
        """Every chat template by name: `default`, and with some tokenizers `tool_use` and others."""

    @property
    def name_or_path(self) -> str:
        """The model ID or path that the tokenizer was loaded from, or an empty string."""

    @property
    def named_special_tokens(self) -> Mapping[str, str]:
        """What a template may print by name: `bos_token`, `eos_token`, ... and their texts."""

    @property
    def generation_stop_ids(self) -> Sequence[int]:
        """IDs of the tokens that end generation, where the tokenizer came with a `generation_config.json`."""

    @property
    def source(self) -> object:
        """The object that the user gave."""

    def fingerprint(self) -> str:
        """sha256 of what decides the token IDs: vocabulary, merges, added tokens, splitting."""

    @property
    def encoder(self) -> str:
        """Which library encodes: "tiktoken", "tokenizers" or "custom" for the user's own class.

        Where it is not known yet whether tiktoken gives the same IDs, this finds out, in some seconds once a machine.
        """

    def warm_up(self) -> None:
        """Set the fast encoder up now, in half a second, and not after the first 200,000 characters of text.

        For benchmarks, and for servers whose first answers should not wait. IDs are the same before and after.
        """
