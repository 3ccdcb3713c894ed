"""The `retention` command: the report in the terminal, however the run ends."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event, current_thread, main_thread
from types import FrameType
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from renderers.cli.loading import load_renderer
from renderers.errors import ConfigError, ConversationError
from renderers.retention.conversations import items_in, items_of
from renderers.retention.costs import Prices
from renderers.retention.report import DEFAULT_LIMIT, RetentionReport, make_study
from renderers.retention.running import interrupts_held_back, tallies
from renderers.retention.study import FAILURES_KEPT, POLICIES, Study, Tally
from renderers.retention.table import assumptions, notes, policy_name, rows

#: A smaller file is read sooner than worker processes start.
_WORTH_WORKERS = 4 << 20
#: Exit codes, beside 2 for an error: some conversations were left out; the run was interrupted.
_INCOMPLETE, _INTERRUPTED = 1, 130

output = Console(soft_wrap=True, highlight=False)
errors = Console(stderr=True, soft_wrap=True, highlight=False)


def retention(
    conversations: Annotated[
        str,
        typer.Argument(help="A JSONL file, or - for standard input: a conversation a line, as messages or trajectory."),
    ],
    model: Annotated[list[str], typer.Option("--model", "-m", help="Model ID, folder, or golden:NAME. Repeatable.")],
    tokenizer: Annotated[
        list[str] | None, typer.Option(help="Where the tokenizers come from, if not from --model: one, or one a model.")
    ] = None,
    template_kwargs: Annotated[
        list[str] | None, typer.Option(help="Template fields as a JSON object: for all models, or once a model.")
    ] = None,
    context_limit: Annotated[
        int, typer.Option(min=1, help="Count rollouts longer than this, in tokens.")
    ] = DEFAULT_LIMIT,
    block_size: Annotated[
        int, typer.Option(min=1, help="Tokens of a block of the prefix cache: 16 is vLLM's, 1 a tree of tokens.")
    ] = 1,
    prompt_price: Annotated[float | None, typer.Option(help="Price of a million prompt tokens.")] = None,
    cached_price: Annotated[float | None, typer.Option(help="Of those from the cache, if not the same.")] = None,
    completion_price: Annotated[float | None, typer.Option(help="Price of a million sampled tokens.")] = None,
    training_price: Annotated[float | None, typer.Option(help="Price of a million tokens of training samples.")] = None,
    tokens_per_second: Annotated[float | None, typer.Option(help="Tokens that the deployment processes.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; by default one a core for large files.")
    ] = None,
    strict: Annotated[bool, typer.Option(help="Stop at the first conversation that cannot be used.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of tables.")] = False,
    html: Annotated[Path | None, typer.Option("--html", help="Write a self-contained page with plots here.")] = None,
) -> None:
    """What each thinking-retention policy costs and keeps, on your own conversations.

    Exit code 0; 1 where conversations had to be left out; 130 where the run was interrupted. There is a report each time.
    """
    renderers = {}
    settings = zip(
        model,
        _per_model(tokenizer, model, "--tokenizer"),
        _per_model(template_kwargs, model, "--template-kwargs"),
        strict=True,
    )
    for name, source, kwargs in settings:
        shown = f"{name} {kwargs}" if kwargs else name
        if shown in renderers:
            raise ConfigError(f"--model {shown} is given twice")
        renderers[shown] = load_renderer(name, tokenizer=source, template_kwargs=kwargs)
    study = make_study(renderers, context_limit=context_limit, block_size=block_size, strict=strict)
    report = RetentionReport(
        study,
        study.empty(),
        prices=_prices(prompt_price, cached_price, completion_price, training_price),
        tokens_per_second=tokens_per_second,
    )
    interrupted = _run(conversations, study, report, workers)
    if not report.conversations:
        raise ConversationError(f"{conversations}: no conversation was read")
    if html is not None:
        html.write_text(report.to_html(), encoding="utf-8")
    if as_json:
        typer.echo(orjson.dumps(report.to_json(), option=orjson.OPT_INDENT_2).decode())
    else:
        _print_tables(report)
    if interrupted:
        errors.print(f"interrupted after {report.conversations} conversations")
        raise typer.Exit(_INTERRUPTED)
    if report.failed:
        errors.print(f"{report.failed} of {report.conversations} conversations could not be used")
        raise typer.Exit(_INCOMPLETE)


def _per_model(given: Sequence[str] | None, models: Sequence[str], name: str) -> list[str | None]:
    """An option's value for each model: the one for all, or its own."""
    values: list[str | None] = [*given] if given else [None]
    if len(values) == 1:
        return values * len(models)
    if len(values) != len(models):
        raise ConfigError(
            f"{name} is given {len(values)} times for {len(models)} models: give it once, or once a model"
        )
    return values


def _prices(
    prompt: float | None, cached: float | None, completion: float | None, training: float | None
) -> Prices | None:
    if prompt is cached is completion is training is None:
        return None
    return Prices(prompt or 0.0, cached, completion or 0.0, training or 0.0)


def _run(source: str, study: Study, report: RetentionReport, workers: int | None) -> bool:
    """Count the conversations of a source into the report; gives whether it was interrupted."""
    if source == "-":
        size, items = None, items_of(sys.stdin.buffer)
    else:
        path = Path(source)
        size, items = path.stat().st_size, items_in(path)
    if workers is None:
        workers = 1 if size is not None and size < _WORTH_WORKERS else os.cpu_count() or 1
    with _noticed_interrupts() as noticed:
        try:
            with _progress(size) as show, closing(tallies(study, items, workers=workers)) as found:
                for tally in found:
                    before = len(report.failures)
                    with interrupts_held_back():  # a chunk is counted as a whole or not at all
                        report.tally.add(tally)
                    for failure in report.failures[before:]:
                        errors.print(f"left out: {failure}", markup=False)
                    if before < FAILURES_KEPT == len(report.failures):
                        errors.print("left out: further ones are only counted")
                    show(report.tally)
        except KeyboardInterrupt:
            return True
        return noticed.is_set()


@contextmanager
def _noticed_interrupts() -> Iterator[Event]:
    """Sets an event at an interrupt: what is raised inside a destructor or a callback, Python prints and forgets."""
    noticed = Event()

    def notice(signal_number: int, frame: FrameType | None) -> None:
        noticed.set()
        signal.default_int_handler(signal_number, frame)

    if current_thread() is not main_thread():
        yield noticed
        return
    before = signal.signal(signal.SIGINT, notice)
    try:
        yield noticed
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)


@contextmanager
def _progress(size: int | None) -> Iterator[Callable[[Tally], None]]:
    """A progress bar by bytes on standard error, where that is a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task("reading", total=size)

        def show(tally: Tally) -> None:
            bar.update(task, completed=tally.size, description=f"{tally.conversations:,} conversations")

        yield show


def _print_tables(report: RetentionReport) -> None:
    for model in report.models:
        table = Table("", *map(policy_name, POLICIES), title=escape(model.name), title_justify="left")
        for column in table.columns[1:]:
            column.justify = "right"
        for row in rows(report, model):
            table.add_row(row.label, *row.cells)
        output.print(table, soft_wrap=False)
        for note in notes(report, model):
            output.print(note, markup=False)
    output.print(assumptions(report), markup=False)
