"""Two conversations, rendered to be compared."""

from __future__ import annotations

from typing import NamedTuple

from renderers.messages import validate_messages
from renderers.template.bound import BoundTemplate
from renderers.template.branches import Recorder
from renderers.template.doctor.probes import Messages, Probe
from renderers.template.trace import PlainTemplate, TracedText


class Conversation(NamedTuple):
    """What one render is of."""

    messages: Messages
    tools: Messages | None
    add_generation_prompt: bool


class Pair(NamedTuple):
    """Two conversations, the second of which continues the first, and their renders with branches."""

    sides: tuple[Conversation, Conversation]
    earlier: TracedText
    later: TracedText

    @property
    def is_reply(self) -> bool:
        """Whether the first is a prompt and the second holds the reply to it."""
        return self.sides[0].add_generation_prompt


def sides_of(probe: Probe) -> tuple[Conversation, Conversation]:
    """The two conversations of a probe."""
    return (
        Conversation(probe.before, probe.tools, probe.is_reply),
        Conversation([*probe.before, *probe.added], probe.tools, not probe.is_reply),
    )


def rendered(template: BoundTemplate, side: Conversation, recorder: Recorder) -> TracedText:
    """A conversation, with its branches in the recorder also where the template raises."""
    return template.render(
        side.messages, tools=side.tools, add_generation_prompt=side.add_generation_prompt, recorder=recorder
    )


def rendered_with(template: BoundTemplate, changed: PlainTemplate, side: Conversation) -> str:
    """The text of a conversation under a changed template."""
    form = template.form
    return changed.render(
        form.convert(side.messages, validate_messages(side.messages)),
        tools=side.tools,
        add_generation_prompt=side.add_generation_prompt,
        variables=template.variables,
        now=template.now,
        null_content=form.takes_null_content,
    )
