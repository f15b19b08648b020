"""Connections that notice when their files are moved away, and a pool that outlives a failure to connect."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Self

from eventsourcing.sqlite import SQLiteConnection, SQLiteConnectionPool, SQLiteCursor

from refold.application.errors import LogGone

from .leaving import left_as_it_is


class Identity(NamedTuple):
    """Which file it is, wherever it lies and whatever it is called."""

    device: int
    number: int

    @classmethod
    def of(cls, path: str | Path) -> Self | None:
        """The file at this path; None if there is none."""
        try:
            status = os.stat(path)  # noqa: PTH116 (a path object is twice as slow, and this is paid often)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return cls(status.st_dev, status.st_ino)


class Files(NamedTuple):
    """The files that a connection has open: what is written to others is not in this log."""

    log: Identity | None
    ahead: Identity | None
    """The write-ahead log, which has what was committed last."""
    index: Identity | None
    """The shared memory: without the same one, two processes overwrite what the other wrote ahead."""

    @classmethod
    def found(cls, path: str) -> Self:
        """What lies at the path now."""
        return cls(Identity.of(path), Identity.of(f"{path}-wal"), Identity.of(f"{path}-shm"))


class OpenedFiles:
    """The files of a log as its first connection has opened them; those of all others are the same."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._files = Files.found(path)

    def check(self) -> None:
        """Check that the files still lie where they were opened.

        Raises:
            LogGone: one was moved, deleted or replaced.
        """
        if Files.found(self.path) != self._files:
            raise LogGone(
                f"{self.path}, or its -wal or -shm file, was moved, deleted or replaced while it was open; "
                "what is not acknowledged is not stored. Close it here, put the file back, or open it at "
                "its new place, and append again"
            )

    @property
    def are_others_in_use(self) -> bool:
        """Whether another process has made new files beside the log, and may have written to them."""
        log, ahead, index = Files.found(self.path)
        if log != self._files.log:
            return False
        if ahead == self._files.ahead:
            return index not in (None, self._files.index)
        return ahead is not None and Path(f"{self.path}-wal").stat().st_size > 0


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

    @contextmanager
    def transaction(self, *, commit: bool) -> Iterator[SQLiteCursor]:
        """A transaction on the files that were opened."""
        self.check()
        with super().transaction(commit=commit) as cursor:
            yield cursor

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
        if self._files is None or self.closed or not self._files.are_others_in_use:
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

    There, the lock of the writers stays locked: every later write would wait, and fail.
    """

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

    def _get_connection(self, timeout: float = 0.0) -> SQLiteConnection:
        try:
            return super()._get_connection(timeout)
        except _NotConnected:
            raise
        except BaseException as error:
            raise _NotConnected(error) from error
