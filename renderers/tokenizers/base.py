"""What all adapters share."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

from renderers.errors import TokenizerError
from renderers.tokenizers.special_tokens import (
    AddedToken,
    SpecialSpan,
    SpecialTokenMatcher,
    matcher_of,
    overlap_endings,
)
from renderers.tokenizers.token_bytes import TokenBytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SURROGATE = re.compile("[\ud800-\udfff]")


def require_no_surrogates(text: str) -> None:
    """Raise TokenizerError where the text holds a lone surrogate.

    Libraries differ in what they do with one (a UnicodeEncodeError, a panic, a silent replacement character), and
    none of it is what the caller meant.
    """
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _surrogate_error(text) from None


def _surrogate_error(text: str) -> TokenizerError:
    found = _SURROGATE.search(text)
    if found is None:
        return TokenizerError("the text cannot be encoded as UTF-8")
    return TokenizerError(
        f"the text holds a lone surrogate, U+{ord(found[0]):04X}, at character {found.start()}: it cannot be encoded "
        "as UTF-8, and no tokenizer has tokens for it. Replace it, for instance with U+FFFD, before rendering."
    )


@dataclass(frozen=True, slots=True)
class TokenizerInfo:
    """What comes with a tokenizer and does not decide token IDs."""

    name_or_path: str = ""
    chat_templates: Mapping[str, str] = field(default_factory=dict)
    named_special_tokens: Mapping[str, str] = field(default_factory=dict)
    generation_stop_ids: tuple[int, ...] = ()


class AdapterBase:
    """The parts of the protocol that do not depend on the encoding library."""

    def __init__(self, source: object, info: TokenizerInfo, added_tokens: Sequence[AddedToken]) -> None:
        self._source = source
        self._info = info
        self._added_tokens = tuple(added_tokens)
        self._special_tokens = MappingProxyType({token.text: token.token_id for token in self._added_tokens})
        self._token_bytes = TokenBytes(self._find_token_bytes)
        self._loaded_from: tuple[str, str] | None = None

    def loaded_from(self, name: str, digest: str) -> Self:
        """Note the files that the tokenizer came from, by which it pickles: worker processes read them again."""
        self._loaded_from = (name, digest)
        return self

    @property
    def files_digest(self) -> str | None:
        """sha256 of the files that the tokenizer came from, or None where the user gave an object."""
        return None if self._loaded_from is None else self._loaded_from[1]

    def _reload(self) -> tuple[object, ...] | None:
        """How to unpickle a tokenizer that came from files."""
        if self._loaded_from is None:
            return None
        from renderers.tokenizers.loading import reload_adapter

        return (reload_adapter, (*self._loaded_from, self._info))

    def _find_token_bytes(self, token_id: int) -> bytes | None:
        raise NotImplementedError

    @property
    def source(self) -> object:
        """The object that the user gave."""
        return self._source

    @property
    def info(self) -> TokenizerInfo:
        """What came with the tokenizer: its name, templates and named tokens."""
        return self._info

    def with_info(self, info: TokenizerInfo) -> Self:
        """The same adapter with other templates or names; everything that was computed is shared."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, _info=info)
        return other

    @property
    def name_or_path(self) -> str:
        """The model ID or path that the tokenizer was loaded from, or an empty string."""
        return self._info.name_or_path

    @property
    def chat_template(self) -> str | None:
        """The chat template named `default`, or None."""
        return self._info.chat_templates.get("default")

    @property
    def chat_templates(self) -> Mapping[str, str]:
        """Every chat template by name."""
        return MappingProxyType(dict(self._info.chat_templates))

    @property
    def named_special_tokens(self) -> Mapping[str, str]:
        """`bos_token`, `eos_token`, ... and their texts."""
        return MappingProxyType(dict(self._info.named_special_tokens))

    @property
    def generation_stop_ids(self) -> tuple[int, ...]:
        """IDs of the tokens that end generation, as the model's `generation_config.json` says."""
        return self._info.generation_stop_ids

    @property
    def special_tokens(self) -> Mapping[str, int]:
        """Every added token: its text and its ID."""
        return self._special_tokens

    @cached_property
    def splits_at_special_tokens(self) -> bool:
        """Whether the text between two special tokens always encodes alone; see the protocol."""
        return all(token.matches_plainly for token in self._added_tokens)

    @cached_property
    def special_tokens_can_overlap(self) -> bool:
        """Whether text around a special token can make the tokenizer read another one in its place; see the protocol."""
        return bool(self.doubtful_endings)

    @cached_property
    def doubtful_endings(self) -> tuple[str, ...]:
        """How a text ends after which the tokenizer may read another special token than was written; see the protocol."""
        return overlap_endings(tuple(self._special_tokens))

    @property
    def cuts_long_texts(self) -> bool:
        """Whether `needs_whole_text` depends on the text."""
        return False

    def needs_whole_text(self, text: str) -> bool:
        """Whether only `encode_with_offsets` encodes this text exactly."""
        return not self.splits_at_special_tokens

    @property
    def line_starts(self) -> str:
        """Characters before which, after a newline, a text may be cut; see the protocol."""
        return ""

    def warm_up(self) -> None:
        """Do now what would be done once in the course of encoding; see the protocol."""

    @cached_property
    def _matcher(self) -> SpecialTokenMatcher:
        return matcher_of(self._added_tokens)

    def find_special_tokens(self, text: str) -> list[SpecialSpan]:
        """Start, end and ID of each special token in the text, from left to right."""
        require_no_surrogates(text)
        return self._matcher.find(text)

    def encode_ordinary_batch(self, texts: Sequence[str]) -> list[list[int]]:
        raise NotImplementedError

    def encode_batch(self, texts: Sequence[str], searched: Sequence[str] | None = None) -> list[list[int]]:
        """IDs of each text, special tokens recognised; see the protocol."""
        cut = [
            self._at_special_tokens(*pair) for pair in zip(texts, texts if searched is None else searched, strict=True)
        ]
        ordinary = [part for parts in cut for part in parts if isinstance(part, str)]
        encoded = iter(self.encode_ordinary_batch(ordinary) if ordinary else ())
        batch: list[list[int]] = []
        for parts in cut:
            ids: list[int] = []
            for part in parts:
                if isinstance(part, int):
                    ids.append(part)
                else:
                    ids += next(encoded)
            batch.append(ids)
        return batch

    def _at_special_tokens(self, text: str, searched: str) -> list[str | int]:
        """A text cut at the special tokens that `searched` holds: texts and IDs."""
        parts: list[str | int] = []
        position = 0
        for start, end, token_id in self.find_special_tokens(searched):
            if start > position:
                parts.append(text[position:start])
            parts.append(token_id)
            position = end
        if position < len(text):
            parts.append(text[position:])
        return parts

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that a token stands for, or b"" for an ID that does not exist."""
        return self._token_bytes[token_id]

    def decode_bytes(self, token_ids: Sequence[int]) -> bytes:
        """The bytes of all the tokens, joined."""
        return self._token_bytes.join(token_ids)
