"""The command line, run as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

typer = pytest.importorskip("typer")
from typer.testing import CliRunner  # noqa: E402

from renderers.cli.app import app  # noqa: E402 - only where typer is

GOLDEN = "golden:qwen3"
MESSAGES = [{"role": "user", "content": "hi"}]
TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"


def run(*arguments: str, given: Any = None) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    text = given if isinstance(given, str) else json.dumps(given)
    result = CliRunner().invoke(app, list(arguments), input=text, catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


def test_render_gives_json() -> None:
    code, output, _ = run("render", "-", "-m", GOLDEN, given=MESSAGES)
    rendered = json.loads(output)
    assert code == 0
    assert len(rendered["token_ids"]) == len(rendered["owners"]) == len(rendered["message_indices"])
    assert rendered["fingerprint"]["family"] == "qwen3"


def test_render_gives_a_table_and_a_page(tmp_path: Path) -> None:
    source = tmp_path / "messages.json"
    source.write_text(json.dumps({"messages": MESSAGES, "tools": []}), encoding="utf-8")
    code, output, _ = run("render", str(source), "-m", GOLDEN, "--table")
    assert code == 0
    assert "<|im_start|>" in output
    page = tmp_path / "page.html"
    code, output, _ = run("render", str(source), "-m", GOLDEN, "--html", str(page))
    assert code == 0
    text = page.read_text(encoding="utf-8")
    assert "&lt;|im_start|&gt;" in text
    assert "http" not in text  # self-contained


def test_parse_takes_text_or_ids() -> None:
    completion = "<think>\nx\n</think>\n\nHello!<|im_end|>"
    code, output, _ = run("parse", "-", "-m", GOLDEN, given={"completion": completion})
    assert code == 0
    assert json.loads(output)["message"] == {"role": "assistant", "content": "Hello!", "reasoning_content": "x"}
    code, output, _ = run("parse", "-", "-m", GOLDEN, "--table", given={"completion": completion})
    assert code == 0
    assert "reasoning" in output


def test_bridge_extends_or_says_why_not() -> None:
    given = {
        "messages": MESSAGES,
        "completion": "Hello!<|im_end|>",
        "new_messages": [{"role": "user", "content": "again"}],
    }
    code, output, _ = run("bridge", "-", "-m", GOLDEN, given=given)
    assert code == 0
    assert json.loads(output)["message_roles"] == ["user"]
    given["completion"] = "<think>\nx\n</think>\n\nHello!<|im_end|>"
    code, output, _ = run("bridge", "-", "-m", GOLDEN, given=given)
    assert code == 3
    assert json.loads(output)["refused"] == "retention"
    code, _, _ = run("bridge", "-", "-m", GOLDEN, "--retention", "all", given=given)
    assert code == 0


def test_models_lists_what_is_known() -> None:
    code, output, _ = run("models", "--json")
    assert code == 0
    assert {"model", "family", "revision", "retention", "template"} == set(json.loads(output)[0])
    code, output, _ = run("models")
    assert "Qwen/Qwen3-8B" in output


@pytest.mark.parametrize(
    ("arguments", "given", "message"),
    [
        (("render", "-", "-m", GOLDEN), "no json", "no JSON"),
        (("render", "-", "-m", GOLDEN), {"tools": []}, "'messages'"),
        (("render", "-", "-m", GOLDEN), [{"role": "narrator"}], "messages[0].role"),
        (("render", "missing.json", "-m", GOLDEN), None, "missing.json"),
        (("render", "-", "-m", GOLDEN, "--template-kwargs", "[1]"), MESSAGES, "--template-kwargs"),
        (("render", "-", "-m", GOLDEN, "--template-kwargs", '{"x": 1}'), MESSAGES, "enable_thinking"),
        (("render", "-", "-m", "golden:nothing"), MESSAGES, "golden:qwen3"),
        (("parse", "-", "-m", GOLDEN), {"completion": [-1]}, "negative"),
        (("bridge", "-", "-m", GOLDEN), {"messages": MESSAGES}, "'completion'"),
    ],
)
def test_errors_are_one_line(arguments: tuple[str, ...], given: Any, message: str) -> None:
    code, _, errors = run(*arguments, given=given)
    assert code == 2
    assert errors.startswith("error: ")
    assert message in errors
    assert "Traceback" not in errors


def test_check_and_diff_compare_on_the_probe_set(tmp_path: Path) -> None:
    code, output, _ = run("diff", GOLDEN, GOLDEN)
    assert code == 0
    assert "equal on all" in output
    code, output, _ = run("diff", GOLDEN, GOLDEN, "--right-kwargs", '{"enable_thinking": false}')
    assert code == 1
    assert "one question with a generation prompt, token" in output
    template = tmp_path / "other.jinja"
    template.write_text(TEMPLATE, encoding="utf-8")
    code, output, errors = run("check", str(template), "--tokenizer", GOLDEN)
    assert code == 2
    assert "nothing to check" in errors


def test_the_demo_shows_every_step() -> None:
    code, output, _ = run("demo")
    assert code == 0
    assert "prefix kept exactly: True" in output
    assert "retention:" in output
    assert "never sampled" in output


def test_the_command_is_installed_as_a_module_too() -> None:
    code = "from renderers.cli import main; import sys; sys.argv = ['renderers', 'models']; main()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0
    assert "Qwen/Qwen3-8B" in result.stdout
