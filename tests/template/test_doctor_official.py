"""The doctor on official templates: the lines and conditions that docs/templates.md names, and its patch for Qwen3."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from template_cases import OFFICIAL

from golden.reference import load_tokenizer
from renderers.template import Report, diagnose, is_prefix_preserving
from renderers.template.doctor import CheckStatus, RowStatus

pytestmark = pytest.mark.needs_assets

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "templates.md").read_text(encoding="utf-8")
QWEN3 = "Qwen/Qwen3-8B"


class Claim(NamedTuple):
    """A row of the page's table of official templates."""

    model: str
    rows: list[str]
    line: int
    condition: str


def claims() -> Iterator[Claim]:
    """What the page says of official templates."""
    section = PAGE.partition("## What it says")[2].partition("## Patching")[0]
    for model, rows, line, condition in re.findall(
        r"^\| (\S+/\S+) \| (.+) \| line (\d+), `(.+)` \|$", section, re.MULTILINE
    ):
        yield Claim(model, re.findall("`([^`]+)`", rows), int(line), condition.replace("\\|", "|"))


CLAIMS = list(claims())


@cache
def report_on(model: str) -> Report:
    """The report on a model, made once."""
    return diagnose(load_tokenizer(model))


@pytest.mark.parametrize("claim", CLAIMS, ids=[f"{claim.model}-{claim.line}" for claim in CLAIMS])
def test_the_page_names_line_and_condition(claim: Claim) -> None:
    for code in claim.rows:
        row = report_on(claim.model).row(code)
        if row.difference is not None:
            assert (claim.line, claim.condition) in {(flip.line, flip.condition) for flip in row.difference.flips}
        else:
            assert row.status is RowStatus.REFUSED
            assert row.place is not None
            assert (row.place.condition_line, row.place.condition) == (claim.line, claim.condition)


@pytest.mark.parametrize("model", sorted({claim.model for claim in CLAIMS}))
def test_the_page_names_every_break(model: str) -> None:
    named = {code for claim in CLAIMS if claim.model == model for code in claim.rows}
    assert {row.code for row in report_on(model).rows if row.is_finding} == named


def test_llama_fails_in_other_ways() -> None:
    report = report_on("meta-llama/Llama-3.1-8B-Instruct")
    lines = {
        (check.code, detail.place.line, detail.place.condition_line)
        for check in report.checks
        for detail in check.details
        if detail.place is not None
    }
    assert {("arguments", 88, 74), ("lost-text", 69, 69), ("lost-text", 71, 70), ("tool-text", 100, 99)} <= lines


def test_qwen3_is_traced_to_the_last_query_test() -> None:
    found = report_on(QWEN3).row("user-after-reasoning").difference
    assert found is not None
    assert [(flip.line, flip.decides) for flip in found.flips] == [(43, None), (20, "ns.last_query_index (line 22)")]
    assert found.flips[1].condition.startswith("ns.multi_step_tool and message.role == 'user'")
    assert found.earlier.place is not None
    assert found.later.place is not None
    assert (found.earlier.place.line, found.later.place.line) == (45, 50)


def test_kimi_is_traced_to_the_last_answer() -> None:
    found = report_on("moonshotai/Kimi-K2-Thinking").row("reply-after-result").difference
    assert found is not None
    assert [(flip.line, flip.condition) for flip in found.flips[:2]] == [
        (76, "for message in suffix_msgs"), (59, "for message in hist_msgs")
    ]  # fmt: skip
    assert found.flips[2].decides == "ns.last_non_tool_call_assistant_msg (line 42)"


# The documented patch -------------------------------------------------------------------------------------------------------


def patched(*changes: int) -> str:
    """Qwen3's official template with some of the page's changes."""
    section = PAGE.partition("## Patching Qwen3")[2]
    rows = re.findall(r"^\| (\d) \| (\d+) \| `(.+)` \| `(.+)` \|$", section, re.MULTILINE)
    assert [row[0] for row in rows] == ["1", "2", "3"]
    lines = OFFICIAL["Qwen3-8B"].split("\n")
    for number, line, condition, replacement in rows:
        if int(number) in changes:
            assert condition in lines[int(line) - 1]
            lines[int(line) - 1] = lines[int(line) - 1].replace(condition, replacement)
    return "\n".join(lines)


@cache
def patched_report(*changes: int) -> Report:
    """The report on it."""
    return diagnose(load_tokenizer(QWEN3), chat_template=patched(*changes))


def findings(report: Report) -> set[str]:
    """The codes of what is wrong."""
    return {finding.code for finding in report.findings}


def test_the_patch_of_qwen3_keeps_tool_results() -> None:
    users = {"user", "user-after-reasoning", "user-after-call", "user-after-tools", "system"}
    assert findings(patched_report(1)) == {"second-result", "split-content", *users}
    assert findings(patched_report(1, 2)) == {"second-result", *users}
    assert findings(patched_report(1, 2, 3)) == {"second-result"}
    assert is_prefix_preserving(load_tokenizer(QWEN3), chat_template=patched(1, 2))
    assert not is_prefix_preserving(load_tokenizer(QWEN3), chat_template=patched(2, 3))


def test_the_patch_of_qwen3_is_no_patch_without_its_second_change() -> None:
    assert patched_report(1).check("split-content").status is CheckStatus.FOUND
    assert patched_report(1, 2).check("split-content").status is CheckStatus.OK


# Every template -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(OFFICIAL) if "FUZZ_EXAMPLES" in os.environ else sorted(OFFICIAL)[1::6])
def test_every_official_template_has_a_report(name: str) -> None:
    """Every break is explained: by a condition, or by advice."""
    report = diagnose(None, chat_template=OFFICIAL[name])
    lines = OFFICIAL[name].splitlines()
    for row in report.rows:
        if row.difference is not None:
            assert row.difference.flips or row.difference.advice
            for side in (row.difference.earlier, row.difference.later):
                assert side.place is None or 1 <= side.place.line <= len(lines)
            for flip in row.difference.flips:
                assert 1 <= flip.line <= len(lines)
                assert flip.earlier is not flip.later
        elif row.status is RowStatus.REFUSED:
            assert row.place is not None


def test_the_function_and_the_report_agree(official_tokenizer: Callable[[str], Any]) -> None:
    for model in ("Qwen/Qwen3-8B", "zai-org/GLM-4.5", "openai/gpt-oss-20b", "meta-llama/Llama-3.1-8B-Instruct"):
        holds = report_on(model).row("result-empty").status is RowStatus.PREFIX
        assert is_prefix_preserving(official_tokenizer(model)) is holds
