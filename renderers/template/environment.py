"""The Jinja environment of chat templates, the same as transformers gives them, and the errors that come out of it.

Templates come with checkpoints and are untrusted code: the sandbox lets them read what they are given and no more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

from renderers.errors import TemplateError

#: The file name that jinja2 gives to templates compiled from text; it marks their frames in a traceback.
_TEMPLATE_FILE = "<template>"


class GenerationExtension(Extension):
    """`{% generation %}...{% endgeneration %}`: marks what the model writes, and prints its body as it is."""

    tags = {"generation"}  # noqa: RUF012 - jinja2 declares it as an instance's set

    def parse(self, parser: Parser) -> nodes.CallBlock:
        """The body becomes a caller, so that assignments in it stay in it, as with transformers."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("mark", lineno=line), [], [], body, lineno=line)

    def mark(self, caller: Callable[[], str]) -> str:
        """The text of the body. Tracing puts its own function in this place."""
        text = caller()
        wrap = getattr(self.environment, "wrap_generation", None)
        return text if wrap is None else wrap(text)


class TemplateNamespace(Namespace):
    """The `namespace` of chat templates: a namespace that holds no names with a leading underscore."""

    def __init__(*args: Any, **kwargs: Any) -> None:  # `self` may be an attribute's name
        itself, *rest = args
        attributes = dict(*rest, **kwargs)
        for name in attributes:
            _refuse_private(name)
        Namespace.__init__(itself, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _refuse_private(name)
        super().__setitem__(name, value)


def _refuse_private(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(
            f"Chat templates cannot store underscore-prefixed attributes on a namespace, but got {name!r}. "
            "Please rename the attribute."
        )


class _DictFunction:
    """The `dict` of chat templates: makes dicts, and is not the class itself, which would open the sandbox."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args, **kwargs)


def to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """The `tojson` filter: plain JSON, without jinja2's HTML escapes, and non-ASCII as it is unless asked otherwise."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def configure(environment: ImmutableSandboxedEnvironment) -> None:
    """Give an environment the functions and filters that chat templates expect."""
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["dict"] = _DictFunction()
    environment.globals["namespace"] = TemplateNamespace
    # The real one is a variable of each render, because it depends on the caller's date.
    environment.globals["strftime_now"] = clock(None)


#: The settings of the environment; everything else is jinja2's default.
ENVIRONMENT_OPTIONS: Mapping[str, Any] = {
    "trim_blocks": True,
    "lstrip_blocks": True,
    "extensions": (GenerationExtension, loopcontrols),
}


def make_environment() -> ImmutableSandboxedEnvironment:
    """A new environment for chat templates."""
    environment = ImmutableSandboxedEnvironment(**ENVIRONMENT_OPTIONS)
    configure(environment)
    return environment


def clock(now: datetime | None) -> Callable[[str], str]:
    """The `strftime_now` of one render. There is no hidden clock: without a date it is an error to ask for one."""

    def strftime_now(format: str) -> str:  # noqa: A002 - the name that templates may use
        if now is None:
            raise jinja2.TemplateError("the template prints the current date (strftime_now), and no date was given")
        return now.strftime(format)

    return strftime_now


@contextmanager
def template_errors() -> Iterator[None]:
    """Turn whatever a template raises, at compile or render, into a TemplateError with its text and line."""
    try:
        yield
    except TemplateError:
        raise
    except jinja2.TemplateSyntaxError as error:
        raise TemplateError(f"{error.message} (template line {error.lineno})") from error
    except Exception as error:
        text = f"{error}" if isinstance(error, jinja2.TemplateError) else f"{type(error).__name__}: {error}"
        line = _line_of(error)
        raise TemplateError(text if line is None else f"{text} (template line {line})") from error


def _line_of(error: Exception) -> int | None:
    line, frame = None, error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == _TEMPLATE_FILE:
            line = frame.tb_lineno
        frame = frame.tb_next
    return line
