"""Close SQLite files before a fork, and refuse the open ones in the child.

SQLite keeps tables of the files that a process has open and of their locks. A forked process inherits the
tables but not the locks. A connection in the child then believes that it holds locks that it does not hold,
and two processes delete each other's write-ahead log. So no file may be open during a fork. Parent and
child reopen their files when they need them.
"""

import os
import sys
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from types import TracebackType
from typing import Any, TypeVar, cast
from weakref import WeakMethod

from refold.application.errors import OpenedBeforeFork
from refold.application.runtime.opening_process import OpeningProcess, prepare_fork
from refold.application.runtime.plain_lines import plain_logger, raised
from refold.domain.late_model import guard_with

PATIENCE = 5.0
"""Seconds that a fork waits for other threads to finish their SQLite work."""
_LOOK = 0.002
"""Seconds between two looks for modules that are being imported."""
LONGEST_FORK = 3 * PATIENCE
"""Longest time in seconds that other threads wait for a fork.

The fork itself may need something that one of them holds.
"""

logger = plain_logger(__name__)
Act = Callable[[], None]


class OpenFile:
    """A database connection, registered from before it opens until it closes."""

    def __init__(self, path: Path | None, of: Path | None, *, kept: bool) -> None:
        """Register the files of a connection.

        ``path`` is None for a database in memory. ``of`` is the log that the file was derived from.
        ``kept`` says whether its owner closes the connection before a fork.
        """
        self.path = path
        self.kept = kept
        self.thread = threading.get_ident()
        self._names = [name for name in (path, of) if path and name]
        self._marks = self._find_marks()

    @property
    def marks(self) -> frozenset[object]:
        """Marks that identify the files of the connection."""
        return self._marks | self._find_marks()

    def _find_marks(self) -> frozenset[object]:
        return frozenset(mark for name in self._names for mark in marks_of(name))


def marks_of(path: Path) -> Iterable[object]:
    """Return the marks that identify a file under any name: its path, and its device and inode."""
    yield os.path.realpath(path)
    with suppress(OSError):
        status = path.stat()
        yield status.st_dev, status.st_ino


class _Use:
    """A period in which a thread works with SQLite.

    It must be cheap: every transaction is one.
    """

    __slots__ = ("_gate", "_thread")

    def __init__(self, gate: "ForkGate") -> None:
        self._gate = gate

    def __enter__(self) -> None:
        gate = self._gate
        self._thread = thread = threading.get_ident()
        # No lock is needed: a thread counts itself before it checks, and a fork announces itself before it counts.
        depth = gate.uses.get(thread, 0)
        gate.uses[thread] = depth + 1
        if gate.forks and not depth:
            gate.wait(thread)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        gate, thread = self._gate, self._thread
        depth = gate.uses.get(thread, 1) - 1
        if depth:
            gate.uses[thread] = depth
            return
        gate.uses.pop(thread, None)
        if gate.forks:
            gate.wake()


class ForkGate:
    """A gate that separates forks of this process from uses of SQLite."""

    def __init__(self) -> None:
        self.uses: dict[int, int] = {}
        """Nesting depth of uses, by thread."""
        self.forks = 0
        """Number of running forks. One thread may nest them."""
        self._forker = 0
        self._pid = os.getpid()
        self._turn = threading.RLock()
        self._changed = threading.Condition()
        self._open: set[OpenFile] = set()
        self._refused: set[object] = set()
        self._before: list[WeakMethod[Act]] = []
        self._in_child: list[WeakMethod[Act]] = []
        self._builds: list[list[Any]] = []
        """Locks of builds that each running fork holds."""

    def used(self) -> _Use:
        """Return a context manager for SQLite work. It waits for a running fork to finish."""
        return _Use(self)

    def close_before(self, let_go: Act) -> None:
        """Call this method before a fork to close idle connections.

        Only a weak reference to its object is kept.
        """
        with self._changed:
            self._before = [*filter(lambda one: one(), self._before), WeakMethod(let_go)]

    def close_in_child(self, leave: Act) -> None:
        """Call this method in a forked child to close what it shares with its parent."""
        with self._changed:
            self._in_child = [*filter(lambda one: one(), self._in_child), WeakMethod(leave)]

    def refuse(self, path: Path) -> None:
        """Refuse a file that was open when this process was forked.

        Raises:
            OpenedBeforeFork: the file was open.
        """
        self._look()
        if self._refused and not self._refused.isdisjoint(marks_of(path)):
            raise OpenedBeforeFork(path, refused=True)

    def opening(self, path: Path | None, of: Path | None, *, kept: bool) -> OpenFile:
        """Register a connection that is about to open.

        ``path`` is None for a database in memory.

        Raises:
            OpenedBeforeFork: the file was open when this process was forked.
        """
        if path is not None:
            self.refuse(path)
        file = OpenFile(path, of, kept=kept)
        self._open.add(file)
        return file

    def other_name(self, path: Path) -> Path | None:
        """Return another name (a hard link) under which this process has the file open, or None."""
        same = set(marks_of(path))
        for name in {file.path for file in list(self._open) if file.path is not None}:
            # Of the same file by another name, the path differs.
            if len(same.intersection(marks_of(name))) == 1 and name.exists():
                return name
        return None

    def closed(self, file: OpenFile) -> None:
        """Unregister a connection that was closed or never opened."""
        self._open.discard(file)
        if self.forks:
            self.wake()

    def wait(self, thread: int) -> None:
        """Wait until no fork is running, then count the thread as a user."""
        self._look()
        with self._changed:
            if self._forker != thread:
                self.uses.pop(thread, None)
                self._changed.notify_all()
                self._changed.wait_for(lambda: not self.forks, LONGEST_FORK)
            self.uses[thread] = 1

    def wake(self) -> None:
        """Wake the waiting threads."""
        with self._changed:
            self._changed.notify_all()

    def before_fork(self) -> None:
        """Wait for other threads, then close idle connections.

        Files that stay open are refused in the child.
        """
        known = _locks_of_python()
        self._look()
        self._turn.acquire()
        prepare_fork()
        thread = threading.get_ident()
        with self._changed:
            self.forks += 1
            self._forker = thread
            self._changed.wait_for(lambda: not self._is_used_besides(thread), PATIENCE)
        self._builds.append([])
        _hold_builds(self._builds[-1])
        for let_go in _alive(self._before):
            try:
                let_go()
            except Exception as error:  # A fork must not fail; the child refuses open files.
                logger.warning("a connection cannot be closed before a fork: %s", raised(error))
        if busy := sorted({str(one.path) for one in list(self._open) if one.path}):
            logger.warning("a forked process cannot open what is in use here: %s", ", ".join(busy))
        for lock in _locks_of_python():
            if lock not in known:  # Imported meanwhile: its module releases it all the same.
                lock.acquire(timeout=PATIENCE)

    def after_fork_in_parent(self) -> None:
        """Let the other threads continue."""
        if self._builds:
            _release(self._builds.pop())
        with self._changed:
            self.forks = max(0, self.forks - 1)
            if not self.forks:
                self._forker = 0
            self._changed.notify_all()
        with suppress(RuntimeError):  # The fork was interrupted before it entered.
            self._turn.release()

    def after_fork_in_child(self) -> None:
        """Refuse the files that are still open, and forget the threads of the parent."""
        _renew_build_locks()
        thread = threading.get_ident()
        for file in list(self._open):
            self._refused.update(file.marks)
        leaving = _alive(self._in_child)
        self.uses = {thread: self.uses[thread]} if thread in self.uses else {}
        self.forks, self._forker, self._pid = 0, 0, os.getpid()
        self._turn, self._changed = threading.RLock(), threading.Condition()
        self._open, self._before, self._in_child, self._builds = set(), [], [], []
        for leave in leaving:
            with suppress(Exception):
                leave()

    def _look(self) -> None:
        """Detect a fork that bypassed Python."""
        if os.getpid() != self._pid:
            self.after_fork_in_child()

    def _is_used_besides(self, thread: int) -> bool:
        return any(one != thread for one in list(self.uses)) or any(
            not file.kept and file.thread != thread for file in list(self._open)
        )


def _hold_builds(held: list[Any]) -> None:
    """Wait until no other thread imports a module or builds a class, and hold the locks of builds.

    A child would keep a half-made module or class for ever. ``held`` lists the acquired locks at any time,
    because the wait may be interrupted.
    """
    until = monotonic() + PATIENCE
    while True:
        locks = _build_locks()
        held.extend(lock for lock in locks if lock.acquire(timeout=_LOOK))
        if (len(held) == len(locks) and not _imports_elsewhere()) or monotonic() > until:
            return
        _release(held)
        sleep(_LOOK)


def _release(held: list[Any]) -> None:
    while held:
        held.pop().release()


def _build_locks() -> list[Any]:
    """Return the locks under which classes are built: pydantic's own, which nothing public has, and refold's."""
    pydantic_lock = getattr(sys.modules.get("pydantic.main"), "_rebuild_lock", None)
    return [one for one in (pydantic_lock, _class_lock) if one is not None]


def _locks_of_python() -> list[Any]:
    """Return the locks that imported modules of Python acquire before each fork, and release afterwards."""
    modules = (("logging", "_lock"), ("concurrent.futures.thread", "_global_shutdown_lock"))
    found = [getattr(sys.modules.get(module), name, None) for module, name in modules]
    return [lock for lock in found if lock is not None]


def _imports_elsewhere() -> bool:
    """Return whether another thread imports a module."""
    # Python's locks of modules that are being imported, as weak references. Nothing public has them.
    locks: dict[str, Any] = getattr(sys.modules["_frozen_importlib"], "_module_locks", {})
    known = (None, threading.get_ident())
    found = [reference() for reference in list(locks.values())]
    return any(getattr(lock, "owner", None) not in known for lock in found)


def _renew_build_locks() -> None:
    """Replace the locks under which classes are built. A thread of the parent may have held one for too long."""
    global _class_lock
    models: Any = sys.modules.get("pydantic.main")
    if hasattr(models, "_rebuild_lock"):
        models._rebuild_lock = threading.RLock()
    _class_lock = threading.RLock()
    guard_with(_class_lock)


def _alive(methods: Iterable[WeakMethod[Act]]) -> list[Act]:
    return [method for one in list(methods) if (method := one()) is not None]


_class_lock = threading.RLock()
guard_with(_class_lock)
GATE = ForkGate()
"""Gate of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=GATE.before_fork,
        after_in_parent=GATE.after_fork_in_parent,
        after_in_child=GATE.after_fork_in_child,
    )


class FileTurn:
    """A lock for one file that is closed before a fork unless a thread is using it."""

    def __init__(self, what: str, let_go: Act) -> None:
        """Create the lock.

        ``what`` names the open file in errors. ``let_go`` closes the file; only a weak reference to its
        object is kept.
        """
        self.process = OpeningProcess(what)
        self._let_go = WeakMethod(let_go)
        self._threads = threading.RLock()
        self._taken = False
        GATE.close_before(self.let_go)

    @contextmanager
    def taken(self) -> Generator[None]:
        """Hold the lock.

        Raises:
            OpenedBeforeFork: the file was opened before this process was forked.
        """
        # Check before locking: a thread that held the lock does not exist in a forked process.
        self.process.check()
        with GATE.used(), self._threads:
            was, self._taken = self._taken, True
            try:
                yield
            finally:
                self._taken = was

    def let_go(self) -> None:
        """Close the file, unless a thread is using it, even if it is the current one."""
        if self._threads.acquire(blocking=False):
            try:
                let_go = self._let_go()
                if let_go is not None and not self._taken:
                    let_go()
            finally:
                self._threads.release()


_Made = TypeVar("_Made")


def deferred(make: Callable[[], _Made], *, at_once: bool = False) -> _Made:
    """Return a stand-in for an adapter that is made when it is first used, or the adapter itself if ``at_once``."""
    return make() if at_once else cast("_Made", _Deferred(make))


class _Deferred:
    """An adapter that is made when it is first used: most programs use few, and all should open quickly."""

    def __init__(self, make: Callable[[], object]) -> None:
        self._make = make
        self._lock = threading.RLock()
        self._made: object = None
        self._ended: str | None = None
        """Method that ended it before it was made."""

    def __getattr__(self, name: str) -> Any:
        if self._made is None:
            if name in _ENDS:
                return partial(self._end, name)
            with GATE.used(), self._lock:
                if self._made is None:
                    made = self._make()
                    if self._ended is not None:
                        getattr(made, self._ended)()  # So it refuses what it would have refused.
                    self._made = made
        return getattr(self._made, name)

    def _end(self, name: str) -> None:
        with self._lock:
            if self._made is None:
                self._ended = name
                return
        getattr(self._made, name)()


_ENDS = ("close", "interrupt")
"""Methods that end an adapter. One that was not made yet is not made for them."""
