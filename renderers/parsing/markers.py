"""Markers: what a format writes at a border, and how each is told from text that merely looks like it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from renderers.errors import ConfigError, TokenizerError
from renderers.tokenizers.protocol import TokenizerAdapter

#: Codes are lone surrogates: no sequence of bytes decodes to one, so a code never collides with sampled text.
_FIRST_CODE = 0xD800
_CODES = re.compile("[\ud800-\udfff]")


class Identity(Enum):
    """How a marker is recognised."""

    TOKEN = "token"  # noqa: S105 - not a password
    TEXT = "text"
    EITHER = "either"


@dataclass(frozen=True, slots=True)
class Marker:
    """One marker of a format.

    Attributes:
        text: its characters.
        identity: TOKEN, the marker is one special token, and the same characters spelled from ordinary tokens are
            text; TEXT, the marker is these characters, however they are tokenised; EITHER, by token where the
            tokenizer has one of that name, else by text.
        within: special tokens that must stand, as tokens, inside a marker of identity TEXT. DSML's
            `<｜DSML｜invoke` is such a marker: three pieces of which the middle one is a special token.
    """

    text: str
    identity: Identity = Identity.TOKEN
    within: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.text:
            raise ConfigError("a marker needs at least one character")
        if missing := [token for token in self.within if token not in self.text]:
            raise ConfigError(f"marker {self.text!r} does not hold the special token {missing[0]!r}")

    def __hash__(self) -> int:
        """Of the text alone, whose hash is kept: markers are looked up for every token that is one."""
        return hash(self.text)

    @classmethod
    def plain(cls, text: str, *within: str) -> Marker:
        """A marker of plain text, which holds the special tokens `within`."""
        return cls(text, Identity.TEXT, within)

    @classmethod
    def either(cls, text: str) -> Marker:
        """A marker that is a special token where the tokenizer has it, else plain text."""
        return cls(text, Identity.EITHER)


@dataclass(frozen=True, slots=True)
class Found:
    """A marker where it was found: as it stands in coded text, and the number of units that it takes up."""

    marker: Marker
    coded: str
    units: int = 1


def as_marker(value: str | Marker) -> Marker:
    """A marker as a grammar may write it: a plain string means a special token."""
    return value if isinstance(value, Marker) else Marker(value)


class MarkerTable:
    """The markers of one grammar, looked up in one tokenizer. Immutable; shared by all streams of a renderer.

    Inside the toolkit a reply is a string in which each special token that the grammar knows is one *code*, a
    character that no sampled text can hold. Formats therefore search, split and match ordinary strings, and still
    tell `</arg_value>` the token from `</arg_value>` spelled by ordinary tokens.
    """

    def __init__(self, adapter: TokenizerAdapter, markers: Iterable[Marker]) -> None:
        special = adapter.special_tokens
        self._codes: dict[str, str] = {}
        #: A special token's ID to its code.
        self.code_of_id: dict[int, str] = {}
        #: A marker that is a special token: its ID to the marker.
        self.found_of_id: dict[int, Found] = {}
        #: Whether codes can stand in text: some text markers hold special tokens.
        self.in_text = False
        #: A marker that is plain text: its coded text to the marker.
        self.by_text: dict[str, Marker] = {}
        missing: list[str] = []
        for marker in dict.fromkeys(markers):
            by_token = marker.identity is Identity.TOKEN or (
                marker.identity is Identity.EITHER and marker.text in special
            )
            for token in (marker.text,) if by_token else marker.within:
                if token not in special:
                    missing.append(token)
                elif token not in self._codes:
                    code = chr(_FIRST_CODE + len(self._codes))
                    self._codes[token] = self.code_of_id.setdefault(special[token], code)
            if by_token and marker.text in special:
                self.found_of_id[special[marker.text]] = Found(marker, self._codes[marker.text])
            elif not by_token:
                self.in_text |= bool(marker.within)
                self.by_text[self._coded(marker)] = marker
        if missing:
            names = ", ".join(repr(token) for token in dict.fromkeys(missing))
            source = f" {adapter.name_or_path!r}" if adapter.name_or_path else ""
            raise TokenizerError(f"the tokenizer{source} lacks special tokens that this format needs: {names}")

    def _coded(self, marker: Marker) -> str:
        """A text marker with its special tokens replaced by their codes."""
        text = marker.text
        for token in marker.within:
            text = text.replace(token, self._codes.get(token, token))
        return text

    @property
    def codes(self) -> Mapping[str, str]:
        """Each special token's text to its code."""
        return self._codes

    def code(self, text: str) -> str:
        """The code of the special token `text`, as it stands in a call's body."""
        return self._codes[text]

    def spelled(self, marker: Marker) -> str:
        """How `marker` stands in a body: a code, or (coded) text."""
        token = self._codes.get(marker.text)
        return token if token is not None and marker.identity is not Identity.TEXT else self._coded(marker)

    def is_token(self, marker: Marker) -> bool:
        """Whether `marker` is a special token here, or holds one: then no ordinary text can be mistaken for it."""
        return bool(marker.within) or (marker.identity is not Identity.TEXT and marker.text in self._codes)

    @cached_property
    def _texts(self) -> dict[str, str]:
        return {code: text for text, code in self._codes.items()}

    def text(self, coded: str) -> str:
        """`coded` as the sampled text: every code replaced by its special token's characters."""
        if not _CODES.search(coded):
            return coded
        return _CODES.sub(lambda match: self._texts[match.group()], coded)
