"""The bytes behind token strings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def byte_to_character() -> list[str]:
    """The character that byte-level vocabularies write for each byte value.

    Printable bytes stand for themselves; the others take the characters from U+0100 upwards, in order.
    """
    printable = {*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1)}
    table = []
    spare = 0x100
    for value in range(256):
        if value in printable:
            table.append(chr(value))
        else:
            table.append(chr(spare))
            spare += 1
    return table


BYTE_OF_CHARACTER = {character: value for value, character in enumerate(byte_to_character())}

# `str.translate` with this table and Latin-1 turn a byte-level token string into bytes without a Python loop.
_TO_LATIN_1 = {ord(character): value for character, value in BYTE_OF_CHARACTER.items()}
_NOT_BYTE_LEVEL = re.compile(f"[^{re.escape(''.join(BYTE_OF_CHARACTER))}]")
_BYTE_FALLBACK = re.compile("<0x[0-9A-Fa-f]{2}>")


def byte_level_bytes(token: str) -> bytes:
    """Bytes of a byte-level token string; one that holds other characters is its own UTF-8, as in the library."""
    if _NOT_BYTE_LEVEL.search(token):
        return token.encode()
    return token.translate(_TO_LATIN_1).encode("latin-1")


def is_byte_level(token: str) -> bool:
    """Whether every character of a token string stands for a byte."""
    return not _NOT_BYTE_LEVEL.search(token)


def sentencepiece_bytes(token: str) -> bytes:
    """Bytes of a token of a vocabulary with `▁` for spaces and `<0xNN>` for bytes.

    The space that such tokenizers drop at the very beginning of a text belongs to the text, not to the token: it stays.
    """
    if _BYTE_FALLBACK.fullmatch(token):
        return bytes([int(token[3:5], 16)])
    return token.replace("\u2581", " ").encode()


class TokenBytes(dict[int, bytes]):
    """Bytes by token ID, filled as they are asked for.

    IDs that do not exist give b"" and are not kept, so that a stream of them cannot fill the memory.
    """

    def __init__(self, look_up: Callable[[int], bytes | None]) -> None:
        super().__init__()
        self._look_up = look_up

    def __missing__(self, token_id: int) -> bytes:
        token_id = int(token_id)
        if token_id < 0:
            return b""
        try:
            found = self._look_up(token_id)
        except OverflowError:  # beyond what the library's integers hold
            return b""
        if found is None:
            return b""
        self[token_id] = found
        return found

    def join(self, token_ids: Sequence[int]) -> bytes:
        """The bytes of all the tokens, joined."""
        return b"".join(map(self.__getitem__, token_ids))
