"""From JSONL to Parquet: content, errors, restarts and the command."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from renderers import create_renderer
from renderers.batch import COLUMNS, Summary, render_jsonl
from renderers.cli.app import app
from renderers.errors import ConfigError, ConversationError, RendererError

GOLDEN = "golden:qwen3"
MAKE = partial(create_renderer, GOLDEN)
RENDERER = MAKE()
LONG = 2**70


def conversation(number: int) -> dict[str, Any]:
    """One of many."""
    call = {"function": {"name": "look", "arguments": {"number": LONG + number}}}
    return {
        "messages": [
            {"role": "user", "content": "hello " * (number % 7)},
            {"role": "assistant", "content": "", "tool_calls": [call]},
        ]
    }


def write(path: Path, count: int, *, bad: tuple[int, ...] = ()) -> Path:
    """A file of conversations, one in five after a blank line; those of `bad` have a role that does not exist."""
    lines = []
    for number in range(count):
        given = {"messages": [{"role": "narrator"}]} if number in bad else conversation(number)
        lines.append(("\n" if number % 5 == 4 else "") + json.dumps(given))
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def read(folder: Path) -> Any:
    """Everything in a folder, in order."""
    return pa.concat_tables([parquet.read_table(path) for path in sorted(folder.glob("*.parquet"))])


@pytest.mark.parametrize("workers", [1, 2])
def test_every_line_is_rendered(tmp_path: Path, workers: int) -> None:
    source = write(tmp_path / "in.jsonl", 23)
    steps: list[tuple[int, int]] = []
    summary = render_jsonl(
        source,
        tmp_path / "out",
        MAKE,
        workers=workers,
        shard_size=4,
        columns=tuple(COLUMNS),
        progress=lambda done, total: steps.append((done, total)),
    )
    table = read(tmp_path / "out")
    rendered = [RENDERER.render(conversation(number)["messages"]) for number in range(23)]
    assert summary == Summary(23, sum(map(len, rendered)), 0, 0, 6, 0)
    assert table.column("token_ids").to_pylist() == [one.token_ids for one in rendered]
    assert table.column("sampled_mask").to_pylist() == [one.sampled_mask for one in rendered]
    assert table.column("owners").to_pylist() == [[str(owner) for owner in one.owners] for one in rendered]
    assert table.column("error").null_count == 23
    lines = source.read_text("utf-8").split("\n")
    assert [json.loads(lines[number - 1]) for number in table.column("line").to_pylist()] == [
        conversation(number) for number in range(23)
    ]
    assert steps[0] == (0, 23)
    assert steps[-1] == (23, 23)
    assert steps == sorted(steps)


def test_a_finished_run_is_not_run_again(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", 10)
    first = render_jsonl(source, tmp_path / "out", MAKE, shard_size=3)
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.parquet")}
    again = render_jsonl(source, tmp_path / "out", MAKE, shard_size=3)
    assert (again.rows, again.tokens, again.reused) == (first.rows, first.tokens, 4)
    assert times == {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.parquet")}


def test_what_is_missing_or_damaged_is_made_again(tmp_path: Path) -> None:
    source, out = write(tmp_path / "in.jsonl", 10), tmp_path / "out"
    render_jsonl(source, out, MAKE, shard_size=3)
    whole = read(out)
    paths = sorted(out.glob("*.parquet"))
    paths[0].unlink()
    paths[1].write_bytes(paths[1].read_bytes()[:-9])
    paths[2].write_bytes(paths[3].read_bytes())
    (out / ".part-00000.1.partial").write_bytes(b"left by a kill")
    assert render_jsonl(source, out, MAKE, shard_size=3).reused == 1
    assert read(out).equals(whole)
    assert not list(out.glob(".*.partial"))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"shard_size": 4}, "shard_size"),
        ({"columns": ("token_ids",)}, "columns"),
        ({"add_generation_prompt": True}, "add_generation_prompt"),
        ({"make_renderer": partial(create_renderer, GOLDEN, thinking_retention="all")}, "renderer"),
        ({"count": 11}, "source_sha256, source_bytes"),
    ],
)
def test_a_folder_of_another_run_is_refused(tmp_path: Path, change: dict[str, Any], named: str) -> None:
    out = tmp_path / "out"
    render_jsonl(write(tmp_path / "in.jsonl", 10), out, MAKE, shard_size=3)
    source = write(tmp_path / "in.jsonl", change.pop("count", 10))
    with pytest.raises(ConfigError, match=f"another run: {named} differs"):
        render_jsonl(source, out, **{"make_renderer": MAKE, "shard_size": 3, **change})


def test_folders_that_are_none_of_ours(tmp_path: Path) -> None:
    source, out = write(tmp_path / "in.jsonl", 1), tmp_path / "out"
    out.mkdir()
    (out / "theirs.parquet").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"no manifest\.json"):
        render_jsonl(source, out, MAKE)
    (out / "manifest.json").write_text("{")
    with pytest.raises(ConfigError, match="is no manifest"):
        render_jsonl(source, out, MAKE)


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    source, out = write(tmp_path / "in.jsonl", 6), tmp_path / "out"

    def second(_done: int, _total: int) -> None:
        with pytest.raises(ConfigError, match="another run is rendering into"):
            render_jsonl(source, out, MAKE)
        tried.append(1)

    tried: list[int] = []
    render_jsonl(source, out, MAKE, progress=second)
    assert tried


@pytest.mark.parametrize("workers", [1, 2])
def test_a_bad_line_ends_the_run_and_keeps_what_is_finished(tmp_path: Path, workers: int) -> None:
    source, out = write(tmp_path / "in.jsonl", 12, bad=(8,)), tmp_path / "out"
    with pytest.raises(ConversationError, match=r"in\.jsonl, line 10: messages\[0\]\.role"):
        render_jsonl(source, out, MAKE, shard_size=4, workers=workers)
    names = {path.name[:10] for path in out.glob("*.parquet")}
    assert "part-00000" in names
    assert "part-00002" not in names or workers == 2
    assert not list(out.glob(".*.partial"))


def test_a_bad_line_can_be_kept_as_its_error(tmp_path: Path) -> None:
    source, out = write(tmp_path / "in.jsonl", 12, bad=(2, 8)), tmp_path / "out"
    summary = render_jsonl(source, out, MAKE, shard_size=4, keep_going=True)
    assert (summary.rows, summary.failed) == (12, 2)
    row = read(out).to_pylist()[8]
    assert row["token_ids"] is None
    assert row["error"].startswith("messages[0].role")
    with pytest.raises(ConversationError, match="line 3"):  # shards with errors are not what a strict run finished
        render_jsonl(source, out, MAKE, shard_size=4)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "no JSON"),
        ('{"turns": []}', "needs 'messages'"),
        ("5", "messages"),
        ("[" * 100_000, "no JSON"),
        ("\xff", "JSON"),
    ],
)
def test_lines_that_are_no_conversation(tmp_path: Path, line: str, problem: str) -> None:
    source = tmp_path / "in.jsonl"
    source.write_bytes(b'[{"role": "user", "content": "hi"}]\n' + line.encode("latin-1"))
    with pytest.raises(ConversationError, match=f"line 2: .*{problem}"):
        render_jsonl(source, tmp_path / "out", MAKE)


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_an_empty_file(tmp_path: Path, content: bytes) -> None:
    source = tmp_path / "in.jsonl"
    source.write_bytes(content)
    assert render_jsonl(source, tmp_path / "out", MAKE, workers=3) == Summary(0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("options", "problem"),
    [({"workers": 0}, "workers"), ({"shard_size": 0}, "shard_size"), ({"columns": ["ids"]}, "no column 'ids'")],
)
def test_settings_that_do_not_exist(tmp_path: Path, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        render_jsonl(tmp_path / "in.jsonl", tmp_path / "out", MAKE, **options)


def dying() -> Any:
    """Makes a renderer here, and ends a worker process."""
    import multiprocessing
    import os

    if multiprocessing.parent_process() is not None:
        os._exit(1)
    return MAKE()


def test_a_worker_that_dies_is_said(tmp_path: Path) -> None:
    with pytest.raises(RendererError, match="run the same again"):
        render_jsonl(write(tmp_path / "in.jsonl", 4), tmp_path / "out", dying, workers=2, shard_size=1)


def test_the_command(tmp_path: Path) -> None:
    source, out = write(tmp_path / "in.jsonl", 9, bad=(3,)), tmp_path / "out"

    def run(*arguments: str) -> tuple[int, str, str]:
        result = CliRunner().invoke(app, ["render-batch", str(source), str(out), "-m", GOLDEN, *arguments])
        return result.exit_code, result.stdout, result.stderr

    code, _, errors = run("--shard-size", "2")
    assert code == 2
    assert "line 4: messages[0].role" in errors
    code, output, errors = run("--shard-size", "2", "--keep-going")
    assert code == 1
    assert "9 conversations" in output
    assert "1 of them from an earlier run" in output
    assert "1 conversations could not be rendered" in errors
    write(source, 9)
    out = tmp_path / "other"
    code, output, _ = run("--retention", "all", "--column", "token_ids", "--column", "owners")
    assert code == 0
    assert read(out).column_names == ["line", "token_ids", "owners", "error"]
    source = tmp_path / "missing.jsonl"
    assert run()[0] == 2
