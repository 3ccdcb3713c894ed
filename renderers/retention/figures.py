"""What a policy does to a set of rollouts, as counts that add up."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field, fields
from itertools import accumulate

#: Context lengths at which the share of longer conversations is known: four a doubling, from 16 tokens to 16 million.
EDGES = tuple(round(2 ** (quarter / 4)) for quarter in range(16, 97))


@dataclass(slots=True)
class Figures:
    """Counts over rollouts under one policy. A rollout is one conversation, a turn one reply that was sampled in it.

    Attributes:
        conversations: the rollouts.
        turns: the replies, and so the prompts.
        samples: token streams that only grow. A rollout is one, and one more for each break.
        breaks: refused bridges, by the refusal's reason: each renders the conversation again and begins a new sample.
        prompt_tokens: tokens of all prompts.
        cached_tokens: those of them that a prefix cache holds from earlier requests of the same rollout.
        trained_tokens: tokens of all completions: each was sampled once, and is trained on once.
        sample_tokens: tokens of all samples, which are what the trainer runs over.
        longest_context: the longest prompt with its completion.
        over_limit: rollouts in which a prompt with its completion is longer than the limit.
        reasoning_kept: tokens of earlier turns' reasoning in all prompts.
        reasoning_dropped: tokens of earlier turns' reasoning that the prompts leave out.
        off_template: prompts that are not, token for token, the template's own render of the same messages.
        sample_counts: rollouts by their number of samples.
        peak_contexts: rollouts by their longest context: by the index of the first of `EDGES` that it does not exceed.
    """

    conversations: int = 0
    turns: int = 0
    samples: int = 0
    breaks: Counter[str] = field(default_factory=Counter)
    prompt_tokens: int = 0
    cached_tokens: int = 0
    trained_tokens: int = 0
    sample_tokens: int = 0
    longest_context: int = 0
    over_limit: int = 0
    reasoning_kept: int = 0
    reasoning_dropped: int = 0
    off_template: int = 0
    sample_counts: Counter[int] = field(default_factory=Counter)
    peak_contexts: Counter[int] = field(default_factory=Counter)

    def add(self, other: Figures) -> None:
        """Count other rollouts, too."""
        for name in [one.name for one in fields(self)]:
            mine, theirs = getattr(self, name), getattr(other, name)
            if isinstance(mine, Counter):
                mine.update(theirs)
            else:
                setattr(self, name, max(mine, theirs) if name == "longest_context" else mine + theirs)

    def add_rollout(self, *, samples: int, peak: int, limit: int) -> None:
        """Count a finished rollout by its number of samples and its longest context."""
        self.conversations += 1
        self.samples += samples
        self.sample_counts[samples] += 1
        self.longest_context = max(self.longest_context, peak)
        self.peak_contexts[bisect_left(EDGES, peak)] += 1
        self.over_limit += peak > limit

    @property
    def samples_per_rollout(self) -> float:
        """Mean number of samples of a rollout."""
        return _ratio(self.samples, self.conversations)

    @property
    def processed_tokens(self) -> int:
        """What an engine runs over that reuses nothing: every prompt and every completion."""
        return self.prompt_tokens + self.trained_tokens

    @property
    def processed_with_reuse(self) -> int:
        """The same without the tokens that the prefix cache holds."""
        return self.processed_tokens - self.cached_tokens

    @property
    def hit_rate(self) -> float:
        """Share of the prompts' tokens that the prefix cache holds."""
        return _ratio(self.cached_tokens, self.prompt_tokens)

    @property
    def mean_context(self) -> float:
        """Mean length of a prompt with its completion."""
        return _ratio(self.processed_tokens, self.turns)

    @property
    def share_over_limit(self) -> float:
        """Share of the rollouts that exceed the context limit."""
        return _ratio(self.over_limit, self.conversations)

    @property
    def share_off_template(self) -> float:
        """Share of the prompts that the template would write otherwise."""
        return _ratio(self.off_template, self.turns)

    def shares_longer(self) -> list[tuple[int, float]]:
        """For each of `EDGES`, the share of rollouts whose longest context exceeds it."""
        up_to = accumulate(self.peak_contexts[place] for place in range(len(EDGES)))
        return [(edge, 1 - _ratio(count, self.conversations)) for edge, count in zip(EDGES, up_to, strict=True)]


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
