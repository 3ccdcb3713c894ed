"""Reasoning that a message carries inside its content, between `<think>` and `</think>`, and how templates take it out."""

from __future__ import annotations

from renderers.conversation import Turn
from renderers.writer import Writer


def split_inline_reasoning(content: str, *, strip: str = "\n") -> tuple[str | None, str]:
    """Reasoning and answer of a content that holds both, as most templates tell them apart.

    The reasoning is what stands before the first `</think>`, after the last `<think>` in that; the answer is what
    stands after the last `</think>`. Characters in `strip` around them are taken off.

    >>> split_inline_reasoning("<think>\\n2+2\\n</think>\\n\\n4")
    ('2+2', '4')
    >>> split_inline_reasoning("4")
    (None, '4')
    """
    before, closing, _ = content.partition("</think>")
    if not closing:
        return None, content
    return before.rpartition("<think>")[2].strip(strip), content.rpartition("</think>")[2].lstrip(strip)


def report_dropped_text(out: Writer, turn: Turn, content: str) -> None:
    """Say it where the reasoning was taken out of this content, and text was lost with it."""
    before, closing, after = content.partition("</think>")
    if not closing or turn.message.reasoning_text is not None:
        return
    if "</think>" in after or before.rpartition("<think>")[0].strip():
        out.damage(
            "dropped_text",
            turn.index,
            "the template takes reasoning out of the content, and drops what stands before its <think> or between two "
            "</think>; give the reasoning as reasoning_content",
        )
