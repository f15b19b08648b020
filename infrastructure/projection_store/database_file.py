"""The lifecycle of an SQLite file next to the log: create, detect replacement, delete, close before a
fork.
"""

import errno
import os
import sqlite3
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Generic, NamedTuple, TypeVar

from refold.application.errors import LogBusy
from refold.application.runtime.opening_process import OpeningProcess
from refold.application.runtime.plain_lines import plain_logger
from refold.infrastructure.event_store.file_format import is_too_long
from refold.infrastructure.files.lock import WriteLock
from refold.infrastructure.files.private_files import make_private
from refold.infrastructure.sqlite.connection_pool import Identity, identity_of
from refold.infrastructure.sqlite.read_only import connect_read_only
from refold.infrastructure.sqlite.sqlite_connection import open_sqlite, transaction

from .ownership import MARKS, is_foreign, lenient, name_new, refuse_foreign, write_mark
from .row_checksums import BROKEN, blamed_on_file

BUSY_TIMEOUT = 30
"""Seconds that a connection waits for another process."""
BUSY_MILLISECONDS = 1_000 * BUSY_TIMEOUT
READERS_MILLISECONDS = 1_000
"""Milliseconds to wait for readers in other processes before the write-ahead log is emptied."""
PAGE_SIZE = 8_192
"""Page size in bytes. The usual page of 4,096 bytes has room for two messages of 1.4 kB, or one vector of
512 dimensions.
"""

_UNFINISHED = ".new"
_PARTS = ("", "-wal", "-shm", "-journal")
"""Suffixes of the files that SQLite creates for one database."""

logger = plain_logger(__name__)


class FileKind(NamedTuple):
    """The properties that all files of a kind share."""

    name: str
    """Key of the mark in ``MARKS``, and place name in reports about damage of the whole file."""
    title: str
    """Name of the content in sentences: ``the read models``."""
    pragmas: tuple[str, ...]
    """Statements that configure each connection, in addition to those for every kind."""
    begin: Callable[[sqlite3.Connection], None]
    """Function that creates the tables of an empty file, in the open transaction."""
    declared: Callable[[], Mapping[str, str]]
    """Function that returns the SQL of every object in a file, by name."""
    check: Callable[[sqlite3.Connection], None]
    """Function that raises ``FoldDamaged`` if this version did not create the open file."""

    @property
    def mark(self) -> int:
        """``PRAGMA application_id`` of the files."""
        return MARKS[self.name]


def _nothing(_: sqlite3.Connection) -> None:
    pass


class DatabaseFile:
    """One connection to the file, reopened when another file has replaced it.

    A lock next to the file orders opening and deleting between processes, because a write-ahead log
    must never be paired with another database.
    """

    def __init__(
        self,
        path: Path | None,
        kind: FileKind,
        fill: Callable[[sqlite3.Connection], None] = _nothing,
        *,
        of: Path | None = None,
    ) -> None:
        """Create an object for the file at ``path``, or for a database in memory if ``path`` is None.

        ``fill`` adds the first content of a new file. ``of`` is the log file, which gives the new file
        its permissions.
        """
        self.path = path
        self.kind = kind
        self.times_opened = 0
        """Number of times that a file was opened. It may be another file each time."""
        self._fill = fill
        self._of = of
        self._lock = WriteLock(Path(f"{path}.lock") if path else None, BUSY_TIMEOUT, of=of)
        self._process = OpeningProcess(f"{of or path}")
        self._connection: sqlite3.Connection | None = None
        self._identity: Identity | None = None
        """Identity of the last opened file. It is kept after closing, to detect a replacement."""

    def connection(self) -> sqlite3.Connection:
        """Return the connection. Create the file if none exists or it is empty.

        Raises:
            FoldDamaged: this version did not create the file.
            PlaceTaken: a file of another program is in this place.
            sqlite3.Error, OSError: the file cannot be opened.
        """
        self._process.check()
        if self._connection is not None and self._identity != self._find():
            logger.info("%s was replaced; opening the new file", self.path)
            self._disconnect()
        if self._connection is None:
            self.refuse_foreign()
            with self._hold_lock():
                self._connection = self._open()
        self.kind.check(self._connection)
        return self._connection

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection]:
        """Run the block in a transaction. No process replaces the file in the meantime.

        Raises:
            FoldDamaged, sqlite3.Error, OSError: as in ``connection``.
        """
        while True:
            connection = self.connection()
            with self._hold_lock():
                if self._identity == self._find():
                    with transaction(connection, "IMMEDIATE"):
                        yield connection
                    return

    @contextmanager
    def unchanged(self) -> Generator[sqlite3.Connection | None]:
        """Open the database read-only without changes. Yield None if there is no file yet.

        Raises:
            PlaceTaken: a file of another program is in this place.
            sqlite3.Error, OSError: the file cannot be opened.
        """
        self.refuse_foreign()
        if self.path is None:
            yield self._connection
        elif self._find() is None:
            yield None
        else:
            with closing(_connect_read_only(self.path)) as connection:
                yield connection

    @contextmanager
    def lasting(self) -> Generator[None]:
        """Sync commits inside the block, so that they survive a power loss."""
        connection = self.connection()
        connection.execute("PRAGMA synchronous=FULL")
        try:
            yield
        finally:
            self._set(connection)

    @property
    def is_open(self) -> bool:
        """True if there is a connection."""
        return self._connection is not None

    @property
    def is_there(self) -> bool:
        """True if a finished file of refold or an open database in memory exists."""
        if self.path is None:
            return self.is_open
        return self._find() is not None and not self._is_foreign

    @property
    def is_alone(self) -> bool:
        """True if the file exists, without an unfinished one next to it."""
        return self.path is not None and (
            self._find() is not None and not os.path.lexists(_unfinished(self.path))
        )

    @property
    def is_replaced(self) -> bool:
        """True if the opened file was deleted or replaced."""
        try:
            return self._identity is not None and self._identity != self._find()
        except OSError:
            return False

    def refuse_foreign(self) -> None:
        """Raise ``PlaceTaken`` if the file belongs to another program."""
        refuse_foreign(self.path, self.kind.mark, self.kind.declared)

    def drop(self, *, any_file: bool = False) -> None:
        """Delete the file, unless another process has replaced it or it belongs to another program.

        With ``any_file``, delete a replacement and an unfinished file as well.
        """
        foreign = self._is_foreign
        if self.path is None or not _is_at(self.path, ours=not foreign):
            # Without the lock file, nothing shows that a file of refold was here.
            self._disconnect()
            self._identity = None
            return
        with self._hold_lock():
            replaced = self.is_replaced
            self._disconnect()
            if not foreign and (any_file or not replaced):
                _delete_linked(self.path)
            if any_file:
                _delete(_unfinished(self.path))
            self._identity = None

    def make_again(self, fill: Callable[[sqlite3.Connection], None]) -> None:
        """Replace the file with a new one that ``fill`` fills. The old file exists until then.

        Raises:
            PlaceTaken, sqlite3.Error, OSError: the file cannot be replaced.
        """
        assert self.path is not None
        with self._hold_lock():
            self._disconnect()
            self._identity = None
            if self._find() is not None:
                self._build(self.path, fill)
            else:  # Remains of a database that a user deleted.
                _delete(self.path)
                _delete(_unfinished(self.path))

    def empty_ahead(self) -> bool:
        """Move the write-ahead log into the file and truncate it; return whether that was possible.

        It is not while another process reads from the write-ahead log.
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
        """Close the connection."""
        if self._process.is_this:
            self._disconnect()
            self._lock.close()

    def let_go(self) -> None:
        """Close the connection before a fork. The next query opens it again."""
        if self.path is not None:
            self._disconnect()

    @property
    def _is_foreign(self) -> bool:
        return is_foreign(self.path, self.kind.mark, self.kind.declared)

    @contextmanager
    def _hold_lock(self) -> Generator[None]:
        with ExitStack() as stack:
            try:
                stack.enter_context(self._lock.held())
            except LogBusy as error:
                # The busy file is not the log but a file next to it, which must not fail the
                # caller.
                raise TimeoutError(str(error)) from error
            yield

    def _open(self) -> sqlite3.Connection:
        self._identity = self._find()
        if self.path is not None and not (self._identity and self.path.stat().st_size):
            if self._identity is not None:
                logger.warning("%s is empty; creating it again", self.path)
            self._build(self.path, self._fill)
        connection = self.connected(self.path or ":memory:", "WAL")
        if self.path is None:
            with _closed_on_error(connection):
                self._begin(connection, self._fill)
        self._identity = self._find()
        self.times_opened += 1
        return connection

    def _build(self, path: Path, fill: Callable[[sqlite3.Connection], None]) -> None:
        """Build a new file under a temporary name and move it into place, so that it is complete or
        missing.
        """
        place = _unfinished(path)
        _delete(place)
        make_private(place, like=self._of)
        try:
            # Without a journal, each page is written once. A crash leaves nothing to roll back.
            with closing(self.connected(place, "OFF")) as connection:
                self._begin(connection, fill)
            self.refuse_foreign()  # Building takes time.
            # SQLite would take remains of an earlier file for a part of the new one.
            _delete_linked(path)
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
        """Open a database with the settings of this kind of file.

        Raises:
            OSError: the path is too long for SQLite, which would not say so.
        """
        if isinstance(place, Path) and is_too_long(place):
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), str(place))
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
            # Before the settings, because this syncs the header of a new file. Without it a loss of
            # power leaves a file that is not known as one of refold.
            connection.execute(f"PRAGMA journal_mode={journal}")
            # Erased content must not stay in free pages.
            connection.execute("PRAGMA secure_delete=ON")
            self._set(connection)
        return connection

    def _set(self, connection: sqlite3.Connection) -> None:
        for statement in self.kind.pragmas:
            connection.execute(statement)

    def _find(self) -> Identity | None:
        return None if self.path is None else identity_of(str(self.path))

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(Exception):  # Closing writes, and damage can make it raise any error.
                self._connection.close()
        self._connection = None


AGAIN_AFTER = 1.0
"""Seconds after which a file that could not be used is tried again."""
_SHARE = 100
"""Attempts to use it again take at most one part in so many of the time."""


AnyFile = TypeVar("AnyFile", bound=DatabaseFile)


class DisplacedFile(Generic[AnyFile]):
    """A file that could not be used, and that a database in memory replaces until it can be used again."""

    def __init__(self, file: AnyFile, error: Exception) -> None:
        """Close the file. ``error`` is that of using it."""
        file.close()
        self._file = file
        wait = _SHARE * BUSY_TIMEOUT if _is_busy(error) else AGAIN_AFTER
        self._next = monotonic() + wait

    def try_again(self) -> AnyFile | None:
        """Return the file if it can be opened now, or None if it cannot or was tried a moment ago."""
        began = monotonic()
        if began < self._next:
            return None
        try:
            with blamed_on_file():
                self._file.connection()
        except BROKEN as error:
            self._file.close()
            logger.debug("%s cannot be used yet: %s", self._file.path, error)
            now = monotonic()
            self._next = now + max(AGAIN_AFTER, _SHARE * (now - began))
            return None
        logger.info("%s can be used again", self._file.path)
        return self._file


def _is_busy(error: Exception) -> bool:
    code = getattr(error, "sqlite_errorcode", None) or 0
    return isinstance(error, TimeoutError) or code & 0xFF in (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
    )


@contextmanager
def _closed_on_error(connection: sqlite3.Connection) -> Generator[None]:
    try:
        yield
    except BaseException:
        connection.close()
        raise


def _connect_read_only(path: Path) -> sqlite3.Connection:
    """Return a connection that changes nothing, and leaves no files on close."""
    connection = connect_read_only(path, mode="rw", timeout=BUSY_TIMEOUT)
    # Bytes that are not text are a difference to report, not an error.
    connection.text_factory = lenient
    return connection


def _unfinished(path: Path) -> Path:
    return Path(f"{path}{_UNFINISHED}")


def _is_at(path: Path, *, ours: bool) -> bool:
    """Return whether a finished or unfinished file of refold exists at the path."""
    ends = (_UNFINISHED, *(_PARTS if ours else ()))
    return any(os.path.lexists(f"{path}{end}") for end in ends)


def _delete_linked(path: Path) -> None:
    """Delete a database of refold, and the file that has its content if a link is in its place."""
    real = Path(os.path.realpath(path))
    if path.is_symlink() and real.is_file() and real.stat().st_size:
        _delete(real)
    _delete(path)


def _delete(path: Path) -> None:
    for end in _PARTS:
        Path(f"{path}{end}").unlink(missing_ok=True)
