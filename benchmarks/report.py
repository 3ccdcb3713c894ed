"""The tables, in Markdown, and the pages that show them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Pages that show the tables between these marks, where they have them.
PAGES = (ROOT / "docs" / "performance.md", ROOT / "README.md")
START, END = "<!-- {name}: written by `make bench` -->", "<!-- /{name} -->"


def number(value: float | None, unit: str = "") -> str:
    """A number with three digits that count; a dash where it was not measured."""
    if value is None:
        return "–"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:.{digits}f}{unit}"


def times(value: float | None) -> str:
    """How many times as fast."""
    return number(value, " ×")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def write_into_pages(name: str, text: str, pages: Iterable[Path] = PAGES) -> None:
    """Put a table between its marks on each page that has them."""
    start, end = START.format(name=name), END.format(name=name)
    for page in pages:
        if page.is_file() and start in (old := page.read_text(encoding="utf-8")):
            pattern = re.escape(start) + ".*?" + re.escape(end)
            new = re.sub(pattern, lambda _: f"{start}\n\n{text}\n\n{end}", old, flags=re.DOTALL)
            page.write_text(new, encoding="utf-8")
