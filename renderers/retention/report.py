"""The report: figures side by side, for each model and policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from renderers.errors import ConfigError, ConversationError
from renderers.renderer import Renderer
from renderers.retention.conversations import Failure, Item, items_in
from renderers.retention.figures import EDGES, Figures
from renderers.retention.running import tallies
from renderers.retention.study import POLICIES, ModelStudy, Study, Tally
from renderers.version import __version__

if TYPE_CHECKING:
    from renderers.config import ThinkingRetention
    from renderers.retention.costs import Prices

DEFAULT_LIMIT = 32_768


class ModelReport(NamedTuple):
    """What a report says of one model.

    Attributes:
        name: the model.
        policies: the figures of each policy that the model's settings allow, always in the same order.
        unavailable: why the others are not.
        damages: conversations by the kinds of damage that the template does to their prompts.
    """

    name: str
    policies: Mapping[ThinkingRetention | None, Figures]
    unavailable: Mapping[ThinkingRetention | None, str]
    damages: Mapping[str, int]


class RetentionReport:
    """Figures of one or several models under every retention policy, for the same conversations.

    Attributes:
        study: the models, and the settings that the figures depend on.
        tally: the counts.
        prices: what tokens cost, or None.
        tokens_per_second: the speed of the deployment, or None.
    """

    def __init__(
        self, study: Study, tally: Tally, *, prices: Prices | None = None, tokens_per_second: float | None = None
    ) -> None:
        if tokens_per_second is not None and not tokens_per_second > 0:
            raise ConfigError(f"tokens_per_second must be more than 0, found {tokens_per_second}")
        self.study = study
        self.tally = tally
        self.prices = prices
        self.tokens_per_second = tokens_per_second

    @property
    def models(self) -> list[ModelReport]:
        """What is said of each model."""
        return [
            ModelReport(study.name, tally.policies, study.unavailable, tally.damages)
            for study, tally in zip(self.study.models, self.tally.models, strict=True)
        ]

    @property
    def conversations(self) -> int:
        """Conversations that were looked at, those that failed included."""
        return self.tally.conversations

    @property
    def failures(self) -> list[Failure]:
        """What was wrong with conversations that were left out: the first hundred times."""
        return self.tally.failures

    @property
    def failed(self) -> int:
        """Conversations that were left out, for one model at least."""
        return self.tally.failed

    def to_json(self) -> dict[str, Any]:
        """All figures and settings, as JSON's types."""
        return {
            "library_version": __version__,
            "context_limit": self.study.context_limit,
            "block_size": self.study.block_size,
            "conversations": self.conversations,
            "failed": self.failed,
            "failures": [{"line": one.line, "problem": one.problem, "model": one.model} for one in self.failures],
            "models": [
                {
                    "model": model.name,
                    "damages": dict(model.damages),
                    "policies": [self._policy_json(model, policy) for policy in POLICIES],
                }
                for model in self.models
            ],
        }

    def _policy_json(self, model: ModelReport, policy: ThinkingRetention | None) -> dict[str, Any]:
        if policy not in model.policies:
            return {"policy": policy, "unavailable": model.unavailable[policy]}
        one = model.policies[policy]
        figures: dict[str, Any] = {
            "policy": policy,
            "conversations": one.conversations,
            "turns": one.turns,
            "samples": one.samples,
            "samples_per_rollout": one.samples_per_rollout,
            "breaks": dict(one.breaks),
            "prompts_off_template": one.off_template,
            "processed_tokens": one.processed_tokens,
            "processed_tokens_with_reuse": one.processed_with_reuse,
            "prompt_tokens": one.prompt_tokens,
            "cached_tokens": one.cached_tokens,
            "hit_rate": one.hit_rate,
            "trained_tokens": one.trained_tokens,
            "sample_tokens": one.sample_tokens,
            "mean_context": one.mean_context,
            "longest_context": one.longest_context,
            "conversations_over_limit": one.over_limit,
            "share_over_limit": one.share_over_limit,
            "reasoning_kept": one.reasoning_kept,
            "reasoning_dropped": one.reasoning_dropped,
            "rollouts_by_samples": {str(count): one.sample_counts[count] for count in sorted(one.sample_counts)},
            "rollouts_by_longest_context": {
                str(EDGES[place]): one.peak_contexts[place] for place in sorted(one.peak_contexts)
            },
        }
        for suffix, reuse in (("", True), ("_without_reuse", False)):
            if self.prices is not None:
                figures[f"cost{suffix}"] = self.prices.cost(one, reuse=reuse)
            if self.tokens_per_second is not None:
                figures[f"seconds{suffix}"] = self.seconds(one, reuse=reuse)
        return figures

    def seconds(self, figures: Figures, *, reuse: bool) -> float:
        """How long the deployment runs over the tokens, with a prefix cache or without one.

        Raises:
            ConfigError: the report was given no speed.
        """
        if self.tokens_per_second is None:
            raise ConfigError("give tokens_per_second to the report, to have times in it")
        return (figures.processed_with_reuse if reuse else figures.processed_tokens) / self.tokens_per_second

    def to_html(self) -> str:
        """A self-contained page with tables and plots."""
        from renderers.retention.page import page

        return page(self)


def make_study(
    renderers: Renderer[Any] | Sequence[Renderer[Any]] | Mapping[str, Renderer[Any]],
    *,
    context_limit: int = DEFAULT_LIMIT,
    block_size: int = 1,
    strict: bool = False,
) -> Study:
    """What is asked of every conversation; see `retention_report`."""
    for name, value in (("context_limit", context_limit), ("block_size", block_size)):
        if value < 1:
            raise ConfigError(f"{name} is a number of tokens from 1 on, found {value}")
    if isinstance(renderers, Renderer):
        renderers = [renderers]
    if isinstance(renderers, Mapping):
        named = list(renderers.items())
    else:
        named = [(one.tokenizer.name_or_path or one.family, one) for one in renderers]
    names = [name for name, _ in named]
    if len(set(names)) < len(names):
        raise ConfigError(
            f"renderers of one name cannot be told apart: {', '.join(names)}; give them by name, in a dict"
        )
    models = [ModelStudy(name, renderer) for name, renderer in named]
    if not models:
        raise ConfigError("there are no models to report on; give at least one renderer")
    return Study(models, context_limit, block_size, strict)


def retention_report(
    conversations: str | Path | Iterable[Any],
    renderers: Renderer[Any] | Sequence[Renderer[Any]] | Mapping[str, Renderer[Any]],
    *,
    context_limit: int = DEFAULT_LIMIT,
    block_size: int = 1,
    prices: Prices | None = None,
    tokens_per_second: float | None = None,
    workers: int = 1,
    strict: bool = False,
) -> RetentionReport:
    """What each thinking-retention policy costs and keeps on these conversations.

    >>> from renderers import create_renderer
    >>> asked = {"role": "user", "content": "2+2?"}
    >>> answered = {"role": "assistant", "content": "4", "reasoning_content": "Easy."}
    >>> report = retention_report([[asked, answered, asked, answered]], create_renderer("golden:qwen3"))
    >>> {policy: figures.samples for policy, figures in report.models[0].policies.items()}
    {None: 2, 'tool_cycle': 2, 'all': 1}

    Args:
        conversations: a JSONL file, or conversations: lists of messages, or `{"messages": [...], "tools": [...]}`. They
            are read one by one: a file, and an iterator, may be of any length.
        renderers: a renderer for each model, by name or not; without, the tokenizer's is taken. Their own `thinking_retention` does not count.
        context_limit: how many rollouts grow longer than this is counted, in tokens.
        block_size: the prefix cache holds whole blocks of so many tokens: 1 for a tree of tokens (SGLang), 16 for
            vLLM's default.
        prices: what tokens cost, for figures of cost.
        tokens_per_second: the speed of the deployment, for figures of time.
        workers: processes that share the work. With more than one, the calling script needs the usual
            `if __name__ == "__main__"`.
        strict: stop at the first conversation that cannot be used. Otherwise it is left out, and stands in `failures`.

    Raises:
        ConversationError: there are no conversations, or, under `strict`, one that cannot be used, named by its line;
            the error's `report` holds what came before.
        ConfigError: for a setting that cannot be, and for a renderer that does not know what its model samples.
        OSError: the file cannot be read.
    """
    if workers < 1:
        raise ConfigError(f"workers is a number of processes from 1 on, found {workers}")
    study = make_study(renderers, context_limit=context_limit, block_size=block_size, strict=strict)
    report = RetentionReport(study, study.empty(), prices=prices, tokens_per_second=tokens_per_second)
    if isinstance(conversations, str | Path):
        items: Iterable[Item] = items_in(Path(conversations))
    else:
        items = (Item(number, given) for number, given in enumerate(conversations, start=1))
    for tally in tallies(study, items, workers=workers):
        report.tally.add(tally)
    if strict and report.failures:
        raise ConversationError(str(report.failures[0]), report)
    if not report.conversations:
        raise ConversationError("there are no conversations to report on")
    return report
