"""`renderers doctor`: a chat template's report, as text or JSON, and what of it fails a CI job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import orjson
import typer

from renderers.cli import loading
from renderers.template import Report, describe, diagnose

#: What `--fail-on` takes beside codes and groups.
ALL, NONE = "all", "none"


def doctor(
    model: Annotated[str, typer.Argument(help="Model ID, folder, or template file.")],
    tokenizer: Annotated[str | None, typer.Option(help="Where the tokenizer of a template file comes from.")] = None,
    template_kwargs: Annotated[str | None, typer.Option(help="Template fields as a JSON object.")] = None,
    stop_token: Annotated[
        list[str] | None, typer.Option(help="A token that ends sampling; may be given again.")
    ] = None,
    fail_on: Annotated[
        str, typer.Option(help="all, none, or codes and groups of findings: results,null-content")
    ] = "all",
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False,
) -> None:
    """Which ways to append break a chat template's prefix: on which line, by which condition, and what to change.

    A template file needs --tokenizer for its tokens; without it, texts are compared. Exit code 1 on findings.
    """
    report = examine(model, tokenizer, template_kwargs, stop_token or ())
    failing = failures(report, fail_on)
    if as_json:
        report_json = {"model": model, **report.to_dict(), "failing": failing}
        typer.echo(orjson.dumps(report_json, option=orjson.OPT_INDENT_2).decode())
    else:
        typer.echo(f"{model}\n{describe(report)}\nfailing: {', '.join(failing) or 'none'}")
    if failing:
        raise typer.Exit(1)


def examine(model: str, tokenizer: str | None, template_kwargs: str | None, stop_tokens: Sequence[str]) -> Report:
    """The report on a model's template, or on that of a template file.

    Raises:
        InputError: an input cannot be read.
    """
    template = loading.read_template(model)
    return diagnose(
        tokenizer if template is not None or tokenizer is not None else model,
        chat_template=template,
        template_kwargs=loading.parse_object(template_kwargs, "--template-kwargs") if template_kwargs else None,
        stop_tokens=stop_tokens or None,
    )


def failures(report: Report, fail_on: str) -> list[str]:
    """The codes of the findings that fail a job.

    Args:
        report: the report.
        fail_on: `all`, `none`, or codes and groups with commas between them.

    Raises:
        InputError: a name is neither a code nor a group; the message lists them.
    """
    asked = {name.strip() for name in fail_on.split(",")}
    groups = {row.code: row.group for row in report.rows} | {check.code: "checks" for check in report.checks}
    known = {ALL, NONE, *groups, *groups.values()}
    if unknown := sorted(asked - known):
        raise loading.InputError(f"--fail-on: there is no {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    found = [finding.code for finding in report.findings]
    return [code for code in found if ALL in asked or code in asked or groups[code] in asked]
