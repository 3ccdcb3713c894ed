"""Adapters for `tiktoken.Encoding`, bare or inside a remote-code tokenizer class like Kimi's."""

from __future__ import annotations

import hashlib
import json
import re
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from renderers.errors import TokenizerError
from renderers.tokenizers.base import AdapterBase, TokenizerInfo, require_no_surrogates
from renderers.tokenizers.special_tokens import AddedToken

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tiktoken import Encoding

    from renderers.tokenizers.special_tokens import SpecialSpan

_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))


def character_ranges(pieces: Sequence[bytes]) -> list[tuple[int, int]]:
    """The range of characters that each piece of a UTF-8 text covers, those included that it holds in part."""
    ranges = []
    started = 0
    for piece in pieces:
        begun = len(piece.translate(None, _CONTINUATION_BYTES))
        # A piece that starts inside a character covers that character too.
        inside = bool(piece) and 0x80 <= piece[0] < 0xC0
        ranges.append((started - inside, started + begun))
        started += begun
    return ranges


class TiktokenAdapter(AdapterBase):
    """Encodes with a `tiktoken.Encoding`; its special tokens are the encoding's own, or a table that is given."""

    def __init__(
        self,
        encoding: Encoding,
        *,
        source: object,
        info: TokenizerInfo,
        special_tokens: Mapping[str, int] | None = None,
    ) -> None:
        table = special_tokens
        if table is None:
            table = {text: encoding.encode_single_token(text) for text in encoding.special_tokens_set}
        tokens = [AddedToken(text, token_id) for text, token_id in sorted(table.items(), key=lambda item: item[1])]
        super().__init__(source, info, tokens)
        self._encoding = encoding
        self._given_table = special_tokens

    @cached_property
    def _special_bytes(self) -> dict[int, bytes]:
        return {token_id: text.encode() for text, token_id in self._special_tokens.items()}

    def _find_token_bytes(self, token_id: int) -> bytes | None:
        special = self._special_bytes.get(token_id)
        if special is not None:
            return special
        try:
            return self._encoding.decode_single_token_bytes(token_id)
        except KeyError:
            return None

    @cached_property
    def splits_at_special_tokens(self) -> bool:
        """Whether the text between two special tokens always encodes alone; see the protocol.

        tiktoken tries its special tokens in no particular order: where one is the beginning of another, it may take the
        shorter one.
        """
        texts = sorted(self._special_tokens)
        return not any(longer.startswith(text) for text, longer in pairwise(texts))

    def find_special_tokens(self, text: str) -> list[SpecialSpan]:
        """Start, end and ID of each special token in the text, from left to right."""
        if self.splits_at_special_tokens:
            return super().find_special_tokens(text)
        ids, offsets = self.encode_with_offsets(text)
        return [
            (*span, token_id) for token_id, span in zip(ids, offsets, strict=True) if token_id in self._special_bytes
        ]

    def encode_ordinary(self, text: str) -> list[int]:
        """IDs of `text` as ordinary text."""
        require_no_surrogates(text)
        return self._encode(text)

    def _encode(self, text: str, *, special: bool = False) -> list[int]:
        try:
            if special:
                return self._encoding.encode(text, allowed_special="all")
            return self._encoding.encode_ordinary(text)
        except BaseException as error:
            # tiktoken's regex engine gives up in a panic, which is no Exception, on a million spaces in a row.
            if type(error).__name__ != "PanicException":
                raise
            raise TokenizerError(f"tiktoken gave up on a text of {len(text)} characters: {error}") from None

    def encode_ordinary_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode_ordinary` of each text."""
        return [self.encode_ordinary(text) for text in texts]

    def _encode_whole(self, text: str) -> list[int]:
        if self._given_table is None:
            return self._encode(text, special=True)
        ids: list[int] = []
        position = 0
        for start, end, token_id in self._matcher.find(text):
            ids += self._encode(text[position:start])
            ids.append(token_id)
            position = end
        return ids + self._encode(text[position:])

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """IDs of the whole text, special tokens recognised, nothing added; and each token's character range."""
        require_no_surrogates(text)
        ids = self._encode_whole(text)
        pieces = [self._token_bytes[token_id] for token_id in ids]
        if b"".join(pieces) != text.encode():
            raise TokenizerError("the tokens of the text do not spell it, so their places in it are unknown")
        return ids, character_ranges(pieces)

    def normalize(self, text: str) -> str:
        """`text` itself: tiktoken has no normalizer."""
        require_no_surrogates(text)
        return text

    @cached_property
    def vocabulary_size(self) -> int:
        """One more than the largest token ID."""
        return 1 + max(self._encoding.max_token_value, *self._special_tokens.values(), 0)

    @cached_property
    def _fingerprint(self) -> str:
        encoding = self._encoding
        digest = hashlib.sha256(encoding._pat_str.encode())  # noqa: SLF001 - tiktoken has no public name for it
        ranks = encoding._mergeable_ranks  # noqa: SLF001
        for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
            digest.update(b"%d %d " % (rank, len(token)) + token)
        digest.update(json.dumps(sorted(self._special_tokens.items())).encode())
        return digest.hexdigest()

    def fingerprint(self) -> str:
        """sha256 of what decides the token IDs."""
        return self._fingerprint

    @property
    def encoder(self) -> str:
        """Which library encodes."""
        return "tiktoken"

    def __reduce__(self) -> tuple[object, ...]:
        return self._reload() or (_rebuild_encoding, (self._encoding, self._source, self._info, self._given_table))


def _rebuild_encoding(
    encoding: Encoding, source: object, info: TokenizerInfo, special_tokens: Mapping[str, int] | None
) -> TiktokenAdapter:
    return TiktokenAdapter(encoding, source=source, info=info, special_tokens=special_tokens)


# Kimi's class encodes at most so many characters at once, and so many without a change between space and other text.
MOST_CHARACTERS = 400_000
MOST_IN_A_RUN = 25_000

_RUNS = re.compile(r"\s+|\S+")
_NOT_SPACE = re.compile(r"\S")
_SPACE = re.compile(r"\s")

# Something of everything, to see whether a class does more to short texts than its encoding does.
_PROBE = "Hello, wörld!  <|x|>\n\n\tdef f(x):\r\n    return 1234567  中文，かな 🙂 e\u0301 don't\u00a0\u200b\x00 "


def is_encoding(tokenizer: Any) -> bool:
    """Whether the object is a `tiktoken.Encoding`."""
    from tiktoken import Encoding

    return isinstance(tokenizer, Encoding)


def is_wrapped_encoding(tokenizer: Any) -> bool:
    """Whether the object is a tokenizer class around a `tiktoken.Encoding`, as Kimi's remote code is."""
    return (
        is_encoding(getattr(tokenizer, "model", None))
        and isinstance(getattr(tokenizer, "special_tokens", None), dict)
        and callable(getattr(tokenizer, "encode", None))
    )


class WrappedTiktokenAdapter(TiktokenAdapter):
    """Encodes with the user's own class, whose IDs count.

    The class cuts long texts and long runs at fixed places before it encodes them, and looks at every character in
    Python to do so. Texts that it would not cut go straight to its `tiktoken.Encoding`.
    """

    def __init__(self, tokenizer: Any, *, source: object, info: TokenizerInfo) -> None:
        table = {str(text): int(token_id) for text, token_id in tokenizer.special_tokens.items()}
        super().__init__(tokenizer.model, source=source, info=info, special_tokens=table)
        self._tokenizer = tokenizer

    @cached_property
    def _only_cuts(self) -> bool:
        return self._own_ids(_PROBE, special=False) == self._encoding.encode_ordinary(_PROBE)

    def _own_ids(self, text: str, *, special: bool) -> list[int]:
        return list(self._tokenizer.encode(text, allow_special_tokens=special))

    @property
    def cuts_long_texts(self) -> bool:
        """Whether `needs_whole_text` depends on the text; it does."""
        return True

    def needs_whole_text(self, text: str) -> bool:
        """Whether the class would cut this text, so that only `encode_with_offsets` encodes it exactly."""
        return not self.splits_at_special_tokens or not self._only_cuts or is_cut(text)

    def _encode(self, text: str, *, special: bool = False) -> list[int]:
        if self._only_cuts and not special and not is_cut(text):
            return super()._encode(text)
        return self._own_ids(text, special=special)

    def _encode_whole(self, text: str) -> list[int]:
        return self._encode(text, special=True)

    @property
    def encoder(self) -> str:
        """Which library encodes."""
        return "custom"

    def __reduce__(self) -> tuple[object, ...]:
        return self._reload() or (_rebuild_wrapped, (self._tokenizer, self._source, self._info))


def _rebuild_wrapped(tokenizer: Any, source: object, info: TokenizerInfo) -> WrappedTiktokenAdapter:
    return WrappedTiktokenAdapter(tokenizer, source=source, info=info)


def is_cut(text: str) -> bool:
    """Whether Kimi's class cuts this text before it encodes it."""
    if len(text) <= MOST_IN_A_RUN:
        return False
    return len(text) > MOST_CHARACTERS or bool(cuts_in(text))


def cuts_in(text: str) -> list[int]:
    """The places where Kimi's class cuts a text because of the length of its runs."""
    block = MOST_IN_A_RUN // 2
    # A run that is too long covers one of these blocks entirely; hardly any text has one.
    for start in range(0, len(text) - block + 1, block):
        ends = _NOT_SPACE if text[start].isspace() else _SPACE
        if ends.search(text, start, start + block) is None:
            break
    else:
        return []
    return [
        place for run in _RUNS.finditer(text) for place in range(run.start() + MOST_IN_A_RUN, run.end(), MOST_IN_A_RUN)
    ]
