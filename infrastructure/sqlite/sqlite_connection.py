"""Open SQLite connections that keep temporary data in memory and do not survive a fork."""

import os
import sqlite3
import struct
import sys
import weakref
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from threading import get_ident
from types import TracebackType
from typing import Any, Literal, Protocol
from urllib.parse import unquote_to_bytes, urlsplit
from uuid import UUID

from eventsourcing.persistence import StoredEvent
from eventsourcing.sqlite import SQLiteConnection, SQLiteCursor, SQLiteTransaction

from refold.application.runtime.opening_process import OpeningProcess, prevent_destruction
from refold.infrastructure.files.fork_gate import GATE, OpenFile

Isolation = Literal["DEFERRED", "EXCLUSIVE", "IMMEDIATE"] | None
CURSORS = 32
"""Number of remembered cursors before closed ones are removed."""


def write_ahead_path(log: Path) -> Path:
    """Return the path of SQLite's write-ahead log for a file."""
    return Path(f"{os.path.realpath(log)}-wal")


def open_sqlite(
    place: str | Path,
    *,
    timeout: float = 5.0,
    isolation_level: Isolation = "DEFERRED",
    check_same_thread: bool = True,
    uri: bool = False,
    kept: bool = False,
    of: Path | None = None,
) -> sqlite3.Connection:
    """Open a database as ``sqlite3.connect`` does, with all temporary data in memory.

    By default, SQLite writes sort runs, rollback pages and internal tables into files of the system's
    temporary folder. It deletes them at once but does not overwrite their blocks. Plain text of an
    encrypted log, or erased text, would remain on the disk. A database without a name is such a file too,
    so use ``:memory:`` for temporary databases.

    ``kept`` says that the connection may stay open while idle, and that its owner closes it when ``GATE``
    asks before a fork; a fork waits for all others. ``of`` is the log that the file was derived from.

    Raises:
        OpenedBeforeFork: the file was open when this process was forked.
        sqlite3.Error: the database cannot be opened.
    """
    path = _path_of(place, uri=uri)
    with GATE.used():
        # Kept databases in memory have locks of their own and are never closed before a fork.
        file = None if path is None and kept else GATE.opening(path, of, kept=kept)
        with _unregister_on_error(file):
            connection = sqlite3.connect(
                place,
                timeout=timeout,
                isolation_level=isolation_level,
                check_same_thread=check_same_thread,
                uri=uri,
                factory=ProcessConnection,
            )
        connection.file = file
        connection.execute("PRAGMA temp_store=MEMORY")
    return connection


@contextmanager
def _unregister_on_error(file: OpenFile | None) -> Generator[None]:
    """Unregister the file if opening it fails."""
    try:
        yield
    except BaseException:
        if file is not None:
            GATE.closed(file)
        raise


def _path_of(place: str | Path, *, uri: bool) -> Path | None:
    """Return the path of the database file, or None for a database in memory."""
    text = str(place)
    if text == ":memory:" or (uri and "mode=memory" in text):
        return None
    is_uri = uri and text.startswith("file:")
    # A name need not be text in UTF-8.
    return Path(os.fsdecode(unquote_to_bytes(urlsplit(text).path))) if is_uri else Path(text)


def sync_fully(connection: sqlite3.Connection) -> None:
    """Make syncs reach the disk itself. By default, a sync on macOS ends in the cache of the drive.

    This changes nothing on other systems.
    """
    connection.execute("PRAGMA fullfsync=ON")
    connection.execute("PRAGMA checkpoint_fullfsync=ON")


class ProcessCursor(sqlite3.Cursor):
    """A cursor that refuses to run in a forked process."""

    process: OpeningProcess

    def execute(self, sql: str, parameters: Any = (), /) -> "ProcessCursor":
        """Run a statement, unless the process was forked."""
        self.process.check_forks()
        super().execute(sql, parameters)
        return self

    def executemany(self, sql: str, seq_of_parameters: Iterable[Any], /) -> "ProcessCursor":
        """Run a statement once per parameter set, unless the process was forked."""
        self.process.check_forks()
        super().executemany(sql, seq_of_parameters)
        return self

    def executescript(self, sql_script: str, /) -> "ProcessCursor":
        """Run a script, unless the process was forked."""
        self.process.check_forks()
        super().executescript(sql_script)
        return self

    def close(self) -> None:
        """Close the cursor in the process that opened it."""
        if self.process.is_this:
            super().close()


class ProcessConnection(sqlite3.Connection):
    """A connection that only the process that opened it may use.

    A forked process can run nothing on it and never closes it: closing would write to files of the parent
    and delete some.
    """

    file: OpenFile | None = None
    """Entry in ``GATE`` while the connection is open."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.process = OpeningProcess(f"{args[0]}")
        self._pid = os.getpid()
        self._is_closed = False
        self._is_let_go = False
        """True if the last user must close the connection."""
        self._cursors: list[weakref.ref[sqlite3.Cursor]] = []
        super().__init__(*args, **options)

    def cursor(self, factory: Any = ProcessCursor) -> Any:
        """Return a cursor, unless the process was forked."""
        self.process.check()
        made: Any = super().cursor(factory)
        made.process = self.process
        if len(self._cursors) >= CURSORS:
            self._cursors = [one for one in self._cursors if one() is not None]
        self._cursors.append(weakref.ref(made))
        return made

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Run a statement, unless the process was forked."""
        made: sqlite3.Cursor = self.cursor()
        return made.execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> sqlite3.Cursor:
        """Run a statement once per parameter set, unless the process was forked."""
        made: sqlite3.Cursor = self.cursor()
        return made.executemany(sql, parameters)

    def executescript(self, sql_script: str, /) -> sqlite3.Cursor:
        """Run a script, unless the process was forked."""
        made: sqlite3.Cursor = self.cursor()
        return made.executescript(sql_script)

    def commit(self) -> None:
        """Commit, unless the process was forked."""
        self.process.check()
        super().commit()

    def rollback(self) -> None:
        """Roll back. In a forked process, do nothing."""
        if self.process.is_this:
            super().rollback()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> Literal[False]:
        if self.process.is_this:
            super().__exit__(kind, error, trace)
        return False

    def close(self) -> None:
        """Close the connection in the process that opened it, cursors included: they would keep the file open.

        Closing while another thread runs a statement would crash Python. In that case, that thread closes
        the connection when it is done.
        """
        if not self.process.is_this:
            return
        for one in self._cursors:
            if (cursor := one()) is not None:
                try:
                    cursor.close()
                except sqlite3.ProgrammingError:
                    self._is_let_go = True
                    return
        super().close()
        self._is_closed = True
        file, self.file = self.file, None
        if file is not None:
            GATE.closed(file)

    def __del__(
        self,
        getpid: Callable[[], int] = os.getpid,
        keep: Callable[[object], None] = prevent_destruction,
        closed: Callable[[OpenFile], None] = GATE.closed,
    ) -> None:
        """Keep the connection alive for ever in a forked process.

        The defaults bind all names that are needed during interpreter shutdown.
        """
        if getpid() != self._pid and not self._is_closed:
            keep(self)
            return
        finish = getattr(super(), "__del__", None)
        if (
            finish is not None and not self._is_let_go
        ):  # Python warns of connections that were not closed.
            finish()
        try:
            self.close()
        except (
            Exception
        ):  # Another thread owns the connection, or Python is shutting down: the library closes it.
            if self.file is not None:
                closed(self.file)


class CheckedConnection(SQLiteConnection):
    """A connection that is checked before each transaction."""

    @contextmanager
    def transaction(self, *, commit: bool) -> Generator[SQLiteCursor]:
        """Run a transaction, if the connection may still be used."""
        self.prepare(commit=commit)
        try:
            with super().transaction(commit=commit) as cursor:
                yield cursor
        finally:
            self.finish()

    def prepare(self, *, commit: bool) -> None:
        """Check the connection before a transaction."""

    def finish(self) -> None:
        """Make the connection ready for the next transaction."""


class Lender(Protocol):
    """A pool that lends connections."""

    left: list[tuple[SQLiteConnection, int]]
    """Connections to abandon before the next is taken, and their threads."""

    def get_connection(self, *, is_writer: bool) -> SQLiteConnection:
        """Take a connection from the pool."""
        ...

    def put_connection(self, conn: SQLiteConnection) -> None:
        """Return a connection to the pool."""
        ...

    def abandon(self, conn: SQLiteConnection, thread: int) -> None:
        """Close a connection that a thread used when it was interrupted, unless it returned it."""
        ...


class Transaction:
    """A transaction on a connection of a pool, which is returned at its end.

    One object does the work of the library's six nested generators, because every append pays for them.
    """

    __slots__ = ("_commit", "_connection", "_cursor", "_is_single", "_loan", "_pool")

    def __init__(self, pool: Lender, *, commit: bool, is_single: bool = False) -> None:
        """Create a transaction; entering it begins it. ``commit`` says whether it writes.

        ``is_single`` says that it is one query, which SQLite begins and ends by itself.
        """
        self._pool, self._commit = pool, commit
        self._is_single = is_single

    def __enter__(self) -> SQLiteCursor:
        self._loan = loan = _loan(self._pool, is_writer=self._commit)
        self._connection = connection = next(loan)
        try:
            if isinstance(connection, CheckedConnection):
                connection.prepare(commit=self._commit)
            self._cursor = cursor = connection.cursor()
            if not self._is_single:
                cursor.execute("BEGIN")
        except BaseException:
            loan.close()
            raise
        return cursor

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            try:
                self._cursor.__exit__()
            except BaseException as failure:
                kind, error, trace = type(failure), failure, failure.__traceback__
            if error is not None or not self._is_single:
                whole = SQLiteTransaction(self._connection, commit=self._commit)
                whole.__exit__(kind, error, trace)
        finally:
            self._loan.close()


def _loan(pool: Lender, *, is_writer: bool) -> Generator[SQLiteConnection]:
    """Yield a connection, and return it when the generator is closed.

    The exception of a signal can arrive before the first step of ``__exit__``. Python closes a generator
    whose last reference is gone.
    """
    with GATE.used():
        thread = get_ident()
        connection = pool.get_connection(is_writer=is_writer)
        try:
            yield connection
        finally:
            try:
                if isinstance(connection, CheckedConnection):
                    connection.finish()
                pool.put_connection(connection)
            except RecursionError:
                # The transaction has ended, and this is no call: none may be possible here.
                pool.left += [(connection, thread)]
            except BaseException:
                pool.abandon(connection, thread)
                raise


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str) -> Generator[None]:
    """Run a transaction that is committed completely or not at all."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def declared_in(db: sqlite3.Connection) -> dict[str, str]:
    """Return the SQL of every object in the database, by name."""
    rows = db.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
    return {str(name): str(sql) for name, sql in rows}


_COLUMNS = attrgetter("originator_id", "originator_version", "topic", "state")
_AT_ONCE = 16
"""Number of rows that one statement inserts."""


def insert_rows(c: SQLiteCursor, rows: Sequence[StoredEvent]) -> list[int]:
    """Insert events, and return their log positions: each is one more than the one before."""
    numbers: list[int] = []
    for first in range(0, len(rows), _AT_ONCE):
        some = rows[first : first + _AT_ONCE]
        values: list[object] = []
        for stream, version, name, state in map(_COLUMNS, some):
            values += stream.hex if isinstance(stream, UUID) else stream, version, name, state
        marks = ",".join(["(?,?,?,?)"] * len(some))
        c.sqlite_cursor.execute(f"INSERT INTO stored_events VALUES {marks}", values)
        last: int = c.lastrowid
        numbers.extend(range(last - len(some) + 1, last + 1))
    return numbers


_SHARED_FIRST, _SHARED_SIZE = 0x4000_0002, 510
"""Offset and length of the lock bytes that mark a database file as open (SQLite's file format)."""
_kept: list[int] = []
"""Descriptors that stay open: closing one would release all locks of this process on its file."""


@contextmanager
def leave_untouched(connection: sqlite3.Connection, path: str) -> Generator[None]:
    """Close ``connection`` in the block without touching the database or its write-ahead log.

    When the last connection closes, SQLite copies the part of the write-ahead log that it knows into the
    database and deletes the file, along with later commits of other processes.
    """
    setconfig = getattr(connection, "setconfig", None)  # Since Python 3.12.
    if setconfig is not None:
        setconfig(getattr(sqlite3, "SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE"), True)  # noqa: B009
        yield
    else:
        with _mark_in_use(path):
            yield


if sys.platform == "linux":
    from fcntl import F_OFD_SETLK, F_RDLCK, F_UNLCK, fcntl

    def _flock(kind: int) -> bytes:
        """Pack the system's ``struct flock``."""
        return struct.pack("@hhqqi0q", kind, os.SEEK_SET, _SHARED_FIRST, _SHARED_SIZE, 0)

    @contextmanager
    def _mark_in_use(path: str) -> Generator[None]:
        """Mark the database as open elsewhere, so that the closing connection is not the last."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        _kept.append(descriptor)
        fcntl(descriptor, F_OFD_SETLK, _flock(F_RDLCK))
        try:
            yield
        finally:
            fcntl(descriptor, F_OFD_SETLK, _flock(F_UNLCK))

else:

    @contextmanager
    def _mark_in_use(path: str) -> Generator[None]:
        """Do nothing: this system has no such lock. The anchor detects missing events."""
        del path
        yield
