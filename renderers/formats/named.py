"""Reply grammars by the names of vLLM's tool and reasoning parsers, for models without a family of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from renderers.errors import ConfigError
from renderers.formats.arg_pairs import ArgPairs
from renderers.formats.hermes import JsonToolCalls
from renderers.formats.spelling import Spelling
from renderers.formats.xml_parameters import XmlParameters
from renderers.parsing.grammar import Reasoning, ReplyGrammar
from renderers.parsing.markers import Marker
from renderers.parsing.protocol import ToolCallFormat

_Made = TypeVar("_Made")


def _hermes() -> ToolCallFormat:
    return JsonToolCalls(Marker.either("<tool_call>"), Marker.either("</tool_call>"))


def _qwen3_coder() -> ToolCallFormat:
    return XmlParameters(Spelling.PYTHON, Marker.either("<tool_call>"), Marker.either("</tool_call>"))


def _think(*, assumed_open: bool = False) -> Reasoning:
    return Reasoning(
        Marker.either("<think>"),
        Marker.either("</think>"),
        after_open="\n",
        before_close="\n",
        after_close="\n\n",
        assumed_open=assumed_open,
    )


#: Tool parsers. vLLM serves Qwen3 with `hermes`; `qwen3` is the name under which people look for it.
TOOL_PARSERS: dict[str, Callable[[], ToolCallFormat]] = {
    "hermes": _hermes,
    "qwen3": _hermes,
    "qwen3_coder": _qwen3_coder,
    "qwen3_xml": _qwen3_coder,
    "glm45": lambda: ArgPairs(line="\n"),
    "glm47": ArgPairs,
}

#: Reasoning parsers. `deepseek_r1` takes a reply for reasoning until `</think>` unless the prompt says otherwise.
REASONING_PARSERS: dict[str, Callable[[], Reasoning]] = {
    "think": _think,
    "qwen3": _think,
    "deepseek_r1": lambda: _think(assumed_open=True),
}


def named_grammar(
    tool_parser: str | None = None, reasoning_parser: str | None = None, stop_tokens: Sequence[str] = ()
) -> ReplyGrammar:
    """A reply grammar by vLLM's names.

    Markers are matched by token where the tokenizer has a special token of that name, else as plain text.

    Raises:
        ConfigError: for an unknown name; it lists those that exist.
    """
    return ReplyGrammar(
        stop_tokens=tuple(stop_tokens),
        reasoning=None if reasoning_parser is None else _look_up("reasoning", REASONING_PARSERS, reasoning_parser)(),
        tool_calls=None if tool_parser is None else _look_up("tool", TOOL_PARSERS, tool_parser)(),
    )


def _look_up(kind: str, parsers: Mapping[str, Callable[[], _Made]], name: str) -> Callable[[], _Made]:
    try:
        return parsers[name]
    except KeyError:
        known = ", ".join(sorted(parsers))
        raise ConfigError(f"there is no {kind} parser named {name!r}; there are {known}") from None
