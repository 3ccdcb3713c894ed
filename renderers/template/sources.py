"""Where text comes from: a tree of sources under each traced string, and the runs that it comes to.

A string operation only notes what it was made from; that keeps it cheap, and most strings that a template makes are
never printed. The tree is flattened once, when the whole text is there, or earlier where a part of a string is taken.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

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
    """The text was put into a namespace, joined to the own text of the message whose iteration it was, or of none."""

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


#: What a string was made from. None is the template's own text. A string is the path of the caller's field whose text it
#: is, from the first character on. A tuple holds the strings that were joined, and a plain string among them is text whose
#: source was lost.
Source = str | Dump | Part | Printed | Kept | Generated | Flat | tuple[str, ...] | None


class TracedLike(str):
    """A string that knows its source. Its operations are in `renderers.template.strings`.

    The attributes have names that no template asks for: templates do ask strings for `source`, `text` or `type`.

    Attributes:
        traced_source: a `Source`; Any, because the hot paths look at its exact type.
        traced_message: the index of its message, set only where the source is the path of a field. Both stand in the
            string itself because every string of every message has them: an object more would be as many again.
    """

    __slots__ = ("traced_message", "traced_source")
    traced_source: Any
    traced_message: int


def flatten(text: TracedLike) -> Flat:
    """The runs of a string, kept with it so that they are computed once."""
    source = text.traced_source
    if type(source) is Flat:
        return source
    flat = Flat(add_runs([], (text,)))
    if source is not None and type(source) is not str:  # these are one run each, and what they are is asked again
        text.traced_source = flat
    return flat


def part_of(whole: TracedLike, start: int) -> Part:
    """The source of a part of a string."""
    source = whole.traced_source
    kind = type(source)
    if kind is Part:  # a part of a part: no chains, which would be walked again and again
        return Part(source.whole, source.start + start)
    if kind is not str and source is not None:
        flatten(whole)
    return Part(whole, start)


def add_runs(runs: list[Run], texts: Sequence[str]) -> list[Run]:  # noqa: C901, PLR0912 - one flat loop, for speed
    """Append the runs of strings, in order, to those of what stands before them."""
    end = runs[-1][0] if runs else 0
    # Strings still to be walked, the next one last, each with the line, message and generation block around it. Of
    # lines and messages, the innermost counts.
    stack: list[tuple[str, int, int, object | None]] = [(text, NO_LINE, NO_MESSAGE, None) for text in reversed(texts)]
    while stack:
        node, line, message, generation = stack.pop()
        if not node:
            continue
        try:
            source = node.traced_source  # type: ignore[attr-defined]
        except AttributeError:
            if hasattr(node, "traced_value"):  # what `safe` gives holds the traced string
                stack.append((node.traced_value, line, message, generation))
            else:
                end += len(node)
                runs.append((end, line, message, None, -1, True, generation))
            continue
        kind = type(source)
        if source is None:
            end += len(node)
            runs.append((end, line, message, None, -1, False, generation))
        elif kind is str:
            end += len(node)
            runs.append((end, line, node.traced_message, source, 0, False, generation))  # type: ignore[attr-defined]
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
            stack.append((source.value, line, source.message if source.message >= 0 else message, generation))
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
        if type(whole) is str:
            runs.append((end + length, line, source.whole.traced_message, whole, start, False, generation))
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
        if node and isinstance(node, TracedLike):
            if _is_of(node, message):
                return True
            stack.extend(_inside(node.traced_source))
    return False


def _is_of(text: TracedLike, message: int) -> bool:
    source = text.traced_source
    if isinstance(source, str):
        return text.traced_message == message
    if isinstance(source, Dump):
        return source.message == message
    return isinstance(source, Flat) and any(run[2] == message and run[3] is not None for run in source.runs)


def _inside(source: Source) -> tuple[str, ...]:
    if isinstance(source, tuple):
        return source
    if isinstance(source, Printed):
        return source.values
    if isinstance(source, Generated):
        return (source.value,)
    return (source.whole,) if isinstance(source, Part) else ()


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
