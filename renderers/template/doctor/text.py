"""The doctor's report for the eye."""

from __future__ import annotations

from collections.abc import Iterator

from renderers.template.doctor.report import (
    Break,
    Change,
    Check,
    CheckStatus,
    Flip,
    Place,
    Report,
    Row,
    RowStatus,
    Side,
)

_LABELS = {
    RowStatus.PREFIX: "ok",
    RowStatus.TEXT_DIFFERS: "BREAK",
    RowStatus.TOKENS_DIFFER: "BREAK",
    RowStatus.CALL_LOST: "LOST",
    RowStatus.REFUSED: "REFUSED",
    CheckStatus.OK: "ok",
    CheckStatus.FOUND: "FOUND",
    CheckStatus.NOTE: "note",
    CheckStatus.UNKNOWN: "unknown",
}
_HEADINGS = {
    "results": "Appending tool results: is the earlier render a prefix of the later one?",
    "users": "Appending user messages: is the earlier render a prefix of the later one?",
    "system": "Appending a system message: is the earlier render a prefix of the later one?",
    "replies": "Replying: is the prompt, with its generation prompt, a prefix of the render with the reply?",
}
_SOURCE_WIDTH = 110
_LABEL_WIDTH, _CODE_WIDTH = 8, 23


def describe(report: Report) -> str:
    """A whole report, in lines."""
    lines = [f"template {report.template[:12]}, stop tokens {' '.join(report.stop_tokens) or 'not known'}"]
    lines += [f"note: {note}" for note in report.notes]
    explained: dict[object, str] = {}
    group = ""
    for row in report.rows:
        if row.group != group:
            group = row.group
            lines += ["", _HEADINGS[group]]
        lines += _row_lines(row, explained)
    lines += ["", "How it treats messages"]
    for check in report.checks:
        lines += _check_lines(check)
    found = [finding.code for finding in report.findings]
    lines += ["", f"{len(found)} finding{'s' * (len(found) > 1)}: {', '.join(found)}" if found else "no findings"]
    return "\n".join(lines)


def summarize(difference: Break) -> str:
    """A break in one sentence, for an error."""
    where = f"from character {difference.character}" + (
        "" if difference.token is None else f", token {difference.token}"
    )
    sides = [f"the {name} render has {_quoted(side)}" for name, side in _sides(difference)]
    why = [_flip(flip) for flip in difference.flips]
    parts = [f"{where} on, {' and '.join(sides)}", *why, *map(_change, difference.changes)]
    return "; ".join(parts) + (f". {difference.advice}" if difference.advice else "")


def _row_lines(row: Row, explained: dict[object, str]) -> Iterator[str]:
    yield _head(row.status, row.code, row.title)
    if row.detail:
        yield f"           {row.detail}"
    if row.place is not None:
        yield from _place_lines(row.place)
    if row.difference is not None:
        yield from _break_lines(row.code, row.difference, explained)


def _break_lines(code: str, difference: Break, explained: dict[object, str]) -> Iterator[str]:
    token = "" if difference.token is None else f", token {difference.token}"
    yield f"           after {difference.common[-_SOURCE_WIDTH // 2 :]!r} (character {difference.character}{token}):"
    for name, side in _sides(difference):
        ids = "".join([f" {token_id}" for token_id, _ in side.tokens])
        yield f"             {name:8}{side.text!r}{'   tokens' + ids if ids else ''}"
        if side.place is not None:
            yield f"                     line {side.place.line}: {_cut(side.place.source)}"
    # The same condition breaks many rows: it is explained once.
    key = tuple((flip.line, flip.condition) for flip in difference.flips)
    known = explained.setdefault((key, difference.changes, difference.advice), code)
    if known != code and difference.flips:
        yield f"           why: {_flip(difference.flips[0])}; see {known}"
        return
    for flip in difference.flips:
        yield f"           why: {_flip(flip)}"
    for change in difference.changes:
        yield f"           change: {_change(change)}"
    if difference.advice:
        yield f"           advice: {difference.advice}"


def _check_lines(check: Check) -> Iterator[str]:
    yield _head(check.status, check.code, check.title)
    for detail in check.details:
        yield f"           {detail.text}"
        if detail.place is not None:
            yield from _place_lines(detail.place)


def _place_lines(place: Place) -> Iterator[str]:
    yield f"             line {place.line}: {_cut(place.source)}"
    if place.condition is not None and place.condition_line != place.line:
        held = "where" if place.condition_held else "where not"
        yield f"             {held} `{place.condition}` (line {place.condition_line})"


def _head(status: RowStatus | CheckStatus, code: str, title: str) -> str:
    return f"  {_LABELS[status]:{_LABEL_WIDTH}} {code:{_CODE_WIDTH}} {title}"


def _sides(difference: Break) -> tuple[tuple[str, Side], tuple[str, Side]]:
    return ("earlier", difference.earlier), ("later", difference.later)


def _quoted(side: Side) -> str:
    return f"{side.text[:30]!r}" + ("" if side.place is None else f" (template line {side.place.line})")


def _flip(flip: Flip) -> str:
    of = "" if flip.message_index < 0 else f" for message {flip.message_index}"
    if flip.condition.startswith("for "):
        return f"line {flip.line}: `{flip.condition}` wrote message {flip.message_index} in the {'earlier' if flip.earlier else 'later'} render"
    values = {True: "true", False: "false", None: "not asked"}
    text = f"line {flip.line}: `{flip.condition}` was {values[flip.earlier]} and is {values[flip.later]}{of}"
    if flip.decides is not None:
        return f"{text}, which decides {flip.decides}"
    return text if flip.part_of is None else f"{text}, in `{flip.part_of}`"


def _change(change: Change) -> str:
    tried = "it holds then" if change.enough else "not enough by itself"
    return (
        f"line {change.line}: `{change.replacement}` in place of `{change.condition}` (always as in the {change.keeps} "
        f"render; tried: {tried})"
    )


def _cut(source: str) -> str:
    return source if len(source) <= _SOURCE_WIDTH else f"{source[:_SOURCE_WIDTH]}..."
