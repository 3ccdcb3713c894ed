"""DefaultRenderers for the official templates: which parsers and stop tokens go with each."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from golden.profiles import PROFILES
from golden.reference import ASSETS, HAS_ASSETS, load_tokenizer, profile_of, template_text
from renderers import DefaultRenderer, DefaultRendererConfig, create_renderer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from renderers.testing import Profile

# vLLM's names: the tool parser and the reasoning parser that it serves the model with.
_PARSERS = (
    ("Qwen3-Coder", ("qwen3_coder", None)),
    ("Qwen3-4B-Instruct", ("hermes", None)),
    ("Qwen3.", ("qwen3_coder", "qwen3")),
    ("Qwen3-", ("hermes", "qwen3")),
    ("GLM-4.5", ("glm45", "glm45")),
    ("GLM-", ("glm47", "glm47")),
    ("DeepSeek-V3.1", ("deepseek_v31", "deepseek_v3")),
    ("DeepSeek-R1", ("deepseek_v3", "deepseek_r1")),
    ("DeepSeek-V3", ("deepseek_v3", None)),
    ("Kimi-K2-Instruct", ("kimi_k2", None)),
    ("Kimi-", ("kimi_k2", "kimi_k2")),
    ("gpt-oss", ("openai", None)),
    ("Llama-", ("llama3_json", None)),
    ("MiniMax-M2", ("minimax_m2", "minimax_m2")),
)
# Of models that no family knows. The others' are their families'.
_STOPS = {"Llama-": ("<|eot_id|>", "<|eom_id|>"), "MiniMax-M2": ("[e~[",)}
#: Where the template's clock is set.
DATE = "conversation_start_date"

#: Every model with a template, once a template.
MODELS = (
    list({template_text(model): model for model in PROFILES if template_text(model)}.values()) if HAS_ASSETS else []
)
assert not MODELS or len(MODELS) >= len(list((ASSETS / "templates").glob("*.jinja"))), "a template without a profile"


def parsers_of(model: str) -> tuple[str | None, str | None]:
    """The tool parser and the reasoning parser of a model."""
    return next(parsers for part, parsers in _PARSERS if part in model)


def stop_tokens_of(model: str) -> tuple[str, ...]:
    """The tokens that end a model's reply."""
    for part, stops in _STOPS.items():
        if part in model:
            return stops
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tuple(create_renderer(load_tokenizer(model), model=model.partition("@")[0]).stop_token_texts)


def default_renderer(model: str, switches: Mapping[str, Any], **settings: Any) -> DefaultRenderer:
    """The DefaultRenderer of a model's official template; a date among the switches sets its clock."""
    tool_parser, reasoning_parser = parsers_of(model)
    date = {"date": switches[DATE]} if DATE in switches else {}
    config = DefaultRendererConfig(
        tool_parser=tool_parser,
        reasoning_parser=reasoning_parser,
        stop_tokens=stop_tokens_of(model),
        template_kwargs={name: value for name, value in switches.items() if name not in {DATE, "reference"}},
        **date,
        **settings,
    )
    renderer = create_renderer(load_tokenizer(model), config)
    assert isinstance(renderer, DefaultRenderer)
    return renderer


def profile(model: str) -> Profile:
    """What the template takes."""
    return profile_of(model)
