"""Reasoning that a message carries inside its content, between `<think>` and `</think>`, and how templates take it out."""

from __future__ import annotations


def split_inline_reasoning(content: str, *, strip: str = "\n") -> tuple[str | None, str]:
    """Reasoning and answer of a content that holds both, as most templates tell them apart.

    The reasoning is what stands before the first `</think>`, after the last `<think>` in that; the answer is what
    stands after the last `</think>`. Characters in `strip` around them are taken off.

    >>> split_inline_reasoning("<think>\\n2+2\\n</think>\\n\\n4")
    ('2+2', '4')
    >>> split_inline_reasoning("4")
    (None, '4')
    """
    if "</think>" not in content:
        return None, content
    reasoning = content.split("</think>")[0].split("<think>")[-1].strip(strip)
    return reasoning, content.split("</think>")[-1].lstrip(strip)
