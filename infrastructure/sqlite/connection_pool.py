"""Connections that detect moved files, and a pool that survives failed connection attempts."""

import os
import sqlite3
from collections import deque
from contextlib import suppress
from pathlib import Path
from threading import Condition, Lock, RLock, get_ident
from typing import Any, NamedTuple
from weakref import WeakSet

from eventsourcing.persistence import (
    ConnectionNotFromPoolError,
    ConnectionPoolClosedError,
    ConnectionUnavailableError,
)
from eventsourcing.sqlite import SQLiteConnection, SQLiteConnectionPool

from refold.application.errors import LogGone
from refold.application.runtime.opening_process import LOCK_WAIT, OpeningProcess
from refold.infrastructure.files.fork_gate import GATE

from .sqlite_connection import CheckedConnection, leave_untouched

LAST_USE = 2.0
"""Seconds that closing waits for threads that use a connection."""
LET_GO = 0.1
"""Seconds to wait for a busy pool when closing idle connections."""
Identity = tuple[int, int]
"""Identity of a file under any name: its device and its inode."""


def identity_of(path: str) -> Identity | None:
    """Return the identity of the file at this path, or None if it is missing."""
    try:
        status = os.stat(path)  # noqa: PTH116 (a path object is twice as slow, and this is paid often)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


class Files(NamedTuple):
    """The files that a connection has open. Writes to other files do not belong to this log."""

    log: Identity | None
    ahead: Identity | None
    """Write-ahead log, which holds the latest commits."""
    shared: Identity | None
    """Shared memory. Two processes with different ones overwrite each other's commits."""


class OpenedFiles:
    """The files of a log as its first connection opened them. All later connections must open the same."""

    def __init__(self, path: str, before: "OpenedFiles | None" = None) -> None:
        """Record the files of a connection that was just opened.

        ``before`` are the files of connections that were closed since.

        Raises:
            LogGone: one of the files was deleted already, or the log is not the same as before.
        """
        self.path = path
        self._names = (path, f"{path}-wal", f"{path}-shm")
        self._files = self._find_files()
        # The connection has all three files open; a missing one was deleted while open.
        if None in self._files or (before and before._files.log != self._files.log):
            raise self._gone_error()
        self.users = WeakSet[SQLiteConnection]()
        """The open connections. When the last one closes, SQLite deletes the files next to the log."""

    def check(self) -> None:
        """Check that the files are still at their paths.

        Raises:
            LogGone: one was moved, deleted or replaced.
        """
        log, ahead, shared = self._names
        known = self._files
        if (
            identity_of(log) == known.log
            and identity_of(ahead) == known.ahead
            and identity_of(shared) == known.shared
        ):
            return
        if self.users or self._find_files().log != known.log:
            raise self._gone_error()

    def check_shared(self) -> None:
        """Check only the log and the shared memory, because reads are frequent.

        Raises:
            LogGone: the log or the shared memory was deleted or replaced.
        """
        log, _, shared = self._names
        if identity_of(log) != self._files.log or identity_of(shared) != self._files.shared:
            raise self._gone_error()

    def _gone_error(self) -> LogGone:
        return LogGone(
            f"{self.path}, or its -wal or -shm file, was moved, deleted or replaced while it was open; "
            "unacknowledged appends are not stored. Close it here, put the file back or open it at its "
            "new path, and append again"
        )

    @property
    def are_others_in_use(self) -> bool:
        """True if another process created new files next to the log and may have written to them."""
        log, ahead, shared = self._find_files()
        if log != self._files.log:
            return False
        if ahead == self._files.ahead:
            return shared not in (None, self._files.shared)
        return ahead is not None and Path(f"{self.path}-wal").stat().st_size > 0

    def _find_files(self) -> Files:
        return Files(*map(identity_of, self._names))


class DurableConnection(CheckedConnection):
    """A connection that acknowledges a commit only if it can be found again.

    SQLite continues to write to a deleted file: the system keeps the file until it is closed.
    """

    def __init__(
        self, connection: sqlite3.Connection, max_age: float | None, files: OpenedFiles | None
    ) -> None:
        """Wrap a connection.

        ``files`` is None for a database in memory.
        """
        super().__init__(sqlite_conn=connection, max_age=max_age)
        self._files = files
        self._usual_wait: int | None = None
        if files is not None:
            files.users.add(self)

    def prepare(self, *, commit: bool) -> None:
        """Check the files before a transaction, and limit its wait for other programs.

        Raises:
            LogGone: a file was moved, deleted or replaced.
        """
        if commit:
            self.check()
            most = LOCK_WAIT.get()
            if most is not None:
                [usual] = self._sqlite_conn.execute("PRAGMA busy_timeout").fetchone()
                self._usual_wait = usual
                self._wait(min(int(most * 1000), usual))
        elif self._files is not None:
            self._files.check_shared()

    def finish(self) -> None:
        """Roll back a transaction that a failed commit left open, and restore the usual wait.

        Otherwise no later transaction could begin on this connection.
        """
        usual, self._usual_wait = self._usual_wait, None
        if self.closed:
            return
        if self._sqlite_conn.in_transaction:
            try:
                self._sqlite_conn.rollback()
            except sqlite3.Error:
                self.close()
                return
        if usual is not None:
            self._wait(usual)

    def _wait(self, milliseconds: int) -> None:
        self._sqlite_conn.execute(f"PRAGMA busy_timeout={milliseconds}")

    def commit(self) -> None:
        """Commit, and check that the files are still in place."""
        self._sqlite_conn.commit()
        # No deeper than the check before, so that it cannot meet the recursion limit after the commit.
        if self._files is not None:
            self._files.check()

    def check(self) -> None:
        """Check that the files are still at their paths.

        Raises:
            LogGone: one was moved, deleted or replaced.
        """
        if self._files is not None:
            self._files.check()

    def close(self) -> None:
        """Close the connection.

        Commits that other processes wrote to new files are left untouched.
        """
        if self._files is None or self.closed:
            super().close()
            return
        self._files.users.discard(self)
        if not self._files.are_others_in_use:
            super().close()
            return
        with leave_untouched(self._sqlite_conn, self._files.path):
            super().close()


class _PlainCondition(Condition):
    """A condition that releases its lock without a call in Python, which fails if memory has run out.

    ``with`` finds the two methods of the lock itself, which are written in C, in the slots.
    """

    __slots__ = ("__enter__", "__exit__")

    def __init__(self) -> None:
        lock: Any = RLock()
        super().__init__(lock)
        slots: Any = self
        slots.__enter__, slots.__exit__ = lock.__enter__, lock.__exit__


class _LastFirst(deque[SQLiteConnection]):
    """A queue that gives out the newest entry first: the pages that this connection has cached are current."""

    def popleft(self) -> SQLiteConnection:
        """Remove and return the newest entry."""
        return self.pop()


class SteadyPool(SQLiteConnectionPool):
    """A connection pool that releases its locks if a connection fails to open or memory runs out.

    In the library's pool a lock can stay locked. Then every later call waits and fails. The exception of
    a signal, such as Ctrl-C, can arrive between any two steps: what an interrupted thread did not return
    is closed. Idle connections are closed before a fork, except those to a database in memory, which are
    its only copy.
    """

    def __init__(self, *, db_name: str) -> None:
        super().__init__(db_name=db_name)
        untyped: Any = self  # The library declares a semaphore.
        untyped._get_semaphore = Lock()
        self._pool = _LastFirst()
        self._put_condition, self._no_readers = _PlainCondition(), _PlainCondition()
        self._process = OpeningProcess(db_name)
        self._writer: SQLiteConnection | None = None
        self._users: dict[int, int] = {}
        """Threads that use connections, by the id of the connection."""
        self.left: list[tuple[SQLiteConnection, int]] = []
        """Connections to abandon before the next is taken, and their threads."""
        if not self.is_sqlite_memory_mode:
            untyped._writer_lock = RLock()  # It knows which thread has it.
            GATE.close_before(self.let_go)

    def let_go(self) -> None:
        """Close the idle connections. The next use opens one again."""
        # A thread that others no longer wait for may hold this lock.
        if not self._put_condition.acquire(timeout=LET_GO):
            return
        try:
            while self._pool:
                self._pool.popleft().close()
        finally:
            self._put_condition.release()

    def close(self) -> None:
        """Close the pool, and wait up to ``LAST_USE`` seconds for threads that use a connection.

        A connection in use is closed when it is returned: Python crashes if another thread closes it.
        In a forked process, do nothing: its locks may never be released.
        """
        with suppress(AttributeError):  # The pool was never created.
            if not self._process.is_this:
                return
            with GATE.used(), self._put_condition:
                self._closed = True
                while self._pool:
                    self._pool.popleft().close()
                self._put_condition.wait_for(lambda: not self._in_use, LAST_USE)

    def get_connection(
        self, timeout: float | None = None, *, is_writer: bool | None = None
    ) -> SQLiteConnection:
        """Take a connection from the pool."""
        if self.left:
            self._abandon_left()
        # In memory, readers wait for the writer as well. The library sees to that.
        if self.is_sqlite_memory_mode:
            return super().get_connection(timeout, is_writer=is_writer)
        if not is_writer:
            return self._idle_connection() or self._new_connection(timeout)
        timeout = self.pool_timeout if timeout is None else timeout
        try:
            if not self._writer_lock.acquire(timeout=timeout):
                raise ConnectionUnavailableError("Timed out waiting for return of writer")
            if self._writer is not None:  # This thread was interrupted before it returned it.
                self._drop(self._writer)
            connection = self._idle_connection() or self._new_connection(timeout)
            self._writer = connection
        except BaseException:
            self._end_writing()
            raise
        return connection

    def _new_connection(self, timeout: float | None) -> SQLiteConnection:
        """Open a connection, or wait for one, without the library's line: an interrupted thread stays in it."""
        if self._closed:
            raise ConnectionPoolClosedError
        thread = get_ident()
        connection = self._get_connection(self.pool_timeout if timeout is None else timeout)
        self._users[id(connection)] = thread
        return connection

    def _idle_connection(self) -> SQLiteConnection | None:
        """Take the newest idle connection, without the library's line of waiting threads, or return None."""
        connection = None
        thread = get_ident()
        try:
            with self._put_condition:
                if self._closed or not self._pool:
                    return None
                connection = self._pool[-1]  # In the pool until its use is recorded.
                if connection.closed:
                    self._pool.pop()
                    return None
                number = id(connection)
                connection.in_use.acquire(blocking=False)
                self._in_use[number], self._users[number] = connection, thread
                self._pool.pop()
                return connection
        except BaseException:
            if connection is not None:
                self.abandon(connection, thread)
            raise

    def _end_writing(self) -> None:
        """Let other threads write, if this thread kept them out, however often it was interrupted."""
        lock: Any = self._writer_lock
        while lock._is_owned():
            self._writer = None
            lock.release()

    def abandon(self, conn: SQLiteConnection, thread: int) -> None:
        """Close a connection that a thread used when it was interrupted, unless it returned it."""
        if not self._process.is_this:
            return
        if self.is_sqlite_memory_mode:  # It is the only copy.
            if id(conn) in self._in_use:
                conn.rollback()
                self._put_in_memory(conn)
            return
        try:
            with self._put_condition:
                if self._users.get(id(conn)) == thread:
                    self._drop(conn)
        finally:
            if self._writer is conn:
                self._end_writing()

    def _abandon_left(self) -> None:
        while self.left:
            self.abandon(*self.left[-1])
            self.left.pop()

    def _drop(self, conn: SQLiteConnection) -> None:
        """Close a connection that is not returned."""
        with self._put_condition:
            if conn in self._pool:
                self._pool.remove(conn)
            conn.close()
            self._users.pop(id(conn), None)
            self._in_use.pop(id(conn), None)
            self._put_condition.notify_all()

    def put_connection(self, conn: SQLiteConnection) -> None:
        """Return a connection to the pool, which may be closed by now.

        A connection of a closed pool is closed. In a forked process, do nothing.
        """
        if not self._process.is_this:
            return
        if self.is_sqlite_memory_mode:
            self._put_in_memory(conn)
            return
        try:
            with self._put_condition:
                if self._in_use.pop(id(conn), None) is None:
                    raise ConnectionNotFromPoolError("Connection not in use in this pool")
                if conn.in_use.locked():
                    conn.in_use.release()
                if self._closed or conn.closing or len(self._pool) >= self.pool_size:
                    conn.close()
                elif not conn.closed:
                    self._pool.append(conn)
                self._users.pop(id(conn), None)
                self._put_condition.notify_all()
        finally:
            if self._writer is conn:
                self._end_writing()

    def _put_in_memory(self, conn: SQLiteConnection) -> None:
        try:
            super().put_connection(conn)
        except ConnectionPoolClosedError:
            with self._put_condition:
                conn.close()
                self._in_use.pop(id(conn), None)
                self._put_condition.notify_all()
