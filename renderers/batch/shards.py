"""A file of conversations in shards, and each shard as one Parquet file that is there whole or not at all."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from renderers.batch.columns import COLUMNS
from renderers.batch.conversations import read_line, split_conversation
from renderers.errors import ConversationError, RendererError
from renderers.optional import load_optional
from renderers.renderer import Renderer

PARTIAL = ".partial"
#: The key of a file's metadata that holds its `Counts`.
_COUNTS = b"renderers"


@dataclass(frozen=True, slots=True)
class Shard:
    """Consecutive conversations of a JSONL file.

    Attributes:
        number: its place among the shards, from 0.
        start: the byte where its first line begins.
        first_line: number of that line, from 1.
        rows: how many conversations it holds; blank lines are none.
        name: of its Parquet file.
    """

    number: int
    start: int
    first_line: int
    rows: int
    name: str


@dataclass(frozen=True, slots=True)
class Plan:
    """A source file, cut into shards.

    Attributes:
        sha256: of the source.
        size: its bytes.
        shards: the shards.
    """

    sha256: str
    size: int
    shards: list[Shard]


@dataclass(frozen=True, slots=True)
class Counts:
    """What a shard holds: conversations, tokens, conversations that failed, and those that the format damaged."""

    rows: int
    tokens: int
    failed: int
    damaged: int


@dataclass(frozen=True, slots=True)
class Job:
    """How shards are rendered.

    Attributes:
        source: the JSONL file.
        output: the folder of the Parquet files.
        columns: the columns of `COLUMNS` to write.
        add_generation_prompt: open the assistant's turn at the end.
        keep_going: write a conversation that fails as a row with its error; otherwise it is raised.
    """

    source: Path
    output: Path
    columns: Sequence[str]
    add_generation_prompt: bool
    keep_going: bool


def plan(source: Path, shard_size: int) -> Plan:
    """Cut a file into shards of `shard_size` conversations. Reads it once."""
    digest = hashlib.sha256()
    starts: list[tuple[int, int]] = []
    position = rows = 0
    with source.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            digest.update(line)
            if not line.isspace():
                if rows % shard_size == 0:
                    starts.append((position, number))
                rows += 1
            position += len(line)
    shards = [
        Shard(
            number,
            start,
            first_line,
            min(shard_size, rows - number * shard_size),
            f"part-{number:05}-of-{len(starts):05}.parquet",
        )
        for number, (start, first_line) in enumerate(starts)
    ]
    return Plan(digest.hexdigest(), position, shards)


def _conversations(source: Path, shard: Shard) -> Iterator[tuple[int, bytes]]:
    """Number and bytes of each line of a shard that is not blank."""
    left = shard.rows
    with source.open("rb") as lines:
        lines.seek(shard.start)
        for number, line in enumerate(lines, start=shard.first_line):
            if not left:
                return
            if not line.isspace():
                left -= 1
                yield number, line


def render_shard(renderer: Renderer[Any], job: Job, shard: Shard) -> Counts:
    """Render a shard and write its file.

    Raises:
        ConversationError: a conversation cannot be rendered, and the job does not keep going; names its line.
    """
    made: dict[str, list[Any]] = {name: [] for name in ("line", *job.columns, "error")}
    tokens = failed = damaged = 0
    for number, line in _conversations(job.source, shard):
        try:
            messages, tools = split_conversation(read_line(line))
            rendered = renderer.render(messages, tools=tools, add_generation_prompt=job.add_generation_prompt)
        except RendererError as error:
            if not job.keep_going:
                raise ConversationError(f"{job.source}, line {number}: {error}") from None
            failed += 1
            row: dict[str, Any] = {"error": str(error)}
        else:
            tokens += len(rendered)
            damaged += bool(rendered.warnings)
            row = {name: COLUMNS[name](rendered) for name in job.columns}
        for name, values in made.items():
            values.append(number if name == "line" else row.get(name))
    counts = Counts(shard.rows, tokens, failed, damaged)
    _write(job.output / shard.name, made, counts)
    return counts


def _write(path: Path, made: dict[str, list[Any]], counts: Counts) -> None:
    """Under another name first, so that the file appears whole or not at all."""
    pa, parquet = require_arrow()
    kinds = {
        "line": pa.int64(),
        "token_ids": pa.list_(pa.int32()),
        "message_indices": pa.list_(pa.int32()),
        "sampled_mask": pa.list_(pa.bool_()),
        "is_content": pa.list_(pa.bool_()),
        "owners": pa.list_(pa.string()),
        "warnings": pa.list_(pa.string()),
        "error": pa.string(),
    }
    schema = pa.schema([(name, kinds[name]) for name in made], metadata={_COUNTS: orjson.dumps(counts)})
    # The process is in the name: one that outlives its run by a moment writes into no other's file.
    partial = path.with_name(f".{path.name}.{os.getpid()}{PARTIAL}")
    with partial.open("wb") as file:
        parquet.write_table(pa.table(made, schema=schema), file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    sync_folder(path.parent)


def counts_of(path: Path, shard: Shard) -> Counts | None:
    """What a finished shard's file holds; None where it is not there, or is not that shard."""
    pa, parquet = require_arrow()
    if not path.exists():
        return None
    try:
        metadata = parquet.read_metadata(path)
        counts = Counts(**orjson.loads(metadata.metadata[_COUNTS]))
    except (pa.ArrowException, OSError, LookupError, TypeError, ValueError):
        return None
    return counts if metadata.num_rows == counts.rows == shard.rows else None


def sync_folder(folder: Path) -> None:
    """Make a new name in a folder last beyond a power cut, where the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows opens no folders
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def require_arrow() -> tuple[Any, Any]:
    """The modules `pyarrow` and `pyarrow.parquet`.

    Raises:
        MissingExtraError: they are not installed.
    """
    purpose = "writing Parquet files"
    return load_optional("pyarrow", "arrow", purpose), load_optional("pyarrow.parquet", "arrow", purpose)
