"""What the doctor found: plain data, the same for the eye, for JSON and for an exit code."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the template.

    Attributes:
        line: the template line that printed the text in question, or that refused it.
        source: that line.
        condition: the condition around it, or None.
        condition_line: the line of the condition, or None.
        condition_held: whether it held (the text may stand in its `else`), or None.
    """

    line: int
    source: str
    condition: str | None = None
    condition_line: int | None = None
    condition_held: bool | None = None


@dataclass(frozen=True, slots=True)
class Flip:
    """A condition that two renders answered differently.

    Attributes:
        line: its template line.
        condition: its text, or `for x in y` where a message was written by one loop and then by another.
        part_of: the whole condition, where this is one operand of it.
        message_index: the message in whose iteration it was asked, or -1.
        earlier: its value in the earlier render; None where it was not asked there.
        later: its value in the later render; None where it was not asked there.
        decides: what it decides for a condition further down, as `name (line 22)`; None for one that decides the output.
    """

    line: int
    condition: str
    part_of: str | None
    message_index: int
    earlier: bool | None
    later: bool | None
    decides: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one condition.

    Attributes:
        line: the template line.
        condition: the condition as it stands.
        replacement: what to write in its place.
        keeps: whether the text then is always as in the earlier render, or as in the later one.
        enough: whether with this change alone the earlier render is a prefix of the later one. It was tried.
    """

    line: int
    condition: str
    replacement: str
    keeps: Literal["earlier", "later"]
    enough: bool


@dataclass(frozen=True, slots=True)
class Side:
    """One of two renders, from their first difference on.

    Attributes:
        text: the text from the first differing token (or character) on, cut.
        place: where in the template the first differing character was printed, or None where this render ends.
        message_index: the message that it belongs to, or -1.
        field: the caller's field that it comes from, or None.
        tokens: ID and text of the tokens from the first differing one on, cut; empty without a tokenizer.
    """

    text: str
    place: Place | None
    message_index: int
    field: str | None
    tokens: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Break:
    """Where and why an earlier render is no prefix of a later one.

    Attributes:
        character: the first character that differs, or where the first differing token begins if the texts agree so far.
        token: the first token that differs, or None without a tokenizer.
        common: what stands before the first token (or character) that differs, cut.
        earlier: the earlier render from there.
        later: the later render from there.
        flips: the conditions that went another way, that of the output first, then what decided it.
        changes: what to write instead.
        advice: the same in a sentence.
    """

    character: int
    token: int | None
    common: str
    earlier: Side
    later: Side
    flips: tuple[Flip, ...]
    changes: tuple[Change, ...]
    advice: str


class RowStatus(StrEnum):
    """Whether the earlier render is a prefix of the later one."""

    PREFIX = "prefix"
    TEXT_DIFFERS = "text differs"
    TOKENS_DIFFER = "tokens differ"
    CALL_LOST = "call lost"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Row:
    """One way to append.

    Attributes:
        code: its name for `--fail-on`.
        group: `results`, `users`, `system` or `replies`.
        title: what is appended to what.
        status: whether the earlier render is a prefix of the later one.
        detail: one sentence more, or "".
        place: where the template refused, or None.
        difference: where the renders part, or None.
    """

    code: str
    group: str
    title: str
    status: RowStatus
    detail: str = ""
    place: Place | None = None
    difference: Break | None = None

    @property
    def is_finding(self) -> bool:
        """Whether something is wrong."""
        return self.status is not RowStatus.PREFIX


class CheckStatus(StrEnum):
    """What a check came to: `note` is worth knowing and wrong nowhere, `unknown` needs a tokenizer or stop tokens."""

    OK = "ok"
    FOUND = "found"
    NOTE = "note"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Detail:
    """One thing that a check found, and where in the template."""

    text: str
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """One question about how the template treats messages.

    Attributes:
        code: its name for `--fail-on`.
        title: the question.
        status: the answer.
        details: what was found.
    """

    code: str
    title: str
    status: CheckStatus
    details: tuple[Detail, ...] = ()

    @property
    def is_finding(self) -> bool:
        """Whether something is wrong."""
        return self.status is CheckStatus.FOUND


@dataclass(frozen=True, slots=True)
class Report:
    """All that the doctor has to say about one template.

    Attributes:
        template: sha256 of the template, as `renderers models` prints it.
        has_tokenizer: whether tokens were compared, or only texts.
        stop_tokens: the stop tokens that were assumed.
        rows: the ways to append, and the replies against their generation prompt.
        checks: the other questions.
        notes: what limits the report.
    """

    template: str
    has_tokenizer: bool
    stop_tokens: tuple[str, ...]
    rows: tuple[Row, ...]
    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()

    @property
    def findings(self) -> Iterator[Row | Check]:
        """What is wrong."""
        yield from (row for row in self.rows if row.is_finding)
        yield from (check for check in self.checks if check.is_finding)

    def row(self, code: str) -> Row:
        """A row by its code. Raises KeyError."""
        return {row.code: row for row in self.rows}[code]

    def check(self, code: str) -> Check:
        """A check by its code. Raises KeyError."""
        return {check.code: check for check in self.checks}[code]

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data for JSON."""
        return {**dataclasses.asdict(self), "findings": [found.code for found in self.findings]}
