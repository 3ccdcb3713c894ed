"""Chat templates, compiled: plain, or traced so that every character says where it comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

from jinja2 import Template, nodes

from renderers.errors import TemplateError
from renderers.template.branches import RECORDER, Branch, Recorder, RecordingEnvironment, RecordingRewriter
from renderers.template.environment import clock, make_environment, template_errors
from renderers.template.filters import REGISTRY, Registry, TracingEnvironment
from renderers.template.inputs import SCALARS, plain_data, prepare_messages, prepare_tools
from renderers.template.rewriting import MESSAGE, MESSAGES, Rewriter
from renderers.template.sources import NO_MESSAGE, Flat, Run, add_runs, flatten
from renderers.template.strings import TracedString, field_text, traced

# How many of the pieces that a template prints are taken at a time.
_PIECES = 128

_ENVIRONMENT = make_environment()
_STRINGS = frozenset({str})
_new: Any = str.__new__
_make: Any = tuple.__new__

# The names of OpenAI's message format. They are looked up for every message and hardly ever printed; without a source
# they are found faster.
_PLAIN_KEYS = frozenset(
    {
        "role",
        "content",
        "reasoning_content",
        "thinking",
        "reasoning",
        "tool_calls",
        "tool_call_id",
        "name",
        "id",
        "type",
    }
    | {"function", "arguments", "text"}
)


class SourceSpan(NamedTuple):
    """Some characters of a rendered text, all of one source.

    Attributes:
        start: the first character.
        end: the character after the last.
        line: the template line that printed them.
        message_index: the message that they belong to, or -1 outside any.
        field: the path of the caller's field that they come from (`content`, `tool_calls[0].function.arguments`,
            `tools[0].function.name`), or None for the template's own text.
        derived: an operation lost the exact source: the characters are not those of the field, or no field is known.
    """

    start: int
    end: int
    line: int
    message_index: int
    field: str | None
    derived: bool


@dataclass(frozen=True, slots=True)
class TracedText:
    """A rendered text and its sources.

    Attributes:
        text: the text.
        spans: every character in exactly one span, in order; neighbours differ.
        generation_ranges: (start, end) of what stands in `{% generation %}` blocks.
        branches: every condition that was evaluated, in order; empty unless they were asked for.
    """

    text: str
    spans: tuple[SourceSpan, ...]
    generation_ranges: tuple[tuple[int, int], ...] = ()
    branches: tuple[Branch, ...] = ()


class PlainTemplate:
    """A chat template as transformers renders it.

    Args:
        source: its text.
        tree: a syntax tree to take in place of the text's own.

    Raises:
        TemplateError: it cannot be compiled.
    """

    def __init__(self, source: str, tree: nodes.Template | None = None) -> None:
        self.source = source
        with template_errors():
            self._template = _ENVIRONMENT.from_string(source if tree is None else tree)

    def render(
        self,
        messages: Sequence[Any],
        *,
        tools: Sequence[Any] | None = None,
        add_generation_prompt: bool = False,
        variables: Mapping[str, Any] | None = None,
        now: datetime | None = None,
        null_content: bool = False,
    ) -> str:
        """The text of a conversation; see `TracedTemplate.render`."""
        values = {
            "documents": None,
            "strftime_now": clock(now),
            **plain_data(variables or {}),
            "messages": prepare_messages(messages, null_content=null_content),
            "tools": prepare_tools(tools),
            "add_generation_prompt": add_generation_prompt,
        }
        with template_errors():
            return self._template.render(values)


class TracedTemplate:
    """A chat template that says of every character which line printed it and what it comes from.

    The text is the plain render's, and so are the errors.

    Raises:
        TemplateError: it cannot be compiled.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self._plain: PlainTemplate | None = None
        environment = TracingEnvironment()
        with template_errors():
            tree = environment.parse(source)
            Rewriter(environment.keep_literal).visit(tree)
            self._template = _compiled(environment, tree)

    @cached_property
    def _recording(self) -> Template:
        """The template that records its branches as well, compiled when it is first asked for."""
        environment = RecordingEnvironment()
        with template_errors():
            tree = environment.parse(self.source)
            RecordingRewriter(environment.keep_literal, environment.conditions).visit(tree)
            return _compiled(environment, tree)

    def render(
        self,
        messages: Sequence[Any],
        *,
        tools: Sequence[Any] | None = None,
        add_generation_prompt: bool = False,
        variables: Mapping[str, Any] | None = None,
        now: datetime | None = None,
        null_content: bool = False,
        branches: bool = False,
    ) -> TracedText:
        """The text of a conversation and its sources. Nothing that is passed in is changed.

        Args:
            messages: dicts (or dataclasses, or pydantic models) of the shape that the template takes.
            tools: JSON schemas, or None.
            add_generation_prompt: the variable of that name.
            variables: further variables, such as special tokens and the template's switches.
            now: the date that `strftime_now` prints; without it, a template that asks for the date is an error.
            null_content: give None for null and missing content, instead of leaving the field out.
            branches: record the conditions that were evaluated, which costs as much as there are of them.

        Raises:
            TemplateError: the template raised; the error holds its own words.
            MessageError: a message is no dict.
            ToolsError: a tool is no dict.
        """
        recorder = Recorder() if branches else None
        text = self.render_string(
            messages,
            tools=tools,
            add_generation_prompt=add_generation_prompt,
            variables=variables,
            now=now,
            null_content=null_content,
            recorder=recorder,
        )
        return spans_of(text, () if recorder is None else recorder.branches)

    def render_string(
        self,
        messages: Sequence[Any],
        *,
        tools: Sequence[Any] | None = None,
        add_generation_prompt: bool = False,
        variables: Mapping[str, Any] | None = None,
        now: datetime | None = None,
        null_content: bool = False,
        recorder: Recorder | None = None,
    ) -> TracedString:
        """The same, as one string that holds its runs: they also say which of a field's characters stand where.

        A `recorder` takes the branches.
        """
        labels = _Labels()
        values: dict[str, Any] = {"documents": None, "strftime_now": _traced_clock(now)}
        for name, value in (variables or {}).items():
            values[name] = labels.variable(name, value)
        values["messages"] = prepare_messages(messages, null_content=null_content, label=labels.message)
        values["tools"] = prepare_tools(tools, label=labels.variable)
        values["add_generation_prompt"] = add_generation_prompt
        values[MESSAGE] = NO_MESSAGE
        values[MESSAGES] = {id(message): index for index, message in enumerate(values["messages"])}
        values[REGISTRY] = labels.registry
        texts: list[str] = []
        runs: list[Run] = []
        try:
            with template_errors():
                if recorder is None:
                    pieces = self._template.generate(values)
                else:
                    pieces = recorder.counted(self._recording.generate({**values, RECORDER: recorder}))
                # Some at a time are flattened and let go: to hold all would keep the garbage collector busy.
                while some := tuple(islice(pieces, _PIECES)):
                    texts.append("".join(some))
                    add_runs(runs, some)
        except TemplateError as error:
            failure = error
        else:
            return traced("".join(texts), Flat(runs))
        # Tracing takes what one output prints in one piece, so another of several faults may come up first, or one on
        # another line. The plain render says which it is.
        if self._plain is None:
            self._plain = PlainTemplate(self.source)
        self._plain.render(
            messages,
            tools=tools,
            add_generation_prompt=add_generation_prompt,
            variables=variables,
            now=now,
            null_content=null_content,
        )
        raise failure


def _compiled(environment: TracingEnvironment, tree: nodes.Template) -> Template:
    code = environment.compile(tree)
    return environment.template_class.from_code(environment, code, environment.make_globals(None))


def _traced_clock(now: datetime | None) -> Any:
    plain = clock(now)

    def strftime_now(format: str) -> str:  # noqa: A002 - the name that templates may use
        return traced(plain(format), None)

    return strftime_now


class _Labels:
    """Gives the inputs of one render their sources, and makes them plain on the way."""

    def __init__(self) -> None:
        self.registry = Registry()

    def message(self, index: int, message: Mapping[Any, Any]) -> dict[Any, Any]:
        """A message's fields. What is None stays out, before it costs anything."""
        if not _STRINGS.issuperset(map(type, message)):
            message = plain_data(message)
        fields: dict[Any, Any] = {}
        for key, item in message.items():
            if type(item) is str:
                text: TracedString = _new(TracedString, item)
                text.traced_source = key
                text.traced_message = index
            elif item is None:
                continue
            else:
                text = self._value(item, index, str(key))
            fields[key if key in _PLAIN_KEYS else self._value(key, index, str(key))] = text
        return fields

    def variable(self, name: str, value: Any) -> Any:
        """A variable: text is a setting and counts as the template's own; dicts and lists are the caller's data.

        `tools_ts_str` and its like are data as well: tools in another form.
        """
        if isinstance(value, str) and not name.startswith(("tools", "documents")):
            return traced(plain_data(value), None)
        return self._value(value, NO_MESSAGE, name)

    def _value(self, value: Any, message: int, path: str) -> Any:
        kind = type(value)
        if kind is str:
            return field_text(value, message, path)
        if kind is dict:
            labelled: Any = {
                key if message >= 0 and key in _PLAIN_KEYS else self._value(key, message, path): self._value(
                    item, message, f"{path}.{key}"
                )
                for key, item in value.items()
            }
        elif kind is list or kind is tuple:
            labelled = kind([self._value(item, message, f"{path}[{index}]") for index, item in enumerate(value)])
        elif kind in SCALARS:
            return value
        else:
            return self._value(plain_data(value), message, path)
        self.registry.containers[id(labelled)] = (message, path)
        return labelled


def spans_of(text: TracedString, branches: Sequence[Branch] = ()) -> TracedText:
    """A rendered string as plain text with its spans: its runs, merged where they are equal."""
    spans: list[SourceSpan] = []
    ranges: list[tuple[int, int]] = []
    start = begin = 0
    of_line = of_message = of_path = of_derived = block = None
    for end, line, message, path, _, derived, generation in flatten(text).runs:
        if line != of_line or message != of_message or path != of_path or derived is not of_derived:
            if begin:
                spans.append(_make(SourceSpan, (start, begin, of_line, of_message, of_path, of_derived)))
            start, of_line, of_message, of_path, of_derived = begin, line, message, path, derived
        if generation is not None:
            if generation is block and ranges[-1][1] == begin:
                ranges[-1] = (ranges[-1][0], end)
            else:
                ranges.append((begin, end))
        block, begin = generation, end
    if begin:
        spans.append(_make(SourceSpan, (start, begin, of_line, of_message, of_path, of_derived)))
    return TracedText(str.__str__(text), tuple(spans), tuple(ranges), tuple(branches))
