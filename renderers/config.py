"""Typed configuration: what every renderer has, and the revisions that a family knows."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from renderers.errors import ConfigError

ThinkingRetention = Literal["tool_cycle", "all"]
OnDamage = Literal["warn", "raise"]


class RendererConfig(BaseModel):
    """Settings that every renderer has. A family adds its template's own switches under the template's names.

    Attributes:
        thinking_retention: which earlier reasoning stays in the context: None as the template does, "tool_cycle" all
            of it since the last user message, "all" everything.
        sanitize_control_tokens: encode every character that came from the caller as ordinary text.
        on_damage: what to do where the format loses or changes something: warn once a kind, or raise.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    thinking_retention: ThinkingRetention | None = None
    sanitize_control_tokens: bool = False
    on_damage: OnDamage = "warn"

    #: Fields that are not the template's: everything else may be set through `chat_template_kwargs`.
    framework_fields: ClassVar[frozenset[str]] = frozenset(
        {"name", "revision", "thinking_retention", "sanitize_control_tokens", "on_damage"}
    )

    #: Values of template switches that contradict a retention policy, each as (switch, value, policy).
    contradictions: ClassVar[tuple[tuple[str, Any, ThinkingRetention], ...]] = ()

    @model_validator(mode="after")
    def _check_retention(self) -> Self:
        for switch, value, policy in self.contradictions:
            if getattr(self, switch) == value and self.thinking_retention == policy:
                raise ValueError(f"{switch}={value} contradicts thinking_retention={policy!r}")
        return self

    @classmethod
    def template_fields(cls) -> list[str]:
        """Names of the template's own switches."""
        return [name for name in cls.model_fields if name not in cls.framework_fields]

    @classmethod
    def create(cls, settings: Mapping[str, Any]) -> Self:
        """A config of these settings.

        Raises:
            ConfigError: for a setting that does not exist or a value that it cannot have, saying what exists.
        """
        unknown = [name for name in settings if name not in cls.model_fields]
        if unknown:
            raise ConfigError(
                f"{cls.__name__} has no field {unknown[0]!r}; it has {', '.join(sorted(cls.model_fields))}"
            )
        try:
            return cls(**settings)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(step) for step in first["loc"])
            found = f", found {first['input']!r}" if place else ""
            raise ConfigError(f"{cls.__name__}{'.' if place else ''}{place}: {first['msg']}{found}") from None

    @classmethod
    def from_template_kwargs(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Settings for `chat_template_kwargs`: the template's own switches, under the template's names.

        Raises:
            ConfigError: for a name that is none of them, listing what exists.
        """
        known = cls.template_fields()
        for name in given:
            if name not in known:
                exists = ", ".join(known) or "none"
                raise ConfigError(
                    f"chat_template_kwargs: {cls.__name__} has no template field {name!r}; it has {exists}"
                )
        return dict(given)

    def changed(self, settings: Mapping[str, Any]) -> Self:
        """This config with some fields set; a field that this config already sets to another value is an error.

        Raises:
            ConfigError: for an unknown, invalid or contradictory setting.
        """
        for name, value in settings.items():
            if name in self.model_fields_set and getattr(self, name) != value:
                raise ConfigError(
                    f"{name}={value!r} contradicts the config, which has {name}={getattr(self, name)!r}; set one of them"
                )
        return self.create({**{name: getattr(self, name) for name in self.model_fields_set}, **settings})


def template_sha256(template: str) -> str:
    """The fingerprint of a chat template: sha256 of its text with line feeds, without one final newline."""
    text = template.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Revision:
    """One released form of a family's format.

    Attributes:
        name: what the config's `revision` calls it.
        template: fingerprint of its official chat template, or None where the vendor ships no template.
        models: model IDs that ship it.
        unverified: model IDs that are believed to ship it, whose own template could not be had.
        settings: config fields that this revision fixes, beyond `revision`.
        retention: what the template keeps of earlier reasoning, in a few words.
    """

    name: str
    template: str | None
    models: tuple[str, ...]
    unverified: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    retention: str = "since the last user message"
