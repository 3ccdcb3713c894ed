"""Strings that know where they come from, and keep knowing it through what templates do to them.

Every operation first does what `str` does, so that its result and its errors are those of `str`, and then notes the
source of the result. What is not listed here gives a plain `str`, which counts as text whose source was lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self, SupportsIndex

import markupsafe
from markupsafe import Markup

from renderers.template.sources import NO_MESSAGE, Dump, Flat, Run, Source, TracedLike, common_source, flatten, part_of

_new: Callable[[type[Any], str], Any] = str.__new__
_SPECIFIER = re.compile(r"%(?:\((?P<name>[^()]*)\))?(?P<format>[#0\- +]*\d*(?:\.\d+)?[hlL]?[a-zA-Z%])")


class TracedString(TracedLike):
    """A string with its source. Equal to, hashed as, and printed as the plain string."""

    __slots__ = ()

    def __new__(cls, *args: Any) -> Self:
        result = str.__new__(cls, *args)
        result.traced_source = Dump(NO_MESSAGE, None)
        return result

    def __str__(self) -> str:
        # Printing must keep the source: `str()` gives back whatever this returns.
        return self

    def __add__(self, other: Any) -> Any:
        if type(other) is not TracedString and isinstance(other, Markup):
            return NotImplemented  # it escapes what it is joined to
        return traced(str.__add__(self, other), (self, other))

    def __radd__(self, other: Any) -> Any:
        if not isinstance(other, str):
            return NotImplemented
        return traced(str.__add__(other, self), (other, self))

    def __mul__(self, count: SupportsIndex) -> Any:
        result = str.__str__(self) * count  # the operator has better words for a wrong type than the method
        return traced(result, (self,) * (len(result) // len(self)) if self else None)

    __rmul__ = __mul__

    def __mod__(self, values: Any) -> Any:
        return _formatted(self, str.__mod__(self, values), values)

    def __getitem__(self, key: Any) -> Any:
        result = str.__getitem__(self, key)
        if isinstance(key, slice):
            start, _, step = key.indices(len(self))
            return traced(result, part_of(self, start)) if step == 1 else _stepped(self, result, key)
        position = key.__index__()
        return traced(result, part_of(self, position if position >= 0 else position + len(self)))

    def __iter__(self) -> Iterator[str]:
        return (traced(character, part_of(self, position)) for position, character in enumerate(str.__iter__(self)))

    def strip(self, *characters: Any) -> Any:
        result = str.strip(self, *characters)
        if len(result) == len(self):
            return self
        return traced(result, part_of(self, len(self) - len(str.lstrip(self, *characters)) if result else 0))

    def lstrip(self, *characters: Any) -> Any:
        result = str.lstrip(self, *characters)
        return self if len(result) == len(self) else traced(result, part_of(self, len(self) - len(result)))

    def rstrip(self, *characters: Any) -> Any:
        result = str.rstrip(self, *characters)
        return self if len(result) == len(self) else traced(result, part_of(self, 0))

    def removeprefix(self, *prefix: Any) -> Any:
        result = str.removeprefix(self, *prefix)
        return traced(result, part_of(self, len(self) - len(result)))

    def removesuffix(self, *suffix: Any) -> Any:
        return traced(str.removesuffix(self, *suffix), part_of(self, 0))

    def split(self, *args: Any, **kwargs: Any) -> Any:
        return _located(self, str.split(self, *args, **kwargs), args[0] if args else kwargs.get("sep"))

    def rsplit(self, *args: Any, **kwargs: Any) -> Any:
        return _located(self, str.rsplit(self, *args, **kwargs), args[0] if args else kwargs.get("sep"))

    def splitlines(self, *args: Any, **kwargs: Any) -> Any:
        lines = str.splitlines(self, *args, **kwargs)
        result, position = [], 0
        for line, with_ending in zip(lines, str.splitlines(self, keepends=True), strict=True):
            result.append(traced(line, part_of(self, position)))
            position += len(with_ending)
        return result

    def partition(self, *separator: Any) -> Any:
        return _consecutive(self, str.partition(self, *separator))

    def rpartition(self, *separator: Any) -> Any:
        return _consecutive(self, str.rpartition(self, *separator))

    def join(self, *args: Any) -> Any:
        if len(args) != 1 or not hasattr(args[0], "__iter__"):
            return str.join(self, *args)
        items = list(args[0])
        return traced(str.join(self, items), _interleaved(self, items))

    def replace(self, *args: Any, **kwargs: Any) -> Any:
        result = str.replace(self, *args, **kwargs)
        if str.__eq__(result, self):
            return self
        old, new, count = *args[:2], args[2] if len(args) > 2 else kwargs.get("count", -1)
        if old:
            return traced(result, _interleaved(new, self.split(old, count)))
        places = len(self) + 1 if count < 0 else count
        pieces = [piece for character in list(self)[: places - 1] for piece in (new, character)]
        # The last insertion stands before what is left, or at the end.
        return traced(result, (*pieces, new, self[places - 1 :]))

    def upper(self, *args: Any) -> Any:
        return _recast(self, str.upper(self, *args), str.upper)

    def lower(self, *args: Any) -> Any:
        return _recast(self, str.lower(self, *args), str.lower)

    def title(self, *args: Any) -> Any:
        return _recast(self, str.title(self, *args), str.title)

    def capitalize(self, *args: Any) -> Any:
        return _recast(self, str.capitalize(self, *args), str.title)

    def casefold(self, *args: Any) -> Any:
        return _recast(self, str.casefold(self, *args), str.casefold)

    def swapcase(self, *args: Any) -> Any:
        return _recast(self, str.swapcase(self, *args), str.swapcase)

    def center(self, *args: Any) -> Any:
        return _padded(self, str.center(self, *args))

    def ljust(self, *args: Any) -> Any:
        return _padded(self, str.ljust(self, *args))

    def rjust(self, *args: Any) -> Any:
        return _padded(self, str.rjust(self, *args))

    def zfill(self, *args: Any) -> Any:
        return derived(str.zfill(self, *args), self)

    def expandtabs(self, *args: Any, **kwargs: Any) -> Any:
        return derived(str.expandtabs(self, *args, **kwargs), self)

    def translate(self, *args: Any) -> Any:
        return derived(str.translate(self, *args), self)


# Templates see the name of a value's type in error messages, and those must be the same with and without tracing.
TracedString.__name__ = TracedString.__qualname__ = "str"
TracedString.__module__ = "builtins"


def traced(text: str, source: Source) -> TracedString:
    """The text with its source."""
    result: TracedString = _new(TracedString, text)
    result.traced_source = source
    return result


def field_text(text: str, message: int, path: str) -> TracedString:
    """The text of a caller's field."""
    result: TracedString = _new(TracedString, text)
    result.traced_source = path
    result.traced_message = message
    return result


def derived(text: str, *origins: str) -> TracedString:
    """Text that was made from these strings in a way that cannot be followed."""
    source = common_source(origins)
    if source is None and not all(isinstance(origin, TracedLike) and not _is_lost(origin) for origin in origins):
        source = Dump(NO_MESSAGE, None)
    return traced(text, source)  # without a source, it is made of nothing but the template's own text


def _is_lost(text: TracedLike) -> bool:
    return any(run[5] for run in flatten(text).runs)


def _stepped(whole: TracedString, result: str, key: slice) -> TracedString:
    return traced(result, tuple(whole[position] for position in range(*key.indices(len(whole)))))


def _located(whole: TracedString, pieces: Sequence[str], separator: str | None) -> list[Any]:
    """The pieces of a split, in order, each with its place in the whole."""
    result: list[Any] = []
    position = 0
    for piece in pieces:
        if separator is None:
            # A piece begins with no whitespace, unless it is the first one of a limited split from the right.
            position = str.index(whole, piece, position)
        result.append(traced(piece, part_of(whole, position)))
        position += len(piece) + (len(separator) if separator is not None else 0)
    return result


def _consecutive(whole: TracedString, pieces: Iterable[str]) -> tuple[Any, ...]:
    result: list[Any] = []
    position = 0
    for piece in pieces:
        result.append(traced(piece, part_of(whole, position)))
        position += len(piece)
    return tuple(result)


def _interleaved(separator: str, items: Sequence[str]) -> tuple[str, ...]:
    if not separator or not items:
        return tuple(items)
    return tuple(piece for item in items for piece in (separator, item))[1:]


def _recast(origin: TracedString, text: str, each: Callable[[str], str]) -> TracedString:
    """Text in another case: the same sources, but a field's characters are no longer its own."""
    lengths: list[int] | None = None
    if len(text) != len(origin):
        lengths = [len(each(character)) for character in str.__iter__(origin)]
        if sum(lengths) != len(text):
            return derived(text, origin)
    runs: list[Run] = []
    begin = end = 0
    for run in flatten(origin).runs:
        end = run[0] if lengths is None else end + sum(lengths[begin : run[0]])
        begin = run[0]
        runs.append((end, *run[1:4], -1, run[5] or run[3] is not None, run[6]))
    return traced(text, Flat(runs))


def _padded(origin: TracedString, text: str) -> Any:
    if len(text) == len(origin):
        return origin
    padding = len(text) - len(origin)
    # Where `str.center` puts the odd character depends on the width; look for the place instead.
    for left in (0, padding, padding // 2, padding - padding // 2):
        if text.startswith(str.__str__(origin), left):
            end = left + len(origin)
            return traced(text, (traced(text[:left], None), origin, traced(text[end:], None)))
    return derived(text, origin)


def _formatted(pattern: TracedString, text: str, values: Any) -> Any:
    """The result of `pattern % values`, put together from the pattern's own text and the values."""
    remaining = iter(values if isinstance(values, tuple) else (values,))
    parts: list[str] = []
    position = 0
    for match in _SPECIFIER.finditer(pattern):
        parts.append(pattern[position : match.start()])
        position = match.end()
        name, specifier = match["name"], "%" + match["format"]
        if match["format"] == "%":
            parts.append(pattern[position - 1 : position])
            continue
        try:
            value = next(remaining) if name is None else values[name]
        except (StopIteration, LookupError, TypeError):
            break
        parts.append(str(value) if specifier == "%s" else derived(specifier % (value,), value))
    parts.append(pattern[position:])
    if "".join(parts) == text:
        return traced(text, tuple(parts))
    texts = values.values() if isinstance(values, dict) else values if isinstance(values, tuple) else (values,)
    return derived(text, pattern, *(value for value in texts if isinstance(value, str)))


class TracedMarkup(Markup):
    """What the `safe` filter gives: text that escapes what is added to it, and still knows its source."""

    __slots__ = ("traced_value",)
    traced_value: str

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        result = Markup.__new__(cls, *args, **kwargs)
        result.traced_value = TracedString(str.__str__(result))
        return result

    def __str__(self) -> str:
        return self.traced_value

    def __add__(self, other: Any) -> Any:
        return _marked(Markup.__add__(self, other), (self, other))

    def __radd__(self, other: Any) -> Any:
        return _marked(Markup.__radd__(self, other), (other, self))


TracedMarkup.__name__ = TracedMarkup.__qualname__ = "Markup"
TracedMarkup.__module__ = "markupsafe"


def safe(text: Any) -> Markup:
    """What `Markup(text)` is, with the source of the text."""
    result: Any = _new(TracedMarkup, str.__str__(Markup(text)))  # noqa: S704 - it is what the filter is for
    result.traced_value = text if isinstance(text, TracedString) else str(text)
    return result  # type: ignore[no-any-return]


def escape(text: Any) -> Markup:
    """What `markupsafe.escape(text)` is, with the source of the text."""
    result = markupsafe.escape(text)
    if not isinstance(text, TracedString):
        return result
    marked: Any = _new(TracedMarkup, str.__str__(result))
    marked.traced_value = text if str.__eq__(result, text) else derived(str.__str__(result), text)
    return marked  # type: ignore[no-any-return]


def unwrapped(value: Any) -> Any:
    """The traced string in what `safe` gave, or the value itself."""
    return value.traced_value if type(value) is TracedMarkup else value


def _marked(result: Any, parts: tuple[Any, ...]) -> Any:
    if result is NotImplemented or sum(map(len, parts)) != len(result):
        return result  # something was escaped
    marked: Any = _new(TracedMarkup, str.__str__(result))
    marked.traced_value = traced(result, tuple(str(part) for part in parts))
    return marked
