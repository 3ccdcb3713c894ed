"""The conformance kit: what every renderer of a model family is tested with. Needs the extra `testing`."""

from renderers.testing.choices import Choices
from renderers.testing.messages import Continuation, Conversation, Rollout
from renderers.testing.profile import Profile
from renderers.testing.strategies import (
    adversarial_texts,
    clean_texts,
    continuations,
    conversations,
    decided,
    replies,
    rollouts,
    token_sequences,
    tools,
)
from renderers.testing.suite import Report, check_renderer

__all__ = [
    "Choices",
    "Continuation",
    "Conversation",
    "Profile",
    "Report",
    "Rollout",
    "adversarial_texts",
    "check_renderer",
    "clean_texts",
    "continuations",
    "conversations",
    "decided",
    "replies",
    "rollouts",
    "token_sequences",
    "tools",
]
