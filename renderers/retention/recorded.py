"""Conversations out of stored trajectories: their messages, for whichever model; the tokens stay where they are."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from renderers.errors import ConversationError
from renderers.trajectory.document import FORMAT


def is_document(value: Mapping[str, Any]) -> bool:
    """Whether this is what `renderers.trajectory.to_json` writes, of this version or another."""
    return "format" in value and "messages" not in value


def recorded(document: Mapping[str, Any]) -> Iterator[tuple[list[Any], Any, list[int]]]:
    """Messages, tools, and the places of the replies that were sampled there, of each conversation in a document.

    A trajectory in which the harness replaced the history is several conversations. Replies that it inherited from the
    trajectory that it forked from are context: they count where they were sampled.

    Raises:
        ConversationError: the document is of another format, or damaged.
    """
    if document["format"] != FORMAT:
        raise ConversationError(f"trajectories have the format {FORMAT!r}, found {document['format']!r}")
    try:
        for trajectory in document["trajectories"]:
            yield from _conversations(trajectory["steps"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConversationError(f"a damaged document of trajectories: {error!r}") from None


def _conversations(steps: list[Mapping[str, Any]]) -> Iterator[tuple[list[Any], Any, list[int]]]:
    messages: list[Any] = []
    tools: Any = None
    replies: list[int] = []
    for step in steps:
        if step["restarts"] and messages:
            yield messages, tools, replies
            messages, replies = [], []
        messages += json.loads(step["messages"])
        tools = json.loads(step["tools"])
        if step["reply"] is not None:
            if step["own"]:
                replies.append(len(messages))
            messages.append(json.loads(step["reply"]))
    yield messages, tools, replies
