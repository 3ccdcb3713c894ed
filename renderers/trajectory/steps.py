"""The steps of a trajectory, each a prompt and what was sampled to it; and how the next prompt is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from renderers.errors import RendererError, TrajectoryError
from renderers.refusal import BridgeRefusal, RefusalReason
from renderers.rendered import RenderedTokens
from renderers.renderer import Renderer
from renderers.trajectory.breaks import Break, BreakReason
from renderers.trajectory.tree import Node, common_length, is_suffix, share_storage

Messages = list[dict[str, Any]]
Tools = list[dict[str, Any]] | None


@dataclass(slots=True)
class Step:
    """A prompt, and the completion that was sampled to it.

    Attributes:
        messages: what this prompt added to the conversation; the whole conversation where `restarts`.
        tools: the tools of the conversation from here on.
        end: the node that the prompt ends with.
        restarts: the harness gave the whole conversation: at the beginning, and where it replaced the history.
        rendered: the prompt is a full render, and not a bridge.
        foreign: the prompt was made to fit a reply that came as text, and no bridge can continue it.
        broke: the break with which this prompt begins another sample, or None.
        prompt: the prompt as the renderer made it; None where it must be made again before it can be bridged.
        completion: what was sampled to it, or None as long as nothing was.
        reply: that as a message.
        own: the completion was sampled here, and not before this trajectory forked from another.
    """

    messages: Messages
    tools: Tools
    end: Node
    restarts: bool = False
    rendered: bool = False
    foreign: bool = False
    broke: Break | None = None
    prompt: RenderedTokens | None = None
    completion: Node | None = None
    reply: dict[str, Any] | None = None
    own: bool = True

    @property
    def tip(self) -> Node:
        """The node that the branch ends with after this step."""
        return self.completion or self.end


class Refusal(NamedTuple):
    """Why the next prompt is not a bridge."""

    reason: RefusalReason | BreakReason
    detail: str

    def as_break(self, turn: int, tip: Node, end: Node) -> Break:
        """The break between the branch that ended at `tip` and the prompt that ends at `end`."""
        kept = common_length(tip, end)
        return Break(turn, self.reason, self.detail, kept, tip.end - kept)


REPLACED = Refusal(BreakReason.REPLACED_HISTORY, "the harness gave another history")
FOREIGN = Refusal(
    BreakReason.TEXT_ONLY_REPLY, "a reply that came as text is written otherwise than the prompt that it answers"
)


def conversation(steps: Sequence[Step]) -> Messages:
    """The messages of these steps, the last reply included."""
    messages: Messages = []
    for step in steps:
        if step.restarts:
            messages = []
        messages += step.messages
        if step.reply is not None:
            messages.append(step.reply)
    return messages


def render_prompt(renderer: Renderer[Any], messages: Messages, tools: Tools) -> RenderedTokens:
    """A conversation and the opener of the next turn."""
    return renderer.render(messages, tools=tools, add_generation_prompt=True)


def bridge_prompt(renderer: Renderer[Any], steps: Sequence[Step], new: Messages) -> RenderedTokens | Refusal:
    """The bridge from the last of `steps` over its completion to new messages, or why there is none.

    Raises:
        RendererError: the renderer breaks the contract of bridges.
    """
    last = steps[-1]
    completion = last.completion
    assert completion is not None  # noqa: S101 - only the newest step may lack one, and nothing bridges over it
    if last.foreign:
        return FOREIGN
    result = renderer.bridge(prompt_of(renderer, steps), completion.ids, new)
    if isinstance(result, BridgeRefusal):
        return Refusal(result.reason, result.detail)
    if result.extension_start != completion.end:
        raise RendererError(
            f"a bridge must extend prompt and completion, which end at token {completion.end}; {type(renderer).__name__} "
            f"begins its extension at token {result.extension_start}"
        )
    return result


def prompt_of(renderer: Renderer[Any], steps: Sequence[Step]) -> RenderedTokens:
    """The prompt of the last of `steps`, made again where it is not at hand: after loading, and in old forks.

    Raises:
        TrajectoryError: the renderer makes other tokens now.
    """
    first = len(steps) - 1
    while steps[first].prompt is None and not steps[first].rendered:
        first -= 1
    for position in range(first, len(steps)):
        step = steps[position]
        if step.prompt is None:
            step.prompt = _made_again(renderer, steps[: position + 1])
    prompt = steps[-1].prompt
    assert prompt is not None  # noqa: S101 - made above
    return prompt


def _made_again(renderer: Renderer[Any], steps: Sequence[Step]) -> RenderedTokens:
    step, earlier = steps[-1], steps[:-1]
    keep = None
    prompt: RenderedTokens | Refusal
    if step.rendered:
        messages = step.messages if step.restarts else [*conversation(earlier), *step.messages]
        prompt = render_prompt(renderer, messages, step.tools)
    else:
        prompt = bridge_prompt(renderer, earlier, step.messages)
        keep = prompt_of(renderer, earlier).segment
    if (
        isinstance(prompt, RenderedTokens)
        and len(prompt) == step.end.end
        and is_suffix(step.end, prompt.segment.own_ids())
    ):
        share_storage(prompt.segment, step.end, keep)
        return prompt
    raise TrajectoryError(
        "the renderer does not make the tokens that this trajectory holds: its tokenizer, template or config is not the one "
        "with which they were recorded"
    )
