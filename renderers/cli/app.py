"""The commands."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import orjson
import typer
from rich.console import Console
from rich.table import Table

from renderers.cli import batch, comparing, doctor, loading, retention, show
from renderers.cli.probes import probes
from renderers.errors import RendererError
from renderers.refusal import BridgeRefusal
from renderers.rendered import RenderedTokens
from renderers.renderer import Renderer

app = typer.Typer(help="Exact borders between chat messages and token IDs.", no_args_is_help=True, add_completion=False)
output = Console(soft_wrap=True, highlight=False)
errors = Console(stderr=True, soft_wrap=True, highlight=False)
F = TypeVar("F", bound=Callable[..., None])

Model = Annotated[str, typer.Option("--model", "-m", help="Model ID, folder, template file, or golden:NAME.")]
Tokenizer = Annotated[str | None, typer.Option(help="Where the tokenizer comes from, if not from the model.")]
Kwargs = Annotated[str | None, typer.Option(help="Template fields as a JSON object.")]
Retention = Annotated[str | None, typer.Option(help="Thinking retention: tool_cycle or all.")]
Sanitize = Annotated[bool, typer.Option(help="Encode the caller's text as ordinary text.")]
Input = Annotated[str, typer.Argument(help="A JSON file, or - for standard input.")]
AsTable = Annotated[bool, typer.Option("--table", help="A coloured token table instead of JSON.")]
Html = Annotated[Path | None, typer.Option("--html", help="Write a self-contained page of the tokens here.")]


def guarded(command: F) -> F:
    """Errors of this library and warnings as one line each on standard error, not as tracebacks."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.showwarning = lambda message, *_: errors.print(f"warning: {message}", markup=False)
            try:
                command(*args, **kwargs)
            except (RendererError, OSError) as error:
                errors.print(f"error: {error}", markup=False)
                raise typer.Exit(2) from None

    return run  # type: ignore[return-value]  # the same signature, for typer


@app.command()
@guarded
def render(
    source: Input,
    model: Model,
    tokenizer: Tokenizer = None,
    template_kwargs: Kwargs = None,
    retention: Retention = None,
    sanitize: Sanitize = False,
    generation_prompt: Annotated[bool, typer.Option(help="Open the assistant's turn at the end.")] = True,
    table: AsTable = False,
    html: Html = None,
) -> None:
    """Messages to tokens. Input: a list of messages, or {"messages": [...], "tools": [...]}."""
    renderer = _load(model, tokenizer, template_kwargs, retention, sanitize=sanitize)
    given = loading.read_json(source)
    given = {"messages": given} if isinstance(given, list) else given
    messages = loading.need(given, "messages")
    rendered = renderer.render(messages, tools=given.get("tools"), add_generation_prompt=generation_prompt)
    _show(renderer, rendered, table=table, html=html)


@app.command()
@guarded
def parse(
    source: Input,
    model: Model,
    tokenizer: Tokenizer = None,
    template_kwargs: Kwargs = None,
    table: AsTable = False,
) -> None:
    """A sampled completion to a reply. Input: {"completion": IDs or text, "prompt_ids": [...], "tools": [...]}."""
    renderer = _load(model, tokenizer, template_kwargs, None, sanitize=False)
    given = loading.read_json(source)
    given = {"completion": given} if isinstance(given, list) else given
    ids = loading.completion_ids(renderer, loading.need(given, "completion"))
    parsed = renderer.parse_response(ids, prompt_ids=given.get("prompt_ids"), tools=given.get("tools"))
    if not table:
        _print_json(show.parsed_json(parsed))
        return
    rows = Table("position", "id", "text", "region")
    texts = renderer.token_texts(ids)
    for span in parsed.spans:
        for position in range(span.start, span.end):
            rows.add_row(str(position), str(ids[position]), repr(texts[position]), str(span.region))
    output.print(rows)


@app.command()
@guarded
def bridge(
    source: Input,
    model: Model,
    tokenizer: Tokenizer = None,
    template_kwargs: Kwargs = None,
    retention: Retention = None,
    sanitize: Sanitize = False,
    table: AsTable = False,
    html: Html = None,
) -> None:
    """Extend prompt + completion. Input: {"messages" or "prompt_ids", "completion", "new_messages", "tools"}.

    Exit code 3 where the bridge is refused.
    """
    renderer = _load(model, tokenizer, template_kwargs, retention, sanitize=sanitize)
    given = loading.read_json(source)
    tools = given.get("tools") if isinstance(given, dict) else None
    prompt: Any = (
        given["prompt_ids"]
        if isinstance(given, dict) and "prompt_ids" in given
        else renderer.render(loading.need(given, "messages"), tools=tools, add_generation_prompt=True)
    )
    completion = loading.completion_ids(renderer, loading.need(given, "completion"))
    result = renderer.bridge(prompt, completion, loading.need(given, "new_messages"), tools=tools)
    if isinstance(result, BridgeRefusal):
        _print_json({"refused": str(result.reason), "detail": result.detail})
        raise typer.Exit(3)
    _show(renderer, result, table=table, html=html)


@app.command()
@guarded
def models(as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False) -> None:
    """Known model IDs: family, revision, what the template keeps of earlier reasoning, fingerprint."""
    rows = loading.model_rows()
    names = ("model", "family", "revision", "retention", "template")
    if as_json:
        _print_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    # Plain columns: a table would cut model IDs to the terminal's width.
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    for row in (names, *rows):
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


@app.command()
@guarded
def check(
    model: Annotated[str, typer.Argument(help="Model ID or folder, with a chat template.")],
    tokenizer: Tokenizer = None,
    template_kwargs: Kwargs = None,
) -> None:
    """Does this tokenizer's template still equal our family, token for token, on the probe set?

    Exit code 0 if it does, 1 if not, 2 if that cannot be said.
    """
    family = _load(model, tokenizer, template_kwargs, None, sanitize=False)
    wrapped = loading.load_renderer(model, tokenizer=tokenizer, template_kwargs=template_kwargs, wrap=True)
    if family.family == wrapped.family:
        errors.print(f"no family is known for {model}: there is nothing to check", markup=False)
        raise typer.Exit(2)
    _report(family, wrapped, f"{family.family} {getattr(family.config, 'revision', '')}", "the tokenizer's template")


@app.command()
@guarded
def diff(
    left: Annotated[str, typer.Argument(help="Model ID, folder or template file.")],
    right: Annotated[str, typer.Argument(help="Another one.")],
    tokenizer: Tokenizer = None,
    left_kwargs: Kwargs = None,
    right_kwargs: Kwargs = None,
    left_retention: Retention = None,
    right_retention: Retention = None,
) -> None:
    """The first differing token of two models, folders, templates or settings, on the probe set.

    Run it between an SFT and an RL pipeline. Exit code 0 if there is none, 1 if there is.
    """
    _report(
        _load(left, tokenizer, left_kwargs, left_retention, sanitize=False),
        _load(right, tokenizer, right_kwargs, right_retention, sanitize=False),
        left,
        right,
    )


app.command()(guarded(batch.render_batch))
app.command()(guarded(doctor.doctor))
app.command()(guarded(retention.retention))


@app.command()
def demo() -> None:
    """What this library is for, in one screen."""
    from renderers.cli.demo import run_demo

    run_demo(output)


def _load(
    model: str, tokenizer: str | None, template_kwargs: str | None, retention: str | None, *, sanitize: bool
) -> Renderer[Any]:
    return loading.load_renderer(
        model, tokenizer=tokenizer, template_kwargs=template_kwargs, retention=retention, sanitize=sanitize
    )


def _show(renderer: Renderer[Any], rendered: RenderedTokens, *, table: bool, html: Path | None) -> None:
    if html is not None:
        html.write_text(show.page(f"{renderer.family} tokens", show.shown_tokens(renderer, rendered)), encoding="utf-8")
        output.print(f"{html}: {len(rendered)} tokens", markup=False)
    elif table:
        output.print(show.token_table(show.shown_tokens(renderer, rendered)))
    else:
        _print_json(show.rendered_json(renderer, rendered))


def _report(left: Renderer[Any], right: Renderer[Any], left_name: str, right_name: str) -> None:
    found = list(comparing.differences(left, right))
    for one in found:
        prompt = " with a generation prompt" if one.probe.add_generation_prompt else ""
        where = "" if one.position is None else f", token {one.position}"
        output.print(f"{one.probe.name}{prompt}{where}:", markup=False)
        output.print(f"  {left_name}: {one.left}", markup=False)
        output.print(f"  {right_name}: {one.right}", markup=False)
    count = len(list(probes()))
    if found:
        output.print(f"{len(found)} of {count} probes differ", markup=False)
        raise typer.Exit(1)
    output.print(f"equal on all {count} probes: {left_name} and {right_name}", markup=False)


def _print_json(value: Any) -> None:
    typer.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())
