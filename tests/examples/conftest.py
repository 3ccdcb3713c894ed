"""The examples are scripts: found by their folder, and those that need torch are not collected without it."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

collect_ignore = ["test_importance_ratios.py"] if find_spec("torch") is None else []
