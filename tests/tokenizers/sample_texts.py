"""Texts on which tokenizers differ: code, scripts, spaces, marks, spelled special tokens; and a strategy for more."""

from __future__ import annotations

import unicodedata

from hypothesis import strategies as st

CODE = (
    "import os\r\nclass A(B[int]):\n\tdef f(self, *, x: int = 0x1F) -> None:  # comment\n        return {'a': [1, 2.5e-3]}\n"
    '\n\n    {"json": "\\u00e9", "n": 1234567890}\n<html lang="en"><p>1 &amp; 2</p></html>  \n'
)
CHINESE = "请求体包含一个消息列表，每条消息都有角色和内容。模型应当先思考，然后给出答案！第123章；\u3000全角　空格"
JAPANESE = "カタカナ・ひらがなー、漢字混じり文。「引用」\u3099\u309b\u30a0\u3040 ｶﾅ"
OTHERS = "한국어 텍스트 \u1112\u1161\u11ab Русский ελληνικά עברית العَرَبِيَّة हिन्दी ไทย"
EMOJI = "🙂👨\u200d👩\u200d👧\ufe0f 🏳️\u200d🌈 1️⃣ 🇩🇪🤷🏽"
SPACES = "a  b   c\t\td\n\n\n  e \r\n\r\n f\u00a0\u2003g\u2028h\x85i\x0b\x0cj   "
MARKS = "e\u0301 e\u0323\u0301 \u0301\u0301 n\u0303o A\u030a\u212b \u1e9e\u0130\u0131 'ſ 'S don'T we'LL I'\u017f \u212a"
CONTROLS = "\x00\x01\x7f\u200b\u2060\ufeff\ufffe\ufffd\ue000\U0010ffff\U000e0041\u0378"
NUMBERS = "1 12 123 1234 12345678 ١٢٣٤ Ⅷ½ ²³ 3.14159 1_000"
PROSE = "The quick brown fox can't jump over \u201cthe lazy dog\u201d \u2014 it's 5 o'clock; they'd say so.\n"

TEXTS = (
    "", " ", "\n", "a", CODE, CHINESE, JAPANESE, OTHERS, EMOJI, SPACES, MARKS, CONTROLS, NUMBERS, PROSE,
    unicodedata.normalize("NFD", PROSE + OTHERS + "Ünïcödé"), PROSE + CHINESE + CODE + EMOJI + SPACES,
)  # fmt: skip

_FRAGMENTS = [
    *"abezAZ019 \n\r\t.,;:!?'\"/\\<>|_-=+*&^%$#@~`(){}[]",
    *(CHINESE + JAPANESE + OTHERS + MARKS + CONTROLS + NUMBERS),
    "  ", "   ", "\r\n", "\n\n", "'s", "'LL", " the", "ing", "don't", "🙂", "👨\u200d👩\u200d👧", "中文", "1234",
    "\u0301", "\ufe0f",
]  # fmt: skip


def fuzzed_text(*more: str) -> st.SearchStrategy[str]:
    """Text out of fragments on which tokenizers differ, some characters from all of Unicode, and what else is given."""
    fragments = st.sampled_from([*_FRAGMENTS, *more]) | st.characters(codec="utf-8")
    return st.lists(fragments, max_size=24).map("".join)
