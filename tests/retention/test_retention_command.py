"""The `retention` command and its worker processes, run as a user runs them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from renderers import RendererError, create_renderer
from renderers.retention import retention_report
from renderers.retention.conversations import Item
from renderers.retention.report import make_study
from renderers.retention.running import tallies

pytest.importorskip("typer")
from typer.testing import CliRunner

from renderers.cli.app import app

GOLDEN = "golden:qwen3"
CHAT = [
    {"role": "user", "content": "2+2?"},
    {"role": "assistant", "content": "4", "reasoning_content": "Easy."},
    {"role": "user", "content": "And 3+3?"},
    {"role": "assistant", "content": "6"},
]


def run(*arguments: str, given: str | bytes | None = None) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    result = CliRunner().invoke(app, ["retention", *arguments], input=given, catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


def lines(*values: Any) -> str:
    return "".join(f"{value if isinstance(value, str) else json.dumps(value)}\n" for value in values)


@pytest.fixture
def chats(tmp_path: Path) -> str:
    path = tmp_path / "chats.jsonl"
    path.write_text(lines(CHAT, {"messages": CHAT[:2], "tools": None}), encoding="utf-8")
    return str(path)


def test_tables(chats: str) -> None:
    code, output, errors = run(
        chats, "-m", GOLDEN, "-m", "golden:glm45", "--prompt-price", "3", "--tokens-per-second", "9"
    )
    assert (code, errors) == (0, "")
    assert output.index(GOLDEN) < output.index("golden:glm45") < output.index("2 conversations, 0 left out")
    for label in (
        "samples per rollout",
        "KV-cache hit rate",
        "rollouts over 32,768 tokens",
        "cost, prefixes reused",
        "time",
    ):
        assert output.count(label) >= 2


def test_what_is_said_under_a_table(chats: str) -> None:
    _, output, _ = run(chats, "-m", "golden:deepseek-v3.1", "-m", "golden:kimi-k2")
    assert "uninvited_reasoning: 2 of 2 conversations have reasoning, though this config's prompts close it" in output
    assert "unsampled_reasoning: 2 of 2 conversations have reasoning, which this model does not sample" in output


def test_json_and_page(chats: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    code, output, _ = run(
        chats, "-m", GOLDEN, "--json", "--html", str(page), "--context-limit", "20", "--block-size", "16"
    )
    assert code == 0
    found = json.loads(output)
    assert (
        found == retention_report(chats, {GOLDEN: create_renderer(GOLDEN)}, context_limit=20, block_size=16).to_json()
    )
    assert "<svg" in page.read_text(encoding="utf-8")


def test_standard_input() -> None:
    code, output, _ = run("-", "-m", GOLDEN, "--json", "--workers", "1", given=lines(CHAT, CHAT))
    assert code == 0
    assert json.loads(output)["conversations"] == 2


def test_models_with_settings_of_their_own(chats: str) -> None:
    switches = ("--template-kwargs", '{"enable_thinking": true}', "--template-kwargs", '{"enable_thinking": false}')
    code, output, _ = run(chats, "-m", GOLDEN, "-m", GOLDEN, *switches, "--json")
    assert code == 0
    names = [model["model"] for model in json.loads(output)["models"]]
    assert names == [f'{GOLDEN} {{"enable_thinking": true}}', f'{GOLDEN} {{"enable_thinking": false}}']


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("-m", GOLDEN, "-m", GOLDEN), "given twice"),
        (("-m", GOLDEN, "--template-kwargs", "{}", "--template-kwargs", "{}"), "2 times for 1 models"),
        (("-m", GOLDEN, "--prompt-price", "-1"), "price of prompt tokens"),
        (("-m", "golden:nothing"), "golden:qwen3"),
    ],
)  # fmt: skip
def test_errors_are_one_line(chats: str, arguments: tuple[str, ...], problem: str) -> None:
    code, _, errors = run(chats, *arguments)
    assert code == 2
    assert errors.startswith("error: ")
    assert problem in errors


def test_bad_lines_are_reported_and_the_rest_is_kept() -> None:
    given = lines(CHAT, "{", CHAT, '"x"', CHAT)
    code, output, errors = run("-", "-m", GOLDEN, "--json", "--workers", "1", given=given)
    assert code == 1
    assert "left out: line 2: no JSON" in errors
    assert "left out: line 4: a conversation is a list" in errors
    assert "2 of 5 conversations could not be used" in errors
    assert json.loads(output)["models"][0]["policies"][0]["conversations"] == 3
    code, output, errors = run("-", "-m", GOLDEN, "--json", "--strict", "--workers", "1", given=given)
    assert code == 1
    assert "line 2" in errors
    assert "line 4" not in errors
    assert json.loads(output)["models"][0]["policies"][0]["conversations"] == 1


def test_a_flood_of_bad_lines_is_cut_short() -> None:
    code, _, errors = run("-", "-m", GOLDEN, "--workers", "1", given="x\n" * 300)
    assert code == 1
    assert len(errors.splitlines()) == 102
    assert "300 of 300 conversations could not be used" in errors


def test_no_conversation_at_all(tmp_path: Path) -> None:
    code, _, errors = run("-", "-m", GOLDEN, "--workers", "1", given="\n")
    assert (code, errors) == (2, "error: -: no conversation was read\n")
    code, _, errors = run(str(tmp_path / "missing.jsonl"), "-m", GOLDEN)
    assert code == 2
    assert "missing.jsonl" in errors


def test_workers_count_the_same(tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_text(lines(*[CHAT] * 40, "{", *[CHAT] * 40, "["), encoding="utf-8")
    report = retention_report(path, create_renderer(GOLDEN), workers=2)
    assert report.to_json() == retention_report(path, create_renderer(GOLDEN)).to_json()
    assert [failure.line for failure in report.failures] == [41, 82]


def test_a_worker_that_dies_is_an_error() -> None:
    study = make_study(create_renderer(GOLDEN))
    with pytest.raises(RendererError, match="try fewer workers"):
        list(tallies(study, [Item(1, Deadly())], workers=2))


class Deadly:
    """Ends the process that it is sent to."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (_end, ())


def _end() -> None:
    import os

    os._exit(1)


def test_an_interrupt_keeps_what_was_counted() -> None:
    """The bad line is reported once its chunk is counted: then the interrupt comes, while the command waits for more."""
    code = "from renderers.cli import main\nif __name__ == '__main__':\n    main()"
    command = [sys.executable, "-c", code, "retention", "-", "-m", GOLDEN, "--json", "--workers", "2"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(lines("{", *[CHAT] * 200))
        process.stdin.flush()
        assert process.stderr.readline().startswith("left out: line 1:")
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted after" in errors
    assert "Traceback" not in errors
    found = json.loads(output)
    assert found["models"][0]["policies"][0]["conversations"] == found["conversations"] - 1 >= 15
