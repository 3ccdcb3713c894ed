"""What concerns a process as a whole: imports, construction, memory, throughput."""

from __future__ import annotations

import gc
import statistics
import subprocess
import sys
import time
import tracemalloc
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier

from benchmarks.conversations import TOOLS, make_conversation
from benchmarks.subjects import Subject
from benchmarks.timing import seconds
from renderers import create_renderer


def import_seconds(module: str, rounds: int) -> float:
    """Processor time that `import MODULE` adds to a fresh interpreter: the smallest difference of two runs in turn."""
    return min(_process(f"import {module}") - _process("pass") for _ in range(rounds))


def _process(code: str) -> float:
    said = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport time\nprint(time.process_time())"],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(said.stdout)


def construction_seconds(subject: Subject, rounds: int) -> float:
    """Processor time of making a renderer for a tokenizer that is loaded."""
    tokenizer = subject.model if subject.model.startswith("golden:") else subject.tokenizer
    create_renderer(tokenizer)  # the families are imported once a process
    return statistics.median(seconds(create_renderer, tokenizer) for _ in range(rounds))


def bytes_per_token(subject: Subject, count: int) -> float:
    """Bytes that a result with its mask takes beside the token IDs, once the renderer that made it is gone."""
    renderer = subject.new_renderer()
    messages = make_conversation(count, 7)
    warm = renderer.render(messages[:2], tools=TOOLS)
    assert warm.sampled_mask
    gc.collect()
    tracemalloc.start()
    rendered = renderer.render(messages, tools=TOOLS, add_generation_prompt=True)
    assert any(run.owner for run in rendered.runs())
    ids = rendered.token_ids
    del renderer, warm
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    numbers = sum(sys.getsizeof(number) for number in {id(number): number for number in ids}.values())
    tracemalloc.stop()
    return (held - numbers - sys.getsizeof(ids)) / len(ids)


def renders_per_second(subject: Subject, processes: int, count: int, conversations: int) -> float:
    """New conversations of `count` messages that so many processes render in a second, each with a renderer of its own."""
    # Spawned, so that each process sets its own tokenizer up, as workers on several machines would.
    context = get_context("spawn")
    shares = [range(number, conversations, processes) for number in range(processes)]
    with ProcessPoolExecutor(processes, context, _share, (context.Barrier(processes),)) as pool:
        taken = pool.map(_render_all, [subject] * processes, [count] * processes, shares)
        return conversations / max(taken)


_shared: dict[str, Barrier] = {}


def _share(barrier: Barrier) -> None:
    _shared["barrier"] = barrier


def _render_all(subject: Subject, count: int, seeds: range) -> float:
    """The seconds that rendering took, once all processes were ready."""
    renderer = subject.new_renderer()
    conversations = [make_conversation(count, 10_000 + seed) for seed in seeds]
    _ = renderer.render(make_conversation(count), tools=TOOLS).token_ids
    _shared["barrier"].wait(timeout=600)
    begin = time.perf_counter()
    for messages in conversations:
        _ = renderer.render(messages, tools=TOOLS, add_generation_prompt=True).token_ids
    return time.perf_counter() - begin
