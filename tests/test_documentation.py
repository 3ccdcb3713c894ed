"""The examples and tables of the documentation hold."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest

import renderers
from golden.reference import HAS_ASSETS, load_tokenizer

REPOSITORY = Path(__file__).resolve().parent.parent
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]


def _modules() -> list[str]:
    return [
        module.name
        for module in pkgutil.walk_packages(renderers.__path__, "renderers.")
        if not module.name.startswith(("renderers.cli", "renderers.testing"))
    ]


@pytest.mark.parametrize("name", ["renderers", *_modules()])
def test_docstring_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(REPOSITORY)) for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert "://" in target or (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_readme_lists_every_family() -> None:
    from docs.families_table import table

    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert table() in text, "run `python -m docs.families_table`"


def test_every_family_has_a_page() -> None:
    from renderers.registry import families

    pages = "\n".join(page.read_text(encoding="utf-8") for page in (REPOSITORY / "docs" / "families").glob("*.md"))
    for renderer_class in families():
        assert renderer_class.config_class.__name__ in pages, (
            f"no page in docs/families names {renderer_class.family}'s config"
        )


def test_the_performance_example_runs() -> None:
    page = (REPOSITORY / "docs" / "performance.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert code is not None
    names: dict[str, Any] = {}
    exec(code.group(1), names)  # noqa: S102 - the page's own example
    assert names["bridged"].token_ids[-len(names["to_send"]) :] == names["to_send"]


if HAS_ASSETS:

    def test_the_readme_example_runs(monkeypatch: pytest.MonkeyPatch) -> None:
        import transformers

        code = re.search(r"```python\n(.*?)```", (REPOSITORY / "README.md").read_text(encoding="utf-8"), re.DOTALL)
        assert code is not None
        tokenizer = load_tokenizer("Qwen/Qwen3-8B")
        monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", lambda _: tokenizer)

        def sample(_: list[int], stop: list[int]) -> list[int]:
            text = '<think>\nLook.\n</think>\n\n<tool_call>\n{"name": "get_weather", "arguments": {}}\n</tool_call><|im_end|>'
            ids: list[int] = tokenizer.encode(text, add_special_tokens=False)
            assert ids[-1] in stop
            return ids

        names: dict[str, Any] = {"sample": sample}
        exec(code.group(1), names)  # noqa: S102 - the README's own example
        assert names["bridged"].token_ids[: len(names["prompt"])] == names["prompt"].token_ids
        assert names["next_ids"] == names["bridged"].token_ids
        assert len(code.group(1).strip().splitlines()) <= 20
