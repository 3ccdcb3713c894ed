"""Calls inside reasoning that is not closed yet: what was kept until it is known what it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from renderers.parsed import CallStatus
from renderers.parsing.lexer import Piece
from renderers.parsing.protocol import BlockFactory
from renderers.parsing.rules import Role, Rules


class CompletionBegins:
    """Stands among kept pieces where the prompt's tokens end."""


COMPLETION_BEGINS: Final = CompletionBegins()

Kept = Piece | CompletionBegins


def find_calls(kept: Sequence[Kept], rules: Rules, blocks: BlockFactory) -> frozenset[int]:
    """Places at which a well-formed call opens. Where it is the first of a section, the place of the section's opener.

    Only calls whose opener is a special token count: inside reasoning, text that looks like a call is a thought.
    """
    bodies = _bodies(kept, rules)
    return frozenset(place for place, body in bodies if _is_call(blocks, "".join(body)))


def _bodies(kept: Sequence[Kept], rules: Rules) -> Iterator[tuple[int, list[str]]]:
    """The places of openers that are special tokens, and what stands between each and its close."""
    opened: tuple[int, list[str]] | None = None
    section: int | None = None
    for place, piece in enumerate(kept):
        if isinstance(piece, CompletionBegins):
            continue
        role = Role.INNER if isinstance(piece, str) else rules.roles[piece.marker]
        if role is Role.INNER:
            if opened is not None:
                opened[1].append(piece if isinstance(piece, str) else piece.coded)
            continue
        if opened is not None and (role is Role.CALL_CLOSE or (rules.open_ended and role is Role.CALL_OPEN)):
            yield opened
        opened = None
        if role is not Role.CALL_CLOSE and not isinstance(piece, str):
            by_token = piece.marker in rules.by_token
            if by_token and role is Role.CALL_OPEN:
                opened = (place if section is None else section, [])
            section = place if by_token and role is Role.SECTION_OPEN else None
    if opened is not None and rules.open_ended:
        yield opened


def _is_call(blocks: BlockFactory, body: str) -> bool:
    return any(call.status is CallStatus.OK for call in blocks().read(body, complete=True))
