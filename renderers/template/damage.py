"""What a template lost of a conversation, read off its trace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from renderers.messages import Message
from renderers.rendered import Damage
from renderers.template.trace import TracedText


def find_damage(traced: TracedText, messages: Sequence[Message], *, has_tools: bool) -> Iterator[Damage]:
    """Messages, contents, calls and tools of which not one character was printed."""
    fields: dict[int, set[str]] = defaultdict(set)
    uncertain: set[int] = set()
    tools_printed = False
    for span in traced.spans:
        if span.field is not None:
            root = span.field.split("[")[0].split(".")[0]
            fields[span.message_index].add(root)
            tools_printed = tools_printed or root == "tools"
        if span.derived:
            uncertain.add(span.message_index)
    if has_tools and not tools_printed and -1 not in uncertain:
        yield Damage(
            "dropped_tools", (0,), "the template prints no tools, so the model is never told of those that were given"
        )
    seen = {span.message_index for span in traced.spans}
    for index, message in enumerate(messages):
        if index in uncertain:
            continue
        printed = fields[index]
        if index not in seen and (message.text or message.tool_calls):
            yield Damage("dropped_message", (index,), f"the template prints nothing of this {message.role} message")
        elif (message.text or "").strip() and "content" not in printed:
            yield Damage("dropped_content", (index,), "the template does not print this message's content")
        elif message.tool_calls and "tool_calls" not in printed:
            yield Damage("dropped_tool_calls", (index,), "the template does not print this message's tool calls")


def generation_differences(traced: TracedText, replies: Mapping[int, int], stop_tokens: Sequence[str]) -> list[Damage]:
    """Where the template's `{% generation %}` blocks are not what the model would have sampled.

    Args:
        traced: the render.
        replies: the character at which the sampled part of each assistant message begins.
        stop_tokens: the texts that end it.
    """
    ends: dict[int, int] = {}
    for span in traced.spans:
        ends[span.message_index] = span.end
    differing: list[tuple[int, str]] = []
    for index, start in replies.items():
        end = ends[index]
        stops = [(at, at + len(stop)) for stop in stop_tokens if 0 <= (at := traced.text.find(stop, start)) <= end]
        expected = (start, min(stops)[1] if stops else end)
        marked = [block for block in traced.generation_ranges if block[0] < end and block[1] > start]
        if marked != [expected]:
            found = " and ".join(repr(traced.text[begin:finish][-40:]) for begin, finish in marked) or "nothing"
            differing.append(
                (index, f"...{traced.text[slice(*expected)][-40:]!r} is sampled, and the blocks hold ...{found}")
            )
    if not differing:
        return []
    indices = tuple(index for index, _ in differing)
    return [
        Damage(
            "generation_markers",
            indices,
            f"the template's {{% generation %}} blocks differ from what the model samples: {differing[0][1]}",
        )
    ]
