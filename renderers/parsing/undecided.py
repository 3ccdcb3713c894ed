"""Calls inside reasoning that is not closed yet: what was kept until it is known what it is."""

from __future__ import annotations

from collections.abc import Sequence
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
    places: set[int] = set()
    opened: tuple[int, list[str]] | None = None
    section: int | None = None
    for place, piece in enumerate(kept):
        if isinstance(piece, CompletionBegins):
            continue
        if isinstance(piece, str):
            if opened is not None:
                opened[1].append(piece)
            continue
        role = rules.roles[piece.marker]
        if role is Role.INNER:
            if opened is not None:
                opened[1].append(piece.coded)
        elif role is Role.CALL_CLOSE:
            if opened is not None and _is_call(blocks, "".join(opened[1])):
                places.add(opened[0])
            opened = None
        else:
            by_token = piece.marker in rules.by_token
            opens = by_token and role is Role.CALL_OPEN
            opened = (place if section is None else section, []) if opens else None
            section = place if by_token and role is Role.SECTION_OPEN else None
    return frozenset(places)


def _is_call(blocks: BlockFactory, body: str) -> bool:
    return any(call.status is CallStatus.OK for call in blocks().read(body, complete=True))
