"""How a trajectory gets its next step: a bridge where the renderer makes one, a full render where it does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from renderers.errors import MessageError
from renderers.rendered import RenderedTokens, Segment
from renderers.renderer import Renderer
from renderers.trajectory.steps import (
    FOREIGN,
    REPLACED,
    Messages,
    Refusal,
    Step,
    Tools,
    bridge_prompt,
    conversation,
    prompt_of,
    render_prompt,
)
from renderers.trajectory.tree import MessageTree, is_prefix


def restarted(
    renderer: Renderer[Any],
    tree: MessageTree,
    earlier: Sequence[Step],
    messages: Messages,
    tools: Tools,
    *,
    room: int | None,
) -> Step | None:
    """The step after `earlier` with another history; None where its prompt is longer than `room`."""
    prompt = render_prompt(renderer, messages, tools)
    if _exceeds(prompt, room):
        return None
    end = tree.add_prompt(tree.root, prompt)
    broke = REPLACED.as_break(len(earlier), earlier[-1].tip, end) if earlier else None
    _let_go(earlier)
    return Step(messages, tools, end, restarts=True, rendered=True, broke=broke, prompt=prompt)


def continued(
    renderer: Renderer[Any], tree: MessageTree, earlier: Sequence[Step], new: Messages, *, room: int | None
) -> Step | None:
    """The step after `earlier` with new messages; None where its prompt is longer than `room`.

    Raises:
        MessageError: there are none, or they cannot be rendered.
    """
    if not new:
        raise MessageError("there are no new messages to add")
    last = earlier[-1]
    refusal: Refusal | None = None
    keep: Segment | None = None
    prompt = bridge_prompt(renderer, earlier, new)
    if isinstance(prompt, RenderedTokens):
        keep = prompt_of(renderer, earlier).segment
    else:
        refusal = prompt
        prompt = render_prompt(renderer, [*conversation(earlier), *new], last.tools)
    if _exceeds(prompt, room):
        return None
    # A render that happens to begin with every token so far continues them as well as a bridge.
    goes_on = refusal is None or is_prefix(last.tip, prompt.segment.own_ids())
    end = tree.add_prompt(last.tip if goes_on else tree.root, prompt, keep=keep)
    broke = None if refusal is None or goes_on else refusal.as_break(len(earlier), last.tip, end)
    if refusal is not None:
        _let_go(earlier)
    return Step(new, last.tools, end, rendered=refusal is not None, broke=broke, prompt=prompt)


def refitted(tree: MessageTree, steps: Sequence[Step], whole: RenderedTokens, start: int) -> Step:
    """The last step with another prompt: what stands before token `start` of a rendered conversation."""
    step, earlier = steps[-1], steps[:-1]
    tip = earlier[-1].tip if earlier and step.broke is None else tree.root
    goes_on = is_prefix(tip, whole.segment.own_ids()[:start])
    end = tree.add_prompt(tip if goes_on else tree.root, whole, upto=start)
    broke = step.broke if goes_on else FOREIGN.as_break(len(earlier), tip, end)
    return replace(step, end=end, rendered=True, foreign=True, broke=broke, prompt=None)


def unanswered(renderer: Renderer[Any], tree: MessageTree, steps: Sequence[Step]) -> Step:
    """The last step as it was before its completion."""
    step, earlier = steps[-1], steps[:-1]
    if not step.foreign:
        return replace(step, completion=None, reply=None)
    if step.restarts:
        made = restarted(renderer, tree, earlier, step.messages, step.tools, room=None)
    else:
        made = continued(renderer, tree, earlier, step.messages, room=None)
    assert made is not None  # noqa: S101 - without a limit everything fits
    return made


def _exceeds(prompt: RenderedTokens, room: int | None) -> bool:
    return room is not None and len(prompt) > room


def _let_go(steps: Sequence[Step]) -> None:
    """Forget prompts that no bridge starts from any more: a later render does not share their storage."""
    for step in steps:
        step.prompt = None
