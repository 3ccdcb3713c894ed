"""Bridges over what another model wrote: as a full render has it, exact in front, and none of it sampled."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trajectory_support import RENDERER, RENDERERS, model

from renderers import BridgeRefusal, RefusalReason, RenderedTokens
from renderers.testing import Choices, Continuation, Conversation, Profile, continuations
from renderers.testing.bridge_checks import check_bridge
from renderers.testing.messages import MESSAGE_BYTES, Builder
from renderers.testing.support import damage_allowed, rendered

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLES = settings(max_examples=settings().max_examples // (1 if "FUZZ_EXAMPLES" in os.environ else 10))
#: A refusal is always allowed here: not every one can tell that nothing changes.
ALLOWED = (RefusalReason.HISTORY_REWRITE, RefusalReason.UNKNOWN_HISTORY)
FAMILIES = [name for name in RENDERERS if not name.startswith("default") and name != "qwen3-cycle"]


def with_another(profile: Profile, continuation: Continuation, data: bytes) -> Continuation:
    """Another model's turn among the new messages, at once or after those of the environment."""
    choices = Choices(data)
    builder = Builder(profile, continuation.prompt.tools)
    new = [] if choices.chance(40) else list(continuation.new_messages)
    for message in [*continuation.prompt.messages, continuation.reply, *new]:
        builder.append(message)
    another = {**builder.reply(choices, continuation.prompt.kwargs), "written_by": "another"}
    builder.append(another)
    builder.add_from_environment([data[MESSAGE_BYTES // 2 :]])
    return replace(continuation, new_messages=[*new, another, builder.messages[-1]])


@pytest.mark.parametrize("name", FAMILIES)
def test_a_bridge_equals_the_full_render(name: str) -> None:
    subject = model(name)
    profile = replace(subject.profile, switches=(), fixed_switches=())

    def reference(conversation: Conversation) -> list[int]:
        return rendered(subject.renderer, conversation).token_ids

    happened: set[str] = set()

    @EXAMPLES
    @given(continuations(profile), st.binary(min_size=2 * MESSAGE_BYTES, max_size=2 * MESSAGE_BYTES))
    def equals(continuation: Continuation, data: bytes) -> None:
        case = with_another(profile, continuation, data)
        happened.add(check_bridge(subject.renderer, case, reference, profile, allowed=ALLOWED))

    equals()
    assert happened & {"equal", "positional"}


def _rewritten(render: Callable[..., RenderedTokens], author: str | None) -> RenderedTokens:
    message = {"role": "assistant", "content": "Hello.", **({} if author is None else {"written_by": author})}
    return render([{"role": "user", "content": "hi"}, message])


def test_a_render_counts_nothing_of_anothers_as_sampled() -> None:
    own, others = _rewritten(RENDERER.render, None), _rewritten(RENDERER.render, "claude")
    assert own.token_ids == others.token_ids
    assert any(own.sampled_mask)
    assert not any(others.sampled_mask)
    assert "prompt" in others.owners


def test_without_an_author_it_is_refused() -> None:
    prompt = RENDERER.render([{"role": "user", "content": "hi"}], add_generation_prompt=True)
    completion = [*RENDERER.tokenizer.encode_ordinary("Hello."), RENDERER.get_stop_token_ids()[0]]
    new = [{"role": "assistant", "content": "a"}, {"role": "user", "content": "q"}]
    refused = RENDERER.bridge(prompt, completion, new)
    assert isinstance(refused, BridgeRefusal)
    assert refused.reason is RefusalReason.ASSISTANT_MESSAGE
    named = [{**new[0], "written_by": "claude"}, new[1]]
    with damage_allowed():
        assert isinstance(RENDERER.bridge(prompt, completion, named), RenderedTokens)
        refused = RENDERER.bridge(prompt.token_ids, completion, named)
    assert isinstance(refused, BridgeRefusal)
    assert refused.reason is RefusalReason.UNKNOWN_HISTORY
