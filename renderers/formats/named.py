"""Reply grammars by the names of vLLM's tool and reasoning parsers, for models without a family of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from renderers.errors import ConfigError
from renderers.formats.arg_pairs import ArgPairs
from renderers.formats.dsml import DsmlCalls
from renderers.formats.fenced_calls import FencedJsonCalls
from renderers.formats.harmony import CALL, HarmonyGrammar
from renderers.formats.headed_calls import CallHead, HeadedJsonCalls, ReadHead, read_call_id
from renderers.formats.hermes import JsonToolCalls
from renderers.formats.invoke_tags import InvokeCalls
from renderers.formats.llama_json import LlamaJsonCalls
from renderers.formats.spelling import Spelling
from renderers.formats.xml_parameters import XmlParameters
from renderers.parsing.grammar import Reasoning, ReplyGrammar
from renderers.parsing.markers import Identity, Marker
from renderers.parsing.protocol import Grammar, ToolCallFormat

_Made = TypeVar("_Made")


def _hermes() -> ToolCallFormat:
    return JsonToolCalls(Marker.either("<tool_call>"), Marker.either("</tool_call>"))


def _qwen3_coder() -> ToolCallFormat:
    return XmlParameters(Spelling.PYTHON, Marker.either("<tool_call>"), Marker.either("</tool_call>"))


def _minimax_m2() -> ToolCallFormat:
    return InvokeCalls(Marker.either("<minimax:tool_call>"), Marker.either("</minimax:tool_call>"))


def _deepseek_v3() -> ToolCallFormat:

    return FencedJsonCalls(*_DEEPSEEK_CALL, *_DEEPSEEK_SECTION, identity=Identity.EITHER)


def _headed(call: tuple[str, str, str], read_head: ReadHead, section: tuple[str, str]) -> ToolCallFormat:
    return HeadedJsonCalls(*call, read_head, *section, identity=Identity.EITHER)


def _dsml(block: str) -> ToolCallFormat:
    return DsmlCalls(block, tools_head="", tools_tail="")


def _think(*, before: str = "", line: str = "", after: str = "", assumed_open: bool = False) -> Reasoning:
    """Reasoning in `<think>`: the line feeds before it, inside its markers and after it."""
    return Reasoning(
        Marker.either("<think>"),
        Marker.either("</think>"),
        before_open=before,
        after_open=line,
        before_close=line,
        after_close=after,
        assumed_open=assumed_open,
    )


_DEEPSEEK_SECTION = ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")
_DEEPSEEK_CALL = ("<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>")
_KIMI_SECTION = ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>")
_KIMI_CALL = ("<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>")

#: Tool parsers. vLLM serves Qwen3 with `hermes`; `qwen3` is the name under which people look for it.
TOOL_PARSERS: dict[str, Callable[[], ToolCallFormat]] = {
    "hermes": _hermes,
    "qwen3": _hermes,
    "qwen3_coder": _qwen3_coder,
    "qwen3_xml": _qwen3_coder,
    "glm45": lambda: ArgPairs(line="\n"),
    "glm47": ArgPairs,
    "deepseek_v3": _deepseek_v3,
    "deepseek_v31": partial(_headed, _DEEPSEEK_CALL, CallHead, _DEEPSEEK_SECTION),
    "deepseek_v32": partial(_dsml, "function_calls"),
    "deepseek_v4": partial(_dsml, "tool_calls"),
    "kimi_k2": partial(_headed, _KIMI_CALL, read_call_id, _KIMI_SECTION),
    "minimax_m2": _minimax_m2,
    "llama3_json": LlamaJsonCalls,
}

_LINES = partial(_think, line="\n", after="\n\n")

#: Reasoning parsers. `deepseek_r1` and `minimax_m2` are of models whose prompt opens the reasoning: they take a reply
#: for reasoning until `</think>` unless the prompt says otherwise.
REASONING_PARSERS: dict[str, Callable[[], Reasoning]] = {
    "think": _LINES,
    "qwen3": _LINES,
    "deepseek_r1": partial(_LINES, assumed_open=True),
    "minimax_m2": partial(_LINES, assumed_open=True),
    "deepseek_v3": _think,
    "deepseek_v4": _think,
    "kimi_k2": _think,
    "glm45": partial(_think, before="\n", after="\n"),
    "glm47": _think,
}

#: Harmony's messages are calls, reasoning and answers at once: each of the two names means all of it.
HARMONY_TOOLS, HARMONY_REASONING = "openai", "openai_gptoss"


def named_grammar(
    tool_parser: str | None = None, reasoning_parser: str | None = None, stop_tokens: Sequence[str] = ()
) -> Grammar:
    """A reply grammar by vLLM's names.

    Markers are matched by token where the tokenizer has a special token of that name, else as plain text. Harmony's, and
    the tags inside GLM's and DSML's calls, are always tokens.

    Raises:
        ConfigError: for an unknown name; it lists those that exist. For one of Harmony's two names beside another
            format's.
    """
    if tool_parser == HARMONY_TOOLS or reasoning_parser == HARMONY_REASONING:
        return _harmony(tool_parser, reasoning_parser, stop_tokens)
    reasoning = _look_up("reasoning", REASONING_PARSERS, reasoning_parser, HARMONY_REASONING)
    return ReplyGrammar(tuple(stop_tokens), reasoning, _look_up("tool", TOOL_PARSERS, tool_parser, HARMONY_TOOLS))


def _harmony(tool_parser: str | None, reasoning_parser: str | None, stop_tokens: Sequence[str]) -> Grammar:
    """A call ends its turn, so its end is a stop token, named or not."""
    if tool_parser not in (None, HARMONY_TOOLS) or reasoning_parser not in (None, HARMONY_REASONING):
        raise ConfigError(
            f"tool_parser={tool_parser!r} and reasoning_parser={reasoning_parser!r} are parts of different formats: "
            f"{HARMONY_TOOLS!r} and {HARMONY_REASONING!r} go together, or one of them alone"
        )
    return HarmonyGrammar(tuple(dict.fromkeys([*stop_tokens, CALL])))


def _look_up(kind: str, parsers: Mapping[str, Callable[[], _Made]], name: str | None, harmony: str) -> _Made | None:
    if name is None:
        return None
    try:
        return parsers[name]()
    except KeyError:
        known = ", ".join(sorted([*parsers, harmony]))
        raise ConfigError(f"there is no {kind} parser named {name!r}; there are {known}") from None
