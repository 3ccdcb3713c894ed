"""Filters and functions of the tracing environment: those that the rewriting inserts, and jinja2's own, kept traced."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any

from jinja2 import filters as jinja_filters
from jinja2 import pass_context, pass_environment, pass_eval_context
from jinja2.nodes import EvalContext
from jinja2.runtime import Context, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedFormatter
from markupsafe import Markup

from renderers.template import rewriting
from renderers.template.environment import ENVIRONMENT_OPTIONS, configure, to_json
from renderers.template.sources import (
    NO_MESSAGE,
    Dump,
    Generated,
    Kept,
    Printed,
    common_source,
    flatten,
    mentions,
)
from renderers.template.strings import TracedMarkup, TracedString, derived, escape, safe, traced, unwrapped

#: The variable under which a render's registry stands. No template can spell it.
REGISTRY = "registry of sources"


class Registry:
    """What one render knows by identity: the message and path of each dict and list in its inputs."""

    def __init__(self) -> None:
        self.containers: dict[int, tuple[int, str]] = {}


class TracingEnvironment(ImmutableSandboxedEnvironment):
    """The environment of chat templates, with filters that keep sources. One is made for each template."""

    def __init__(self) -> None:
        super().__init__(**ENVIRONMENT_OPTIONS)
        configure(self)
        self.filters.update(_FILTERS)
        self._literals = 0

    def keep_literal(self, text: str) -> str:
        """Hold a text constant of the template as a traced string, and give the name of the attribute."""
        self._literals += 1
        name = f"literal_{self._literals}"
        setattr(self, name, traced(text, None))
        return name

    @staticmethod
    def concat(parts: Iterable[str]) -> str:
        """Join what was printed: a macro's text, a block's, or the whole."""
        pieces = tuple(parts)
        if len(pieces) == 1:
            return pieces[0]
        return traced("".join(pieces), pieces)

    def wrap_generation(self, text: str) -> str:
        """Mark the text of a `{% generation %}` block."""
        return traced(text, Generated(text))

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """`str.format` in the sandbox, with sources."""
        plain = super().wrap_str_format(value)
        if plain is None or not isinstance(value.__self__, TracedString):
            return plain
        pattern: TracedString = value.__self__

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if value.__name__ == "format_map":
                return derived(str.__str__(plain(*args, **kwargs)), pattern, *_strings_in(args[0]))
            return _TracedFormatter(self).run(pattern, args, kwargs)

        return wrapper


class _TracedFormatter(SandboxedFormatter):
    """Notes the text of each field, so that the result can be put together again with its sources."""

    def __init__(self, environment: TracingEnvironment) -> None:
        super().__init__(environment)
        self._fields: list[str] = []

    def run(self, pattern: TracedString, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        text: str = self.vformat(pattern, args, kwargs)
        parts: list[str] = []
        fields = iter(self._fields)
        position = 0
        for literal, field, _, _ in self.parse(str.__str__(pattern)):
            if literal:
                position = pattern.find(literal[0], position)
                parts.append(pattern[position : position + len(literal)])
                position += len(literal)
            if field is not None:
                parts.append(next(fields, ""))
                position = pattern.find("}", position) + 1
        if "".join(parts) == text:
            return traced(text, tuple(parts))
        return derived(text, pattern, *self._fields)

    def format_field(self, value: Any, format_spec: str) -> Any:
        text = str(value) if not format_spec else derived(super().format_field(value, format_spec), str(value))
        self._fields.append(text)
        return text


# Inserted by the rewriting -------------------------------------------------------------------------------------------


_TRACED = frozenset({TracedString})
_new: Any = str.__new__


@pass_context
def _print(
    context: Context, values: tuple[Any, ...], lines: tuple[int, ...], counts: tuple[int, ...], message: int
) -> str:
    """What one output prints: `counts` says how many of the values are added up to make each printed one."""
    if not _TRACED.issuperset(map(type, values)):
        values, lines = _as_texts(context, values, lines, counts)
    result: TracedString = _new(TracedString, "".join(values))
    result.traced_source = Printed(values, lines, message)
    return result


def _as_texts(
    context: Context, values: tuple[Any, ...], lines: tuple[int, ...], counts: tuple[int, ...]
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    texts: list[str] = []
    of_texts: list[int] = []
    start = 0
    for count in counts:
        terms = values[start : start + count]
        texts.append(_as_text(context, terms[0] if count == 1 else _add(terms)))
        of_texts.append(lines[start])
        start += count
    return tuple(texts), tuple(of_texts)


def _add(terms: tuple[Any, ...]) -> Any:
    """`a + b + c`, in one step where all are text."""
    if _TRACED.issuperset(map(type, terms)):
        return traced("".join(terms), terms)
    return reduce(operator.add, terms)


def _join(values: tuple[Any, ...]) -> str:
    if not _TRACED.issuperset(map(type, values)):
        values = tuple(map(str, values))
    return traced("".join(values), values)


@pass_context
def _enter(context: Context, item: Any, current: int, messages: Mapping[int, int]) -> int:
    """The index of the message that a loop is at, or what it was outside the loop."""
    index = messages.get(id(item))
    if index is not None:
        return index
    if type(item) is dict and "role" in item and id(item) not in _registry(context).containers:
        # A message that the template put together itself, out of one of the caller's.
        source = common_source(_strings_in(item))
        if source is not None and source.message >= 0:
            return source.message
    return current


@pass_context
def _enter_indexed(
    context: Context, item: Any, current: int, messages: Mapping[int, int], lists: tuple[Any, ...]
) -> int:
    """The same for a loop that may count through the messages."""
    if type(item) is int:
        for indexed in lists:
            if type(indexed) is list and -len(indexed) <= item < len(indexed):
                index = _enter(context, indexed[item], NO_MESSAGE, messages)
                if index >= 0:
                    return index
        return current
    return _enter(context, item, current, messages)


def _keep(value: Any, message: int) -> Any:
    """What is put into a namespace: template text joined to the message's own belongs to the message."""
    if type(value) is not TracedString:
        return value
    return traced(value, Kept(value, message if message >= 0 and mentions(value, message) else NO_MESSAGE))


def _value_of(value: Any, key: Any) -> Any:
    """A printed value whose source is not known, but the key that it was found under is the caller's."""
    text = unwrapped(value)
    if not isinstance(key, TracedString) or isinstance(text, Undefined) or not _is_lost(text):
        return value
    path = key.traced_source
    if type(path) is not str:
        return value
    return traced(str.__str__(str(text)), Dump(key.traced_message, f"{path}.{key}"))


def _text_of(value: Any, key: Any) -> Any:
    """The same for an operand of `+`, which only text may replace."""
    return _value_of(value, key) if type(value) is str else value


def _is_lost(value: Any) -> bool:
    if not isinstance(value, TracedString):
        return True
    source = value.traced_source
    return type(source) is Dump and source.path is None


def _registry(context: Context) -> Registry:
    registry: Registry = context.parent[REGISTRY]
    return registry


def _as_text(context: Context, value: Any) -> str:
    """The text of any value that is printed."""
    text = str(value)
    if type(value) is TracedMarkup or isinstance(value, Undefined):
        return text
    if isinstance(value, str):
        return value
    return _dumped(context, str.__str__(text) if type(text) is not TracedString else text, value)


def _dumped(context: Context, text: str, value: Any) -> str:
    """Text made from a value that may be, or hold, the caller's."""
    if type(text) is TracedString:
        return text
    place = _registry(context).containers.get(id(value))
    if place is not None:
        return traced(text, Dump(*place))
    source = common_source(_strings_in(value))
    return text if source is None else traced(text, source)


def _strings_in(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield unwrapped(value)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _strings_in(key)
            yield from _strings_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings_in(item)


# jinja2's and transformers' own ----------------------------------------------------------------------------------------


@pass_context
def _tojson(context: Context, value: Any, *args: Any, **kwargs: Any) -> Any:
    text = to_json(value, *args, **kwargs)
    if type(value) is not TracedString:
        return _dumped(context, text, value)
    whole = derived(text, value)
    if not str.__eq__(text[1:-1], value):
        return whole
    quote = traced('"', whole.traced_source)
    return traced(text, (quote, value, quote))


@pass_context
def _string(context: Context, value: Any) -> str:
    return value if isinstance(value, str) else _as_text(context, value)


@pass_eval_context
def _joined(eval_context: EvalContext, value: Iterable[Any], d: str = "", attribute: str | int | None = None) -> str:
    # A traced separator keeps the sources of what it joins; the filter's default is a plain one.
    separator = traced(d, None) if type(d) is str else d
    return jinja_filters.sync_do_join(eval_context, value, separator, attribute)


def _title(value: Any) -> Any:
    text = jinja_filters.do_title(value)
    return _same_places(text, value)


def _same_places(text: str, value: Any) -> Any:
    """Text that differs from the value only in the case of its letters."""
    if not isinstance(value, TracedString):
        return text
    lowered = value.lower()
    return traced(text, flatten(lowered)) if len(text) == len(value) == len(lowered) else derived(text, value)


def _indent(s: Any, width: int | str = 4, first: bool = False, blank: bool = False) -> Any:
    text = jinja_filters.do_indent(s, width, first, blank)
    if not isinstance(s, TracedString):
        return text
    margin = (
        width if isinstance(width, TracedString) else traced(width if isinstance(width, str) else " " * width, None)
    )
    newline = traced("\n", None)
    lines = (s + newline).splitlines()
    if blank:
        result = (newline + margin).join(lines)
    else:
        result = lines.pop(0)
        if lines:
            result += newline + newline.join(margin + line if line else line for line in lines)
    if first:
        result = margin + result
    return result if str.__eq__(result, text) else derived(text, s)


def _lossy(function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter of jinja2 that makes text from text: its result counts as derived from the value."""

    @pass_environment
    def wrapper(environment: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        extra = (environment,) if getattr(function, "jinja_pass_arg", None) is not None else ()
        result = function(*extra, value, *args, **kwargs)
        if (
            isinstance(result, str)
            and not isinstance(result, TracedString | Markup)
            and isinstance(value, TracedString)
        ):
            return derived(result, value)
        return result

    return wrapper


_FILTERS: dict[str, Callable[..., Any]] = {
    rewriting.PRINT: _print,
    rewriting.ADD: _add,
    rewriting.JOIN: _join,
    rewriting.ENTER: _enter,
    rewriting.ENTER_INDEXED: _enter_indexed,
    rewriting.KEEP: _keep,
    rewriting.VALUE_OF: _value_of,
    rewriting.TEXT_OF: _text_of,
    "e": escape,
    "escape": escape,
    "tojson": _tojson,
    "string": _string,
    "join": _joined,
    "title": _title,
    "indent": _indent,
    "safe": safe,
    "wordwrap": _lossy(jinja_filters.do_wordwrap),
    "striptags": _lossy(jinja_filters.do_striptags),
    "urlencode": _lossy(jinja_filters.do_urlencode),
}
