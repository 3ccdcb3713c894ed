"""Sums, prices, JSON and the page of a report."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from renderers import ConfigError, create_renderer
from renderers.retention import Figures, Prices, RetentionReport, retention_report
from renderers.retention.figures import EDGES

CHAT = [
    {"role": "user", "content": "2+2?"},
    {"role": "assistant", "content": "4", "reasoning_content": "Easy."},
    {"role": "user", "content": "And 3+3? Take your time, & look at <both> sides."},
    {"role": "assistant", "content": "6", "reasoning_content": "Three and three are six."},
]
PRICES = Prices(prompt=2, cached=0.5, completion=10, training=1)


def make(**settings: Any) -> RetentionReport:
    renderers = {"a <b> & c": create_renderer("golden:qwen3"), "v3.1": create_renderer("golden:deepseek-v3.1")}
    return retention_report([CHAT, CHAT[:2], CHAT + CHAT], renderers, context_limit=60, **settings)


def test_figures_add_up() -> None:
    parts, whole = [Figures() for _ in range(3)], Figures()
    for part, (samples, peak) in zip(parts, [(1, 100), (3, 17), (1, 40_000)], strict=True):
        part.breaks["retention"] = samples - 1
        part.prompt_tokens = peak
        part.add_rollout(samples=samples, peak=peak, limit=99)
        whole.add(part)
    assert (whole.conversations, whole.samples, whole.longest_context, whole.over_limit) == (3, 5, 40_000, 2)
    assert whole.sample_counts == {1: 2, 3: 1}
    assert whole.breaks == {"retention": 2}
    assert whole.prompt_tokens == 40_117


def test_shares_of_longer_rollouts_are_exact_at_the_edges() -> None:
    figures, peaks = Figures(), [5, 16, 17, 1024, 1025, 30_000_000]
    for peak in peaks:
        figures.add_rollout(samples=1, peak=peak, limit=1)
    shares = dict(figures.shares_longer())
    assert set(EDGES) == set(shares)
    assert {16, 1024, 32_768} <= set(EDGES)
    for edge, share in shares.items():
        assert share == pytest.approx(sum(peak > edge for peak in peaks) / len(peaks))


def test_figures_of_nothing() -> None:
    one = Figures()
    ratios = (one.samples_per_rollout, one.hit_rate, one.mean_context, one.share_over_limit, one.share_off_template)
    assert ratios == (0.0,) * 5


def test_costs_and_times_follow_the_counts() -> None:
    report = make(prices=PRICES, tokens_per_second=100)
    for model in report.to_json()["models"]:
        for one in model["policies"]:
            prompt, cached = one["prompt_tokens"], one["cached_tokens"]
            others = 10 * one["trained_tokens"] + one["sample_tokens"]
            assert one["cost"] == pytest.approx((2 * (prompt - cached) + 0.5 * cached + others) / 1e6)
            assert one["cost_without_reuse"] == pytest.approx((2 * prompt + others) / 1e6)
            assert one["seconds"] == pytest.approx((prompt - cached + one["trained_tokens"]) / 100)
            assert one["seconds_without_reuse"] == pytest.approx((prompt + one["trained_tokens"]) / 100)
    figures = report.models[0].policies["all"]
    assert Prices(prompt=2).cost(figures, reuse=True) == Prices(prompt=2).cost(figures, reuse=False)


@pytest.mark.parametrize("price", [-1, float("nan"), float("inf")])
def test_prices_are_numbers_from_0_on(price: float) -> None:
    with pytest.raises(ConfigError, match="price of cached tokens"):
        Prices(cached=price)


def test_without_a_speed_there_are_no_times() -> None:
    report = make()
    assert "seconds" not in report.to_json()["models"][0]["policies"][0]
    with pytest.raises(ConfigError, match="tokens_per_second"):
        report.seconds(Figures(), reuse=True)


def test_json_names_every_policy_of_every_model() -> None:
    found = make().to_json()
    assert (found["conversations"], found["failed"], found["failures"]) == (3, 0, [])
    assert [model["model"] for model in found["models"]] == ["a <b> & c", "v3.1"]
    for model in found["models"]:
        assert [one["policy"] for one in model["policies"]] == [None, "tool_cycle", "all"]
        for one in model["policies"]:
            assert one["conversations"] == sum(one["rollouts_by_samples"].values()) == 3
            assert sum(one["rollouts_by_longest_context"].values()) == 3


class Tags(HTMLParser):
    """Every tag of a page, and whether all are closed that have to be."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, _: object) -> None:
        self.seen.append(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_else() -> None:
    page = make(prices=PRICES, tokens_per_second=100).to_html()
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert not {"script", "link", "img", "iframe"} & set(tags.seen)
    assert "http" not in page
    assert "url(" not in page
    assert "a &lt;b&gt; &amp; c" in page
    assert "<b>" not in page
    assert "prefers-color-scheme: dark" in page
    plots = re.findall(r"<svg.*?</svg>", page)
    assert len(plots) == 8
    for plot in plots:
        root = ET.fromstring(plot)  # noqa: S314 - our own page
        width, height = (float(number) for number in root.attrib["viewBox"].split()[2:])
        for mark in root.iter("rect"):
            x, y, w, h = (float(mark.attrib[name]) for name in ("x", "y", "width", "height"))
            assert 0 <= x <= x + w <= width + 0.1
            assert 0 <= y <= y + h <= height + 0.1


def test_the_page_of_a_report_on_nothing() -> None:
    """All conversations failed: every share and every bar is 0."""
    report = retention_report([[]], create_renderer("golden:qwen3"))
    assert report.failed == 1
    assert "0.0%" in report.to_html()
    assert "Overview" not in report.to_html()
