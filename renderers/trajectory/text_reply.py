"""Replies that are known as text alone: which tokens a model would have sampled for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from renderers.errors import MessageError
from renderers.labels import is_sampled, message_of
from renderers.rendered import RenderedTokens
from renderers.renderer import Renderer
from renderers.trajectory.steps import Messages, Tools, render_prompt

SEGMENTATION = "segmentation"
ARGUMENT_TEXT = "argument_text"
HIDDEN_REASONING = "hidden_reasoning"


class TextReply(NamedTuple):
    """A reply's tokens as the model might have sampled them.

    Attributes:
        ids: its tokens, after those of the prompt, or from `start` of `whole` on.
        approximated: what of them nobody knows.
        whole: the conversation with the reply, where its tokens do not continue those of the prompt; else None.
        start: where the reply begins in it.
    """

    ids: list[int]
    approximated: tuple[str, ...]
    whole: RenderedTokens | None = None
    start: int = 0


def render_reply(
    renderer: Renderer[Any],
    messages: Messages,
    tools: Tools,
    reply: dict[str, Any],
    *,
    approximated: Collection[str] | None,
) -> TextReply:
    """What a model would have sampled for `reply` after `messages`, rendered deterministically.

    Args:
        renderer: the model's renderer.
        messages: the conversation that it answers.
        tools: its tools.
        reply: the assistant's message.
        approximated: what of the reply nobody knows; None decides by the reply.

    Raises:
        MessageError: the reply is not the assistant's, or cannot be rendered.
    """
    if reply["role"] != "assistant":
        raise MessageError(f"a reply is a message of the assistant, found role {reply['role']!r}", field="role")
    prompt = render_prompt(renderer, messages, tools).segment.own_ids()
    whole = renderer.render([*messages, reply], tools=tools)
    ids = whole.segment.own_ids()
    first, end = _sampled_range(renderer, whole, ids, len(prompt))
    rest = _continuation(renderer, prompt, ids[:end])
    if rest is not None:
        found = TextReply(rest, ())
    else:
        found = TextReply(ids[first:end], (), whole, first)
        prompt = ids[:first]
    if approximated is None:
        approximated = _approximated(renderer, reply, found.ids, prompt)
    others = [str(what) for what in approximated if what != SEGMENTATION]
    return found._replace(approximated=(SEGMENTATION, *others))


def _sampled_range(
    renderer: Renderer[Any], whole: RenderedTokens, ids: Sequence[int], prompt_length: int
) -> tuple[int, int]:
    """Where the last message stands as the model would have sampled it, its stop token included where there is one."""
    position = 0
    every: list[int] = []
    sampled: list[int] = []
    for count, label in whole.segment.runs.items():
        if message_of(label) == len(whole.message_roles) - 1:
            every += (position, position + count)
            if is_sampled(label):
                sampled += (position, position + count)
        position += count
    if whole.mask_known:
        found = sampled or every or [position]
        return found[0], found[-1]
    first = every[0] if every else position
    stops = set(renderer.get_stop_token_ids())
    begun = range(min(max(first, prompt_length), position), position)
    return first, next((place + 1 for place in begun if ids[place] in stops), position)


def _continuation(renderer: Renderer[Any], prompt: Sequence[int], whole: Sequence[int]) -> list[int] | None:
    """What follows a prompt in a conversation that begins with its text; None where it does not.

    A token that holds the prompt's last characters and the reply's first is encoded again, without the former.
    """
    common = 0
    while common < min(len(prompt), len(whole)) and prompt[common] == whole[common]:
        common += 1
    missing = renderer.tokenizer.decode_bytes(prompt[common:])
    while missing and common < len(whole):
        token = renderer.tokenizer.token_bytes(whole[common])
        common += 1
        if not missing.startswith(token):
            if not token.startswith(missing):
                return None
            try:
                return [*renderer.tokenizer.encode_ordinary(token[len(missing) :].decode()), *whole[common:]]
            except UnicodeDecodeError:
                return None
        missing = missing[len(token) :]
    return None if missing else list(whole[common:])


def _approximated(
    renderer: Renderer[Any], reply: Mapping[str, Any], ids: Sequence[int], prompt: Sequence[int]
) -> list[str]:
    """What of a reply's tokens nobody knows, beside their segmentation."""
    what = []
    functions = [call.get("function", call) for call in reply.get("tool_calls") or ()]
    if any(not isinstance(function.get("arguments"), str) for function in functions):
        what.append(ARGUMENT_TEXT)
    parsed = renderer.parse_response(ids, prompt_ids=prompt)
    if parsed.reasoning_complete is not None and not parsed.reasoning_content:
        what.append(HIDDEN_REASONING)
    return what
