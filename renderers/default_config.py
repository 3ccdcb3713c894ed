"""Settings of the DefaultRenderer."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator
from pydantic_core import to_jsonable_python

from renderers.config import RendererConfig

#: Variables of a template that `render` sets.
_ARGUMENTS_OF_RENDER = frozenset({"messages", "tools", "add_generation_prompt", "strftime_now"})


class DefaultRendererConfig(RendererConfig):
    """Settings of the DefaultRenderer.

    Attributes:
        tool_parser: the name of a tool-call parser, as vLLM calls it (`hermes`, ...); None finds no calls.
        reasoning_parser: the name of a reasoning parser (`qwen3`, `deepseek_r1`, ...); None finds no reasoning.
        stop_tokens: special tokens that end sampling, the usual one first; None means the tokenizer's end-of-sequence
            token and those of the model's `generation_config.json`.
        provenance: "traced" fills `sampled_mask`, `is_content` and `owners` from the template's own trace; "plain" leaves
            them unknown.
        bridge: "refuse", or "delta": append what the template writes for new messages, once it is proved that nothing
            else changes.
        tools: the tools that the conversations will have. With `strict`, construction checks the bridge for them.
        strict: raise at construction where `bridge="delta"` would refuse every result of one of the `tools`.
        template_kwargs: variables of the template, such as `enable_thinking`. `chat_template_kwargs` go here.
        date: the day that `strftime_now` prints, as YYYY-MM-DD; "today" is resolved once, when the config is made.
    """

    name: Literal["default"] = "default"
    tool_parser: str | None = None
    reasoning_parser: str | None = None
    stop_tokens: tuple[str, ...] | None = None
    provenance: Literal["plain", "traced"] = "plain"
    bridge: Literal["refuse", "delta"] = "refuse"
    tools: tuple[dict[str, Any], ...] | None = None
    strict: bool = False
    template_kwargs: dict[str, Any] = Field(default_factory=dict)
    date: str = Field(default="today", validate_default=True)

    framework_fields: ClassVar[frozenset[str]] = RendererConfig.framework_fields | {
        "tool_parser",
        "reasoning_parser",
        "stop_tokens",
        "provenance",
        "bridge",
        "tools",
        "strict",
    }

    @field_validator("stop_tokens", "tools", mode="before")
    @classmethod
    def _accept_list(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    @field_validator("date")
    @classmethod
    def _resolve_today(cls, value: str) -> str:
        if value == "today":
            return datetime.now(UTC).astimezone().date().isoformat()
        datetime.fromisoformat(value)
        return value

    @field_validator("template_kwargs")
    @classmethod
    def _check_variables(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name in value:
            if name in _ARGUMENTS_OF_RENDER:
                raise ValueError(f"{name!r} is set by each render and cannot be a setting; give it to `render`")
        try:
            to_jsonable_python(value)  # the fingerprint prints them
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"a template's variables are plain data: {error}") from None
        return value

    @classmethod
    def from_template_kwargs(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Any name may be a variable of a template."""
        return {"template_kwargs": dict(given)} if given else {}
