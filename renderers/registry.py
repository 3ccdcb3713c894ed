"""Which renderer belongs to a tokenizer: families are found lazily, by config, template fingerprint or model ID."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from renderers.config import OnDamage, RendererConfig, Revision, ThinkingRetention, template_sha256
from renderers.errors import ConfigError, ResolutionError
from renderers.renderer import Renderer
from renderers.tokenizers import adapt
from renderers.tokenizers.golden import PREFIX, golden_tokenizer, refuse_golden
from renderers.tokenizers.protocol import TokenizerAdapter

#: Entry-point group by which other packages add families: `name = "module:RendererClass"`.
ENTRY_POINT_GROUP = "renderers.families"


class ResolutionWarning(UserWarning):
    """The renderer that was chosen may not be the one that the model was trained with."""


@cache
def families() -> tuple[type[Renderer[Any]], ...]:
    """Every known family's renderer class: our own, then those of other packages, by entry point."""
    names = list(import_module("families").FAMILIES)
    names += [point.value for point in entry_points(group=ENTRY_POINT_GROUP)]
    classes: list[type[Renderer[Any]]] = []
    for name in dict.fromkeys(names):
        module, _, attribute = name.partition(":")
        try:
            classes.append(getattr(import_module(module), attribute))
        except (ImportError, AttributeError) as error:
            warnings.warn(f"the family {name!r} cannot be loaded: {error}", ResolutionWarning, stacklevel=2)
    return tuple(classes)


def known_revisions() -> Iterator[tuple[type[Renderer[Any]], Revision]]:
    """Every revision of every family."""
    for renderer_class in families():
        for revision in renderer_class.revisions:
            yield renderer_class, revision


@dataclass(frozen=True, slots=True)
class _Match:
    """A family's revision that fits, and whether its model ID was recorded with this template."""

    renderer_class: type[Renderer[Any]]
    revision: Revision
    verified: bool = True


def _by_template(template: str | None) -> _Match | None:
    if template is None:
        return None
    fingerprint = template_sha256(template)
    for renderer_class, revision in known_revisions():
        if revision.template == fingerprint:
            return _Match(renderer_class, revision)
    return None


def _by_model(model: str) -> _Match | None:
    for renderer_class, revision in known_revisions():
        if model in revision.models:
            return _Match(renderer_class, revision)
        if model in revision.unverified:
            return _Match(renderer_class, revision, verified=False)
    return None


def create_renderer(
    tokenizer: object,
    config: RendererConfig | None = None,
    *,
    model: str | None = None,
    chat_template: str | None = None,
    chat_template_kwargs: Mapping[str, Any] | None = None,
    thinking_retention: ThinkingRetention | None = None,
    sanitize_control_tokens: bool = False,
    on_damage: OnDamage = "warn",
    strict: bool = False,
) -> Renderer[Any]:
    """The renderer for a tokenizer.

    It is chosen by an explicit config; then by the fingerprint of the chat template among the official ones that are
    known; then by the exact model ID; otherwise it is the `DefaultRenderer`, which wraps the template, with a warning.

    Args:
        tokenizer: a transformers fast tokenizer, a `tokenizers.Tokenizer`, a `tiktoken.Encoding`, a local folder, a
            hub ID, or `golden:NAME` for one of the small tokenizers that come with the package, which are right for
            the golden conversations only.
        config: a family's config, or `DefaultRendererConfig`.
        model: the model ID, where the tokenizer does not carry it.
        chat_template: a template to use instead of the tokenizer's own.
        chat_template_kwargs: any of the config's rendering fields, under the template's names.
        thinking_retention: which earlier reasoning stays in the context.
        sanitize_control_tokens: encode the caller's text as ordinary text; recommended for untrusted content.
        on_damage: "warn" or "raise" where the format loses part of a message.
        strict: raise where the DefaultRenderer would be chosen, and, where it was asked for with `bridge="delta"` and
            `tools`, where its template does not keep its prefix when their results are appended.

    Raises:
        ResolutionError: under `strict`, where no family is known for the tokenizer.
        ConfigError: for a setting that does not exist or contradicts another one, listing what exists.
        TokenizerError: for a tokenizer that cannot be used, or lacks the format's special tokens.
        PrefixError: under `strict`, with what the doctor finds, see above.
    """
    if chat_template is not None and not isinstance(chat_template, str):
        raise ConfigError(f"chat_template is the text of one template, found {type(chat_template).__name__}")
    if isinstance(tokenizer, str) and tokenizer.startswith(PREFIX):
        folder, golden_model = golden_tokenizer(tokenizer)
        adapter, model = adapt(folder, chat_template=chat_template), model or golden_model
    else:
        adapter = adapt(tokenizer, chat_template=chat_template)
        refuse_golden(adapter)
    settings: dict[str, Any] = {}
    if thinking_retention is not None:
        settings["thinking_retention"] = thinking_retention
    if sanitize_control_tokens:
        settings["sanitize_control_tokens"] = True
    if on_damage != "warn":
        settings["on_damage"] = on_damage

    if config is not None:
        renderer_class = _class_for(config)
        if strict and "strict" in type(config).model_fields:
            settings["strict"] = True
    else:
        match = _resolve(adapter, model or adapter.name_or_path, explicit_template=chat_template is not None)
        if match is None:
            renderer_class = _default_renderer(adapter, strict=strict)
            config = renderer_class.config_class()
        else:
            renderer_class = match.renderer_class
            config = renderer_class.config_class.create({"revision": match.revision.name, **match.revision.settings})
    config = config.changed({**settings, **config.from_template_kwargs(chat_template_kwargs or {})})
    return renderer_class(adapter, config)


def _class_for(config: RendererConfig) -> type[Renderer[Any]]:
    from renderers.default import DefaultRenderer

    known: tuple[type[Renderer[Any]], ...] = (DefaultRenderer, *families())
    for renderer_class in known:
        if renderer_class.config_class is type(config):
            return renderer_class
    names = ", ".join(renderer_class.config_class.__name__ for renderer_class in known)
    raise ResolutionError(f"no renderer takes a {type(config).__name__}; known configs: {names}")


def _resolve(adapter: TokenizerAdapter, model: str, *, explicit_template: bool) -> _Match | None:
    by_template = _by_template(adapter.chat_template)
    by_model = _by_model(model)
    if by_template is not None:
        if by_model is not None and by_model.renderer_class is not by_template.renderer_class:
            warnings.warn(
                f"the model ID {model!r} belongs to the family {by_model.renderer_class.family!r}, but its chat template "
                f"is the official one of {by_template.renderer_class.family!r}; the template decides. Give a config if "
                "that is wrong",
                ResolutionWarning,
                stacklevel=3,
            )
        return by_template
    if by_model is None or explicit_template:
        return None
    if adapter.chat_template is not None and by_model.verified:
        warnings.warn(
            f"the chat template of {model!r} is not one of the recorded official ones of the family "
            f"{by_model.renderer_class.family!r}, so the family's renderer may write other tokens. Run "
            f"`renderers check` on the tokenizer to see whether it does; to wrap the template as it is, give "
            "DefaultRendererConfig()",
            ResolutionWarning,
            stacklevel=3,
        )
    return by_model


def _default_renderer(adapter: TokenizerAdapter, *, strict: bool) -> type[Renderer[Any]]:
    name = adapter.name_or_path or "this tokenizer"
    known = ", ".join(renderer_class.family for renderer_class in families())
    problem = (
        f"no family is known for {name}: neither its chat template nor its model ID is recorded (families: {known})"
    )
    if strict:
        raise ResolutionError(f"{problem}. Give a config, `model=`, or strict=False for the DefaultRenderer")
    if adapter.chat_template is None:
        raise ResolutionError(
            f"{problem}, and it has no chat template to wrap. Give `chat_template=`, `model=` or a config"
        )
    warnings.warn(
        f"{problem}. The DefaultRenderer wraps its chat template: no sampled mask, no bridge. Give a family's config, or DefaultRendererConfig() if that is what you want (provenance='traced' gives masks, bridge='delta' bridges)",
        ResolutionWarning,
        stacklevel=3,
    )
    from renderers.default import DefaultRenderer

    return DefaultRenderer
