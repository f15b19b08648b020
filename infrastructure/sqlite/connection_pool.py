"""Connections that notice when their files are moved away, and a pool that outlives a failure to connect."""

import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from eventsourcing.persistence import ConnectionPoolClosedError
from eventsourcing.sqlite import SQLiteConnection, SQLiteConnectionPool, SQLiteCursor

from refold.application.errors import LogGone
from refold.application.runtime.opening_process import LOCK_WAIT, OpeningProcess
from refold.infrastructure.files.fork_gate import GATE

from .sqlite_failures import left_as_it_is

LET_GO = 0.1
"""Seconds that closing idle connections waits for a pool that is still in use."""
Identity = tuple[int, int]
"""Which file it is, wherever it lies and whatever it is called: its device and its number."""


def identity_of(path: str) -> Identity | None:
    """The file at this path; None if there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116 (a path object is twice as slow, and this is paid often)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


class Files(NamedTuple):
    """The files that a connection has open: what is written to others is not in this log."""

    log: Identity | None
    ahead: Identity | None
    """The write-ahead log, which has what was committed last."""
    shared: Identity | None
    """The shared memory: without the same one, two processes overwrite what the other wrote ahead."""


class OpenedFiles:
    """The files of a log as its first connection has opened them; those of all others are the same."""

    def __init__(self, path: str, before: "OpenedFiles | None" = None) -> None:
        """Note the files of a connection that was just made.

        ``before``: those of the connections that were closed since.

        Raises:
            LogGone: one of them was deleted already, or it is another log than before.
        """
        self.path = path
        self._names = (path, f"{path}-wal", f"{path}-shm")
        self._files = self._found()
        # Its connection has all three open: what is not at its place was deleted under it.
        if None in self._files or (before and before._files.log != self._files.log):
            raise self._gone()
        self.users = 0
        """How many connections are open: when the last one closes, the files beside the log go."""

    def check(self) -> None:
        """Check that the files still lie where they were opened.

        Raises:
            LogGone: one was moved, deleted or replaced.
        """
        if self._found() != self._files and (self.users or self._found().log != self._files.log):
            raise self._gone()

    def check_shared(self) -> None:
        """Check only what tells whether this is the log and others can be heard: a read is paid often.

        Raises:
            LogGone: the log or the shared memory was deleted or replaced.
        """
        log, _, shared = self._names
        if (identity_of(log), identity_of(shared)) != (self._files.log, self._files.shared):
            raise self._gone()

    def _gone(self) -> LogGone:
        return LogGone(
            f"{self.path}, or its -wal or -shm file, was moved, deleted or replaced while it was open; "
            "what is not acknowledged is not stored. Close it here, put the file back, or open it at its "
            "new place, and append again"
        )

    @property
    def are_others_in_use(self) -> bool:
        """Whether another process has made new files beside the log, and may have written to them."""
        log, ahead, shared = self._found()
        if log != self._files.log:
            return False
        if ahead == self._files.ahead:
            return shared not in (None, self._files.shared)
        return ahead is not None and Path(f"{self.path}-wal").stat().st_size > 0

    def _found(self) -> Files:
        return Files(*map(identity_of, self._names))


class DurableConnection(SQLiteConnection):
    """A connection whose commits are acknowledged only where they can be found again.

    SQLite goes on writing to a file that was deleted: the system keeps it until it is closed.
    """

    def __init__(
        self, connection: sqlite3.Connection, max_age: float | None, files: OpenedFiles | None
    ) -> None:
        """``files`` None is a database in memory."""
        super().__init__(sqlite_conn=connection, max_age=max_age)
        self._files = files
        if files is not None:
            files.users += 1

    @contextmanager
    def transaction(self, *, commit: bool) -> Generator[SQLiteCursor]:
        """A transaction on the files that were opened."""
        if commit:
            self.check()
        elif self._files is not None:
            self._files.check_shared()
        with self._waiting(commit), super().transaction(commit=commit) as cursor:
            yield cursor

    @contextmanager
    def _waiting(self, writes: bool) -> Generator[None]:
        """Wait for other programs no longer than the work at hand may."""
        most = LOCK_WAIT.get()
        if most is None or not writes:
            yield
            return
        [usual] = self._sqlite_conn.execute("PRAGMA busy_timeout").fetchone()
        self._wait(min(int(most * 1000), usual))
        try:
            yield
        finally:
            if not self.closed:
                self._wait(usual)

    def _wait(self, milliseconds: int) -> None:
        self._sqlite_conn.execute(f"PRAGMA busy_timeout={milliseconds}")

    def settle(self) -> None:
        """End a transaction that a failed commit left open; else nothing could begin one here again."""
        if not self.closed and self._sqlite_conn.in_transaction:
            try:
                self._sqlite_conn.rollback()
            except sqlite3.Error:
                self.close()

    def commit(self) -> None:
        """Commit, and check where to."""
        super().commit()
        self.check()

    def check(self) -> None:
        """See ``OpenedFiles.check``."""
        if self._files is not None:
            self._files.check()

    def close(self) -> None:
        """Close; what others have written ahead into new files stays there."""
        if self._files is None or self.closed:
            super().close()
            return
        self._files.users -= 1
        if not self._files.are_others_in_use:
            super().close()
            return
        with left_as_it_is(self._sqlite_conn, self._files.path):
            super().close()


class _NotConnected(Exception):
    """No connection could be made, after the place of one was taken."""

    def __init__(self, reason: BaseException) -> None:
        super().__init__()
        self.reason = reason


class SteadyPool(SQLiteConnectionPool):
    """The library's pool, which gives the place of a connection that could not be made free again.

    There, the lock of the writers stays locked: every later write would wait, and fail. Before a fork its
    idle connections are closed; those to a database in memory are all that there is of it, and stay.
    """

    def __init__(self, *, db_name: str) -> None:
        super().__init__(db_name=db_name)
        self._process = OpeningProcess(db_name)
        if not self.is_sqlite_memory_mode:
            GATE.close_before(self.let_go)

    def let_go(self) -> None:
        """Close the connections that nobody uses; the next use opens one again."""
        # A thread that is waited for no longer may hold this.
        if not self._put_condition.acquire(timeout=LET_GO):
            return
        try:
            while self._pool:
                self._pool.popleft().close()
        finally:
            self._put_condition.release()

    def close(self) -> None:
        """Close, as in the library; nothing in a forked process, where its locks may be held for ever."""
        with suppress(AttributeError):  # It was never made.
            if self._process.is_this:
                with GATE.used():
                    super().close()

    def get_connection(
        self, timeout: float | None = None, *, is_writer: bool | None = None
    ) -> SQLiteConnection:
        """A connection, as in the library."""
        try:
            return super().get_connection(timeout, is_writer=is_writer)
        except _NotConnected as error:
            if is_writer is True:
                self._num_writers -= 1
                self._writer_lock.release()
            elif is_writer is False:
                with self._no_readers:
                    self._num_readers -= 1
                    self._no_readers.notify()
            raise error.reason from None

    def put_connection(self, conn: SQLiteConnection) -> None:
        """Give a connection back, as in the library; it may be closed meanwhile with the pool.

        Then nobody is left who could be told: so it is where a program is interrupted. In a process that was
        forked meanwhile nothing happens.
        """
        if not self._process.is_this:
            return
        try:
            super().put_connection(conn)
        except ConnectionPoolClosedError:
            conn.close()

    def _get_connection(self, timeout: float = 0.0) -> SQLiteConnection:
        try:
            return super()._get_connection(timeout)
        except _NotConnected:
            raise
        except BaseException as error:
            raise _NotConnected(error) from error
