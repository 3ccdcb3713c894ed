"""The experiment of docs/trajectories-experiment.md, in small."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import importance_ratios
import pytest

from renderers import create_renderer

#: Two float32 computations of the same sum, in another order, through two layers.
ROUNDING = 1e-4


@pytest.mark.parametrize("name", importance_ratios.TOKENIZERS)
def test_kept_tokens_have_ratio_one_and_rerendered_ones_have_not(name: str) -> None:
    found = importance_ratios.measure(create_renderer(name, thinking_retention="all"), rollouts=1, freedom=0.2)
    assert len(found.kept) == found.sampled > 50
    assert max(map(abs, found.kept)) < ROUNDING
    assert found.changed > 0
    assert max(map(abs, found.rerendered)) > 0.1
    assert max(map(abs, found.survivors)) > 10 * ROUNDING


def test_the_plot(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = importance_ratios.Ratios("qwen3", [0.0, 1e-6], [2.0, -math.inf], [2.0], 2, 1)
    monkeypatch.setattr(importance_ratios, "measure", lambda _: made)
    monkeypatch.setattr(sys, "argv", ["", "--plot", str(tmp_path / "plot.svg"), "golden:qwen3"])
    importance_ratios.main()
    assert "qwen3" in capsys.readouterr().out
    root = ET.fromstring((tmp_path / "plot.svg").read_text("utf-8"))  # noqa: S314 - our own
    assert len(root.findall("{http://www.w3.org/2000/svg}path")) == 2
