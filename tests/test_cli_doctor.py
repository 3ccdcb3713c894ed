"""`renderers doctor`, run as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

typer = pytest.importorskip("typer")
from typer.testing import CliRunner  # noqa: E402

from renderers.cli.app import app  # noqa: E402 - only where typer is

TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}{% if loop.last and m.role == 'assistant' %}!{% endif %}"
    "{{ m.content or '' }}{% for c in m.tool_calls or [] %}{{ c.function }}{% endfor %}{{ '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


@pytest.fixture
def template(tmp_path: Path) -> str:
    """A template file that breaks its prefix in every row about appending."""
    path = tmp_path / "chat_template.jinja"
    path.write_text(TEMPLATE, encoding="utf-8")
    return str(path)


def run(*arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    result = CliRunner().invoke(app, ["doctor", *arguments], catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


def test_a_report_names_template_break_and_condition(template: str) -> None:
    code, output, _ = run(template, "--tokenizer", "golden:qwen3")
    assert code == 1
    assert output.startswith(template)
    assert "BREAK    result-empty " in output
    assert "`loop.last` was true and is false for message 1, in `loop.last and m.role == 'assistant'`" in output
    assert "character" in output
    assert "token" in output
    assert "failing: result, " in output


def test_json_holds_the_same(template: str) -> None:
    code, output, _ = run(template, "--tokenizer", "golden:qwen3", "--json")
    report = json.loads(output)
    assert code == 1
    assert report["model"] == template
    assert report["has_tokenizer"]
    row = next(row for row in report["rows"] if row["code"] == "result")
    assert row["status"] == "text differs"
    assert row["difference"]["flips"][0]["condition"] == "loop.last"
    assert set(report["failing"]) == set(report["findings"]) >= {"result", "user"}


@pytest.mark.parametrize(
    ("fail_on", "code", "failing"),
    [
        ("none", 0, []),
        ("replies", 0, []),
        ("reply-reasoned", 0, []),
        ("result,extra-system", 1, ["result"]),
        ("system, checks", 1, ["system", "arguments", "lost-text"]),
    ],
)
def test_a_job_says_what_fails_it(template: str, fail_on: str, code: int, failing: list[str]) -> None:
    found, output, _ = run(template, "--tokenizer", "golden:qwen3", "--json", "--fail-on", fail_on)
    assert found == code
    assert json.loads(output)["failing"] == failing


def test_a_template_alone_is_compared_as_text(template: str) -> None:
    code, output, _ = run(template, "--fail-on", "results")
    assert code == 1
    assert "only texts are compared" in output
    assert "give --tokenizer" in output
    _, output, _ = run(template, "--stop-token", "<|im_end|>", "--fail-on", "none")
    assert "ok       stop-token" in output


def test_switches_reach_the_template(tmp_path: Path) -> None:
    path = tmp_path / "switch.jinja"
    path.write_text(TEMPLATE.replace("loop.last and", "loop.last and odd and"), encoding="utf-8")
    assert run(str(path), "--fail-on", "results")[0] == 0
    assert run(str(path), "--fail-on", "results", "--template-kwargs", '{"odd": true}')[0] == 1


@pytest.mark.parametrize(
    ("text", "arguments", "words"),
    [
        ("{{ x | nonsense }}", (), "No filter named 'nonsense'"),
        ("{% include 'other' %}", (), "no loader"),
        (TEMPLATE, ("--fail-on", "nonsense"), "--fail-on: there is no nonsense"),
        (TEMPLATE, ("--template-kwargs", "[1]"), "--template-kwargs"),
        (TEMPLATE, ("--tokenizer", "golden:nothing"), "golden:qwen3"),
        (TEMPLATE, ("--tokenizer", "golden:qwen3", "--stop-token", "<nothing>"), "<nothing>"),
    ],
)
def test_errors_are_one_line(tmp_path: Path, text: str, arguments: tuple[str, ...], words: str) -> None:
    path = tmp_path / "chat_template.jinja"
    path.write_text(text, encoding="utf-8")
    code, _, errors = run(str(path), *arguments)
    assert code == 2
    assert errors.startswith("error: ")
    assert words in errors


def test_a_model_without_a_template_is_an_error(tmp_path: Path) -> None:
    assert run("golden:qwen3")[0] == 2
    assert "missing.jinja" in run(str(tmp_path / "missing.jinja"))[2]
