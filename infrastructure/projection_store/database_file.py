"""The life of an SQLite file next to the log: made whole, found replaced, dropped, closed before a fork."""

import os
import sqlite3
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from refold.application.errors import LogBusy
from refold.application.runtime.opening_process import OpeningProcess
from refold.application.runtime.plain_lines import plain_logger
from refold.infrastructure.files.lock import WriteLock
from refold.infrastructure.files.private_files import make_private
from refold.infrastructure.sqlite.connection_pool import Identity, identity_of
from refold.infrastructure.sqlite.read_only import connect_read_only, read_only_place
from refold.infrastructure.sqlite.sqlite_connection import open_sqlite, transaction

from .ownership import MARKS, is_foreign, lenient, name_new, refuse_foreign, write_mark

BUSY_TIMEOUT = 30
"""Seconds that a connection waits for another process."""
BUSY_MILLISECONDS = 1_000 * BUSY_TIMEOUT
READERS_MILLISECONDS = 1_000
"""For how long emptying the write-ahead log waits for other processes that read from it."""
PAGE_SIZE = 8_192
"""Bytes; the usual page of 4,096 holds two messages of 1.4 kB, or one vector of 512 dimensions."""

_UNFINISHED = ".new"
_PARTS = ("", "-wal", "-shm", "-journal")
"""The endings of the files that SQLite makes of one database."""

logger = plain_logger(__name__)


class FileKind(NamedTuple):
    """The properties that all files of a kind share."""

    name: str
    """The key of its mark in ``MARKS``, and the place that damage of the whole file names."""
    title: str
    """The name of the content in sentences: ``the read models``."""
    pragmas: tuple[str, ...]
    """The statements that set up each connection, besides those for every kind."""
    begin: Callable[[sqlite3.Connection], None]
    """Makes the tables of an empty file, in the transaction that is open."""
    declared: Callable[[], Mapping[str, str]]
    """The SQL of everything that a file declares, by name."""
    check: Callable[[sqlite3.Connection], None]
    """Raises ``FoldDamaged`` where an open file is not one that this version made."""

    @property
    def mark(self) -> int:
        """``PRAGMA application_id`` of its files."""
        return MARKS[self.name]


def _nothing(_: sqlite3.Connection) -> None:
    pass


class DatabaseFile:
    """One connection to the file, renewed when another file has taken its place.

    A lock next to the file orders opening and dropping between processes: a write-ahead log must never
    be paired with a database that it was not made for.
    """

    def __init__(
        self,
        path: Path | None,
        kind: FileKind,
        fill: Callable[[sqlite3.Connection], None] = _nothing,
        *,
        of: Path | None = None,
    ) -> None:
        """``path`` None is a database in memory. ``fill`` adds what a new file begins with.

        ``of``: the file of the log; whoever may use that one may use this one.
        """
        self.path = path
        self.kind = kind
        self.times_opened = 0
        """Counts up whenever it may be another file than before."""
        self._fill = fill
        self._of = of
        self._lock = WriteLock(Path(f"{path}.lock") if path else None, BUSY_TIMEOUT, of=of)
        self._process = OpeningProcess(f"{of or path}")
        self._connection: sqlite3.Connection | None = None
        self._identity: Identity | None = None
        """The file that was opened last; kept when it is closed, so that a replaced one is known."""

    def connection(self) -> sqlite3.Connection:
        """Return the connection; the file is made if there is none, or an empty one.

        Raises:
            FoldDamaged: it is not as this version made it.
            PlaceTaken: a file of another program lies there.
            sqlite3.Error, OSError: it cannot be opened.
        """
        self._process.check()
        if self._connection is not None and self._identity != self._found():
            logger.info("%s was replaced; opening the new file", self.path)
            self._disconnect()
        if self._connection is None:
            self.refuse_foreign()
            with self._held():
                self._connection = self._opened()
        self.kind.check(self._connection)
        return self._connection

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection]:
        """Do all of what is inside, or nothing; no process replaces the file meanwhile.

        Raises:
            FoldDamaged, sqlite3.Error, OSError: as ``connection`` does.
        """
        while True:
            connection = self.connection()
            with self._held():
                if self._identity == self._found():
                    with transaction(connection, "IMMEDIATE"):
                        yield connection
                    return

    @contextmanager
    def unchanged(self) -> Generator[sqlite3.Connection | None]:
        """Open the database as it is, for reading only; None if there is no file yet.

        Raises:
            PlaceTaken: a file of another program lies there.
            sqlite3.Error, OSError: it cannot be opened.
        """
        self.refuse_foreign()
        if self.path is None:
            yield self._connection
        elif self._found() is None:
            yield None
        else:
            with closing(_for_reading(self.path)) as connection:
                yield connection

    @contextmanager
    def lasting(self) -> Generator[None]:
        """Keep what is committed inside on the disk, even if the machine fails when it ends."""
        connection = self.connection()
        connection.execute("PRAGMA synchronous=FULL")
        try:
            yield
        finally:
            self._set(connection)

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self._connection is not None

    @property
    def is_there(self) -> bool:
        """Whether there is a finished file of ours, or an open database in memory."""
        if self.path is None:
            return self.is_open
        return self._found() is not None and not self._is_foreign

    @property
    def is_alone(self) -> bool:
        """Whether the file is there, with no unfinished one next to it."""
        return self.path is not None and (
            self._found() is not None and not os.path.lexists(_unfinished(self.path))
        )

    @property
    def is_replaced(self) -> bool:
        """Whether the file that was opened is gone, or another one lies there."""
        try:
            return self._identity is not None and self._identity != self._found()
        except OSError:
            return False

    def refuse_foreign(self) -> None:
        """Refuse a file of another program; raises ``PlaceTaken``."""
        refuse_foreign(self.path, self.kind.mark, self.kind.declared())

    def drop(self, *, any_file: bool = False) -> None:
        """Delete the file, unless another process has replaced it already, or it is not ours.

        ``any_file``: delete the replacement and an unfinished file as well.
        """
        foreign = self._is_foreign
        if self.path is None or not _lies_at(self.path, ours=not foreign):
            # Without the lock, whose file would say that one of ours had been there.
            self._disconnect()
            self._identity = None
            return
        with self._held():
            replaced = self.is_replaced
            self._disconnect()
            if not foreign and (any_file or not replaced):
                _delete(self.path)
            if any_file:
                _delete(_unfinished(self.path))
            self._identity = None

    def make_again(self, fill: Callable[[sqlite3.Connection], None]) -> None:
        """Replace the file by a new one with what ``fill`` adds; the old one is there until then.

        Raises:
            PlaceTaken, sqlite3.Error, OSError: it cannot be replaced.
        """
        assert self.path is not None
        with self._held():
            self._disconnect()
            self._identity = None
            if self._found() is not None:
                self._build(self.path, fill)
            else:  # What is left of one that was deleted by hand.
                _delete(self.path)
                _delete(_unfinished(self.path))

    def empty_ahead(self) -> bool:
        """Move the write-ahead log into the file and cut it to nothing; whether that could be done.

        False while another process reads from it.
        """
        connection = self.connection()
        if self.path is None:
            return True
        connection.execute(f"PRAGMA busy_timeout={READERS_MILLISECONDS}")
        try:
            (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            connection.execute(f"PRAGMA busy_timeout={BUSY_MILLISECONDS}")
        return not busy

    def close(self) -> None:
        """Release the connection."""
        if self._process.is_this:
            self._disconnect()
            self._lock.close()

    def let_go(self) -> None:
        """Close the connection before a fork; the next question opens one again."""
        if self.path is not None:
            self._disconnect()

    @property
    def _is_foreign(self) -> bool:
        return is_foreign(self.path, self.kind.mark, self.kind.declared())

    @contextmanager
    def _held(self) -> Generator[None]:
        with ExitStack() as stack:
            try:
                stack.enter_context(self._lock.held())
            except LogBusy as error:
                # Not the log is busy, but a file next to it: that is not the caller's trouble.
                raise TimeoutError(str(error)) from error
            yield

    def _opened(self) -> sqlite3.Connection:
        self._identity = self._found()
        if self.path is not None and not (self._identity and self.path.stat().st_size):
            if self._identity is not None:
                logger.warning("%s is empty; making it again", self.path)
            self._build(self.path, self._fill)
        connection = self.connected(self.path or ":memory:", "WAL")
        if self.path is None:
            with _closed_on_error(connection):
                self._begin(connection, self._fill)
        self._identity = self._found()
        self.times_opened += 1
        return connection

    def _build(self, path: Path, fill: Callable[[sqlite3.Connection], None]) -> None:
        """Make a new file elsewhere and move it into place: there is a whole one or none."""
        place = _unfinished(path)
        _delete(place)
        make_private(place, like=self._of)
        try:
            # Without a journal, each page is written once; of a crash nothing needs to be undone.
            with closing(self.connected(place, "OFF")) as connection:
                self._begin(connection, fill)
            self.refuse_foreign()  # It took a while.
            # What is left of a file that was there would be taken for a part of the new one.
            _delete(path)
            name_new(place, path)
        finally:
            _delete(place)

    def _begin(
        self, connection: sqlite3.Connection, fill: Callable[[sqlite3.Connection], None]
    ) -> None:
        with transaction(connection, "EXCLUSIVE"):
            self.kind.begin(connection)
            write_mark(connection, self.kind.mark)
            fill(connection)

    def connected(self, place: Path | str, journal: str) -> sqlite3.Connection:
        """Open a database with the settings of this kind of file."""
        connection = open_sqlite(
            place,
            timeout=BUSY_TIMEOUT,
            isolation_level=None,
            check_same_thread=False,
            kept=True,
            of=self._of,
        )
        with _closed_on_error(connection):
            connection.execute(f"PRAGMA page_size={PAGE_SIZE}")
            connection.execute(f"PRAGMA journal_mode={journal}")
            # What an erasure takes out must not stay in pages that are free.
            connection.execute("PRAGMA secure_delete=ON")
            self._set(connection)
        return connection

    def _set(self, connection: sqlite3.Connection) -> None:
        for statement in self.kind.pragmas:
            connection.execute(statement)

    def _found(self) -> Identity | None:
        return None if self.path is None else identity_of(str(self.path))

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(Exception):  # Closing writes, and damage makes it raise anything.
                self._connection.close()
        self._connection = None


@contextmanager
def _closed_on_error(connection: sqlite3.Connection) -> Generator[None]:
    try:
        yield
    except BaseException:
        connection.close()
        raise


def _for_reading(path: Path) -> sqlite3.Connection:
    """Return a connection that changes nothing. It may write all the same: one that may not would leave
    its -wal and -shm files when it is closed.
    """
    if read_only_place(path) is not None:
        connection = connect_read_only(path)
    else:
        uri = f"{path.as_uri()}?mode=rw"
        connection = open_sqlite(uri, uri=True, timeout=BUSY_TIMEOUT, isolation_level=None)
    # Bytes that are no text are a difference, not a reason to stop.
    connection.text_factory = lenient
    return connection


def _unfinished(path: Path) -> Path:
    return Path(f"{path}{_UNFINISHED}")


def _lies_at(path: Path, *, ours: bool) -> bool:
    """Whether there is anything of ours, finished or not."""
    ends = (_UNFINISHED, *(_PARTS if ours else ()))
    return any(os.path.lexists(f"{path}{end}") for end in ends)


def _delete(path: Path) -> None:
    for end in _PARTS:
        Path(f"{path}{end}").unlink(missing_ok=True)
