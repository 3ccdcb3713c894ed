"""A kill at any point loses no finished shard and leaves no partial one: processes are killed for real."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings
from pyarrow import parquet

from renderers import create_renderer
from renderers.batch import render_jsonl

MAKE = partial(create_renderer, "golden:qwen3")
ROWS, SHARD_SIZE = 40, 4

#: Renders in one process, which kills itself at the given step of writing the given shard.
SUICIDE = """
import os, pathlib, signal, sys
from functools import partial
from pyarrow import parquet
from renderers import create_renderer
from renderers.batch import render_jsonl, shards

source, output, step, victim = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4]
write_table, fsync, replace, sync_folder = parquet.write_table, os.fsync, pathlib.Path.replace, shards.sync_folder
current = ""

def die_at(place):
    if place == step and victim in current:
        os.kill(os.getpid(), signal.SIGKILL)

class HalfWritten:
    def __init__(self, file): self.file, self.closed, self.mode = file, False, "wb"
    def write(self, data):
        self.file.write(data[: len(data) // 2])
        self.file.flush()
        die_at("half")
        return self.file.write(data[len(data) // 2 :]) and len(data)
    def __getattr__(self, name): return getattr(self.file, name)

def patched_write(table, file):
    global current
    current = file.name
    die_at("begin")
    write_table(table, HalfWritten(file) if step == "half" else file)
    die_at("written")

def patched_replace(self, target):
    die_at("replace")
    result = replace(self, target)
    die_at("replaced")
    return result

def patched_fsync(handle):
    die_at("sync")
    fsync(handle)
    die_at("synced")

parquet.write_table, pathlib.Path.replace, os.fsync = patched_write, patched_replace, patched_fsync
render_jsonl(source, output, partial(create_renderer, "golden:qwen3"), shard_size=4)
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of conversations."""
    path = tmp_path_factory.mktemp("source") / "in.jsonl"
    lines = [json.dumps([{"role": "user", "content": "hello " * (number % 9)}]) for number in range(ROWS)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def whole(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What an undisturbed run makes of it."""
    out = tmp_path_factory.mktemp("whole")
    render_jsonl(source, out, MAKE, shard_size=SHARD_SIZE)
    return read(out)


def read(folder: Path) -> Any:
    """Everything in a folder, in order."""
    return pa.concat_tables([parquet.read_table(path) for path in sorted(folder.glob("*.parquet"))])


def check(folder: Path, whole: Any) -> dict[Path, tuple[int, int]]:
    """Every file that is there is a whole shard; its identity, by path."""
    found = {}
    for path in sorted(folder.glob("*.parquet")):
        number = int(path.name[5:10])
        assert parquet.read_table(path).equals(whole.slice(number * SHARD_SIZE, SHARD_SIZE))
        found[path] = (path.stat().st_ino, path.stat().st_mtime_ns)
    return found


def finish(source: Path, folder: Path, whole: Any) -> None:
    """Run to the end: all that was finished is kept as it is, and the rest is made."""
    before = check(folder, whole)
    summary = render_jsonl(source, folder, MAKE, shard_size=SHARD_SIZE)
    after = check(folder, whole)
    assert summary.reused == len(before)
    assert {path: after[path] for path in before} == before
    assert read(folder).equals(whole)
    assert not list(folder.glob(".*.partial"))


@pytest.mark.parametrize("step", ["begin", "half", "written", "sync", "synced", "replace", "replaced"])
def test_killed_at_a_step_of_writing(source: Path, whole: Any, tmp_path: Path, step: str) -> None:
    command = [sys.executable, "-c", SUICIDE, str(source), str(tmp_path), step, "part-00003"]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    names = {path.name[:10] for path in check(tmp_path, whole)}
    finished = {"part-00000", "part-00001", "part-00002"}
    assert names == (finished | {"part-00003"} if step == "replaced" else finished)
    finish(source, tmp_path, whole)


def children(process: int) -> list[int]:
    """Processes that a process has started, and they in turn."""
    path = Path(f"/proc/{process}/task/{process}/children")
    own = [int(one) for one in path.read_text().split()] if path.exists() else []
    return own + [one for child in own for one in children(child)]


def alive(process: int) -> bool:
    """Whether it still runs."""
    try:
        os.kill(process, 0)
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("seed", range(max(1, settings().max_examples // 200)))
def test_the_command_killed_at_any_moment(source: Path, whole: Any, tmp_path: Path, seed: int) -> None:
    """The run with its workers, killed again and again at random; at last it is let finish."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    main = "from renderers.cli import main; main()"
    options = ["-m", "golden:qwen3", "--workers", "2", "--shard-size", str(SHARD_SIZE)]
    command = [
        sys.executable,
        "-c",
        main,
        "render-batch",
        str(source),
        str(tmp_path),
        *options,
        "--column",
        "token_ids",
    ]
    for name in ("sampled_mask", "message_indices", "warnings"):
        command += ["--column", name]
    before = 0
    for _ in range(2):
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wanted = before + chance.randint(1, 4)
        end = time.monotonic() + 120
        while len(list(tmp_path.glob("*.parquet"))) < wanted and run.poll() is None and time.monotonic() < end:
            time.sleep(0.001)
        time.sleep(chance.random() * 0.01)
        workers = children(run.pid)
        assert workers or run.poll() is not None
        run.kill()
        assert run.wait() in {-signal.SIGKILL, 0}
        before = len(check(tmp_path, whole))
        while any(map(alive, workers)):  # they end with the run that started them
            assert time.monotonic() < end
            time.sleep(0.01)
    finish(source, tmp_path, whole)
