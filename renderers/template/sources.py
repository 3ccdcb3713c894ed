"""Where text comes from: a tree of sources under each traced string, and the runs that it comes to.

A string operation only notes what it was made from; that keeps it cheap, and most strings that a template makes are
never printed. The tree is flattened once, when the whole text is there, or earlier where a part of a string is taken.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, NamedTuple

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


class Field(NamedTuple):
    """The text is that of a caller's field, from its first character on."""

    message: int
    path: str


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
    """A string that knows its source. Its operations are in `renderers.template.strings`.

    The attribute has a name that no template asks for: templates do ask strings for `source`, `text` or `type`.
    """

    __slots__ = ("traced_source",)
    traced_source: Any  # a `Source`; Any, because the hot paths look at its exact type


def flatten(text: TracedLike) -> Flat:
    """The runs of a string, kept with it so that they are computed once."""
    source = text.traced_source
    if type(source) is Flat:
        return source
    flat = Flat(_walk(text))
    if source is not None:  # the template's own text is shared by all renders, and its one run is no work
        text.traced_source = flat
    return flat


def part_of(whole: TracedLike, start: int) -> Part:
    """The source of a part of a string."""
    source = whole.traced_source
    kind = type(source)
    if kind is Part:  # a part of a part: no chains, which would be walked again and again
        return Part(source.whole, source.start + start)
    if kind is not Field and source is not None:
        flatten(whole)
    return Part(whole, start)


def _walk(text: TracedLike) -> list[Run]:  # noqa: C901, PLR0912 - one flat loop: a render goes through it thousands of times
    runs: list[Run] = []
    end = 0
    # Strings still to be walked, the next one last, each with the line, message and generation block around it. Of
    # lines and messages, the innermost counts.
    stack: list[tuple[str, int, int, object | None]] = [(text, NO_LINE, NO_MESSAGE, None)]
    while stack:
        node, line, message, generation = stack.pop()
        if not node:
            continue
        if not isinstance(node, TracedLike):
            node = getattr(node, "traced_value", node)  # what `safe` gives holds the traced string
            if not isinstance(node, TracedLike):
                end += len(node)
                runs.append((end, line, message, None, -1, True, generation))
                continue
        source = node.traced_source
        kind = type(source)
        if source is None:
            end += len(node)
            runs.append((end, line, message, None, -1, False, generation))
        elif kind is Field:
            end += len(node)
            runs.append((end, line, source.message, source.path, 0, False, generation))
        elif kind is Printed:
            if source.message >= 0:
                message = source.message
            place = len(source.values)
            while place:
                place -= 1
                stack.append((source.values[place], source.lines[place], message, generation))
        elif kind is tuple:
            stack.extend([(part, line, message, generation) for part in reversed(source)])
        elif kind is Generated:
            stack.append((source.value, line, message, generation or source))
        elif kind is Kept:
            stack.append((source.value, line, source.message, generation))
        elif kind is Dump:
            end += len(node)
            owner = message if source.path is None and source.message < 0 else source.message
            runs.append((end, line, owner, source.path, -1, True, generation))
        else:
            end = _add_part(runs, end, source, len(node), (line, message, generation))
    return runs


def _add_part(runs: list[Run], end: int, source: Any, length: int, outer: tuple[int, int, object | None]) -> int:
    """Append the runs of a part of a string, or of one that was flattened before, and return the new end."""
    line, message, generation = outer
    start = 0
    if type(source) is Part:
        start = source.start
        whole = source.whole.traced_source
        if whole is None:
            runs.append((end + length, line, message, None, -1, False, generation))
            return end + length
        if type(whole) is Field:
            runs.append((end + length, line, whole.message, whole.path, start, False, generation))
            return end + length
        source = flatten(source.whole)
    position, stop = start, start + length
    index = bisect_right(source.ends, start)
    while position < stop:
        until, of_line, owner, path, offset, derived, block = source.runs[index]
        taken = min(until, stop) - position
        end += taken
        if offset >= 0:
            offset += position - (source.ends[index - 1] if index else 0)
        if path is None and owner < 0:
            owner = message
        runs.append((end, of_line or line, owner, path, offset, derived, block or generation))
        position += taken
        index += 1
    return end


def mentions(text: str, message: int) -> bool:
    """Whether some of the text is a field's of this message; what is kept from earlier is not looked at again."""
    stack = [text]
    while stack:
        node = stack.pop()
        if not node or not isinstance(node, TracedLike):
            continue
        source = node.traced_source
        if isinstance(source, Field | Dump):
            if source.message == message:
                return True
        elif isinstance(source, tuple):
            stack.extend(source)
        elif isinstance(source, Printed):
            stack.extend(source.values)
        elif isinstance(source, Generated):
            stack.append(source.value)
        elif isinstance(source, Part):
            stack.append(source.whole)
        elif isinstance(source, Flat) and any(run[2] == message and run[3] is not None for run in source.runs):
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
