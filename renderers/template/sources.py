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


class Run(NamedTuple):
    """Some characters of one source.

    Attributes:
        end: where it ends in the string.
        line: the template line that printed it, or `NO_LINE`.
        message: the index of its message, or `NO_MESSAGE`.
        field: the path of its field, or None.
        offset: where in the field's text the first character stands, or -1 where the characters do not map one to one.
        derived: an operation lost the exact source.
        generation: the `{% generation %}` block that it stands in, or None.
    """

    end: int
    line: int
    message: int
    field: str | None
    offset: int
    derived: bool
    generation: object | None


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
    """The text was printed by a template line, in the iteration over a message or outside."""

    __slots__ = ("line", "message", "value")

    def __init__(self, value: str, line: int, message: int) -> None:
        self.value = value
        self.line = line
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
    if type(source) is Flat:
        return source
    flat = Flat(_walk(text))
    text.source = flat
    return flat


def part_of(whole: TracedLike, start: int) -> Part:
    """The source of a part of a string."""
    source = whole.source
    if type(source) is Part:  # a part of a part: no chains, which would be walked again and again
        return Part(source.whole, source.start + start)
    if source is not None and type(source) not in _LEAVES:
        flatten(whole)
    return Part(whole, start)


def _walk(text: TracedLike) -> list[Run]:
    runs: list[Run] = []
    end = 0
    # Strings still to be walked, the next one last, each with what printed it: the innermost line and message count.
    stack: list[tuple[str, int, int, object | None]] = [(text, NO_LINE, NO_MESSAGE, None)]
    pop, push, add = stack.pop, stack.append, runs.append
    make: Any = Run._make
    while stack:
        node, line, message, generation = pop()
        length = len(node)
        if not length:
            continue
        if not isinstance(node, TracedLike):
            end += length
            add(make((end, line, message, None, -1, True, generation)))
            continue
        source = node.source
        kind = type(source)
        if source is None:
            end += length
            add(make((end, line, message, None, -1, False, generation)))
        elif kind is tuple:
            for part in reversed(source):  # type: ignore[arg-type]
                push((part, line, message, generation))
        elif kind is Printed:
            push((source.value, source.line, source.message if source.message >= 0 else message, generation))
        elif kind is Field:
            end += length
            add(make((end, line, source.message, source.path, 0, False, generation)))
        elif kind is Dump:
            end += length
            owner = source.message if source.path is not None or source.message >= 0 else message
            add(make((end, line, owner, source.path, -1, True, generation)))
        elif kind is Generated:
            push((source.value, line, message, generation or source))
        elif kind is Kept:
            push((source.value, line, source.message, generation))
        elif kind is Part:
            whole = source.whole
            if type(whole.source) is Field:
                end += length
                leaf = whole.source
                add(make((end, line, leaf.message, leaf.path, source.start, False, generation)))
            elif whole.source is None:
                end += length
                add(make((end, line, message, None, -1, False, generation)))
            else:
                end = _add_runs(runs, end, flatten(whole), source.start, length, (line, message, generation))
        else:
            end = _add_runs(runs, end, source, 0, length, (line, message, generation))
    return runs


def _add_runs(
    runs: list[Run], end: int, flat: Flat, start: int, length: int, outer: tuple[int, int, object | None]
) -> int:
    """Append `length` characters' runs, from `start` of a flattened string on, and return the new end."""
    line, message, generation = outer
    position, stop = start, start + length
    index = bisect_right(flat.ends, start)
    while position < stop:
        run = flat.runs[index]
        taken = min(run.end, stop) - position
        end += taken
        offset = run.offset
        if offset >= 0:
            begin = flat.ends[index - 1] if index else 0
            offset += position - begin
        runs.append(
            Run(
                end,
                run.line or line,
                message if run.field is None and run.message < 0 else run.message,
                run.field,
                offset,
                run.derived,
                run.generation or generation,
            )
        )
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
        source = node.source
        if isinstance(source, tuple):
            stack.extend(source)
        elif isinstance(source, Printed | Generated):
            stack.append(source.value)
        elif isinstance(source, Part):
            stack.append(source.whole)
        elif isinstance(source, Flat):
            if any(run.message == message and run.field is not None for run in source.runs):
                return True
        elif isinstance(source, Field | Dump) and source.message == message:
            return True
    return False


def common_source(texts: Iterable[str]) -> Dump | None:
    """One source for text made from all of these in a way that cannot be followed.

    The message and field that all of their caller's text shares; if they share no field, only the message; None where
    nothing comes from the caller.
    """
    places = {
        (run.message, run.field)
        for text in texts
        if isinstance(text, TracedLike)
        for run in flatten(text).runs
        if run.field is not None
    }
    if not places:
        return None
    messages = {message for message, _ in places}
    fields = {field for _, field in places}
    return Dump(
        messages.pop() if len(messages) == 1 else NO_MESSAGE,
        fields.pop() if len(fields) == 1 else None,
    )
