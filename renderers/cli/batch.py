"""The `render-batch` command: a JSONL file of conversations to Parquet, with a progress bar."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from renderers.batch import COLUMNS, render_jsonl
from renderers.cli.loading import load_renderer

#: Exit code where some conversations could not be rendered.
_INCOMPLETE = 1

output = Console(soft_wrap=True, highlight=False)
errors = Console(stderr=True, soft_wrap=True, highlight=False)


def render_batch(
    source: Annotated[
        Path, typer.Argument(help="A JSONL file: a list of messages, or an object with messages, a line.")
    ],
    folder: Annotated[Path, typer.Argument(help="The folder of the Parquet files.")],
    model: Annotated[str, typer.Option("--model", "-m", help="Model ID, folder, template file, or golden:NAME.")],
    tokenizer: Annotated[str | None, typer.Option(help="Where the tokenizer comes from, if not from --model.")] = None,
    template_kwargs: Annotated[str | None, typer.Option(help="Template fields as a JSON object.")] = None,
    retention: Annotated[str | None, typer.Option(help="Thinking retention: tool_cycle or all.")] = None,
    sanitize: Annotated[bool, typer.Option(help="Encode the caller's text as ordinary text.")] = False,
    generation_prompt: Annotated[bool, typer.Option(help="Open the assistant's turn at the end.")] = False,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    shard_size: Annotated[int, typer.Option(min=1, help="Conversations a file.")] = 1000,
    column: Annotated[
        list[str] | None, typer.Option(help=f"A column to write, repeatable: {', '.join(COLUMNS)}.")
    ] = None,
    keep_going: Annotated[
        bool, typer.Option(help="Write conversations that cannot be rendered as rows with their error.")
    ] = False,
) -> None:
    """Render a JSONL file of conversations to Parquet. Run it again after an interruption: it goes on.

    Exit code 1 where conversations were left out with --keep-going.
    """
    chosen = {"columns": column} if column else {}
    bar = (TextColumn("rendering"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*bar, console=errors, transient=True) as shown:
        task = shown.add_task("", total=None)
        summary = render_jsonl(
            source,
            folder,
            partial(
                load_renderer,
                model,
                tokenizer=tokenizer,
                template_kwargs=template_kwargs,
                retention=retention,
                sanitize=sanitize,
            ),
            workers=workers,
            shard_size=shard_size,
            add_generation_prompt=generation_prompt,
            keep_going=keep_going,
            progress=lambda done, total: shown.update(task, completed=done, total=total),
            **chosen,
        )
    reused = f", {summary.reused} of them from an earlier run" if summary.reused else ""
    damaged = f", {summary.damaged} damaged by the format" if summary.damaged else ""
    output.print(
        f"{folder}: {summary.rows} conversations, {summary.tokens} tokens in {summary.shards} files{reused}{damaged}",
        markup=False,
    )
    if summary.failed:
        errors.print(f"{summary.failed} conversations could not be rendered: see the column error", markup=False)
        raise typer.Exit(_INCOMPLETE)
