"""The tokens in which a model samples a reply that is known as a message: its canonical completion."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from renderers.labels import Owner
from renderers.parsed import Region

if TYPE_CHECKING:
    from renderers.parsed import ParsedResponse
    from renderers.rendered import RenderedTokens
    from renderers.renderer import Renderer
    from renderers.retention.conversations import Conversation


@dataclass(slots=True)
class WrittenReply:
    """An assistant message in a render.

    Attributes:
        head: its tokens before the sampled part.
        start: where the sampled part begins.
        sampled: the sampled part.
    """

    head: list[int] = field(default_factory=list)
    start: int = 0
    sampled: list[int] = field(default_factory=list)


def written_replies(rendered: RenderedTokens) -> dict[int, WrittenReply]:
    """The assistant messages of a render that have a sampled part, by position."""
    ids = rendered.token_ids
    written: dict[int, WrittenReply] = {}
    for run in rendered.runs():
        if run.message_index < 0 or rendered.message_roles[run.message_index] != "assistant":
            continue
        reply = written.setdefault(run.message_index, WrittenReply())
        if run.owner is Owner.POLICY:
            reply.start = reply.start or run.start
            reply.sampled += ids[run.start : run.end]
        elif not reply.sampled:
            reply.head += ids[run.start : run.end]
    return {position: reply for position, reply in written.items() if reply.sampled}


def sampled_reply(
    keeper: Renderer[Any], conversation: Conversation, position: int, following: int | None, prompt: RenderedTokens
) -> tuple[list[int], int]:
    """A reply's tokens through its stop token, and how many of them are reasoning.

    Args:
        keeper: a renderer that keeps the reasoning of a reply which nothing follows.
        conversation: the conversation.
        position: the reply's place among the messages.
        following: the next reply's place, or None.
        prompt: the prompt that it answers.
    """
    completion = _completion(keeper, conversation, position, following, prompt)
    parsed = keeper.parse_response(completion, prompt_ids=prompt, tools=conversation.tools)
    if parsed.reasoning_complete is False and not conversation.has_reasoning(position):
        completion = _closed_at_once(keeper, conversation, position, following, prompt)
        parsed = keeper.parse_response(completion, prompt_ids=prompt, tools=conversation.tools)
    return completion, reasoning_tokens(parsed)


def reasoning_tokens(parsed: ParsedResponse) -> int:
    """How many tokens of a reply are reasoning. An empty think block is none."""
    if not (parsed.reasoning_content or "").strip():
        return 0
    return sum(span.end - span.start for span in parsed.spans if span.region is Region.REASONING)


def _completion(
    keeper: Renderer[Any], conversation: Conversation, position: int, following: int | None, prompt: RenderedTokens
) -> list[int]:
    messages, tools = conversation.messages, conversation.tools
    written = written_replies(keeper.render(messages[: position + 1], tools=tools)).get(position, WrittenReply())
    completion = _merged(keeper, written, prompt) + written.sampled
    if _is_stopped(keeper, completion):
        return completion
    if following is None:
        return [*completion, *keeper.stop_ids[:1]]
    # The stop token of some formats is the next message's marker. Where none is shown, the reply counts as cut off.
    extended = keeper.render(messages[:following], tools=tools, add_generation_prompt=True)
    shown = written_replies(extended).get(position, WrittenReply()).sampled
    return [*completion, shown[-1]] if _is_stopped(keeper, shown) else completion


def _is_stopped(renderer: Renderer[Any], completion: list[int]) -> bool:
    return bool(completion) and completion[-1] in renderer.stop_ids


def _merged(renderer: Renderer[Any], written: WrittenReply, prompt: RenderedTokens) -> list[int]:
    """What the model samples first, where a render has it in one token with the end of the prompt: a line feed, mostly."""
    opener: list[int] = []
    for run in prompt.runs():
        opener = opener if run.message_index < 0 else []
        if run.message_index < 0:
            opener += prompt.token_ids[run.start : run.end]
    asked, head = (renderer.tokenizer.decode_bytes(ids) for ids in (opener, written.head))
    if not asked or not head.startswith(asked):
        return []
    rest = head.removeprefix(asked).decode("utf-8", "ignore")
    return renderer.tokenizer.encode_ordinary(rest) if rest else []


def _closed_at_once(
    keeper: Renderer[Any], conversation: Conversation, position: int, following: int | None, prompt: RenderedTokens
) -> list[int]:
    """A reply without reasoning to a prompt that opens it: the model closes it before it goes on.

    Templates write such a turn in other ways. So it is written with some reasoning, which is then taken out.
    """
    reasoning = conversation.with_reasoning(position, "-")
    completion = _completion(keeper, reasoning, position, following, prompt)
    parsed = keeper.parse_response(completion, prompt_ids=prompt, tools=conversation.tools)
    spans = [span for span in parsed.spans if span.region is not Region.REASONING]
    return [token_id for span in spans for token_id in completion[span.start : span.end]]
