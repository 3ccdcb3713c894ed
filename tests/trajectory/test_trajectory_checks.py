"""The checks before a trainer's first step find what they are for, and nothing else."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trajectory_support import ANSWER, CALL, OTHERWISE, RESULT, THOUGHT, USER, begun, ids_of, model

from renderers import EmptyMaskError, NotOnPolicyError, Owner, TokenMismatchError, TrajectoryError
from renderers.testing import Choices
from renderers.trajectory import (
    Sample,
    assert_token_in_token_out,
    collate,
    compare_logprobs,
    drift_report,
    run_statistics,
)

DRIFT = settings(max_examples=max(settings().max_examples // 4, 20))


def sampled(*completions: list[int]) -> Sample:
    """A sample of these completions, a user's turn between them."""
    trajectory = begun()
    for number, ids in enumerate(completions):
        if number:
            trajectory.add_messages([USER])
        trajectory.add_completion(ids, [-0.5] * len(ids))
    return trajectory.samples()[-1]


# Drift -----------------------------------------------------------------------------------------------------------------


def test_canonical_tokens_do_not_drift() -> None:
    report = drift_report(sampled(ANSWER, ANSWER), model("qwen3").renderer)
    assert (report.sampled_tokens, report.changed_tokens, report.changed_context_tokens) == (6, 0, 0)
    assert report.places == ()
    assert str(report) == "0 of 6 sampled tokens would change (0.00%)"


def test_where_tokens_drift() -> None:
    sample = sampled(ANSWER, OTHERWISE)
    report = drift_report(sample, model("qwen3").renderer)
    assert (report.sampled_tokens, report.changed_tokens) == (len(ANSWER) + len(OTHERWISE), 2)
    [place] = report.places
    assert (place.turn, place.text) == (1, "Hello")
    assert place.ids == tuple(OTHERWISE[:2]) == tuple(sample.ids[place.start : place.end])
    assert place.encoded_ids == (ANSWER[0],)
    assert "turn 1" in str(report)


def test_special_tokens_spelled_in_ordinary_ones_drift() -> None:
    renderer = model("qwen3").renderer
    spelled = renderer.tokenizer.encode_ordinary("<|im_end|>")
    report = drift_report(sampled([*spelled, ANSWER[-1]]), renderer)
    assert report.changed_tokens == len(spelled)
    assert report.places[0].encoded_ids == (ANSWER[-1],)


@DRIFT
@given(decisions=st.binary(max_size=60), text=st.text(max_size=40), cut=st.integers(0, 3))
def test_drift_is_what_encoding_again_changes(decisions: bytes, text: str, cut: int) -> None:
    """The places tile the difference: with them replaced, the sample's tokens are those of its text."""
    subject = model("qwen3")
    tokenizer = subject.renderer.tokenizer
    ids = subject.segmenter.resegmented(tokenizer.encode_ordinary(text), Choices(decisions))
    sample = sampled(ids[cut:])
    report = drift_report(sample, subject.renderer)
    again, position = list[int](), 0
    for place in report.places:
        again += [*sample.ids[position : place.start], *place.encoded_ids]
        assert tuple(sample.ids[place.start : place.end]) == place.ids != place.encoded_ids
        position = place.end
    again += sample.ids[position:]
    decoded = tokenizer.decode_bytes(sample.ids).decode("utf-8", "replace")
    assert again == tokenizer.encode_with_offsets(decoded)[0]
    changed = sum(place.end - place.start for place in report.places)
    assert report.changed_tokens + report.changed_context_tokens == changed


# Tokens in, tokens out ---------------------------------------------------------------------------------------------------


def test_what_the_engine_was_given_and_returned() -> None:
    trajectory = begun()
    calls = []
    for ids in (CALL, ANSWER):
        calls.append((trajectory.next_prompt_ids, ids))
        trajectory.add_completion(ids, [-0.5] * len(ids))
        trajectory.add_messages([RESULT if ids is CALL else USER])
    [sample] = trajectory.samples()
    assert_token_in_token_out(sample, calls)
    with pytest.raises(TokenMismatchError, match="2 turns, and 1 engine calls"):
        assert_token_in_token_out(sample, calls[:1])
    with pytest.raises(TokenMismatchError, match=r"turn 1: the sample's prompt has .* they differ from token 0 on"):
        assert_token_in_token_out(sample, [calls[0], ([1], ANSWER)])
    with pytest.raises(TokenMismatchError, match=r"turn 0: the sample's completion"):
        assert_token_in_token_out(sample, [(calls[0][0], CALL[:-1]), calls[1]])


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda one: {"ids": [*one.ids[:-1], 5]}, "turn 1 .* not those that add_completion was given"),
        (lambda one: {"action_mask": [*one.action_mask[:-1], False]}, "the mask is False, the owner policy"),
        (lambda one: {"action_mask": [*one.action_mask[1:], False]}, "the mask is True, the owner template"),
        (lambda one: {"action_mask": [True, *one.action_mask[1:]]}, "nothing predicts it"),
        (lambda one: {"owners": [Owner.POLICY] * len(one)}, "the mask is False, the owner policy"),
        (lambda one: {"logprobs": one.logprobs[1:]}, "logprobs has .* entries"),
        (lambda one: {"turns": one.turns[1:]}, "is in the mask, and in no completion"),
    ],
)
def test_a_sample_that_was_tampered_with(change: Any, problem: str) -> None:
    sample = sampled(ANSWER, ANSWER)
    assert_token_in_token_out(sample)
    with pytest.raises(TokenMismatchError, match=problem):
        assert_token_in_token_out(replace(sample, **change(sample)))


def test_text_replies_are_no_tokens_out() -> None:
    trajectory = begun()
    trajectory.add_reply({"role": "assistant", "content": "Hello."})
    with pytest.raises(NotOnPolicyError):
        assert_token_in_token_out(trajectory.samples()[0])


# Logprobs --------------------------------------------------------------------------------------------------------------


def test_logprobs_of_an_unchanged_model() -> None:
    batch = collate([sampled(ANSWER, OTHERWISE), sampled(ANSWER)], 0)
    trainer = np.where(batch.action_mask, batch.sample_logp, np.nan)  # elsewhere they may be anything
    found = compare_logprobs(batch, trainer)
    assert found.tokens == 2 * len(ANSWER) + len(OTHERWISE)
    assert (found.max_absolute, found.mean_difference, found.kl) == (0, 0, 0)
    assert (found.min_ratio, found.mean_ratio, found.max_ratio) == (1, 1, 1)


def test_logprobs_that_differ() -> None:
    batch = collate([sampled(ANSWER)], 0)
    trainer = batch.sample_logp.copy()
    position = int(np.nonzero(batch.action_mask[0])[0][1])
    trainer[0, position] += 0.3
    found = compare_logprobs(batch, trainer, worst=1)
    assert found.max_absolute == pytest.approx(0.3)
    assert found.mean_absolute == pytest.approx(0.1)
    assert found.max_ratio == pytest.approx(math.exp(0.3))
    assert found.kl == pytest.approx((math.exp(0.3) - 1.3) / 3)
    [worst] = found.worst
    assert (worst.row, worst.position, worst.token_id) == (0, position, ANSWER[1])
    assert (worst.sampler, worst.trainer) == (-0.5, pytest.approx(-0.2))
    assert str(found).startswith("3 tokens: |difference| mean 0.1")


def test_logprobs_that_cannot_be_compared() -> None:
    batch = collate([sampled(ANSWER)], 0)
    with pytest.raises(TrajectoryError, match="of shape"):
        compare_logprobs(batch, batch.sample_logp[:, 1:])
    with pytest.raises(TrajectoryError, match="no array of numbers"):
        compare_logprobs(batch, "x")
    with pytest.raises(TrajectoryError, match="NaN for 3 tokens"):
        compare_logprobs(batch, batch.sample_logp * np.nan)
    with pytest.raises(EmptyMaskError):
        compare_logprobs(replace(batch, action_mask=np.zeros_like(batch.action_mask)), batch.sample_logp)
    bare = begun()
    bare.add_completion(ANSWER)
    with pytest.raises(NotOnPolicyError, match="3 sampled tokens have no logprob"):
        compare_logprobs(collate(bare.samples(), 0, require="exact"), batch.sample_logp)


# Statistics ------------------------------------------------------------------------------------------------------------


def test_figures_of_a_run() -> None:
    first = begun()
    first.add_completion(THOUGHT)
    first.add_messages([USER])
    first.add_completion(ANSWER[:-1])
    first.replace_history([USER])
    first.add_completion(ANSWER)
    second = begun(max_turns=1)
    second.add_completion(ANSWER)
    second.add_messages([USER])
    retry = first.fork(1)
    retry.add_completion(CALL)
    found = run_statistics([first, second, retry])
    assert (found.rollouts, found.samples, found.most_samples, found.samples_per_rollout) == (3, 5, 3, 5 / 3)
    assert found.break_reasons == {"retention": 1, "replaced_history": 1}
    assert found.ended_by == {"max_turns": 1}
    assert (found.turns, found.truncated_turns, found.truncation_rate) == (5, 1, 0.2)
    assert found.sampled_tokens == len(THOUGHT) + 3 * len(ANSWER) - 1 + len(CALL)
    lengths = [(len(THOUGHT) + len(ANSWER)) / 2, (len(ANSWER) - 1 + len(CALL)) / 2, len(ANSWER)]
    assert found.length_by_turn == lengths
    assert found.longest_sample == max(len(sample) for one in (first, second, retry) for sample in one.samples())
    figures = json.loads(json.dumps(found.as_dict()))
    assert figures["truncation_rate"] == 0.2
    assert figures["break_reasons"] == {"retention": 1, "replaced_history": 1}
    assert "breaks          retention 1, replaced_history 1" in str(found)
    assert run_statistics([]).samples_per_rollout == run_statistics([]).truncation_rate == 0


def test_needless_renders_are_counted() -> None:
    from renderers import Trajectory

    trajectory = Trajectory(model("default").renderer)
    trajectory.begin([USER])
    trajectory.add_completion(ids_of("Hello.<|im_end|>"))
    trajectory.add_messages([USER])
    found = run_statistics([trajectory])
    assert (found.rendered_turns, found.break_reasons) == (1, {})
