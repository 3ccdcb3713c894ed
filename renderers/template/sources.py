"""Where text comes from: a tree of sources under each traced string, and the runs that it comes to.

A string operation only notes what it was made from; that keeps it cheap, and most strings that a template makes are
never printed. The tree is flattened once, when the whole text is there, or earlier where a part of a string is taken.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
#: No message: the tools, the template's text outside the messages' loop.
NO_MESSAGE = -1
#: No template line yet: the text has not been printed.
NO_LINE = 0


#: Some characters of one source. A plain tuple, because a render makes thousands:
#:
#: * where it ends in the string;
#: * the template line that printed it, or `NO_LINE`;
#: * the index of its message, or `NO_MESSAGE`;
#: * the path of its field, or None;
#: * where in the field's text it begins, or -1 where the characters do not map one to one;
#: * whether an operation lost the exact source;
#: * the `{% generation %}` block that it stands in, or None.
Run = tuple[int, int, int, str | None, int, bool, object | None]


class Field:
    """The text is that of a caller's field, from its first character on."""

    __slots__ = ("message", "path")

    def __init__(self, message: int, path: str) -> None:
        self.message = message
        self.path = path


class Dump:
    """The text was made from a caller's field, and its characters do not map to those of the field one by one."""

    __slots__ = ("message", "path")

    def __init__(self, message: int, path: str | None) -> None:
        self.message = message
        self.path = path


class Part:
    """The text is a part of another string, which has been flattened or is a leaf."""

    __slots__ = ("start", "whole")

    def __init__(self, whole: TracedLike, start: int) -> None:
        self.whole = whole
        self.start = start


class Printed:
    """The text was printed by one output of the template, in the iteration over a message or outside.

    Attributes:
        values: the strings that it consists of.
        lines: the template line of each.
        message: the index of the message, or `NO_MESSAGE`.
    """

    __slots__ = ("lines", "message", "values")

    def __init__(self, values: tuple[str, ...], lines: tuple[int, ...], message: int) -> None:
        self.values = values
        self.lines = lines
        self.message = message


class Kept:
    """The text was joined to a message's own text and put into a namespace, in the iteration over that message."""

    __slots__ = ("message", "value")

    def __init__(self, value: str, message: int) -> None:
        self.value = value
        self.message = message


class Generated:
    """The text stands in a `{% generation %}` block; the object's identity is the block's."""

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value


class Flat:
    """The text's runs, in order."""

    __slots__ = ("ends", "runs")

    def __init__(self, runs: list[Run]) -> None:
        self.runs = runs
        self.ends = [run[0] for run in runs]


#: What a string was made from. None is the template's own text; a tuple holds the strings that were joined, and a plain
#: string among them is text whose source was lost.
Source = Field | Dump | Part | Printed | Kept | Generated | Flat | tuple[str, ...] | None


class TracedLike(str):
    """A string that knows its source. Its operations are in `renderers.template.strings`."""

    __slots__ = ("source",)
    source: Source


_LEAVES = (Field, Dump, Flat)


def flatten(text: TracedLike) -> Flat:
    """The runs of a string, kept with it so that they are computed once."""
    source = text.source
    if isinstance(source, Flat):
        return source
    flat = Flat(_walk(text))
    text.source = flat
    return flat


def part_of(whole: TracedLike, start: int) -> Part:
    """The source of a part of a string."""
    source = whole.source
    if isinstance(source, Part):  # a part of a part: no chains, which would be walked again and again
        return Part(source.whole, source.start + start)
    if source is not None and not isinstance(source, _LEAVES):
        flatten(whole)
    return Part(whole, start)


# What is around a string while its tree is walked: the line and message that printed it, and its generation block.
_Outer = tuple[int, int, object | None]


def _walk(text: TracedLike) -> list[Run]:
    runs: list[Run] = []
    # Strings still to be walked, the next one last. The innermost line and message count.
    stack: list[tuple[str, _Outer]] = [(text, (NO_LINE, NO_MESSAGE, None))]
    while stack:
        node, outer = stack.pop()
        if not node:
            continue
        if not isinstance(node, TracedLike):
            node = getattr(node, "value", node)  # what `safe` gives holds the traced string
            if not isinstance(node, TracedLike):
                _add(runs, len(node), outer, None, derived=True)
                continue
        source = node.source
        line, message, generation = outer
        if source is None:
            _add(runs, len(node), outer, None)
        elif isinstance(source, tuple):
            stack.extend([(part, outer) for part in reversed(source)])
        elif isinstance(source, Printed):
            if source.message >= 0:
                message = source.message
            values = zip(reversed(source.values), reversed(source.lines), strict=True)
            stack.extend([(value, (of_value, message, generation)) for value, of_value in values])
        elif isinstance(source, Generated):
            stack.append((source.value, (line, message, generation or source)))
        elif isinstance(source, Kept):
            stack.append((source.value, (line, source.message, generation)))
        else:
            _add_leaf(runs, source, len(node), outer)
    return runs


def _add_leaf(runs: list[Run], source: Field | Dump | Part | Flat, length: int, outer: _Outer) -> None:
    start = 0
    if isinstance(source, Part):
        start = source.start
        whole = source.whole.source
        if whole is None:
            _add(runs, length, outer, None)
            return
        source = whole if isinstance(whole, Field) else flatten(source.whole)
    line, message, generation = outer
    if isinstance(source, Field):
        end = length + (runs[-1][0] if runs else 0)
        runs.append((end, line, source.message, source.path, start, False, generation))
    elif isinstance(source, Dump):
        owner = message if source.path is None and source.message < 0 else source.message
        _add(runs, length, (line, owner, generation), source.path, derived=True)
    else:
        _add_runs(runs, source, start, length, outer)


def _add(runs: list[Run], length: int, outer: _Outer, path: str | None, *, derived: bool = False) -> None:
    line, message, generation = outer
    runs.append((length + (runs[-1][0] if runs else 0), line, message, path, -1, derived, generation))


def _add_runs(runs: list[Run], flat: Flat, start: int, length: int, outer: _Outer) -> None:
    """Append the runs of `length` characters of a flattened string, from `start` on."""
    end = runs[-1][0] if runs else 0
    position, stop = start, start + length
    index = bisect_right(flat.ends, start)
    while position < stop:
        until, line, message, path, offset, derived, generation = flat.runs[index]
        taken = min(until, stop) - position
        end += taken
        if offset >= 0:
            offset += position - (flat.ends[index - 1] if index else 0)
        if path is None and message < 0:
            message = outer[1]
        runs.append((end, line or outer[0], message, path, offset, derived, generation or outer[2]))
        position += taken
        index += 1


def mentions(text: str, message: int) -> bool:
    """Whether some of the text is a field's of this message; what is kept from earlier is not looked at again."""
    stack = [text]
    while stack:
        node = stack.pop()
        if not node or not isinstance(node, TracedLike):
            continue
        source = node.source
        if isinstance(source, tuple):
            stack.extend(source)
        elif isinstance(source, Printed):
            stack.extend(source.values)
        elif isinstance(source, Generated):
            stack.append(source.value)
        elif isinstance(source, Part):
            stack.append(source.whole)
        elif isinstance(source, Flat):
            if any(run[2] == message and run[3] is not None for run in source.runs):
                return True
        elif isinstance(source, Field | Dump) and source.message == message:
            return True
    return False


def common_source(texts: Iterable[str]) -> Dump | None:
    """One source for text made from all of these in a way that cannot be followed.

    The message and the path that all of their caller's text shares; None where nothing comes from the caller.
    """
    places = {
        (run[2], run[3])
        for text in texts
        if isinstance(text, TracedLike)
        for run in flatten(text).runs
        if run[3] is not None
    }
    messages = {message for message, _ in places}
    if len(messages) != 1:
        return Dump(NO_MESSAGE, None) if messages else None
    return Dump(messages.pop(), _common_path([path for _, path in places if path is not None]))


def _common_path(paths: list[str]) -> str | None:
    """The innermost field that holds all of these: `arguments` for `arguments.city` and `arguments.unit`."""
    first, last = min(paths), max(paths)
    end = len(first)
    if first != last:
        end = next((place for place in range(end) if last[place] != first[place]), end)
        if end < len(first) or last[end] not in ".[":
            end = max(first.rfind(".", 0, end), first.rfind("[", 0, end))
    return first[:end] if end > 0 else None
