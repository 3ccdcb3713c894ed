"""Tokenizers from folders and from the hub."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from renderers.errors import TokenizerError
from renderers.tokenizers.base import TokenizerInfo

if TYPE_CHECKING:
    from pathlib import Path


def chat_templates_of(value: Any) -> dict[str, str]:
    """Chat templates by name, from a tokenizer's `chat_template`: a text, a dict, or a list of name and template."""
    if not value:
        return {}
    if isinstance(value, str):
        return {"default": value}
    if isinstance(value, Mapping):
        return {str(name): str(template) for name, template in value.items()}
    return {str(entry["name"]): str(entry["template"]) for entry in value}


def named_special_tokens_of(config: Mapping[str, Any]) -> dict[str, str]:
    """`bos_token`, `eos_token`, ... from a tokenizer_config.json, where each is a text or a description of a token."""
    named = {}
    for name, value in config.items():
        if not name.endswith("_token"):
            continue
        text = value.get("content") if isinstance(value, Mapping) else value
        if isinstance(text, str):
            named[name] = text
    return named


def read_info(folder: Path, name_or_path: str) -> TokenizerInfo:
    """Template and named tokens of a tokenizer folder."""
    config = read_json(folder / "tokenizer_config.json") or {}
    templates = chat_templates_of(config.get("chat_template"))
    # A template in a file of its own wins, as in transformers.
    template_file = folder / "chat_template.jinja"
    if template_file.is_file():
        templates = {"default": template_file.read_text(encoding="utf-8")}
        for path in sorted((folder / "additional_chat_templates").glob("*.jinja")):
            templates[path.stem] = path.read_text(encoding="utf-8")
    return TokenizerInfo(name_or_path, templates, named_special_tokens_of(config))


def read_json(path: Path) -> Any:
    """The JSON value in a file, or None where there is no such file."""
    if not path.is_file():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise TokenizerError(f"{path} is not valid JSON: {error}") from error
