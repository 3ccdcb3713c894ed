"""The figures as rows of text, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from renderers.retention.study import POLICIES, UNINVITED_REASONING, UNSAMPLED_REASONING

if TYPE_CHECKING:
    from renderers.config import ThinkingRetention
    from renderers.retention.costs import Prices
    from renderers.retention.figures import Figures
    from renderers.retention.report import ModelReport, RetentionReport

_ABSENT = "-"
_SAID = {
    UNSAMPLED_REASONING: " have reasoning, which this model does not sample: it is left out of them",
    UNINVITED_REASONING: " have reasoning, though this config's prompts close it: is a template switch missing?",
}


class Row(NamedTuple):
    """One figure under each policy, in the order of `POLICIES`; `-` where the model's settings exclude the policy."""

    label: str
    cells: tuple[str, ...]
    meaning: str


def policy_name(policy: ThinkingRetention | None) -> str:
    """What tables and plots call a policy."""
    return policy or "None"


def rows(report: RetentionReport, model: ModelReport) -> Iterator[Row]:
    """Every figure of one model."""
    for label, meaning, cell in _figures(report, model):
        figures = [model.policies.get(policy) for policy in POLICIES]
        yield Row(label, tuple(_ABSENT if one is None else cell(one) for one in figures), meaning)


def _figures(report: RetentionReport, model: ModelReport) -> Iterator[tuple[str, str, Callable[[Figures], str]]]:
    """Each figure's label, its meaning, and how it is written."""
    yield "rollouts", "conversations that were replayed", lambda one: _count(one.conversations)
    yield "turns", "replies that were sampled, and so requests", lambda one: _count(one.turns)
    yield (
        "samples per rollout",
        "token streams that only grow: one, and one more for each break",
        lambda one: f"{one.samples_per_rollout:,.2f}",
    )
    yield (
        "prefix breaks",
        "refused bridges, by reason: the conversation is rendered again",
        lambda one: _count(one.breaks.total()),
    )
    for reason in sorted({reason for one in model.policies.values() for reason in one.breaks}):
        yield f"  {reason}", "", partial(_breaks, reason)
    yield (
        "prompts unlike the template's",
        "prompts that the official template would write otherwise: serve with the same policy, or train off what is served",
        lambda one: _share(one.share_off_template),
    )
    yield (
        "tokens processed, nothing reused",
        "all prompts and completions",
        lambda one: _count(one.processed_tokens),
    )
    yield (
        "tokens processed, prefixes reused",
        "the same without what the prefix cache holds",
        lambda one: _count(one.processed_with_reuse),
    )
    yield "KV-cache hit rate", "share of the prompts' tokens in the prefix cache", lambda one: _share(one.hit_rate)
    yield (
        "trained tokens",
        "tokens of the completions, each sampled once and trained on once under any policy",
        lambda one: _count(one.trained_tokens),
    )
    yield (
        "tokens in training samples",
        "what the trainer runs over: every sample in full",
        lambda one: _count(one.sample_tokens),
    )
    yield "mean context", "mean length of a prompt with its completion", lambda one: _count(round(one.mean_context))
    yield "longest context", "the longest prompt with its completion", lambda one: _count(one.longest_context)
    yield (
        f"rollouts over {report.study.context_limit:,} tokens",
        "rollouts in which a prompt with its completion is longer than that",
        lambda one: _share(one.share_over_limit),
    )
    yield (
        "earlier reasoning kept",
        "tokens of earlier turns' reasoning that stand in prompts, over all prompts",
        lambda one: _count(one.reasoning_kept),
    )
    yield (
        "earlier reasoning left out",
        "tokens of earlier turns' reasoning that prompts lack, over all prompts",
        lambda one: _count(one.reasoning_dropped),
    )
    reuses = (("nothing reused", False), ("prefixes reused", True))
    if report.prices is not None:
        for label, reuse in reuses:
            yield f"cost, {label}", "by the prices given", partial(_cost, report.prices, reuse)
    if report.tokens_per_second is not None:
        for label, reuse in reuses:
            yield f"time, {label}", "by the speed given", partial(_time, report, reuse)


def notes(report: RetentionReport, model: ModelReport) -> Iterator[str]:
    """What has to be said beside the figures of one model."""
    for policy, problem in model.unavailable.items():
        yield f"{policy_name(policy)}: {problem}"
    for kind, count in sorted(model.damages.items()):
        yield f"{kind}: {_count(count)} of {_count(report.conversations)} conversations{_SAID.get(kind, '')}"


def assumptions(report: RetentionReport) -> str:
    """What the figures rest on, in a sentence."""
    size = report.study.block_size
    blocks = "whose unit is one token" if size == 1 else f"of blocks of {size} tokens"
    return (
        f"{_count(report.conversations)} conversations, {_count(report.failed)} left out. Each rollout has a prefix "
        f"cache {blocks}, which forgets nothing and shares nothing with other rollouts."
    )


def _count(value: int) -> str:
    return f"{value:,}"


def _share(value: float) -> str:
    return f"{value:.1%}"


def _breaks(reason: str, figures: Figures) -> str:
    return _count(figures.breaks[reason])


def _cost(prices: Prices, reuse: bool, figures: Figures) -> str:
    value = prices.cost(figures, reuse=reuse)
    return f"{value:,.2f}" if value >= 0.1 or not value else f"{value:.3g}"


def _time(report: RetentionReport, reuse: bool, figures: Figures) -> str:
    seconds = report.seconds(figures, reuse=reuse)
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, hours = seconds / 60, seconds / 3600
    return f"{minutes:.1f} min" if hours < 1 else f"{hours:,.1f} h"
