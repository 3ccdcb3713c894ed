"""The template doctor: which ways to append break a chat template's prefix, where, why, and what to change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from renderers.config import template_sha256
from renderers.template.bound import BoundTemplate
from renderers.template.doctor.checks import Checker
from renderers.template.doctor.probes import PROBES, QUESTION
from renderers.template.doctor.report import (
    Break,
    Change,
    Check,
    CheckStatus,
    Detail,
    Flip,
    Place,
    Report,
    Row,
    RowStatus,
    Side,
)
from renderers.template.doctor.rows import examine
from renderers.template.doctor.syntax import Syntax
from renderers.template.doctor.text import describe, summarize

__all__ = [
    "Break",
    "Change",
    "Check",
    "CheckStatus",
    "Detail",
    "Flip",
    "Place",
    "Report",
    "Row",
    "RowStatus",
    "Side",
    "describe",
    "diagnose",
    "summarize",
]


def diagnose(
    tokenizer: object | None,
    *,
    chat_template: str | None = None,
    template_kwargs: Mapping[str, Any] | None = None,
    stop_tokens: Sequence[str] | None = None,
) -> Report:
    """What the doctor has to say about a chat template.

    With a tokenizer tokens are compared, without one only texts.

    Args:
        tokenizer: whatever `create_renderer` takes, or None where there is only a template.
        chat_template: takes the place of the tokenizer's own.
        template_kwargs: the template's switches.
        stop_tokens: special tokens that end sampling; None means the tokenizer's end-of-sequence token and those of the
            model's `generation_config.json`.

    Raises:
        ConfigError: there is no template.
        TemplateError: the template cannot be compiled, or renders nothing at all.
    """
    template = BoundTemplate.of(
        tokenizer, chat_template=chat_template, template_kwargs=template_kwargs, stop_tokens=stop_tokens
    )
    template.render([QUESTION])
    syntax = Syntax(template.source)
    return Report(
        template=template_sha256(template.source),
        has_tokenizer=template.tokenizer is not None,
        stop_tokens=template.stop_tokens,
        rows=tuple(examine(template, syntax, probe) for probe in PROBES),
        checks=tuple(Checker(template, syntax).checks()),
        notes=template.notes,
    )
