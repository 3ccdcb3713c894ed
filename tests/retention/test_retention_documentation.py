"""The example of docs/retention.md shows what the command prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

pytest.importorskip("typer")
from typer.testing import CliRunner

from renderers.cli.app import app

PAGE = Path(__file__).resolve().parents[2] / "docs" / "retention.md"


def test_the_example_is_what_the_command_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = PAGE.read_text(encoding="utf-8")
    lines = re.search(r"```json\n(.*?)```", text, re.DOTALL)
    shown = re.search(r"```console\n\$ renderers (.*?)\n(.*?)```", text, re.DOTALL)
    assert lines is not None
    assert shown is not None
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    Path("conversations.jsonl").write_text(lines[1], encoding="utf-8")
    result = CliRunner().invoke(app, shlex.split(shown[1]), catch_exceptions=False)
    assert result.exit_code == 0
    assert [line.rstrip() for line in result.stdout.splitlines()] == shown[2].splitlines()
