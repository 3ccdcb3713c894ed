"""Line ends at which a text may be cut: the parts encode to what the whole does.

A pattern that looks at nothing behind it splits what follows a piece's end as if the text began there. So a text may be
cut between a newline and a character `x` if

* no alternative can match the two side by side: then no piece has both, and
* no alternative finds another match before the cut when it sees `x` behind it. Only lookaheads see it. One that runs up to
  the cut is never tried if an earlier alternative, which looks at nothing, takes every text of its characters that ends
  in a newline: `\\s*[\\r\\n]+` before `\\s+(?!\\S)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from renderers.tokenizers.character_sets import EMPTY, characters_of_set, set_of
from renderers.tokenizers.patterns import Branch, Character, Group, Item, Repeat, least_length, takes_without_return

if TYPE_CHECKING:
    from collections.abc import Iterable

    from renderers.tokenizers.character_sets import CharacterSet, SetTable

_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))
_NEWLINE = set_of("\n")


def firm_line_starts(branches: Iterable[Branch], table: SetTable) -> str:
    """The printable ASCII characters before which a newline always ends a piece; none where that is not sure."""
    crossed, earlier = EMPTY, list[Branch]()
    for branch in branches:
        if not any(map(takes_without_return, branch)):
            earlier.append(branch)
        elif not _is_run_that_looks_ahead(branch) or not _is_preceded(branch, earlier, table):
            return ""
        crossed |= _follow(branch, table).pairs
    return characters_of_set(set_of(_PRINTABLE) & ~crossed)


class _Follow(NamedTuple):
    """Which characters stand where in the matches of something.

    Attributes:
        first: printable characters that begin a match.
        ends_line: whether a newline can end a match.
        pairs: printable characters that can follow a newline within a match.
    """

    first: CharacterSet
    ends_line: bool
    pairs: CharacterSet


def _follow(branch: Branch, table: SetTable) -> _Follow:
    first, ends_line, pairs = EMPTY, False, EMPTY
    can_be_empty = True
    for item in branch:
        one = _follow_of_item(item, table)
        pairs |= one.pairs
        if ends_line:
            pairs |= one.first
        if can_be_empty:
            first |= one.first
        if least_length(item) > 0:
            can_be_empty, ends_line = False, False
        ends_line = ends_line or one.ends_line
    return _Follow(first, ends_line, pairs)


def _follow_of_item(item: Item, table: SetTable) -> _Follow:
    if isinstance(item, Character):
        characters = table.read(item.source)
        return _Follow(characters & set_of(_PRINTABLE), bool(characters & _NEWLINE), EMPTY)
    if isinstance(item, Repeat):
        one = _follow_of_item(item.item, table)
        again = one.first if one.ends_line and item.most != 1 else EMPTY
        return one._replace(pairs=one.pairs | again)
    if item.is_lookahead:
        return _Follow(EMPTY, ends_line=False, pairs=EMPTY)
    first, ends_line, pairs = EMPTY, False, EMPTY
    for one in [_follow(branch, table) for branch in item.branches]:
        first, ends_line, pairs = first | one.first, ends_line or one.ends_line, pairs | one.pairs
    return _Follow(first, ends_line, pairs)


def _is_run_that_looks_ahead(branch: Branch) -> bool:
    """Whether an alternative is a run of one set's characters and a look at what follows: `\\s+(?!\\S)`."""
    if len(branch) != 2:
        return False
    run, look = branch
    return (
        isinstance(run, Repeat)
        and not run.possessive
        and isinstance(run.item, Character)
        and isinstance(look, Group)
        and look.is_lookahead
        and all(len(one) == 1 and isinstance(one[0], Character) for one in look.branches)
    )


def _is_preceded(branch: Branch, earlier: Iterable[Branch], table: SetTable) -> bool:
    """Whether a run that reaches the end of a line is always taken by an earlier alternative."""
    characters = _set_of_run(branch[0], table)
    if not characters & _NEWLINE:
        return True
    for other in earlier:
        if len(other) == 2 and all(isinstance(item, Repeat) for item in other):
            leading, ending = other
            whole = _is_unlimited(leading, least=0) and not characters & ~_set_of_run(leading, table)
            if whole and _is_unlimited(ending, least=1) and _set_of_run(ending, table) & _NEWLINE:
                return True
    return False


def _set_of_run(item: Item, table: SetTable) -> CharacterSet:
    if isinstance(item, Repeat) and isinstance(item.item, Character):
        return table.read(item.item.source)
    return EMPTY


def _is_unlimited(item: Item, *, least: int) -> bool:
    return isinstance(item, Repeat) and isinstance(item.item, Character) and item.least == least and item.most is None
