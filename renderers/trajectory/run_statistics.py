"""A run's figures: samples per rollout, lengths, truncation, and why samples broke."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

from renderers.trajectory.trajectory import Trajectory


@dataclass(slots=True)
class RunStatistics:
    """Figures of many trajectories. Counts add up: `update` takes trajectories as they come.

    Attributes:
        rollouts: trajectories seen.
        samples: samples that came out of them.
        most_samples: most samples of one rollout.
        inexact_samples: those that hold a reply known as text alone.
        turns: completions sampled.
        truncated_turns: completions that did not end their turn.
        ended_by: rollouts that a limit ended, by limit.
        break_reasons: breaks by reason.
        rendered_turns: prompts that were rendered and not bridged though nothing broke: compute spent for nothing.
        sampled_tokens: tokens to train on.
        sample_tokens: tokens of all samples.
        longest_sample: tokens of the longest one.
        tokens_by_turn: completion tokens and completions at each turn of the rollouts, from the first on.
    """

    rollouts: int = 0
    samples: int = 0
    most_samples: int = 0
    inexact_samples: int = 0
    turns: int = 0
    truncated_turns: int = 0
    ended_by: Counter[str] = field(default_factory=Counter)
    break_reasons: Counter[str] = field(default_factory=Counter)
    rendered_turns: int = 0
    sampled_tokens: int = 0
    sample_tokens: int = 0
    longest_sample: int = 0
    tokens_by_turn: list[tuple[int, int]] = field(default_factory=list)

    @property
    def samples_per_rollout(self) -> float:
        """Mean number of samples; 0 without rollouts."""
        return self.samples / self.rollouts if self.rollouts else 0.0

    @property
    def truncation_rate(self) -> float:
        """Share of completions that did not end their turn."""
        return self.truncated_turns / self.turns if self.turns else 0.0

    @property
    def length_by_turn(self) -> list[float]:
        """Mean length of the completions at each turn."""
        return [tokens / count if count else 0.0 for tokens, count in self.tokens_by_turn]

    def update(self, trajectory: Trajectory) -> None:
        """Count one more trajectory. Its completions from before a fork are the other trajectory's."""
        samples = trajectory.samples()
        self.rollouts += 1
        self.samples += len(samples)
        self.most_samples = max(self.most_samples, len(samples))
        self.inexact_samples += sum(not sample.exact for sample in samples)
        self.break_reasons.update(trajectory.break_reasons)
        if trajectory.ended_by is not None:
            self.ended_by[trajectory.ended_by.value] += 1
        for sample in samples:
            self.sampled_tokens += sum(sample.action_mask)
            self.sample_tokens += len(sample)
            self.longest_sample = max(self.longest_sample, len(sample))
        for number, step in enumerate(trajectory.steps):
            needless = step.rendered and not step.restarts and step.broke is None and number >= trajectory.inherited
            self.rendered_turns += needless
            node = step.completion
            if node is None or node.completion is None or not step.own:
                continue
            self.turns += 1
            self.truncated_turns += node.completion.truncated
            while len(self.tokens_by_turn) <= number:
                self.tokens_by_turn.append((0, 0))
            tokens, count = self.tokens_by_turn[number]
            self.tokens_by_turn[number] = (tokens + node.end - node.start, count + 1)

    def as_dict(self) -> dict[str, Any]:
        """All figures, for a run's log."""
        figures = {one.name: getattr(self, one.name) for one in fields(self)}
        return {
            **{name: dict(value) if isinstance(value, Counter) else value for name, value in figures.items()},
            "samples_per_rollout": self.samples_per_rollout,
            "truncation_rate": self.truncation_rate,
            "length_by_turn": self.length_by_turn,
        }

    def __str__(self) -> str:
        def named(counts: Counter[str]) -> str:
            return ", ".join(f"{name} {count}" for name, count in counts.most_common()) or "none"

        lengths = ", ".join(f"{length:.1f}" for length in self.length_by_turn)
        return "\n".join(
            [
                f"rollouts        {self.rollouts}",
                f"samples         {self.samples} ({self.samples_per_rollout:.2f} a rollout, at most {self.most_samples})",
                f"not exact       {self.inexact_samples}",
                f"tokens          {self.sample_tokens}, {self.sampled_tokens} of them sampled",
                f"turns           {self.turns}, {self.truncation_rate:.1%} truncated",
                f"length by turn  {lengths}",
                f"breaks          {named(self.break_reasons)}",
                f"ended by limit  {named(self.ended_by)}",
                f"needless renders {self.rendered_turns}",
            ]
        )


def run_statistics(trajectories: Iterable[Trajectory]) -> RunStatistics:
    """The figures of these trajectories."""
    statistics = RunStatistics()
    for trajectory in trajectories:
        statistics.update(trajectory)
    return statistics
