"""A sampler held to given replies, in random segmentations: what a tiny random model needs to take part in a task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from random import Random
from typing import Any

from renderers.engines.errors import EngineRequestError
from renderers.renderer import Renderer
from renderers.tokenizers.protocol import TokenizerAdapter
from renderers.tokenizers.spellings import ordinary_spellings


class ScriptedReplies:
    """`AllowedTokens` of one rollout: each completion spells the next reply of the script, token for token or not.

    A model with random weights calls no tools. Held to a script it does, and still decides by itself among the tokens
    that spell the same text, so that its completions are in no canonical segmentation: what trained models do in a few
    places in a thousand, and this does as often as `freedom` says.

    Args:
        tokenizer: the model's tokenizer, `renderer.tokenizer`.
        replies: the IDs of each reply through its stop token, as `reply_ids` gives them. Read when they are needed, so a
            generator may look at the rollout so far.
        freedom: share of the tokens at which any token that spells the next bytes is allowed, and not just the
            reply's own.
        seed: where those tokens are.
    """

    def __init__(
        self, tokenizer: TokenizerAdapter, replies: Iterable[Sequence[int]], *, freedom: float = 0.1, seed: int = 0
    ) -> None:
        self._special = frozenset(tokenizer.special_tokens.values())
        self._tokenizer = tokenizer
        self._spellings = ordinary_spellings(tokenizer)
        self._longest = max(map(len, self._spellings))
        self._replies = iter(replies)
        self._freedom = freedom
        self._random = Random(seed)  # noqa: S311 - no secret
        self._reply: list[int] = []
        self._borders: list[int] = []
        self._text = b""

    def __call__(self, prompt: list[int], completion: list[int]) -> Sequence[int]:
        """The tokens that may come next.

        Raises:
            EngineRequestError: the script is at its end.
        """
        if not completion:
            self._next_reply()
        place = len(self._tokenizer.decode_bytes(completion))
        index = next((index for index, border in enumerate(self._borders) if border == place), None)
        if index is not None and (self._reply[index] in self._special or self._random.random() >= self._freedom):
            return [self._reply[index]]
        end = self._run_end(place)
        ends = range(place + 1, min(end, place + self._longest) + 1)
        spelled = {
            end: self._spellings[self._text[place:end]] for end in ends if self._text[place:end] in self._spellings
        }
        # Inside one of the reply's tokens: the tokens that end with it, where there are any.
        closing = [token for end, token in spelled.items() if index is None and end in self._borders]
        return closing or list(spelled.values())

    def _next_reply(self) -> None:
        reply = next(self._replies, None)
        if reply is None:
            raise EngineRequestError("the script has no further reply")
        self._reply = list(reply)
        spelled = [self._tokenizer.token_bytes(token_id) for token_id in self._reply]
        self._text = b"".join(spelled)
        self._borders = [0, *accumulate(map(len, spelled))]

    def _run_end(self, place: int) -> int:
        """Where the next special token begins: no ordinary token may spell one."""
        starts = zip(self._borders, self._reply, strict=False)
        return next((border for border, token in starts if border >= place and token in self._special), len(self._text))


def reply_ids(
    renderer: Renderer[Any],
    messages: Sequence[Mapping[str, Any]],
    reply: Mapping[str, Any],
    following: Sequence[Mapping[str, Any]],
    *,
    tools: Sequence[Mapping[str, Any]] | None = None,
) -> list[int]:
    """The tokens that a model of this family samples to say an assistant message, through the stop token.

    Args:
        renderer: the family's renderer.
        messages: the conversation before it.
        reply: the message.
        following: what comes after it; where a role marker ends a turn (GLM), it decides which.
        tools: the tools of the conversation.
    """

    def sampled(*after: Mapping[str, Any]) -> list[int]:
        rendered = renderer.render([*messages, reply, *after], tools=tools)
        labels = zip(rendered.token_ids, rendered.message_indices, rendered.sampled_mask, strict=True)
        return [token_id for token_id, message, is_sampled in labels if is_sampled and message == len(messages)]

    ids = sampled()
    return ids if ids[-1] in renderer.stop_ids else [*ids, sampled(*following)[-1]]
