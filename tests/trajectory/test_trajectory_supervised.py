"""Supervised samples: loss on what was chosen, and reasoning trained where the template shows it."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trajectory_support import RENDERERS, model

from golden.profiles import PROFILES
from renderers import NotOnPolicyError, Owner, RendererError, TrajectoryError, UnknownMaskError, create_renderer
from renderers.testing import conversations
from renderers.testing.support import damage_allowed
from renderers.trajectory import ReasoningLossWarning, Sample, collate, supervised_samples

EXAMPLES = max(settings().max_examples // 20, 5)


def said(role: str, content: str, reasoning: str | None = None) -> dict[str, Any]:
    """A message."""
    return {"role": role, "content": content} | ({"reasoning_content": reasoning} if reasoning else {})


TALK = [
    said("user", "first"), said("assistant", "one", "r-one"),
    said("user", "second"), said("assistant", "two", "r-two"),
    said("user", "third"), said("assistant", "three"),
]  # fmt: skip
QWEN3 = create_renderer("golden:qwen3")


def trained(sample: Sample, renderer: Any = QWEN3) -> list[str]:
    """The texts in the mask, a text for each turn."""
    texts: dict[int, list[int]] = {}
    for token_id, turn, masked in zip(sample.ids, sample.turn_ids, sample.action_mask, strict=True):
        if masked:
            texts.setdefault(turn, []).append(token_id)
    return [renderer.decode(ids) for _, ids in sorted(texts.items())]


def test_one_sample_for_each_prefix_that_shows_its_reasoning() -> None:
    found = supervised_samples(QWEN3, TALK)
    assert found.lost_reasoning == ()
    assert [trained(sample) for sample in found.samples] == [
        ["<think>\nr-one\n</think>\n\none<|im_end|>"],
        ["<think>\nr-two\n</think>\n\ntwo<|im_end|>"],
        ["<think>\n\n</think>\n\nthree<|im_end|>"],
    ]
    # Each is the render of its prefix: the context is what the deployment would show.
    assert [sample.ids for sample in found.samples] == [QWEN3.render_ids(TALK[:end]) for end in (2, 4, 6)]


def test_one_sample_where_everything_is_kept() -> None:
    renderer = create_renderer("golden:qwen3", thinking_retention="all")
    [sample] = supervised_samples(renderer, TALK).samples
    assert len(trained(sample)) == 3
    assert "r-one" in trained(sample)[0]


def test_turns_of_one_tool_cycle_share_a_sample() -> None:
    call = {"id": "call_0", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    cycle = [TALK[0], said("assistant", "", "r-one") | {"tool_calls": [call]}, said("tool", "18 C"), TALK[3]]
    found = supervised_samples(QWEN3, [*cycle, *TALK[4:]])
    assert [len(trained(sample)) for sample in found.samples] == [2, 1]


def test_without_reasoning_there_is_one_sample() -> None:
    plain = [{key: value for key, value in message.items() if key != "reasoning_content"} for message in TALK]
    [sample] = supervised_samples(QWEN3, plain).samples
    assert len(trained(sample)) == 3


def test_reasoning_that_is_never_printed_is_reported() -> None:
    renderer = create_renderer("golden:deepseek-v3")
    with damage_allowed(), pytest.warns(ReasoningLossWarning, match=r'messages \[1, 3\] .*thinking_retention="all"'):
        found = supervised_samples(renderer, TALK)
    assert found.lost_reasoning == (1, 3)
    assert len(found.samples) == 1
    with damage_allowed():
        kept = supervised_samples(create_renderer("golden:deepseek-v3", thinking_retention="all"), TALK)
    assert kept.lost_reasoning == ()


def test_chosen_roles_and_messages() -> None:
    [sample] = supervised_samples(QWEN3, TALK, indices=[1]).samples
    assert len(trained(sample)) == 1
    samples = supervised_samples(QWEN3, TALK, roles=["user", "assistant"]).samples
    assert [trained(sample)[0] for sample in samples] == ["first", "second", "third"]
    assert [len(trained(sample)) for sample in samples] == [2, 2, 2]
    assert Owner.PROMPT in [owner for owner, on in zip(samples[0].owners, samples[0].action_mask, strict=True) if on]
    for choice, problem in (
        ({"roles": ["nobody"]}, "no role 'nobody'"),
        ({"roles": ["tool"]}, "no message to train on with role tool"),
        ({"indices": [6]}, "no message 6: the conversation has 6"),
        ({"indices": [0]}, "no message to train on"),
    ):
        with pytest.raises(TrajectoryError, match=problem):
            supervised_samples(QWEN3, TALK, **choice)  # type: ignore[arg-type]  # either of both


def test_they_are_not_exact() -> None:
    samples = supervised_samples(QWEN3, TALK).samples
    assert not any(sample.exact for sample in samples)
    assert all(math.isnan(samples[0].logprobs[index]) for index, on in enumerate(samples[0].action_mask) if on)
    with pytest.raises(NotOnPolicyError):
        collate(samples, 0)
    assert collate(samples, 0, require="any").action_mask.any()
    assert samples[0].supervised().action_mask == samples[0].action_mask


def test_the_default_renderer_knows_no_mask() -> None:
    with pytest.raises(UnknownMaskError):
        supervised_samples(model("default").renderer, TALK)


@pytest.mark.parametrize("name", [name for name in RENDERERS if name != "default"])
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_every_chosen_message_is_trained_once(name: str, data: st.DataObject) -> None:
    renderer = model(name).renderer
    conversation = data.draw(conversations(PROFILES[RENDERERS[name][1]]))
    try:
        with warnings.catch_warnings(), damage_allowed():
            warnings.simplefilter("ignore", ReasoningLossWarning)
            found = supervised_samples(renderer, conversation.messages, tools=conversation.tools)
    except RendererError:
        return
    assistants = [index for index, one in enumerate(conversation.messages) if one["role"] == "assistant"]
    assert sorted(index for trained in found.trained for index in trained) == assistants
    for sample, indices in zip(found.samples, found.trained, strict=True):
        assert [owner is Owner.POLICY for owner in sample.owners] == sample.action_mask
        assert {len(sample)} == set(map(len, (sample.owners, sample.turn_ids, sample.logprobs)))
        texts = trained(sample, renderer)
        assert len(texts) <= len(indices)
        for index in indices:
            reasoning = conversation.messages[index].get("reasoning_content")
            if index not in found.lost_reasoning and reasoning and reasoning.strip():
                assert any(renderer.tokenizer.normalize(reasoning).strip() in text for text in texts)
