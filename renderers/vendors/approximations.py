"""What a render of a message only approximates, where nobody has the tokens that were sampled."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from renderers.messages import VENDOR_BLOCKS
from renderers.vendors.api import Reply
from renderers.vendors.blocks import function_of


class Approximated(StrEnum):
    """What a render does not know of a reply that came as text."""

    #: Which tokens were sampled for the text.
    SEGMENTATION = "segmentation"
    #: The text of a call's arguments: the API gave an object.
    ARGUMENT_TEXT = "argument_text"
    #: Reasoning that is encrypted, signed, summarised or not shown at all.
    HIDDEN_REASONING = "hidden_reasoning"
    #: Blocks that only their own provider can read, such as its server's tools.
    HIDDEN_BLOCKS = "hidden_blocks"


def approximations(reply: Reply | Mapping[str, Any]) -> tuple[Approximated, ...]:
    """What a render of this reply, or of its message, approximates.

    >>> approximations({"role": "assistant", "content": "4"})
    (<Approximated.SEGMENTATION: 'segmentation'>,)
    """
    message = reply.message if isinstance(reply, Reply) else reply
    found = [Approximated.SEGMENTATION]
    if any(not isinstance(function_of(call)["arguments"], str) for call in message.get("tool_calls") or ()):
        found.append(Approximated.ARGUMENT_TEXT)
    hidden = {what for kept in (message.get(VENDOR_BLOCKS) or {}).values() for what in kept.get("hides") or ()}
    if "reasoning" in hidden or (isinstance(reply, Reply) and reply.hides_reasoning):
        found.append(Approximated.HIDDEN_REASONING)
    if "blocks" in hidden:
        found.append(Approximated.HIDDEN_BLOCKS)
    return tuple(found)
