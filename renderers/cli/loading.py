"""What the commands read: renderers by name, and JSON from files or standard input."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from renderers.config import RendererConfig
from renderers.default_config import DefaultRendererConfig
from renderers.errors import ConfigError, RendererError
from renderers.registry import create_renderer, known_revisions
from renderers.renderer import Renderer


def load_renderer(
    model: str,
    *,
    tokenizer: str | None = None,
    template_kwargs: str | None = None,
    retention: str | None = None,
    sanitize: bool = False,
    wrap: bool = False,
) -> Renderer[Any]:
    """The renderer for a model ID, a folder, or a `.jinja` file with a tokenizer beside it.

    Args:
        model: the model ID, folder or template file.
        tokenizer: where the tokenizer comes from, if not from `model`.
        template_kwargs: a JSON object of template fields.
        retention: a thinking-retention policy.
        sanitize: encode the caller's text as ordinary text.
        wrap: take the DefaultRenderer, whatever the family.

    Raises:
        InputError: the template file or the template fields cannot be read.
    """
    template = read_template(model)
    if template is not None and tokenizer is None:
        raise ConfigError(f"{model} is a template: say with --tokenizer which tokenizer it belongs to")
    config: RendererConfig | None = DefaultRendererConfig() if wrap else None
    return create_renderer(
        tokenizer or model,
        config,
        model=None if template is not None or tokenizer is None else model,
        chat_template=template,
        chat_template_kwargs=parse_object(template_kwargs, "--template-kwargs") if template_kwargs else None,
        thinking_retention=retention,  # type: ignore[arg-type]  # the config checks it
        sanitize_control_tokens=sanitize,
    )


def read_template(model: str) -> str | None:
    """The text of a template file, or None for a model ID or a folder. Raises InputError where it cannot be read."""
    try:
        return Path(model).read_text(encoding="utf-8") if model.endswith((".jinja", ".jinja2")) else None
    except UnicodeDecodeError as error:
        raise InputError(f"{model} is no text in UTF-8: {error}") from None


def read_json(path: str) -> Any:
    """JSON from a file, or from standard input for `-`."""
    try:
        return json.loads(sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is no JSON: {error}") from None


def parse_object(text: str, name: str) -> dict[str, Any]:
    """A JSON object given on the command line."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise InputError(f"{name} must be a JSON object, found {type(value).__name__}")
    return value


class InputError(RendererError, ValueError):
    """A command's input is not what it takes."""


def completion_ids(renderer: Renderer[Any], value: Any) -> Any:
    """Token IDs, given as such or as text with special tokens spelled out."""
    if not isinstance(value, str):
        return value
    ids: list[int] = []
    position = 0
    for start, end, token_id in renderer.tokenizer.find_special_tokens(value):
        ids += renderer.tokenizer.encode_ordinary(value[position:start]) if start > position else []
        ids.append(token_id)
        position = end
    return ids + (renderer.tokenizer.encode_ordinary(value[position:]) if position < len(value) else [])


def need(value: Any, field: str) -> Any:
    """A field that the input must have."""
    if not isinstance(value, dict) or field not in value:
        raise InputError(f"the input must be a JSON object with {field!r}")
    return value[field]


def model_rows() -> list[tuple[str, str, str, str, str]]:
    """Each known model ID with its family, revision, retention and template fingerprint."""
    rows = []
    for renderer_class, revision in known_revisions():
        for model in (*revision.models, *revision.unverified):
            name = f"{revision.name} (unverified)" if model in revision.unverified else revision.name
            rows.append((model, renderer_class.family, name, revision.retention, (revision.template or "none")[:12]))
    return rows
