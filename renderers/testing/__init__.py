"""The conformance kit: what every renderer of a model family is tested with. Needs the extra `testing`."""

from renderers.testing.choices import Choices
from renderers.testing.messages import Continuation, Conversation
from renderers.testing.profile import Profile
from renderers.testing.strategies import (
    adversarial_texts,
    clean_texts,
    continuations,
    conversations,
    decided,
    replies,
    token_sequences,
    tools,
)

__all__ = [
    "Choices",
    "Continuation",
    "Conversation",
    "Profile",
    "adversarial_texts",
    "clean_texts",
    "continuations",
    "conversations",
    "decided",
    "replies",
    "token_sequences",
    "tools",
]
