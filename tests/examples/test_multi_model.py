"""The tutorial's harness: with dice without torch, with tiny models where it is, and with the official tokenizers."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from pathlib import Path

import multi_model
import pytest

from golden.reference import load_tokenizer
from renderers import Trajectory, create_renderer
from renderers.engines import SamplingParams
from renderers.trajectory import assert_token_in_token_out

NAMES = ["golden:qwen3", "golden:glm45", "golden:gpt-oss"]


def check(text: str) -> None:
    """What the tutorial says of the table."""
    _, *rows, _, engine = text.splitlines()
    assert engine == f"engine: {'a tiny random transformers model' if find_spec('torch') else 'dice; torch is missing'}"
    assert len(rows) == 6
    assert not all(" 0%  " in row for row in rows)  # some segmentations are not the encoder's
    for row in rows:
        _, retention, samples, encoded, _, prompts = row.split()[:6]
        assert int(encoded) < int(prompts) / 2 if retention == "all" else int(encoded) < int(prompts)
        assert float(samples) == (1 if retention == "all" else 2)
        assert row.endswith("none" if retention == "all" else "retention at turn 2 (x1)")


def test_the_comparison() -> None:
    check(multi_model.main(NAMES, rollouts=1))


if find_spec("torch"):  # with dice it would say nothing that the golden tokenizers do not

    @pytest.mark.needs_assets
    def test_the_comparison_with_official_tokenizers() -> None:
        names = ("Qwen/Qwen3-8B", "zai-org/GLM-4.5", "openai/gpt-oss-20b")
        check(multi_model.main([load_tokenizer(name) for name in names], rollouts=1))


@pytest.mark.parametrize("name", [*NAMES, "golden:deepseek-v4"])
def test_every_sample_is_what_the_engine_was_given_and_returned(name: str) -> None:
    trajectory = Trajectory(create_renderer(name, thinking_retention="all"))
    engine = multi_model.actor(trajectory, 1)
    calls: list[tuple[list[int], list[int]]] = []

    class Recording:
        async def generate(self, prompt_ids: list[int], sampling: SamplingParams) -> object:
            found = await engine.generate(prompt_ids, sampling)
            calls.append((prompt_ids, found.token_ids))
            return found

    asyncio.run(multi_model.rollout(trajectory, Recording()))  # type: ignore[arg-type]  # it is an engine
    (sample,) = trajectory.samples()
    assert_token_in_token_out(sample, calls)
    assert len(calls) == 4


def test_a_limit_ends_the_rollout() -> None:
    trajectory = Trajectory(create_renderer(NAMES[0]), max_turns=1)
    asyncio.run(multi_model.rollout(trajectory, multi_model.actor(trajectory, 0)))
    assert trajectory.turns == 1


def test_the_harness_has_60_lines() -> None:
    lines = Path(multi_model.__file__).read_text("utf-8").splitlines()
    start, end = (next(at for at, line in enumerate(lines) if line.startswith(name)) for name in ("# The h", "# The m"))
    assert sum(bool(line.strip()) for line in lines[start + 1 : end]) <= 60
