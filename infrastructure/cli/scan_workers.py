"""Scan many session files in two processes. Results come in the order of the files."""

import logging
import multiprocessing
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from refold.application.lab.session_scan import ScannedSession, mark_kept
from refold.application.runtime.core import Core
from refold.infrastructure.bootstrap import open_core
from refold.infrastructure.tokens.estimator import EstimatingTokenCounter
from refold.infrastructure.transcripts.session_files import (
    FileScan,
    SessionFile,
    read_session_file,
    scan_file,
)

Item = TypeVar("Item")
Result = TypeVar("Result")

PROCESSES = 2
AHEAD = 8
"""Tasks that wait for a process, so that none of them is idle."""
SMALL = 2_000_000
"""Bytes up to which one process is faster than starting two more."""


class Marking(NamedTuple):
    """Sessions of a file whose lost facts are looked up in refold's ledger and index."""

    path: str
    sessions: tuple[ScannedSession, ...]


class Marked(NamedTuple):
    """The same sessions with marks, or the reason why there are none."""

    path: str
    sessions: tuple[ScannedSession, ...]
    problem: str = ""


def scan(file: SessionFile) -> FileScan:
    """Scan one file."""
    return scan_file(file, _counter())


def mark(marking: Marking) -> Marked:
    """Mark the lost facts that refold would have kept. A file that changed since its scan is left as it is."""
    try:
        conversations = read_session_file(Path(marking.path)).conversations
        found = {conversation.thread_id: conversation for conversation in conversations}
        core = _core()
        marked = [mark_kept(core, found[one.thread_id], one) for one in marking.sessions]
        return Marked(marking.path, tuple(marked))
    except (
        Exception
    ) as error:  # The file is being written, or a setting in the environment is invalid.
        return Marked(marking.path, marking.sessions, f"{type(error).__name__}: {error}")


@cache
def _counter() -> EstimatingTokenCounter:
    return EstimatingTokenCounter()


@cache
def _core() -> Core:
    # An in-memory log that stays empty.
    return open_core(":memory:", telemetry=False)


class Workers:
    """Processes that do one task at a time, and this process as long as there is little to do."""

    def __init__(self, pool: ProcessPoolExecutor | None) -> None:
        self._pool = pool

    def run(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Yield the result of each item in order. If a process dies or cannot start, this one does the rest."""
        done = 0
        if self._pool is not None:
            try:
                for result in _in_order(self._pool, task, items):
                    yield result
                    done += 1
            except (BrokenProcessPool, OSError, RuntimeError):
                self._pool = None
        yield from map(task, items[done:])


def _in_order(
    pool: ProcessPoolExecutor, task: Callable[[Item], Result], items: Sequence[Item]
) -> Iterator[Result]:
    # Executor.map would cancel its tasks in the end. A process that is ended then leaves an error in a thread.
    waiting = deque(pool.submit(task, item) for item in items[:AHEAD])
    for item in items[AHEAD:]:
        yield waiting.popleft().result()
        waiting.append(pool.submit(task, item))
    while waiting:
        yield waiting.popleft().result()


@contextmanager
def workers(size: int) -> Generator[Workers]:
    """Start processes for files of together ``size`` bytes, and end them at once in the end."""
    logger = logging.getLogger("refold")
    level = logger.level
    logger.setLevel(logging.ERROR)
    pool = _start_pool() if size > SMALL else None
    before = set(multiprocessing.active_children())
    try:
        yield Workers(pool)
    finally:
        logger.setLevel(level)
        if pool is not None:
            started = set(multiprocessing.active_children()) - before
            for child in started:
                child.terminate()
            with suppress(RuntimeError):  # A limit refused its thread.
                pool.shutdown()
        if _core.cache_info().currsize:
            _core().log.close()
            _core.cache_clear()


def _start_pool() -> ProcessPoolExecutor | None:
    # A fork shares what is imported already. Other systems than Linux have no safe fork.
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else None)
    try:
        return ProcessPoolExecutor(PROCESSES, context, _ignore_interrupts)
    except (OSError, NotImplementedError):  # Some systems offer no semaphores.
        return None


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
