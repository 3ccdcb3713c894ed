"""Random rollouts over random families keep every sampled token, train it once, and store prefixes once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trajectory_support import RENDERERS, Harness, check_samples, check_tree, model, model_of

from golden.profiles import PROFILES
from golden.reference import HAS_ASSETS
from renderers import create_renderer
from renderers.testing import Choices
from renderers.trajectory import assert_token_in_token_out, from_table, to_table

if TYPE_CHECKING:
    from collections.abc import Callable

FUZZ = "FUZZ_EXAMPLES" in os.environ
EXAMPLES = settings().max_examples // (1 if FUZZ else 25)
DECISIONS = st.binary(min_size=400, max_size=1200)
LIMITS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    st.builds(lambda length: {"max_length": length, "reserve": 10}, st.integers(30, 900)),
    st.builds(lambda turns: {"max_turns": turns}, st.integers(1, 4)),
)


def _check(harness: Harness) -> None:
    for sample in check_samples(harness):
        if sample.exact:
            assert_token_in_token_out(sample)
    check_tree(harness)


@pytest.mark.parametrize("name", RENDERERS)
@settings(max_examples=EXAMPLES)
@given(decisions=DECISIONS, limits=LIMITS)
def test_rollouts(name: str, decisions: bytes, limits: dict[str, Any]) -> None:
    harness = Harness(model(name), Choices(decisions), limits)
    harness.roll_out()
    _check(harness)


#: Official tokenizers, whose vocabularies are large: one in CI, one of each family under `make fuzz`.
OFFICIAL = (
    "Qwen/Qwen3-4B-Thinking-2507",
    "zai-org/GLM-4.5",
    "Qwen/Qwen3-Coder-30B-A3B-Instruct",
    "Qwen/Qwen3.6-35B-A3B",
    "deepseek-ai/DeepSeek-R1",
    "deepseek-ai/DeepSeek-V4-Flash",
    "moonshotai/Kimi-K2-Thinking",
    "openai/gpt-oss-20b",
)

if HAS_ASSETS:

    @pytest.mark.needs_assets
    @pytest.mark.parametrize("name", OFFICIAL if FUZZ else OFFICIAL[:1])
    @settings(max_examples=EXAMPLES)
    @given(decisions=DECISIONS, limits=LIMITS)
    def test_rollouts_with_official_tokenizers(
        official_tokenizer: Callable[[str], Any], name: str, decisions: bytes, limits: dict[str, Any]
    ) -> None:
        if name not in _OFFICIAL_MODELS:
            _OFFICIAL_MODELS[name] = model_of(create_renderer(official_tokenizer(name)), PROFILES[name])
        harness = Harness(_OFFICIAL_MODELS[name], Choices(decisions), limits)
        harness.roll_out()
        _check(harness)


_OFFICIAL_MODELS: dict[str, Any] = {}


@pytest.mark.parametrize("name", ["qwen3", "glm5", "deepseek-v3", "gpt-oss", "default"])
@settings(max_examples=EXAMPLES)
@given(decisions=DECISIONS, limits=LIMITS)
def test_a_stored_session_goes_on_as_if_nothing_had_happened(
    name: str, decisions: bytes, limits: dict[str, Any]
) -> None:
    """Stored and loaded after every single action, it holds the same tokens as one that was never stored."""
    kept, stored = (Harness(model(name), Choices(decisions), limits, stores=stores) for stores in (False, True))
    for harness in (kept, stored):
        harness.roll_out()
    check_samples(stored)
    assert len(kept.runs) == len(stored.runs)
    for first, second in zip(kept.runs, stored.runs, strict=True):
        assert list(map(repr, first.trajectory.samples())) == list(map(repr, second.trajectory.samples()))
        assert first.trajectory.messages == second.trajectory.messages
        assert first.trajectory.breaks == second.trajectory.breaks
        assert first.trajectory.ended_by == second.trajectory.ended_by
        for one, other in zip(first.trajectory.samples(), second.trajectory.samples(), strict=True):
            assert (one.ids, one.action_mask, one.side) == (other.ids, other.action_mask, other.side)


@pytest.mark.parametrize("name", ["qwen3", "deepseek-v4"])
@settings(max_examples=EXAMPLES)
@given(decisions=DECISIONS)
def test_arrow_keeps_what_json_keeps(name: str, decisions: bytes) -> None:
    harness = Harness(model(name), Choices(decisions), {})
    harness.roll_out()
    found = from_table(to_table(run.trajectory for run in harness.runs), model(name).renderer)
    for run, trajectory in zip(harness.runs, found, strict=True):
        run.trajectory = trajectory
    check_samples(harness)
