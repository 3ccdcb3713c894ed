"""Recognising text that a normalizer would leave as it is."""

from __future__ import annotations

import unicodedata

# Format characters of emoji and East Asian web text. They are no part of any composition, in every version of Unicode.
_INERT_FORMATS = ("\u200d", "\u200b", "\ufeff")


def is_surely_nfc(text: str) -> bool:
    """Whether the NFC of `tokenizers` leaves the text as it is; False where that is not certain.

    Python's own check is sixty times faster than the library's normalizer, but the two have Unicode tables of different
    years. The answer is certain where Python knows every character. If the library's tables are newer: normal text of
    known characters stays normal in all later versions. If they are older: the characters that it does not know are
    inert there and cut the text into parts, and a part of normal text is normal.
    """
    if not unicodedata.is_normalized("NFC", text):
        return False
    visible = "".join(text.split())
    for character in _INERT_FORMATS:
        visible = visible.replace(character, "")
    # Of the characters without a known meaning, none is printable; the others that are not printable are rare.
    return visible.isprintable()
