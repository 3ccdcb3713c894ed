"""Checks of bridging: what was sampled stays, the rest equals the full render, and refusals are needed."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from renderers.errors import RendererError
from renderers.refusal import BridgeRefusal, RefusalReason
from renderers.rendered import RenderedTokens
from renderers.testing.choices import Choices
from renderers.testing.messages import Continuation, is_query
from renderers.testing.parse_checks import reply_tokens
from renderers.testing.support import damage_allowed, difference, fail, rendered, shown, text_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from renderers.renderer import Renderer
    from renderers.testing.messages import Conversation, Rollout
    from renderers.testing.profile import Profile
    from renderers.testing.segmentation import Segmenter
    from renderers.testing.support import Reference

#: Refusals whose cause is not visible in the official render of the extended conversation.
_NEVER_NEEDLESS = frozenset({RefusalReason.ASSISTANT_MESSAGE, RefusalReason.UNSUPPORTED_MESSAGE})


def canonical_completion(
    renderer: Renderer[Any], continuation: Continuation, reference: Reference, profile: Profile
) -> tuple[list[int], list[int]] | None:
    """The prompt's IDs and the canonical completion after them; None where there is none, or the template refuses it.

    It is the rest of the reply's turn, through its stop token, in the official render of the conversation with the
    reply. Where the token that ends the turn opens the next message, it is taken from the next message's role.
    """
    prompt, whole = _official(reference, continuation.prompt), _official(reference, continuation.with_reply)
    if prompt is None or whole is None or whole[: len(prompt)] != prompt:
        return None
    completion = whole[len(prompt) :]
    stops = set(renderer.get_stop_token_ids())
    for place, token_id in enumerate(completion):
        if token_id in stops:
            return prompt, completion[: place + 1]
    stop = renderer.tokenizer.special_tokens.get(profile.stop_before(continuation.new_messages))
    return (prompt, [*completion, stop]) if profile.role_stops and stop in stops and stop is not None else None


def bridged(
    renderer: Renderer[Any],
    prompt: RenderedTokens | Sequence[int],
    completion: Sequence[int],
    new_messages: Sequence[dict[str, Any]],
    tools: Sequence[dict[str, Any]] | None,
) -> RenderedTokens | BridgeRefusal:
    """The bridge, its exact prefix checked, and `bridge_to_next_turn` compared with it."""
    with damage_allowed():
        result = renderer.bridge(prompt, completion, new_messages, tools=tools)
        or_none = renderer.bridge_to_next_turn(prompt, completion, new_messages, tools=tools)
    if isinstance(result, BridgeRefusal):
        if or_none is not None:
            fail(f"bridge refused ({result.reason}), bridge_to_next_turn did not")
        if not result.detail:
            fail(f"a refusal without a detail: {result}")
        return result
    if or_none is None or or_none.token_ids != result.token_ids:
        fail("bridge and bridge_to_next_turn differ")
    given = [*(prompt.token_ids if isinstance(prompt, RenderedTokens) else prompt), *completion]
    if result.token_ids[: len(given)] != given:
        fail(
            "the result does not begin with prompt + completion",
            difference(renderer, result.token_ids[: len(given)], given),
        )
    if [*given, *result.extension_ids] != result.token_ids:
        fail("extension_ids are not what follows prompt + completion")
    return result


def check_bridge(
    renderer: Renderer[Any],
    continuation: Continuation,
    reference: Reference,
    profile: Profile,
    *,
    replies: Reference | None = None,
    allowed: Collection[RefusalReason] = (),
    segmenter: Segmenter | None = None,
    choices: Choices | None = None,
) -> str:
    """A bridge over a canonical reply equals the official render of the extended conversation, or is refused for cause.

    Scaffolding that the template prints or drops by position alone (`profile.positional`) may differ: then the texts
    without it must be equal, because the bridge keeps what the model saw. A refusal is needless, and fails, where the
    official render of the extended conversation begins with prompt + completion; reasons in `allowed` are not looked
    at. With a segmenter, the same reply in other tokens must be treated alike.

    Some templates drop the reasoning even of a reply that nothing follows. `replies` then gives the renders in which the
    reply stands as it was sampled, and the bridge over it must be refused.

    Returns what happened, for statistics: `equal`, `positional`, `refused: ...`, `not canonical` or `raised`.
    """
    tokens = canonical_completion(renderer, continuation, replies or reference, profile)
    official_prompt = _official(reference, continuation.prompt)
    if tokens is None or official_prompt is None:
        return "not canonical"
    prompt_ids, completion = official_prompt, tokens[1]
    prompt = rendered(renderer, continuation.prompt)
    if prompt.token_ids != prompt_ids:
        fail("the prompt differs from the official one", difference(renderer, prompt.token_ids, prompt_ids))
    expected = _official(reference, continuation.extended)
    try:
        result = bridged(renderer, prompt, completion, continuation.new_messages, continuation.prompt.tools)
    except RendererError as error:
        if expected is not None:
            fail(f"the bridge raised {error!r}, the official template renders it", _shown(continuation))
        return "raised"
    again = bridged(renderer, prompt_ids, completion, continuation.new_messages, continuation.prompt.tools)
    if not _cautious(again, continuation, profile):
        _check_alike(renderer, result, again, "a prompt given as plain IDs", continuation)
    if segmenter is not None:
        other = segmenter.resegmented(completion, choices or Choices(b""))
        again = bridged(renderer, prompt, other, continuation.new_messages, continuation.prompt.tools)
        _check_alike(renderer, result, again, "the same reply in other tokens", continuation)
    if isinstance(result, BridgeRefusal):
        if expected is not None and result.reason not in {*allowed, *_NEVER_NEEDLESS}:
            cause = _needless(renderer, [*prompt_ids, *completion], expected, profile, result)
            if cause is not None and not _opens_no_turn(renderer, continuation, result):
                fail(f"{cause}: {result.reason}, {result.detail}", _shown(continuation))
        return f"refused: {result.reason}"
    _check_labels(renderer, result, prompt, completion, continuation)
    return _compared(renderer, result, expected, profile, continuation)


def check_policy_kept(outcome: str, retention: str | None, new_messages: Sequence[dict[str, Any]]) -> None:
    """A retention policy of the caller's own refuses where it says, and nowhere else.

    `"all"` never refuses over retention. `"tool_cycle"` always refuses a bridge to a user's question, be there reasoning
    or not, and over retention no other. (What the template refuses is in its render: `check_bridge` looks there.)

    Args:
        outcome: what `check_bridge` returned, or one of what `check_rollout` did.
        retention: the policy.
        new_messages: the messages to which the bridge was asked for.
    """
    over_retention = outcome in {RefusalReason.RETENTION, f"refused: {RefusalReason.RETENTION}"}
    if retention == "all" and over_retention:
        fail('refused over retention under "all"', shown(new_messages))
    if retention == "tool_cycle":
        # To some formats a developer's message is a question, too.
        may_ask = any(message["role"] in {"user", "developer"} for message in new_messages)
        if over_retention and not may_ask:
            fail('refused over retention inside a tool cycle under "tool_cycle"', shown(new_messages))
        # To some, a user's message without text is none.
        asks = any(is_query(message) and message.get("content") is not None for message in new_messages)
        if outcome in {"equal", "positional", "bridged"} and asks:
            fail('bridged to a user\'s question under "tool_cycle"', shown(new_messages))


def _cautious(again: RenderedTokens | BridgeRefusal, continuation: Continuation, profile: Profile) -> bool:
    """Whether a bridge from plain IDs was refused because IDs alone may not tell: always allowed to say so, and to see
    reasoning in a caller's text that spells its markers."""
    if not isinstance(again, BridgeRefusal):
        return False
    if again.reason == RefusalReason.UNKNOWN_HISTORY:
        return True
    texts = repr(continuation.prompt.messages)
    return again.reason == RefusalReason.RETENTION and any(marker in texts for marker in profile.markers)


def _compared(
    renderer: Renderer[Any],
    result: RenderedTokens,
    expected: Sequence[int] | None,
    profile: Profile,
    continuation: Continuation,
) -> str:
    """Whether the bridge equals the official render, or differs in positional scaffolding alone."""
    if expected is None:
        fail("bridged, though the official template refuses the extended conversation", _shown(continuation))
    if result.token_ids == expected:
        return "equal"
    without = [_removed(renderer, ids, profile.positional) for ids in (result.token_ids, expected)]
    if not profile.positional or without[0] != without[1]:
        fail(
            "the bridge differs from the full render",
            difference(renderer, result.token_ids, expected),
            _shown(continuation),
        )
    return "positional"


def _official(reference: Reference, conversation: Conversation) -> list[int] | None:
    try:
        return list(reference(conversation))
    except LookupError:
        raise
    except Exception:  # noqa: BLE001 - whatever the template raises
        return None


def _shown(continuation: Continuation) -> str:
    return "\n".join(
        [
            f"prompt {shown(continuation.prompt)}",
            f"reply {shown(continuation.reply)}",
            f"new messages {shown(continuation.new_messages)}",
        ]
    )


def _removed(renderer: Renderer[Any], token_ids: Sequence[int], scaffolding: Sequence[str]) -> str:
    text = text_of(renderer, token_ids)
    for piece in scaffolding:
        text = text.replace(piece, "")
    # Where such scaffolding is printed, templates strip the line feeds of the text after it.
    return re.sub("\n+", "\n", text)


def _needless(
    renderer: Renderer[Any],
    given: Sequence[int],
    expected: Sequence[int],
    profile: Profile,
    refusal: BridgeRefusal,
) -> str | None:
    """Why there is no cause to refuse: where the official render only goes on, nothing was rewritten."""
    if profile.hoists_systems and refusal.reason == RefusalReason.HISTORY_REWRITE:
        return None
    if list(expected[: len(given)]) == list(given):
        return "refused needlessly"
    if profile.positional and refusal.reason == RefusalReason.RETENTION:
        whole = _removed(renderer, expected, profile.positional)
        if whole.startswith(_removed(renderer, given, profile.positional)):
            return "refused over scaffolding alone"
    return None


def _opens_no_turn(renderer: Renderer[Any], continuation: Continuation, refusal: BridgeRefusal) -> bool:
    """Whether the prompt has no generation prompt though one was asked for: then nobody can say whose turn it is."""
    if refusal.reason not in {RefusalReason.UNKNOWN_HISTORY, RefusalReason.OPEN_REASONING}:
        return False
    without = rendered(renderer, replace(continuation.prompt, add_generation_prompt=False))
    return without.token_ids == rendered(renderer, continuation.prompt).token_ids


def _check_alike(
    renderer: Renderer[Any],
    result: RenderedTokens | BridgeRefusal,
    again: RenderedTokens | BridgeRefusal,
    what: str,
    continuation: Continuation,
) -> None:
    if isinstance(result, BridgeRefusal) or isinstance(again, BridgeRefusal):
        reasons = [one.reason if isinstance(one, BridgeRefusal) else "bridged" for one in (result, again)]
        if reasons[0] != reasons[1]:
            fail(f"{what}: {reasons[1]} instead of {reasons[0]}", _shown(continuation))
    elif result.extension_ids != again.extension_ids:
        fail(
            f"{what}: another extension",
            difference(renderer, again.extension_ids, result.extension_ids),
            _shown(continuation),
        )


def _check_labels(
    renderer: Renderer[Any],
    result: RenderedTokens,
    prompt: RenderedTokens,
    completion: Sequence[int],
    continuation: Continuation,
) -> None:
    """The completion is the sampled part, what was sampled before stays so, and the new messages are the labels'."""
    start, end = len(prompt), len(prompt) + len(completion)
    for name in ("message_indices", "sampled_mask", "is_content", "owners"):
        if len(getattr(result, name)) != len(result.token_ids):
            fail(f"{name} has {len(getattr(result, name))} entries for {len(result.token_ids)} tokens")
    if result.sampled_mask[:start] != prompt.sampled_mask or not all(result.sampled_mask[start:end]):
        fail("the mask of prompt + completion is not the prompt's mask and the completion", _shown(continuation))
    if any(result.sampled_mask[end:]):
        fail("something after the completion counts as sampled", text_of(renderer, result.token_ids[end:]))
    roles = [message["role"] for message in continuation.new_messages]
    if result.message_roles != roles or len(result.message_tool_names) != len(roles):
        fail(f"message_roles are {result.message_roles}, the new messages' roles {roles}")
    if any(index != -1 for index in result.message_indices[:end]):
        fail("tokens of prompt + completion are attributed to a new message", _shown(continuation))
    if not all(-1 <= index < len(roles) for index in result.message_indices[end:]):
        fail("a message index that no new message has")


def check_cut_bridge(
    renderer: Renderer[Any], continuation: Continuation, reference: Reference, profile: Profile, keep: int
) -> str:
    """A reply that was cut off after about `keep` tokens: the bridge is refused, or begins with the turn's close.

    Returns what happened: `closed`, `refused: ...`, `not canonical` or `raised`.
    """
    tokens = canonical_completion(renderer, continuation, reference, profile)
    if tokens is None:
        return "not canonical"
    whole = tokens[1]
    completion = whole[: 1 + (keep - 1) % (len(whole) - 1)] if keep and len(whole) > 1 else []
    prompt = rendered(renderer, continuation.prompt)
    try:
        result = bridged(renderer, prompt, completion, continuation.new_messages, continuation.prompt.tools)
    except RendererError:
        return "raised"
    if isinstance(result, BridgeRefusal):
        if (result.reason == RefusalReason.EMPTY_COMPLETION) != (not completion):
            fail(f"a completion of {len(completion)} tokens was refused as {result.reason}", _shown(continuation))
        return f"refused: {result.reason}"
    _check_labels(renderer, result, prompt, completion, continuation)
    cut = renderer.parse_response(completion, prompt_ids=prompt, tools=continuation.prompt.tools)
    close = cut.unclosed + profile.stop_before(continuation.new_messages)
    extension = text_of(renderer, result.extension_ids)
    if not extension.startswith(close):
        fail(f"after a cut reply comes {extension!r}, expected its close {close!r} first", _shown(continuation))
    return "closed"


def check_rollout(
    renderer: Renderer[Any],
    rollout: Rollout,
    *,
    segmenter: Segmenter | None = None,
    choices: Choices | None = None,
) -> list[str]:
    """A rollout, bridged turn by turn from each result to the next, is one token stream that only grows.

    Each reply's tokens are those of the same reply to a short prompt, with a segmenter in other tokens than the encoder
    would choose. What was sampled stays, and stays marked as sampled; every message's tokens stay. Where a bridge is
    refused the rollout goes on from a full render, as a harness would.

    Returns what happened at each step: `bridged`, or the refusal's reason.
    """
    question = replace(rollout.prompt, messages=[{"role": "user", "content": "q"}])
    messages = list(rollout.prompt.messages)
    prompt = rendered(renderer, rollout.prompt)
    happened: list[str] = []
    for reply, new_messages in rollout.steps:
        tokens = reply_tokens(renderer, question, reply)
        messages += [reply, *new_messages]
        if tokens is None:
            happened.append("not canonical")
            prompt = rendered(renderer, replace(rollout.prompt, messages=messages))
            continue
        completion = tokens[1]
        if segmenter is not None:
            completion = segmenter.resegmented(completion, choices or Choices(b""))
        result = bridged(renderer, prompt, completion, new_messages, rollout.prompt.tools)
        if isinstance(result, BridgeRefusal):
            happened.append(str(result.reason))
            prompt = rendered(renderer, replace(rollout.prompt, messages=messages))
            continue
        _check_labels(renderer, result, prompt, completion, Continuation(rollout.prompt, reply, new_messages))
        happened.append("bridged")
        prompt = result
    return happened
