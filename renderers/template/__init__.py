"""Any chat template: rendered as transformers does, with the source of every character."""

from renderers.template.trace import PlainTemplate, SourceSpan, TracedTemplate, TracedText

__all__ = ["PlainTemplate", "SourceSpan", "TracedTemplate", "TracedText"]
