"""Any chat template: rendered as transformers does, with the source of every character; and what is wrong with it."""

from renderers.template.branches import Branch, Condition
from renderers.template.doctor import Report, describe, diagnose
from renderers.template.prefix import is_prefix_preserving, tool_response_delta
from renderers.template.trace import PlainTemplate, SourceSpan, TracedTemplate, TracedText

__all__ = [
    "Branch",
    "Condition",
    "PlainTemplate",
    "Report",
    "SourceSpan",
    "TracedTemplate",
    "TracedText",
    "describe",
    "diagnose",
    "is_prefix_preserving",
    "tool_response_delta",
]
