"""Renders a JSONL file of conversations to Parquet: in several processes, and from where an earlier run was ended."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

import orjson

from renderers.batch.columns import COLUMNS
from renderers.batch.mapper import renderer_of
from renderers.batch.shards import (
    PARTIAL,
    Counts,
    Job,
    Plan,
    Shard,
    counts_of,
    plan,
    render_shard,
    require_arrow,
    sync_folder,
)
from renderers.errors import ConfigError, RendererError
from renderers.renderer import Renderer

try:
    import fcntl
except ImportError:  # Windows has none: there nothing keeps two runs apart
    fcntl = None  # type: ignore[assignment]  # a module or None

MANIFEST = "manifest.json"
_LOCK = ".lock"


@dataclass(frozen=True, slots=True)
class Summary:
    """What the output folder holds.

    Attributes:
        rows: conversations.
        tokens: their tokens.
        failed: conversations that could not be rendered: rows with an `error` and no tokens.
        damaged: conversations that the format damages: rows with `warnings`, where that column was asked for.
        shards: Parquet files.
        reused: how many of them an earlier run had finished.
    """

    rows: int
    tokens: int
    failed: int
    damaged: int
    shards: int
    reused: int


def render_jsonl(
    source: Path | str,
    output: Path | str,
    make_renderer: Callable[[], Renderer[Any]],
    *,
    workers: int = 1,
    shard_size: int = 1000,
    columns: Sequence[str] = ("token_ids", "sampled_mask", "message_indices", "warnings"),
    add_generation_prompt: bool = False,
    keep_going: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Summary:
    """Render each line of a JSONL file, a list of messages or an object with `messages` and perhaps `tools`.

    The output folder gets one Parquet file a shard, with the columns `line` (from 1), those asked for, and `error`. A
    file is there whole or not at all. Run the same again after an interruption, a crash or a kill: finished files are
    kept and the others are made. A folder of another source, renderer or setting is refused.

    Args:
        source: the file.
        output: the folder; made where it is missing.
        make_renderer: makes the renderer, here and once in each worker process; must pickle
            (`functools.partial(create_renderer, "Qwen/Qwen3-8B")`).
        workers: processes; 1 renders in this one.
        shard_size: conversations a file.
        columns: names in `COLUMNS`.
        add_generation_prompt: open the assistant's turn at the end.
        keep_going: write a conversation that cannot be rendered as a row with its error, instead of ending the run.
        progress: called with the number of conversations that are done, and of all.

    Raises:
        ConversationError: a conversation cannot be rendered; names its line. Finished files are kept.
        ConfigError: a setting that does not exist, or a folder that holds another run.
        RendererError: a worker process died.
        MissingExtraError: pyarrow is not installed.
    """
    _check(workers, shard_size, columns)
    require_arrow()
    source, output = Path(source), Path(output)
    recipe = pickle.dumps(make_renderer)
    renderer = renderer_of(recipe)
    planned = plan(source, shard_size)
    output.mkdir(parents=True, exist_ok=True)
    with _only_run(output):
        job = Job(source, output, tuple(columns), add_generation_prompt, keep_going)
        _begin(output, _manifest(renderer, job, planned, shard_size))
        found = {shard: counts_of(output / shard.name, shard) for shard in planned.shards}
        # A run that keeps going finishes shards that another would stop at.
        done = {shard: counts for shard, counts in found.items() if counts and (keep_going or not counts.failed)}
        reused = len(done)
        rows, total = sum(shard.rows for shard in done), sum(shard.rows for shard in planned.shards)
        waiting = [shard for shard in planned.shards if shard not in done]
        done.update(_run(recipe, job, waiting, min(workers, len(waiting)), progress or _silent, rows, total))
    return Summary(
        total,
        sum(counts.tokens for counts in done.values()),
        sum(counts.failed for counts in done.values()),
        sum(counts.damaged for counts in done.values()),
        len(done),
        reused,
    )


def _silent(_done: int, _total: int) -> None:
    """No progress is asked for."""


def _check(workers: int, shard_size: int, columns: Sequence[str]) -> None:
    for name, value in (("workers", workers), ("shard_size", shard_size)):
        if value < 1:
            raise ConfigError(f"{name} must be at least 1, found {value}")
    for column in columns:
        if column not in COLUMNS:
            raise ConfigError(f"there is no column {column!r}; there are {', '.join(COLUMNS)}")


def _manifest(renderer: Renderer[Any], job: Job, planned: Plan, shard_size: int) -> dict[str, Any]:
    """What must be the same for a run to continue another."""
    return {
        "format": 1,
        "source_sha256": planned.sha256,
        "source_bytes": planned.size,
        "shard_size": shard_size,
        "columns": list(job.columns),
        "add_generation_prompt": job.add_generation_prompt,
        "renderer": renderer.fingerprint(),
    }


def _begin(output: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest of a new run, or check that of the run that is continued; remove what a kill left behind."""
    path = output / MANIFEST
    try:
        found = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        if any(output.glob("*.parquet")):
            raise ConfigError(f"{output} holds Parquet files and no {MANIFEST}: give an empty folder") from None
        partial = output / f".{MANIFEST}{PARTIAL}"
        partial.write_bytes(orjson.dumps(manifest, option=orjson.OPT_INDENT_2))
        partial.replace(path)
        sync_folder(output)
        found = manifest
    except ValueError as error:
        raise ConfigError(f"{path} is no manifest: {error}") from None
    wanted = orjson.loads(orjson.dumps(manifest))
    if found != wanted:
        differing = [name for name in wanted if not isinstance(found, dict) or found.get(name) != wanted[name]]
        raise ConfigError(
            f"{output} holds another run: {', '.join(differing) or 'the format'} differs. Give another folder, or remove it"
        )
    for leftover in output.glob(f".*{PARTIAL}"):
        leftover.unlink(missing_ok=True)


@contextlib.contextmanager
def _only_run(output: Path) -> Iterator[None]:
    """Keep a second run out of the folder; the lock ends with the process, however that ends."""
    with (output / _LOCK).open("wb") as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ConfigError(f"another run is rendering into {output}") from None
        yield


def _run(
    recipe: bytes,
    job: Job,
    shards: list[Shard],
    workers: int,
    progress: Callable[[int, int], None],
    rows: int,
    total: int,
) -> Iterator[tuple[Shard, Counts]]:
    """Render the shards, here or in processes; each one as it is finished."""
    progress(rows, total)
    rendered = _in_processes(recipe, job, shards, workers) if workers > 1 else _here(recipe, job, shards)
    for shard, counts in rendered:
        rows += shard.rows
        progress(rows, total)
        yield shard, counts


def _here(recipe: bytes, job: Job, shards: list[Shard]) -> Iterator[tuple[Shard, Counts]]:
    for shard in shards:
        yield shard, render_shard(renderer_of(recipe), job, shard)


def _in_processes(recipe: bytes, job: Job, shards: list[Shard], workers: int) -> Iterator[tuple[Shard, Counts]]:
    # Not forked: the tokenizers' threads do not survive that.
    pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=_start, initargs=(recipe, job))
    try:
        futures = {pool.submit(_render, shard): shard for shard in shards}
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool:
        raise RendererError(
            "a worker process ended before its work was done, perhaps for want of memory; finished files are kept: run "
            "the same again, with fewer workers or smaller shards"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


_work: tuple[bytes, Job] | None = None


def _start(recipe: bytes, job: Job) -> None:
    """Set a worker process up."""
    global _work  # noqa: PLW0603 - a worker process works for one run
    _work = recipe, job
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run decides what an interrupt ends
    warnings.simplefilter("ignore")  # the run has warned, and damage has its column
    threading.Thread(target=_end_with_parent, daemon=True).start()
    renderer_of(recipe)


def _end_with_parent() -> None:
    """A killed run leaves no workers behind: they would wait for work for ever."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _render(shard: Shard) -> Counts:
    assert _work is not None  # noqa: S101 - `_start` comes first
    recipe, job = _work
    return render_shard(renderer_of(recipe), job, shard)
