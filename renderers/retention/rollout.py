"""Rollouts as a harness runs them, replayed on a conversation that exists: one per retention policy.

At each reply there is a prompt. Between two replies the harness bridges, and where the bridge is refused it renders the
conversation again, and a new sample begins. Replies are the same under every policy: the tokens in which the model
would have sampled them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from renderers.refusal import BridgeRefusal
from renderers.retention.figures import Figures
from renderers.retention.prefix_cache import PrefixCache
from renderers.retention.replies import WrittenReply, reasoning_tokens, sampled_reply, written_replies

if TYPE_CHECKING:
    from renderers.rendered import RenderedTokens
    from renderers.renderer import Renderer
    from renderers.retention.conversations import Conversation


@dataclass(frozen=True, slots=True)
class Turn:
    """A reply and what follows it, whatever the policy.

    Attributes:
        position: the reply's place among the messages.
        completion: the reply's tokens, through its stop token.
        reasoning: how many of them are reasoning.
        new_messages: what the environment adds before the next reply.
    """

    position: int
    completion: list[int]
    reasoning: int
    new_messages: Sequence[Mapping[str, Any]]


def turns_of(
    conversation: Conversation, template: Renderer[Any], keeper: Renderer[Any]
) -> Iterator[tuple[Turn, RenderedTokens]]:
    """The turns of a conversation, each with its prompt as the template writes it.

    Args:
        conversation: the conversation.
        template: the renderer that does as the template does.
        keeper: one that keeps the reasoning of a reply which nothing follows. Some templates drop it even there.

    Raises:
        RendererError: the family cannot render the conversation.
    """
    messages, tools, replies = conversation.messages, conversation.tools, conversation.replies
    for position, following in zip(replies, [*replies[1:], None], strict=True):
        prompt = template.render(messages[:position], tools=tools, add_generation_prompt=True)
        completion, reasoning = sampled_reply(keeper, conversation, position, following, prompt)
        yield Turn(position, completion, reasoning, messages[position + 1 : following]), prompt


class Replay:
    """One rollout under one policy, turn by turn.

    Args:
        conversation: the conversation.
        renderer: the renderer under that policy.
        block_size: the prefix cache holds whole blocks of so many tokens.
    """

    def __init__(self, conversation: Conversation, renderer: Renderer[Any], block_size: int) -> None:
        self._conversation = conversation
        self._renderer = renderer
        self._cache = PrefixCache(block_size)
        self._figures = Figures()
        self._turns: list[Turn] = []
        self._kept: list[bool] = []  # whether the reasoning of each turn so far stands in the prompt
        self._shown: dict[tuple[int, ...], bool] = {}  # a reply is written with its reasoning, or without
        self._prompt: RenderedTokens | None = None
        self._samples: list[int] = []  # lengths

    def take(self, turn: Turn, template_prompt: RenderedTokens) -> None:
        """The next turn."""
        ids = self._next_prompt(turn).token_ids
        context = len(ids) + len(turn.completion)
        figures = self._figures
        figures.turns += 1
        figures.prompt_tokens += len(ids)
        figures.cached_tokens += self._cache.hits(ids)
        figures.trained_tokens += len(turn.completion)
        figures.off_template += ids != template_prompt.token_ids
        for earlier, is_kept in zip(self._turns, self._kept, strict=True):
            figures.reasoning_kept += earlier.reasoning if is_kept else 0
            figures.reasoning_dropped += 0 if is_kept else earlier.reasoning
        self._samples[-1] = context
        # The last sampled token is not run over in its own request: its keys and values are not in the cache.
        self._cache.add(ids + turn.completion[:-1])
        self._turns.append(turn)
        self._kept.append(True)

    def finished(self, limit: int) -> Figures:
        """The figures of the whole rollout, by this context limit in tokens."""
        self._figures.sample_tokens = sum(self._samples)
        self._figures.add_rollout(samples=len(self._samples), peak=max(self._samples), limit=limit)
        return self._figures

    def _next_prompt(self, turn: Turn) -> RenderedTokens:
        """The bridge from the last turn, or, in another sample, the conversation so far."""
        messages, tools = self._conversation.messages, self._conversation.tools
        if self._prompt is not None:
            last = self._turns[-1]
            bridged = self._renderer.bridge(self._prompt, last.completion, last.new_messages, tools=tools)
            if not isinstance(bridged, BridgeRefusal):
                self._prompt = bridged
                return bridged
            self._figures.breaks[str(bridged.reason)] += 1
        self._prompt = self._renderer.render(messages[: turn.position], tools=tools, add_generation_prompt=True)
        self._samples.append(0)
        written = written_replies(self._prompt)
        self._kept = [
            earlier.reasoning > 0
            and earlier.position in written
            and self._shows_reasoning(self._prompt, earlier.position, written[earlier.position])
            for earlier in self._turns
        ]
        return self._prompt

    def _shows_reasoning(self, prompt: RenderedTokens, position: int, written: WrittenReply) -> bool:
        """Whether a reply that was written again, read as one that was sampled, has reasoning."""
        key = (position, *written.sampled)
        if key not in self._shown:
            before = prompt.token_ids[: written.start]
            parsed = self._renderer.parse_response(written.sampled, prompt_ids=before, tools=self._conversation.tools)
            self._shown[key] = reasoning_tokens(parsed) > 0
        return self._shown[key]
