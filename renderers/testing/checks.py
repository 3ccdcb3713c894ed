"""The properties that every renderer has, as plain functions that raise AssertionError.

A renderer is made for a conversation's `kwargs` (`create_renderer(..., chat_template_kwargs=conversation.kwargs)`); a
reference is a function from a conversation to the official token IDs.
"""

from renderers.testing.bad_input import check_bad_input
from renderers.testing.bridge_checks import (
    bridged,
    canonical_completion,
    check_bridge,
    check_cut_bridge,
    check_policy_kept,
    check_rollout,
)
from renderers.testing.parse_checks import (
    check_parse_never_raises,
    check_round_trip,
    check_spans,
    check_spelled_markers_are_text,
    check_stream_equals_batch,
    joined_deltas,
    reply_tokens,
)
from renderers.testing.render_checks import (
    check_alignment,
    check_caller_objects_unchanged,
    check_mask_by_rule,
    check_render_parity,
    check_sanitised,
)

__all__ = [
    "bridged",
    "canonical_completion",
    "check_alignment",
    "check_bad_input",
    "check_bridge",
    "check_caller_objects_unchanged",
    "check_cut_bridge",
    "check_mask_by_rule",
    "check_parse_never_raises",
    "check_policy_kept",
    "check_render_parity",
    "check_rollout",
    "check_round_trip",
    "check_sanitised",
    "check_spans",
    "check_spelled_markers_are_text",
    "check_stream_equals_batch",
    "joined_deltas",
    "reply_tokens",
]
