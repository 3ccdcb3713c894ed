"""The page's examples run, one after another."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from trajectory_support import ANSWER

PAGE = Path(__file__).resolve().parents[2] / "docs" / "trajectories.md"


def test_the_examples_of_the_page() -> None:
    def sample(_: list[int], *, max_tokens: int) -> tuple[list[int], list[float]]:
        assert max_tokens > len(ANSWER)
        return ANSWER, [-0.5] * len(ANSWER)

    names: dict[str, Any] = {"sample": sample, "run": str, "print": lambda *_: None}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 6
    for block in blocks:
        exec(block, names)  # noqa: S102 - the page's own examples
    assert names["mean"] == -0.5
    assert names["trajectory"].samples()[0].reward == 1.0
    assert len(names["session"]) == 2
