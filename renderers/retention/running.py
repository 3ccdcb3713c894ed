"""Runs a study over a stream of conversations: in this process, or in several."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from typing import TYPE_CHECKING

from renderers.errors import RendererError

if TYPE_CHECKING:
    from renderers.retention.conversations import Item
    from renderers.retention.study import Study, Tally

#: Conversations that a worker gets at once, and bytes: little enough to stop soon and to show progress.
_CHUNK_ITEMS = 16
_CHUNK_BYTES = 1 << 20
#: Chunks a worker that are read ahead. The memory that a run takes depends on this, not on the file.
_AHEAD = 3

_study: Study | None = None


def tallies(study: Study, items: Iterable[Item], *, workers: int) -> Generator[Tally]:
    """The counts of one chunk of conversations after the other, in order, whatever the number of workers.

    Under a strict study the first tally with a failure is the last one. Closing the iterator, or an interrupt, ends the
    workers after the chunks that they are at.

    Raises:
        RendererError: a worker process died.
    """
    found = map(study.measure, _chunks(items)) if workers == 1 else _in_processes(study, _chunks(items), workers)
    for tally in found:
        yield tally
        if study.strict and tally.failures:
            return


def _chunks(items: Iterable[Item]) -> Iterator[list[Item]]:
    chunk: list[Item] = []
    size = 0
    for item in items:
        chunk.append(item)
        size += item.size
        if len(chunk) == _CHUNK_ITEMS or size >= _CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _in_processes(study: Study, chunks: Iterable[list[Item]], workers: int) -> Iterator[Tally]:
    # Not forked: the tokenizers' threads do not survive that.
    pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=_start, initargs=(study,))
    waiting: deque[Future[Tally]] = deque()
    try:
        for chunk in chunks:
            with interrupts_held_back():
                waiting.append(pool.submit(_measure, chunk))
            if len(waiting) >= workers * _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise RendererError(
            "a worker process ended before its work was done, perhaps for want of memory; try fewer workers"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """An interrupt comes after this, to the parent alone, which ends the workers: a process that starts here gets none.

    At a process that has only begun to start it would show a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):  # on Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(study: Study) -> None:
    global _study  # noqa: PLW0603 - a worker process has one study, sent to it once
    _study = study
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _measure(chunk: list[Item]) -> Tally:
    assert _study is not None  # noqa: S101 - set when the process started
    return _study.measure(chunk)
