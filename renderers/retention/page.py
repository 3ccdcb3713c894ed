"""The report as one HTML page that needs nothing else: tables and plots, for light and dark screens and for print."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from renderers.retention.plots import Part, Series, grouped_bars, share_lines, short, stacked_bars
from renderers.retention.study import POLICIES
from renderers.retention.table import assumptions, notes, policy_name, rows

if TYPE_CHECKING:
    from renderers.retention.figures import Figures
    from renderers.retention.report import ModelReport, RetentionReport

#: Rollouts by their number of samples: up to how many, and what the plot calls them.
_SAMPLE_GROUPS = ((1, "1"), (2, "2"), (4, "3-4"), (8, "5-8"), (16, "9-16"), (10**9, "17+"))
_STYLES = {None: "first", "tool_cycle": "second", "all": "third"}
_SHEET = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1c1c22; --soft: #5d5d68; --rule: #d9d9e0; --first: #3366cc;
  --second: #c05a1c; --third: #12866b; --deep: #37438f; --middle: #7d8bd4; --pale: #cbd1ee; }
@media (prefers-color-scheme: dark) { :root { --paper: #16161b; --ink: #ececf1; --soft: #a3a3b0; --rule: #3a3a45;
  --first: #7ca6ff; --second: #f29a5f; --third: #4fcbaa; --deep: #a9b5ff; --middle: #6a78c9; --pale: #3b4273; } }
body { font: 15px/1.5 system-ui, sans-serif; background: var(--paper); color: var(--ink); margin: 2rem auto;
  max-width: 76rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; overflow-wrap: anywhere; }
p, figcaption, .keys { color: var(--soft); } figcaption { color: var(--ink); font-weight: 600; }
.table { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.2rem 0.9rem 0.2rem 0; text-align: right; border-bottom: 1px solid var(--rule); white-space: pre; }
th:first-child { text-align: left; } tbody th { font-weight: 400; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(30rem, 100%), 1fr)); gap: 1.5rem; }
figure { margin: 1rem 0 0; break-inside: avoid; } svg { width: 100%; height: auto; display: block; }
.keys span { margin-right: 1rem; white-space: nowrap; } .keys i { display: inline-block; width: 0.8em; height: 0.8em;
  margin-right: 0.4em; border-radius: 2px; }
text { font-size: 13px; fill: var(--soft); } text.value { fill: var(--ink); }
line.grid { stroke: var(--rule); } line.marked { stroke: var(--soft); stroke-dasharray: 4 3; }
.line { fill: none; stroke-linejoin: round; }
dt { font-weight: 600; } dd { margin: 0 0 0.4rem; color: var(--soft); }
""" + "".join(
    f"rect.{name} {{ fill: var(--{name}); }} i.{name} {{ background: var(--{name}); }} .line.{name} {{ stroke: var(--{name}); }}\n"
    for name in ("first", "second", "third", "deep", "middle", "pale")
)


def page(report: RetentionReport) -> str:
    """The whole page."""
    models = "".join(_model(report, model) for model in report.models)
    overview = _overview(report) if len(report.models) > 1 else ""
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Thinking retention</title>\n<style>{_SHEET}</style>\n"
        f"<h1>Thinking retention</h1>\n<p>{escape(assumptions(report))}</p>\n{overview}{models}{_meanings(report)}</html>\n"
    )


def _meanings(report: RetentionReport) -> str:
    meant = {row.label: row.meaning for model in report.models for row in rows(report, model) if row.meaning}
    listed = "".join(f"<dt>{escape(label)}</dt><dd>{escape(meaning)}</dd>" for label, meaning in meant.items())
    return f"<h2>What the figures mean</h2><dl>{listed}</dl>\n"


def _overview(report: RetentionReport) -> str:
    """All models and policies under each other, with the figures that decide most."""
    head = ("", "samples per rollout", "tokens processed, prefixes reused", "KV-cache hit rate", "mean context")
    body = [
        (
            f"{model.name}, {policy_name(policy)}",
            f"{one.samples_per_rollout:.2f}",
            f"{one.processed_with_reuse:,}",
            f"{one.hit_rate:.1%}",
            f"{one.mean_context:,.0f}",
        )
        for model in report.models
        for policy, one in model.policies.items()
    ]
    return f"<h2>Overview</h2>{_table(head, body)}\n"


def _model(report: RetentionReport, model: ModelReport) -> str:
    head = ("", *map(policy_name, POLICIES))
    body = [(row.label, *row.cells) for row in rows(report, model)]
    said = "".join(f"<p>{escape(note)}</p>" for note in notes(report, model))
    plots = "".join(_plots(report, model))
    return f'<h2>{escape(model.name)}</h2>{_table(head, body)}{said}<div class="plots">{plots}</div>\n'


def _table(head: Sequence[str], body: Sequence[tuple[str, ...]]) -> str:
    titles = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    lines = "".join(
        f"<tr><th>{escape(label)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        for label, *cells in body
    )
    return f'<div class="table"><table><thead><tr>{titles}</tr></thead><tbody>{lines}</tbody></table></div>'


def _plots(report: RetentionReport, model: ModelReport) -> Iterator[str]:
    named = [(policy_name(policy), figures) for policy, figures in model.policies.items()]
    limit = report.study.context_limit
    yield stacked_bars("Tokens of all requests", [(name, _request_parts(one)) for name, one in named])
    yield stacked_bars("Earlier reasoning, over all prompts", [(name, _reasoning_parts(one)) for name, one in named])
    yield grouped_bars(
        "Rollouts by number of samples",
        [label for _, label in _SAMPLE_GROUPS],
        [Series(policy_name(policy), _STYLES[policy], _sample_shares(one)) for policy, one in model.policies.items()],
    )
    yield share_lines(
        "Rollouts longer than a context of so many tokens",
        [Series(policy_name(policy), _STYLES[policy], one.shares_longer()) for policy, one in model.policies.items()],
        marked=limit,
        marked_as=short(limit),
    )


def _request_parts(figures: Figures) -> list[Part]:
    return [
        Part("sampled", figures.trained_tokens, "deep"),
        Part("prompt, processed", figures.prompt_tokens - figures.cached_tokens, "middle"),
        Part("prompt, from the cache", figures.cached_tokens, "pale"),
    ]


def _reasoning_parts(figures: Figures) -> list[Part]:
    return [Part("kept", figures.reasoning_kept, "deep"), Part("left out", figures.reasoning_dropped, "pale")]


def _sample_shares(figures: Figures) -> list[tuple[float, float]]:
    """For each of `_SAMPLE_GROUPS`, the share of rollouts that have so many samples."""
    shares: list[tuple[float, float]] = []
    at_least = 1
    for most, _ in _SAMPLE_GROUPS:
        count = sum(rollouts for samples, rollouts in figures.sample_counts.items() if at_least <= samples <= most)
        shares.append((most, count / max(figures.conversations, 1)))
        at_least = most + 1
    return shares
