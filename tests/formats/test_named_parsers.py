"""Grammars by vLLM's names."""

from __future__ import annotations

import pytest

from renderers.errors import ConfigError
from renderers.formats.named import REASONING_PARSERS, TOOL_PARSERS, named_grammar
from renderers.parsing import ReplyGrammar


def test_unknown_names_list_what_exists() -> None:
    with pytest.raises(ConfigError, match=r"tool parser named 'hermit'; there are .*hermes.*qwen3"):
        named_grammar("hermit")
    with pytest.raises(ConfigError, match=r"reasoning parser named 'thought'; there are deepseek_r1, .*think"):
        named_grammar(reasoning_parser="thought")


@pytest.mark.parametrize("tool_parser", [None, *TOOL_PARSERS])
@pytest.mark.parametrize("reasoning_parser", [None, *REASONING_PARSERS])
def test_every_name_makes_a_grammar(tool_parser: str | None, reasoning_parser: str | None) -> None:
    grammar = named_grammar(tool_parser, reasoning_parser, ["<|im_end|>"])
    assert isinstance(grammar, ReplyGrammar)
    assert (grammar.tool_calls is None) == (tool_parser is None)
    assert (grammar.reasoning is None) == (reasoning_parser is None)
