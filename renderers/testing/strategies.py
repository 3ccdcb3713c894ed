"""Hypothesis strategies for conversations, realistic and adversarial, kept in one place for every family.

from hypothesis import given
from renderers.testing import Profile, conversations

MINE = Profile(name="mine", markers=("<|im_end|>",))

@given(conversations(MINE))
def test_parity(conversation): ...
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar

from renderers.errors import MissingExtraError
from renderers.testing import texts, values
from renderers.testing.choices import Choices
from renderers.testing.messages import (
    FRAME_BYTES,
    MESSAGE_BYTES,
    Continuation,
    Conversation,
    Rollout,
    build_continuation,
    build_conversation,
    build_reply,
    build_rollout,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hypothesis.strategies import SearchStrategy

    from renderers.testing.profile import Profile

try:
    from hypothesis import strategies as st
except ImportError as error:
    raise MissingExtraError("hypothesis", "testing", "generating conversations") from error

T = TypeVar("T")


def _bytes(count: int) -> SearchStrategy[bytes]:
    return st.binary(min_size=count, max_size=count)


def _message_bytes(minimum: int, maximum: int) -> SearchStrategy[list[bytes]]:
    return st.lists(_bytes(MESSAGE_BYTES), min_size=minimum, max_size=maximum)


@st.composite
def _built(draw: st.DrawFn, build: Callable[..., T], parts: Sequence[SearchStrategy[Any]]) -> T:
    """What `build` makes of the parts. Unlike a mapped strategy, a failure shows the result instead of the bytes."""
    return build(*[draw(part) for part in parts])


def decided(build: Callable[[Choices], T], size: int = MESSAGE_BYTES) -> SearchStrategy[T]:
    """Whatever `build` makes of decisions: the way to write further strategies that are as fast as these."""
    return _built(lambda data: build(Choices(data)), [_bytes(size)])


def conversations(profile: Profile, *, minimum: int = 1, maximum: int = 12) -> SearchStrategy[Conversation]:
    """Conversations of `minimum` to `maximum` messages, with tools, switches and a generation prompt or without."""
    parts = [_bytes(FRAME_BYTES), _message_bytes(minimum, maximum)]
    return _built(functools.partial(build_conversation, profile), parts)


def continuations(profile: Profile, *, maximum_prior: int = 8, maximum_new: int = 3) -> SearchStrategy[Continuation]:
    """A prompt, the reply to it, and one or more new messages: what a bridge gets."""
    parts = [
        _bytes(FRAME_BYTES),
        _message_bytes(1, maximum_prior),
        _bytes(MESSAGE_BYTES),
        _message_bytes(1, maximum_new),
    ]
    return _built(functools.partial(build_continuation, profile), parts)


def rollouts(profile: Profile, *, maximum: int = 6) -> SearchStrategy[Rollout]:
    """A question and up to `maximum` replies, each with what the environment answers."""
    turn = st.tuples(_bytes(MESSAGE_BYTES), _bytes(MESSAGE_BYTES), _message_bytes(0, 2))
    parts = [_bytes(FRAME_BYTES), st.lists(turn, min_size=1, max_size=maximum)]
    return _built(functools.partial(build_rollout, profile), parts)


def replies(profile: Profile) -> SearchStrategy[tuple[Conversation, dict[str, Any]]]:
    """A short prompt, and a reply as the model would give it: no markers in its texts, arguments as objects."""
    return _built(functools.partial(build_reply, profile), [_bytes(2 * MESSAGE_BYTES)])


def tools(profile: Profile) -> SearchStrategy[list[dict[str, Any]] | None]:
    """Lists of tools: none, an empty one, or several, with schemas that the profile allows."""
    return decided(lambda choices: values.tools(choices, profile), FRAME_BYTES)


def adversarial_texts(profile: Profile) -> SearchStrategy[str]:
    """Texts of any kind: ordinary, odd, or with the family's markers whole and in parts."""
    return decided(lambda choices: texts.adversarial_text(choices, profile), 24)


def clean_texts() -> SearchStrategy[str]:
    """Texts without any marker."""
    return decided(texts.clean_text, 24)


def token_sequences(vocabulary_size: int, special_ids: list[int], *, maximum: int = 40) -> SearchStrategy[list[int]]:
    """Sequences of token IDs, rich in special ones, and with some that the vocabulary does not hold."""

    def build(choices: Choices) -> list[int]:
        kinds = (special_ids or [0], None, None)
        ids: list[int] = []
        while not choices.exhausted:
            kind = choices.pick(kinds)
            if kind is not None:
                ids.append(choices.pick(kind))
            else:  # some 1 in 4096 is out of the vocabulary
                ids.append((choices.below(4096) << 8 | choices.below(256)) * (vocabulary_size + 40) >> 20)
        return ids

    return _built(lambda data: build(Choices(data)), [st.binary(max_size=3 * maximum)])
