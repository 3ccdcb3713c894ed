"""Grammars by vLLM's names: each reads its format's sample, by tokens and as plain text."""

from __future__ import annotations

from typing import Any

import pytest
from byte_renderers import STOP, byte_renderer, outcomes, parser

from renderers.errors import ConfigError, TokenizerError
from renderers.formats.harmony import HarmonyGrammar
from renderers.formats.named import HARMONY_REASONING, HARMONY_TOOLS, REASONING_PARSERS, TOOL_PARSERS, named_grammar
from renderers.parsing import ReplyGrammar

_JSON = '<tool_call>\n{"name": "f", "arguments": {"a": "x"}}\n</tool_call>'
_XML = "<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n</function>\n</tool_call>"
_DEEPSEEK = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
_DSML = (
    '<｜DSML｜{0}>\n<｜DSML｜invoke name="f">\n<｜DSML｜parameter name="a" string="true">x</｜DSML｜parameter>\n'
    "</｜DSML｜invoke>\n</｜DSML｜{0}>"
)
#: One call of the tool `f` in each format.
SAMPLES = {
    "hermes": _JSON,
    "qwen3": _JSON,
    "qwen3_coder": _XML,
    "qwen3_xml": _XML,
    "glm45": "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>x</arg_value>\n</tool_call>",
    "glm47": "<tool_call>f<arg_key>a</arg_key><arg_value>x</arg_value></tool_call>",
    "deepseek_v3": _DEEPSEEK.format('function<｜tool▁sep｜>f\n```json\n{"a": "x"}\n```'),
    "deepseek_v31": _DEEPSEEK.format('f<｜tool▁sep｜>{"a": "x"}'),
    "deepseek_v32": _DSML.format("function_calls"),
    "deepseek_v4": _DSML.format("tool_calls"),
    "kimi_k2": (
        '<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"a": "x"}'
        "<|tool_call_end|><|tool_calls_section_end|>"
    ),
    "minimax_m2": (
        '<minimax:tool_call>\n<invoke name="f">\n<parameter name="a">x</parameter>\n</invoke>\n</minimax:tool_call>'
    ),
    "llama3_json": '<|python_tag|>{"name": "f", "parameters": {"a": "x"}}',
}
#: Formats whose inner tags cannot be told from text by position alone.
TOKENS_ONLY = {"glm45", "glm47", "deepseek_v32", "deepseek_v4"}
SPECIAL = (
    "<think>", "</think>", "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>",
    "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>",
    "｜DSML｜", "<minimax:tool_call>", "</minimax:tool_call>", "<|python_tag|>", "<|tool_calls_section_begin|>",
    "<|tool_calls_section_end|>", "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>",
)  # fmt: skip
HARMONY = ("<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|end|>", "<|call|>")


@pytest.mark.parametrize("name", TOOL_PARSERS)
def test_a_call_of_each_tool_parser(name: str) -> None:
    for special in ((), SPECIAL) if name not in TOKENS_ONLY else (SPECIAL,):
        parsed = parser(byte_renderer(special, tool_parser=name))(f"Look. {SAMPLES[name]}{STOP}")
        assert outcomes(parsed) == [("f", {"a": "x"}, "ok")]
        assert (parsed.content, parsed.stop) == ("Look. ", STOP)


@pytest.mark.parametrize("name", TOOL_PARSERS)
def test_a_cut_call_of_each_tool_parser(name: str) -> None:
    parse = parser(byte_renderer(SPECIAL, tool_parser=name))
    for end in range(SAMPLES[name].rindex("x") + 2):
        parsed = parse(SAMPLES[name][:end], step=9)
        assert not parsed.valid_tool_calls
        assert all(call.raw in SAMPLES[name] for call in parsed.tool_calls)


@pytest.mark.parametrize("name", REASONING_PARSERS)
@pytest.mark.parametrize("special", [(), SPECIAL])
def test_reasoning_of_each_reasoning_parser(name: str, special: tuple[str, ...]) -> None:
    parse = parser(byte_renderer(special, reasoning_parser=name, tool_parser="hermes"))
    parsed = parse(f"<think>hm</think>So.\n{SAMPLES['hermes']}{STOP}")
    assert (parsed.reasoning_content, parsed.content, parsed.reasoning_complete) == ("hm", "So.", True)
    assert outcomes(parsed) == [("f", {"a": "x"}, "ok")]
    cut = parse("<think>hm")
    assert (cut.reasoning_content, cut.content, cut.reasoning_complete) == ("hm", "", False)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("think", "<think>\nhm\n</think>\n\nSo."),
        ("deepseek_r1", "hm\n</think>\n\nSo."),
        ("minimax_m2", "hm\n</think>\n\nSo."),
        ("glm45", "\n<think>hm</think>\nSo."),
    ],
)
def test_line_feeds_around_reasoning(name: str, text: str) -> None:
    parsed = parser(byte_renderer(SPECIAL, reasoning_parser=name))(text + STOP)
    assert (parsed.reasoning_content, parsed.content) == ("hm", "So.")


@pytest.mark.parametrize("names", [{"tool_parser": "openai"}, {"reasoning_parser": "openai_gptoss"}, {"tool_parser": "openai", "reasoning_parser": "openai_gptoss"}])  # fmt: skip
@pytest.mark.parametrize("stops", [("<|return|>",), ("<|return|>", "<|call|>")])
def test_harmony_is_calls_and_reasoning_at_once(names: dict[str, str], stops: tuple[str, ...]) -> None:
    parse = parser(byte_renderer(HARMONY, stops, **names))
    parsed = parse(
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=functions.f "
        '<|constrain|>json<|message|>{"a": "x"}<|call|>',
        prompt="<|start|>user<|message|>hi<|end|><|start|>assistant",
    )
    assert (parsed.reasoning_content, parsed.content, parsed.stop) == ("hm", "", "<|call|>")
    assert outcomes(parsed) == [("f", {"a": "x"}, "ok")]
    answered = parse(
        "<|channel|>final<|message|>4<|return|>", prompt="<|channel|>final<|message|>3<|end|><|start|>assistant"
    )
    assert (answered.content, answered.stop) == ("4", "<|return|>")


@pytest.mark.parametrize("names", [("openai", "qwen3"), ("hermes", "openai_gptoss")])
def test_harmony_does_not_mix(names: tuple[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"parts of different formats: 'openai' and 'openai_gptoss' go together"):
        named_grammar(*names)


def test_unknown_names_list_what_exists() -> None:
    with pytest.raises(ConfigError, match=r"tool parser named 'hermit'; there are .*hermes.*openai.*qwen3"):
        named_grammar("hermit")
    with pytest.raises(
        ConfigError, match=r"reasoning parser named 'thought'; there are deepseek_r1, .*openai_gptoss.*think"
    ):
        named_grammar(reasoning_parser="thought")


@pytest.mark.parametrize("name", sorted(TOKENS_ONLY))
def test_missing_tokens_are_named(name: str) -> None:
    with pytest.raises(TokenizerError, match=r"arg_key|DSML"):
        named_grammar(name).bind(byte_renderer().tokenizer)


@pytest.mark.parametrize("tool_parser", [None, *TOOL_PARSERS, HARMONY_TOOLS])
@pytest.mark.parametrize("reasoning_parser", [None, *REASONING_PARSERS, HARMONY_REASONING])
def test_every_pair_of_names_makes_a_grammar(tool_parser: str | None, reasoning_parser: str | None) -> None:
    is_harmony = [tool_parser == HARMONY_TOOLS, reasoning_parser == HARMONY_REASONING]
    if any(is_harmony) and not all(is_harmony) and None not in (tool_parser, reasoning_parser):
        with pytest.raises(ConfigError):
            named_grammar(tool_parser, reasoning_parser)
        return
    grammar: Any = named_grammar(tool_parser, reasoning_parser, ["<|im_end|>"])
    if any(is_harmony):
        assert grammar == HarmonyGrammar(("<|im_end|>", "<|call|>"))
    else:
        assert isinstance(grammar, ReplyGrammar)
        assert (grammar.tool_calls is None) == (tool_parser is None)
        assert (grammar.reasoning is None) == (reasoning_parser is None)
