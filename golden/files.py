"""Where goldens lie, and their form: JSON that a person can read, one token a line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
#: Where the pruned tokenizers go: into the package, as its embedded default.
FAMILIES = Path(__file__).parent.parent / "families" / "golden"


def write_golden(path: Path, golden: Mapping[str, Any]) -> None:
    """Write one golden."""
    lines = []
    for key, value in golden.items():
        if key in {"tokens", "completion"}:
            tokens = ",\n".join(f"    {json.dumps(token, ensure_ascii=False)}" for token in value)
            lines.append(f'  "{key}": [\n{tokens}\n  ]')
        elif key in {"messages", "tools"} and value:
            items = ",\n".join(f"    {json.dumps(item, ensure_ascii=False)}" for item in value)
            lines.append(f'  "{key}": [\n{items}\n  ]')
        else:
            lines.append(f'  "{key}": {json.dumps(value, ensure_ascii=False)}')
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def goldens(family: str | None = None) -> Iterator[dict[str, Any]]:
    """Every golden, or those of one family, in order of their names."""
    for path in sorted(DATA.glob(f"{family or '*'}/*.json")):
        yield json.loads(path.read_text(encoding="utf-8"))
