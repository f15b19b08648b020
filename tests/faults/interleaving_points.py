"""The points at which a thread may lose its turn: locks, threads, sleeping, selectors, SQLite, file locks, lines.

All is put in place in a forked child alone, and stays there until the child ends.
"""

import _thread
import asyncio
import fcntl
import functools
import gc
import math
import os
import queue
import random
import selectors
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, cast

from .interleaving_scheduler import Scheduler, Task

FILE_CALLS = ("replace", "rename", "unlink", "link", "fsync", "ftruncate", "fstat")
"""Functions of ``os`` that are points."""
TIMEOUT = 5.0
"""Seconds that SQLite waits for a lock where nothing else is said."""


class Points:
    """The scheduler of this process, and the numbers of its locks."""

    scheduler: Scheduler
    locks = asyncio_tasks = 0
    lines: frozenset[str] = frozenset()
    """Ends of the names of files of which each line is a point."""
    changes = 0
    """Calls of SQLite that ended: after each, a lock of it may be free."""


class PlainLock:
    """A ``threading.Lock`` that the scheduler sees."""

    def __init__(self) -> None:
        Points.locks += 1
        maker = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        self.name = f"lock {Points.locks} ({_made_at(maker)})"
        self._held = 0
        self._owner = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        scheduler, me = Points.scheduler, _thread.get_ident()
        scheduler.switch(f"acquire {self.name}", self)
        until = scheduler.clock + timeout if timeout >= 0 else math.inf
        while not self._take(me):
            if not blocking or scheduler.clock >= until:
                return False
            if scheduler.mine() is None:
                _sleep(0.0005)  # A thread that ends, past its last point.
            scheduler.wait(lambda: self._is_free(me), until, self.name, self)
        return True

    def release(self) -> None:
        if not self._held:
            raise RuntimeError("release unlocked lock")
        self._held -= 1
        Points.scheduler.switch(f"release {self.name}", self)

    def locked(self) -> bool:
        return self._held > 0

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def _take(self, me: int) -> bool:
        free = self._is_free(me)
        if free:
            self._held, self._owner = self._held + 1, me
        return free

    def _is_free(self, _me: int) -> bool:
        return not self._held

    def _is_owned(self) -> bool:
        return self._held > 0

    def _at_fork_reinit(self) -> None:
        self._held = 0


class NestedLock(PlainLock):
    """A ``threading.RLock`` that the scheduler sees."""

    def release(self) -> None:
        if not self._is_owned():
            raise RuntimeError("cannot release un-acquired lock")
        super().release()

    def _is_free(self, me: int) -> bool:
        return not self._held or self._owner == me

    def _is_owned(self) -> bool:
        return self._held > 0 and self._owner == _thread.get_ident()

    def _release_save(self) -> tuple[int, int]:
        saved, self._held = (self._held, self._owner), 0
        Points.scheduler.switch(f"release {self.name}", self)
        return saved

    def _acquire_restore(self, saved: tuple[int, int]) -> None:
        self.acquire()
        self._held, self._owner = saved


class Begun:
    """A flag that says whether a thread has begun; the scheduler does not see it."""

    def __init__(self) -> None:
        self._lock = _allocate()
        self._lock.acquire()
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        self._lock.release()

    def wait(self, timeout: float | None = None) -> bool:
        del timeout
        with self._lock:
            return self._is_set


class NumberedTask(asyncio.Task[Any]):
    """A task whose place in a set does not depend on its address."""

    def __init__(self, *args: Any, **options: Any) -> None:
        Points.asyncio_tasks += 1
        self._number = Points.asyncio_tasks
        super().__init__(*args, **options)

    def __hash__(self) -> int:
        return self._number


_allocate = _thread.allocate_lock
_sleep = time.sleep
_start = threading.Thread.start
_join = threading.Thread.join
_is_alive = threading.Thread.is_alive


def install(scheduler: Scheduler, lines: frozenset[str]) -> None:
    """Make everything that a thread waits for a point. The process must have no other threads."""
    Points.scheduler, Points.lines = scheduler, lines
    gc.disable()  # A destructor at a moment of its own would be another schedule.
    random.seed(0)
    places = all_places()
    made = {id(old): new for old, new in _replaced(scheduler)}
    for names, name, old in places:
        new = made[id(old)] if id(old) in made else _lock_like(old, name)
        if isinstance(names, dict):
            names[name] = new
        else:
            setattr(names, name, new)
    Points.locks = 0  # Numbers are those of the locks that the schedule makes.
    python: Any = threading
    python.Lock = python._allocate_lock = PlainLock
    python.RLock, python._time = NestedLock, time.monotonic  # The counted one by now.
    thread: Any = threading.Thread
    thread.start, thread.join, thread.is_alive = _start_thread, _join_thread, _lives
    queues: Any = queue
    queues.SimpleQueue = queues._PySimpleQueue
    tasks: Any = asyncio.tasks
    tasks.Task = NumberedTask
    _watch_selectors()
    _watch_sqlite()


def _replaced(scheduler: Scheduler) -> list[tuple[Any, Any]]:
    """Functions of Python, and what takes their place."""
    files = [fcntl.flock, fcntl.fcntl, *(getattr(os, name) for name in FILE_CALLS)]
    return [
        (threading.Lock, PlainLock),
        (threading.RLock, NestedLock),
        (time.monotonic, lambda: scheduler.clock),
        (time.sleep, _slept),
        *((call, _point(call)) for call in files),
    ]


Place = tuple[Any, str, Any]
"""A module's names, a class or an object; a name in it; and what is there."""


@functools.cache
def all_places() -> list[Place]:
    """Each name that a module gave to a replaced function, and each lock that was made before."""
    old = {id(call) for call, _ in _replaced(Scheduler(lambda _number, _stays, others: others[0]))}
    kept = (threading, _thread, sys.modules[__name__], sys.modules[Scheduler.__module__])
    modules = list(sys.modules.values())
    return [place for m in modules if m not in kept for place in _in_module(m, old)]


def _in_module(module: ModuleType, old: set[int]) -> Iterator[Place]:
    name_of_module = str(vars(module).get("__name__"))
    for name, value in list(vars(module).items()):
        if id(value) in old:
            yield vars(module), name, value
        elif isinstance(value, type):
            if value.__module__ == name_of_module:
                yield from _in_class(value)
        elif _is_lock(value) and "logging" not in name_of_module:
            yield vars(module), name, value
        elif type(value).__module__.startswith("refold.") and hasattr(value, "__dict__"):
            owner: Any = value
            parts: dict[str, object] = dict(owner.__dict__)
            yield from ((value, part, one) for part, one in parts.items() if _is_lock(one))


def _in_class(owner: type) -> Iterator[Place]:
    for name, value in list(vars(owner).items()):
        if _is_lock(value):
            yield owner, name, value
        elif type(value) is functools.cached_property:
            held: Any = cast(Any, value)
            if hasattr(held, "lock"):
                yield held, "lock", held.lock


def _is_lock(value: object) -> bool:
    return type(value) in (_thread.LockType, _thread.RLock, threading.Condition)


def _lock_like(value: object, name: str) -> Any:
    """A lock of the scheduler for a lock of Python that has this name in its module or class."""
    lock = PlainLock() if isinstance(value, _thread.LockType) else NestedLock()
    lock.name = f"lock {name}"
    return threading.Condition(cast("Any", lock)) if type(value) is threading.Condition else lock


def _made_at(frame: FrameType | None) -> str:
    """The line of the program that made a lock."""
    while frame is not None and (
        "/lib/python" in frame.f_code.co_filename or frame.f_code.co_filename == __file__
    ):
        if "site-packages" in frame.f_code.co_filename:
            break
        frame = frame.f_back
    return "-" if frame is None else f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def _point(call: Callable[..., Any]) -> Callable[..., Any]:
    name = call.__name__

    def called(*args: Any, **options: Any) -> Any:
        Points.scheduler.switch(name, "files")
        return call(*args, **options)

    return called


def _slept(seconds: float) -> None:
    scheduler = Points.scheduler
    if scheduler.mine() is None:
        _sleep(seconds)
    scheduler.wait(lambda: False, scheduler.clock + max(seconds, 1e-6), "sleep", "clock")


def _start_thread(thread: Any) -> None:
    """Start a thread that waits for its turn before it does anything."""
    scheduler = Points.scheduler
    task = scheduler.task(getattr(thread, "scheduled_as", None))
    task.what = f"begin {thread.name}"
    thread._started, thread.scheduled_task = Begun(), task
    thread.run = partial(_run, thread.run, task)
    _start(thread)
    scheduler.switch(f"start {task.name} ({thread.name})", "threads")


def _run(work: Callable[[], None], task: Task) -> None:
    Points.scheduler.begin(task)
    if Points.lines:
        sys.settrace(_traced)
    try:
        work()
    finally:
        sys.settrace(None)
        Points.scheduler.end(task)


def _join_thread(thread: Any, timeout: float | None = None) -> None:
    task, scheduler = getattr(thread, "scheduled_task", None), Points.scheduler
    if task is None:
        _join(thread, timeout)
        return
    if thread is threading.current_thread():
        raise RuntimeError("cannot join current thread")
    until = math.inf if timeout is None else scheduler.clock + timeout
    while not task.done and scheduler.clock < until:
        scheduler.wait(lambda: task.done, until, f"end of {task.name}", "threads")
    if task.done:
        _join(thread)


def _lives(thread: Any) -> bool:
    task = getattr(thread, "scheduled_task", None)
    return _is_alive(thread) if task is None else not task.done


def _traced(frame: FrameType, event: str, _arg: object) -> Any:
    """Make each line of the chosen files a point."""
    name = frame.f_code.co_filename
    if event == "call" and not name.endswith(tuple(Points.lines)):
        return None
    if event == "line":
        Points.scheduler.switch(f"line {name.rpartition('/')[2]}:{frame.f_lineno}", name)
    return _traced


def _watch_selectors() -> None:
    kind: Any = selectors.DefaultSelector
    poll = kind.select

    def select(self: Any, timeout: float | None = None) -> Any:
        scheduler = Points.scheduler
        scheduler.switch("select", "selector")
        if (found := poll(self, 0)) or (timeout is not None and timeout <= 0):
            return found
        until = math.inf if timeout is None else scheduler.clock + timeout
        scheduler.wait(lambda: bool(poll(self, 0)), until, "select", "selector")
        return poll(self, 0)

    kind.select = select


def _watch_sqlite() -> None:
    from refold.infrastructure.sqlite import sqlite_connection

    cursor: Any = sqlite_connection.ProcessCursor
    for name in ("execute", "executemany", "executescript"):
        setattr(cursor, name, _statement(getattr(cursor, name)))
    connection: Any = sqlite_connection.ProcessConnection
    for name in ("commit", "rollback", "close"):
        setattr(connection, name, _ending(getattr(connection, name)))
    begin = connection.__init__

    def made(self: Any, *args: Any, **options: Any) -> None:
        # SQLite waits without giving its turn away, so it must not wait at all.
        self.patience = float(options.pop("timeout", TIMEOUT))
        self.is_fresh = False
        self.scheduled_file = Path(str(args[0]).partition("?")[0]).name
        Points.scheduler.switch(f"open {self.scheduled_file}", self.scheduled_file)
        begin(self, *args, timeout=0.0, **options)

    connection.__init__ = made


def _ending(call: Callable[..., Any]) -> Callable[..., Any]:
    name = call.__name__

    def called(self: Any) -> Any:
        file = getattr(self, "scheduled_file", "?")
        Points.scheduler.switch(f"{name} {file}", file)
        try:
            return call(self)
        finally:
            Points.changes += 1

    return called


def _statement(call: Callable[..., Any]) -> Callable[..., Any]:
    def called(self: Any, sql: str, *args: Any) -> Any:
        connection, scheduler = self.connection, Points.scheduler
        if sql.startswith("PRAGMA busy_timeout"):
            return call(self, _patience(connection, sql))
        file = connection.scheduled_file
        if file != ":memory:":  # Of one thread alone; its savepoints have names that are drawn.
            scheduler.switch(f"{' '.join(sql.split()[:3])[:40]} on {file}", file)
        until = scheduler.clock + connection.patience
        # SQLite does not wait within a transaction that has read something.
        may_wait = not connection.in_transaction or connection.is_fresh
        while True:
            try:
                answer = call(self, sql, *args)
                connection.is_fresh = sql.startswith("BEGIN")
                return answer
            except sqlite3.OperationalError as error:
                is_busy = error.sqlite_errorcode in (5, 261)  # SQLITE_BUSY, SQLITE_BUSY_RECOVERY
                if not is_busy or not may_wait or scheduler.clock >= until:
                    raise
                changed = partial(_changed_since, Points.changes)
                scheduler.wait(changed, until, f"lock of {file}", file)
            finally:
                Points.changes += 1

    return called


def _changed_since(changes: int) -> bool:
    """Whether a call of SQLite has ended since."""
    return Points.changes > changes


def _patience(connection: Any, sql: str) -> str:
    """Keep the time limit of a connection here, and a statement that returns it."""
    _, is_set, number = sql.partition("=")
    if is_set:
        connection.patience = int(number) / 1000
    return f"SELECT {int(connection.patience * 1000)}"
