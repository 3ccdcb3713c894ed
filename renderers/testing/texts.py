"""Texts for generated messages: realistic ones, and those that templates, tokenizers and parsers trip over."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from renderers.testing.choices import Choices
    from renderers.testing.profile import Profile

WORDS = ("a", "hi", "ok", "Paris", "42", "yes", "The", "tool", "null", "x=1", "naïve", "-h", "3.14", "don't")

PROSE = (
    "What is the weather in Paris?",
    "Please book a table for two at 19:30, near the station.",
    "I looked at the log: the third request timed out after 30 s.",
    "First, list the files. Then read the largest one.",
    "That cannot be right; 17 * 23 is 391, not 381.",
    "See https://example.org/a?b=c&d=%20e#frag for details.",
    "Costs went from $1,299.00 to €1.150,5 (-11.6 %).",
    "- one\n- two\n  - nested\n\n1. first\n2. second",
    "# Title\n\nSome *emphasis*, `code` and | a | table |\n|---|---|",
    'He said: "it\'s fine", and left.\tThen silence.',
)

CODE = (
    "def f(x):\n    return {'a': x, \"b\": [1, 2]}\n",
    "for i in range(10):\n\tprint(i)\n\n\n",
    "SELECT * FROM t WHERE a <> 'b' AND c >= 1;",
    '<div class="card">\n  <p>Tom &amp; Jerry &lt;3</p>\n</div>',
    "if (a && b || !c) { return a->b[0]; } // done",
    "$ ls -la | grep '^d' > out.txt 2>&1",
    '{"name": "f", "arguments": {"x": 1}}',
    "r'\\d+\\.\\w*' + \"\\\\n\"",
    "{{ not_a_template }} {% raw %}",
    "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n-old\n+new",
)

UNICODE = (
    "今天北京的天气怎么样？",
    "東京は晴れです。",
    "서울에서 부산까지",
    "مرحبا بالعالم",
    "שלום עולם",
    "Привет, мир",
    "कृपया हटाएँ",
    "🙂",
    "👩‍👩‍👧‍👦🏳️‍🌈",
    "🇫🇷🧿",
    "cafe\u0301",  # decomposed: a normalizer composes it
    "\u0338x",  # a combining overlay, which composes with `=` or `<` before it
    "\u0301",
    "\u1100\u1161\u11a8",  # Hangul letters that compose to one syllable
    "\u212b\u2126",  # signs that normalise to ordinary letters
    "\ufb01\u00bd\uff21",
    "𝒳𝔜😀",
    "\u202eabc\u202c",
    "a\u200bb\u2060c\ufeff",
    "ẞßſ",
)

SPACES = ("\n", " ", "\n\n", "  ", "\t", "\n\n\n", "\r\n", "\n ", " \n", "\u00a0", "\u3000", "\u2028", "\v\f", "\x85")

#: What random words are made of: whatever merges, splits or normalises in an unusual way.
ALPHABET = "abeinorst ETA019_-./\\\"'<>{}[]|:=\n\té中🙂\u0301"

_FENCES = ("<tool_response>", "</tool_response>")
_THINK = ("<think>", "</think>")


def joined(choices: Choices, pieces: list[str]) -> str:
    """The pieces as one text, with a separator of some kind."""
    return choices.pick(("", " ", "\n", "\n\n")).join(pieces)


def word(choices: Choices) -> str:
    """A few characters of the alphabet."""
    return "".join([choices.pick(ALPHABET) for _ in range(1 + choices.below(6))])


def _spaced(choices: Choices) -> str:
    return choices.pick(SPACES) + choices.pick(WORDS + UNICODE) + choices.pick(SPACES)


def _mixed(choices: Choices) -> str:
    tables = (WORDS, PROSE, CODE, UNICODE, SPACES)
    return joined(choices, [choices.pick(choices.pick(tables)) for _ in range(2 + choices.below(3))])


_CLEAN: tuple[Callable[[Choices], str], ...] = (
    lambda choices: choices.pick(WORDS),
    lambda choices: choices.pick(PROSE),
    lambda choices: choices.pick(PROSE),
    lambda choices: choices.pick(PROSE),
    lambda choices: choices.pick(CODE),
    lambda choices: choices.pick(UNICODE),
    word,
    _spaced,
    _mixed,
    _mixed,
)


def clean_text(choices: Choices) -> str:
    """A text without any marker: an ordinary one, or odd in its characters and white space."""
    return choices.pick(_CLEAN)(choices)


def partial_marker(choices: Choices, profile: Profile) -> str:
    """A marker that lacks its beginning or its end, or whose middle is broken."""
    marker = choices.pick(profile.markers or _THINK)
    cut = choices.below(len(marker))
    return choices.pick((marker[:cut], marker[cut:], marker[:cut] + " " + marker[cut:], marker.upper()))


def call_text(choices: Choices) -> str:
    """A tool call spelled in text, as a user might quote it."""
    body = json.dumps({"name": choices.pick(("f", "get_weather")), "arguments": {"x": choices.pick(WORDS)}})
    return choices.pick((f"<tool_call>\n{body}\n</tool_call>", f"<tool_call>{body}", f"{body}</tool_call>", body))


def wrapped(choices: Choices, text: str) -> str:
    """A text between tags that some templates look for, sometimes not quite."""
    opening, closing = choices.pick((_FENCES, _THINK))
    return choices.pick(
        (
            f"{opening}\n{text}\n{closing}",
            f"{opening}{text}{closing}",
            f"{opening}\n{text}\n{closing}\n\n{choices.pick(WORDS)}",
            f" {opening}{text}{closing}",
            f"{opening}{text}",
            f"{text}{closing}",
            f"{text}{closing}{text}{closing}\n{choices.pick(WORDS)}",
            f"{opening}{closing}",
        )
    )


def _marked(choices: Choices, profile: Profile) -> str:
    markers = profile.markers or _THINK
    pieces = [choices.pick(markers) if choices.chance(50) else clean_text(choices) for _ in range(3)]
    return joined(choices, pieces)


_ADVERSARIAL: tuple[Callable[[Choices, Profile], str], ...] = (
    lambda choices, _: clean_text(choices),
    lambda choices, _: clean_text(choices),
    lambda choices, _: clean_text(choices),
    lambda choices, _: clean_text(choices),
    lambda _, __: "",
    lambda choices, _: choices.pick(SPACES),
    lambda choices, profile: choices.pick(profile.markers or _THINK),
    _marked,
    lambda choices, profile: joined(choices, [clean_text(choices), partial_marker(choices, profile)]),
    lambda choices, _: joined(choices, [call_text(choices), choices.pick(SPACES)]),
    lambda choices, _: wrapped(choices, clean_text(choices)),
    lambda choices, _: wrapped(choices, clean_text(choices)),
)


def adversarial_text(choices: Choices, profile: Profile) -> str:
    """Any text at all: a clean one, nothing, white space, or one with markers of the family, whole or in parts."""
    return choices.pick(_ADVERSARIAL)(choices, profile)
