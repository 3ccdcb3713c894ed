"""Goldens of the DefaultRenderer: how it is set up for models that no family knows.

They are recorded with the official template. Where that is not at hand they are replayed with a template of our own,
which writes the same format in a few lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from renderers import DefaultRendererConfig

_TEMPLATES = Path(__file__).parent / "templates"
_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "meta-llama/Llama-3.1-8B-Instruct": {"tool_parser": "llama3_json", "stop_tokens": ("<|eot_id|>", "<|eom_id|>")},
    "MiniMaxAI/MiniMax-M2.7": {
        "tool_parser": "minimax_m2",
        "reasoning_parser": "minimax_m2",
        "stop_tokens": ("[e~[",),
    },
}
_TEMPLATE_FILES = {"meta-llama/Llama-3.1-8B-Instruct": "llama31", "MiniMaxAI/MiniMax-M2.7": "minimax_m2"}


def is_default(model: str) -> bool:
    """Whether a model's goldens are the DefaultRenderer's."""
    return model in _SETTINGS


def config_of(model: str, settings: Mapping[str, Any], config: Mapping[str, Any]) -> DefaultRendererConfig:
    """The config of one golden: traced, with the delta bridge, unless `config` says otherwise."""
    return DefaultRendererConfig(
        **{"provenance": "traced", "bridge": "delta", **_SETTINGS[model], **config}, template_kwargs=dict(settings)
    )


def own_template(model: str) -> str:
    """Our template of the model's format."""
    return (_TEMPLATES / f"{_TEMPLATE_FILES[model]}.jinja").read_text(encoding="utf-8")
