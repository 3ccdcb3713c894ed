"""One tiktoken pattern for what a tokenizer's pre-tokenizers do in several steps.

A step that only isolates runs of one character set (`\\p{N}{1,3}`, `[一-龥]+`) cuts the text into segments, and the later
steps see each segment as a text of its own. The same pieces come from one pattern in which the later steps' sets are
narrowed: to the characters of the segment, or to those outside all earlier segments. Narrowed lookaheads then see the
end of the text where a segment ends, as they do in the tokenizer.
"""

from __future__ import annotations

from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

from renderers.tokenizers.character_sets import EMPTY, SetTable, folds_single_characters
from renderers.tokenizers.line_borders import firm_line_starts
from renderers.tokenizers.patterns import (
    Branch,
    Character,
    Group,
    Item,
    Repeat,
    UnsupportedPatternError,
    branch_least_length,
    characters_of,
    folded_texts,
    items_of,
    least_length,
    map_characters,
    parse_pattern,
    takes_without_return,
    write_pattern,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from renderers.tokenizers.character_sets import CharacterSet
    from renderers.tokenizers.components import Component

# What ByteLevel splits at where its `use_regex` is set: GPT-2's pattern, which is fixed in the library.
_BYTE_LEVEL_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

_ANY = r"[\s\S]"

Alternatives = tuple[Branch, ...]


class Splitting:
    """How tiktoken splits a text as some pre-tokenizers do.

    Raises UnsupportedPatternError where it cannot, or this module does not find how.
    """

    def __init__(self, pre_tokenizer: list[Component]) -> None:
        steps, keeps_unmatched = _splits(pre_tokenizer)
        texts = [text for step in steps for text in folded_texts(step)]
        if folds_single_characters(texts):
            raise UnsupportedPatternError("a character folds to several")
        self._table = SetTable(item.source for step in steps for item in characters_of(step))
        self._branches = _Composer(self._table, keeps_unmatched=keeps_unmatched).compose(steps, _ANY)

        for item in items_of(self._branches):
            if isinstance(item, Repeat) and item.most != 1 and least_length(item.item) == 0:
                raise UnsupportedPatternError("a group that can be empty is repeated")
        if any(map(self._begin_alike, _groups(self._branches))):
            raise UnsupportedPatternError("all alternatives of a group begin alike")

    @cached_property
    def pattern(self) -> str:
        """The pattern, in the form in which tiktoken is fastest."""
        return self._written(self._gathered())

    @cached_property
    def plain_pattern(self) -> str:
        """The same as the tokenizer has it, several steps composed to one. For measurements."""
        return self._written(self._branches)

    @cached_property
    def line_starts(self) -> str:
        """See `firm_line_starts`."""
        return firm_line_starts(self._branches, self._table)

    def _written(self, branches: Alternatives) -> str:
        return write_pattern(map_characters(branches, lambda item: Character(self._table.write(item.source))))

    def _gathered(self) -> Alternatives:
        """The same alternatives, neighbours that never look ahead in one group: tiktoken then splits a third faster.

        Its regex engine tries alternatives one by one as soon as one of them looks ahead; what does not goes to an
        automaton, and a group goes there as one. An alternative that looks ahead steps behind those that cannot begin
        where it does.
        """
        ordered: list[Branch] = []
        for branch in self._branches:
            place = len(ordered)
            if not any(map(takes_without_return, branch)):
                begins = _first_characters(branch, self._table)
                while (
                    place
                    and any(map(takes_without_return, ordered[place - 1]))
                    and not begins & _first_characters(ordered[place - 1], self._table)
                ):
                    place -= 1
            ordered.insert(place, branch)
        gathered: list[Branch] = []
        for looks_ahead, neighbours in groupby(ordered, lambda branch: any(map(takes_without_return, branch))):
            together = tuple(neighbours)
            if looks_ahead or len(together) == 1 or self._begin_alike(together):
                gathered += together
            else:
                gathered.append((Group("(?:", together),))
        return tuple(gathered)

    def _begin_alike(self, branches: Alternatives) -> bool:
        """Whether tiktoken's automaton may try alternatives in another order.

        It takes out what all of them begin with: of `a*b|a*c` it makes `a*(?:b|c)`, which prefers `aac` to `ab`. That is
        the same only where the common beginning has one length.
        """
        flat = list(_flat(branches))
        if len(flat) < 2:
            return False
        for items in zip(*flat, strict=False):
            if not all(self._alike(items[0], item) for item in items[1:]):
                return False
            if not isinstance(items[0], Character):
                return True
        return False

    def _alike(self, one: Item, other: Item) -> bool:
        if isinstance(one, Character) and isinstance(other, Character):
            return self._table.read(one.source) == self._table.read(other.source)
        if isinstance(one, Repeat) and isinstance(other, Repeat):
            return (one.least, one.most) == (other.least, other.most) and self._alike(one.item, other.item)
        if not isinstance(one, Group) and not isinstance(other, Group):
            return False
        # The engine may take a group apart: it is surely another item only where it begins otherwise.
        first, second = _first_characters((one,), self._table), _first_characters((other,), self._table)
        return bool(first & second)


def _flat(branches: Alternatives) -> Iterator[Branch]:
    """Alternatives, those of a group that is one of them put in its place."""
    for branch in branches:
        only = branch[0] if len(branch) == 1 else None
        if isinstance(only, Group) and not only.is_lookahead:
            yield from _flat(only.branches)
        else:
            yield tuple(_unwrapped(branch))


def _unwrapped(branch: Branch) -> Iterator[Item]:
    """The items of an alternative, those of a group of one alternative in its place."""
    for item in branch:
        if isinstance(item, Group) and not item.is_lookahead and len(item.branches) == 1:
            yield from _unwrapped(item.branches[0])
        else:
            yield item


def _groups(branches: Alternatives) -> Iterator[Alternatives]:
    """The alternatives that go to the automaton: of all, and of groups, where nothing looks ahead."""
    if not any(takes_without_return(item) for branch in branches for item in branch):
        yield branches
    for item in items_of(branches):
        if isinstance(item, Group) and not any(
            takes_without_return(inner) for branch in item.branches for inner in branch
        ):
            yield item.branches


def _first_characters(branch: Branch, table: SetTable) -> CharacterSet:
    """The characters with which a match can begin; perhaps some more."""
    found = EMPTY
    for item in branch:
        inner = item.item if isinstance(item, Repeat) else item
        if isinstance(inner, Character):
            found |= table.read(inner.source)
        elif isinstance(inner, Group) and not inner.is_lookahead:
            for one in inner.branches:
                found |= _first_characters(one, table)
        if least_length(item) > 0:
            break
    return found


def _splits(pre_tokenizer: list[Component]) -> tuple[list[Alternatives], bool]:
    """The patterns of the steps, and whether text that no pattern matches is kept as a piece."""
    *splits, byte_level = pre_tokenizer or [{"type": "nothing"}]
    if byte_level["type"] != "ByteLevel" or byte_level.get("add_prefix_space", True):
        raise UnsupportedPatternError("the last pre-tokenizer is not a plain ByteLevel")
    patterns = []
    keeps_unmatched = True
    for split in splits:
        pattern = _split_pattern(split)
        keeps_unmatched = split["behavior"] == "Isolated"
        if not keeps_unmatched and len(splits) > 1:
            raise UnsupportedPatternError("one of several splits removes text")
        patterns.append(pattern)
    if byte_level.get("use_regex", True):
        if not keeps_unmatched:
            raise UnsupportedPatternError("a split before ByteLevel's own removes text")
        patterns.append(_BYTE_LEVEL_PATTERN)
    if not patterns:
        raise UnsupportedPatternError("the text is not split")
    return [parse_pattern(pattern) for pattern in patterns], keeps_unmatched


def _split_pattern(split: Component) -> str:
    """The pattern of a Split that isolates its matches, or removes all but its matches."""
    if split["type"] != "Split":
        raise UnsupportedPatternError(f"unknown pre-tokenizer {split['type']}")
    pattern: Any = split["pattern"].get("Regex")
    behaviour = (split["behavior"], bool(split["invert"]))
    if pattern is None or behaviour not in {("Isolated", False), ("Isolated", True), ("Removed", True)}:
        raise UnsupportedPatternError(f"unknown Split {behaviour}")
    return str(pattern)


class _Composer:
    def __init__(self, table: SetTable, *, keeps_unmatched: bool) -> None:
        self._table = table
        self._keeps_unmatched = keeps_unmatched

    def compose(self, steps: list[Alternatives], universe: str) -> Alternatives:
        """Alternatives that split the runs of characters of `universe` as the steps do, one after the other."""
        for step in steps:
            if any(branch_least_length(branch) == 0 for branch in step):
                raise UnsupportedPatternError("the pattern matches the empty text")
        step, *later = steps
        if not later:
            return self._last(step, universe)
        characters, run = _run_of_one_set(step)
        segment = self._table.narrow(universe, characters.source, inside=True)
        rest = self._table.narrow(universe, segment, inside=False)
        untouched = run.most == 1 or not any(
            self._possible(branch) for other in later for branch in self._narrowed(other, segment)
        )
        if untouched:
            inside: Alternatives = ((Repeat(Character(segment), run.source, run.least, run.most),),)
        elif run.most is None:
            inside = self.compose(later, segment)
        else:
            raise UnsupportedPatternError("a later step splits the pieces of an earlier one")
        return (*inside, *self.compose(later, rest))

    def _last(self, step: Alternatives, universe: str) -> Alternatives:
        branches = tuple(
            tuple(item for item in branch if self._possible_item(item) or not isinstance(item, Repeat))
            for branch in self._narrowed(step, universe)
            if self._possible(branch)
        )
        if not self._keeps_unmatched:
            return branches
        unmatched = self._table.read(universe) & ~self._always_matched(branches)
        if not unmatched:
            return branches
        # tokenizers keeps what no alternative matches as a piece, tiktoken would drop it.
        one: Branch = (Character(universe),) if not branches else (Group("(?!", branches), Character(universe))
        return (*branches, (Repeat(Group("(?:", (one,)), "+", 1, None),))

    def _narrowed(self, step: Alternatives, universe: str) -> Alternatives:
        if universe == _ANY:
            return step
        return map_characters(step, lambda item: Character(self._table.narrow(item.source, universe, inside=True)))

    def _possible(self, branch: Branch) -> bool:
        """Whether an alternative can match anything: no set that it needs is empty."""
        return all(self._possible_item(item) for item in branch if least_length(item) > 0)

    def _possible_item(self, item: Item) -> bool:
        """Whether an item can match any character."""
        if isinstance(item, Character):
            return bool(self._table.read(item.source))
        if isinstance(item, Repeat):
            return self._possible_item(item.item)
        return item.is_lookahead or any(self._possible(branch) for branch in item.branches)

    def _always_matched(self, branches: Alternatives) -> CharacterSet:
        """Characters at which some alternative matches whatever stands around them."""
        found = EMPTY
        for branch in branches:
            if any(takes_without_return(item) for item in branch):
                continue
            needed = [item.item if isinstance(item, Repeat) else item for item in branch if least_length(item) > 0]
            if branch_least_length(branch) == 1 and isinstance(needed[0], Character):
                found |= self._table.read(needed[0].source)
        return found


def _run_of_one_set(step: Alternatives) -> tuple[Character, Repeat]:
    """The step as the repeat of one character set that it must be to cut the text into segments."""
    item = step[0][0]
    if len(step) == 1 and len(step[0]) == 1:
        if isinstance(item, Repeat) and isinstance(item.item, Character) and item.least == 1 and not item.possessive:
            return item.item, item
        if isinstance(item, Character):
            return item, Repeat(item, "{1}", 1, 1)
    raise UnsupportedPatternError("an earlier step is more than runs of one character set")
