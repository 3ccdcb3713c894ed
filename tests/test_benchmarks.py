"""The benchmarks run, at a tiny size, and write their tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.conversations import make_conversation
from benchmarks.report import END, START, number, write_into_pages


def test_it_runs_without_anything_to_compare_with(capsys: pytest.CaptureFixture[str]) -> None:
    tiny = "--model golden:qwen3 --rounds 1 --messages 2 --histories 500 --replies 50 --processes --peers"
    main(tiny.split())
    printed = capsys.readouterr().out
    for name in ("rendering", "bridging", "parsing", "a process"):
        assert f"## benchmark of {name}" in printed
    assert "| golden:qwen3 | 2 |" in printed


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("--families Qwen", "invalid choice"),
        ("--families", "expected at least one"),
        ("--peers vllm", "invalid choice"),
        ("--rounds 0", "is no number above 0"),
        ("--messages -3", "is no number above 0"),
        ("--model golden:nope", "there is no tokenizer for golden:nope"),
        ("--model golden:llama3", "there is no renderer for golden:llama3"),
        ("--model nope", "there is no tokenizer for nope"),
    ],
)
def test_wrong_arguments_are_named(wrong: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(wrong.split())
    assert said in capsys.readouterr().err


def test_conversations_are_the_same_each_time() -> None:
    assert make_conversation(20, 1) == make_conversation(20, 1)
    assert make_conversation(20, 1)[:5] != make_conversation(20, 2)[:5]
    assert [one["role"] for one in make_conversation(4)] == ["system", "user", "assistant", "tool"]


def test_a_table_goes_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{START.format(name='x')}\nold\n{END.format(name='x')}\nafter\n", encoding="utf-8")
    write_into_pages("x", "new", [page, tmp_path / "none.md"])
    write_into_pages("y", "other", [page])
    text = page.read_text(encoding="utf-8")
    assert "new" in text
    assert "old" not in text
    assert "other" not in text
    assert text.startswith("before")
    assert text.endswith("after\n")


def test_numbers_show_what_counts() -> None:
    assert [number(value) for value in (1234.5, 12.34, 1.234, 0.01234, None)] == ["1234", "12.3", "1.23", "0.012", "–"]
