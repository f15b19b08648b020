"""Looking into a derived file that may be damaged, without changing it."""

import os
import sqlite3
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from sqlite_utils import Database

from refold.application.errors import LogBusy
from refold.application.runtime.opening_process import OpeningProcess
from refold.application.runtime.plain_lines import plain_logger
from refold.infrastructure.files.lock import WriteLock
from refold.infrastructure.files.private_files import make_private
from refold.infrastructure.sqlite.read_only import connected, read_only_place
from refold.infrastructure.sqlite.sqlite_connection import open_sqlite

from .checkpoint import create_positions, has_earlier_fold, nowhere, write_progress
from .emptying import has_emptied_ahead
from .invalidation import FoldOutdated, create_reading_from, write_reading_from
from .ownership import MARKS, is_foreign, name_new, refuse_foreign, write_mark
from .projection import Content, expected_schema, schema_of, wrapped
from .projection_damage import FoldDamaged


def looking_into(path: Path, timeout: float) -> sqlite3.Connection:
    """A connection for reading only. It may write all the same: one that may not would leave the files
    beside it when it is closed.
    """
    if read_only_place(path) is not None:
        connection = connected(path)
    else:
        uri = f"{path.as_uri()}?mode=rw"
        connection = open_sqlite(uri, uri=True, timeout=timeout, isolation_level=None)
    # Bytes that are no text are a difference, not a reason to stop.
    connection.text_factory = _lenient
    return connection


def _lenient(raw: bytes) -> str:
    return raw.decode(errors="replace")


BUSY_TIMEOUT = 30
"""Seconds that a connection waits for another process (requirement A9)."""
CACHE_KIB = 16_384
"""Page cache of a connection: a batch of a bulk load stays in memory until it is committed."""

PAGE_SIZE = 8_192
"""Bytes; messages are of about 1.4 kB, of which the usual page of 4,096 holds only two."""

logger = plain_logger(__name__)


class DerivedFile:
    """One connection to the file, renewed when another file has taken its place.

    Opening and dropping are ordered between processes by a lock beside the file: a write-ahead log
    must never be paired with a database that it was not made for.
    """

    def __init__(
        self,
        path: Path | None,
        content: Content,
        fill: Callable[[Database], None] = lambda _: None,
        newest: Callable[[], int] = lambda: 0,
        *,
        of: Path | None = None,
    ) -> None:
        """``path`` None is a database in memory; ``fill`` is what a new file begins with.

        ``newest`` tells the number of the newest event of the log. ``of``: the file of the log; whoever
        may use that one may use this one.
        """
        self.path = path
        self._content = content
        self._fill = fill
        self._newest = newest
        self._of = of
        self._lock = WriteLock(Path(f"{path}.lock") if path else None, BUSY_TIMEOUT, of=of)
        self._process = OpeningProcess(f"{of or path}")
        self._db: Database | None = None
        self._identity: tuple[int, int] | None = None

    def database(self) -> Database:
        """The open database, with exactly the tables that it should have.

        Raises:
            FoldDamaged: it has other tables.
            PlaceTaken: a file of somebody else lies there.
            sqlite3.Error, OSError: it cannot be opened.
        """
        self._process.check()
        if self._db is not None and self._identity != self._found():
            logger.info("%s was replaced; opening the new file", self.path)
            self._disconnect()
        if self._db is None:
            self.refuse_foreign()
            with self._held():
                self._db = self._opened()
        missing = dict(expected_schema(self._content).items() ^ schema_of(self._db).items()).keys()
        if missing - self._content.late:
            if has_earlier_fold(self._db, self._content.projections):
                raise FoldOutdated("an earlier version of refold filled it")
            raise FoldDamaged(f"the tables differ: {', '.join(sorted(missing))}")
        return self._db

    @property
    def is_replaced(self) -> bool:
        """Whether the file that was opened is gone, or another one lies there."""
        try:
            return self._identity is not None and self._identity != self._found()
        except OSError:
            return False

    def drop(self, *, any_file: bool = False) -> None:
        """Delete the file, unless another process has replaced it already, or it is not ours.

        ``any_file``: that one as well, and what is left of one that was not finished.
        """
        foreign = self._is_foreign()
        if self.path is None or not _lies_at(self.path, ours=not foreign):
            # Without the lock, whose file would say that one of ours had been there.
            self._disconnect()
            self._identity = None
            return
        with self._held():
            replaced = self.is_replaced
            self._disconnect()
            if not foreign and (any_file or not replaced):
                self._delete(self.path)
            if any_file:
                self._delete(_unfinished(self.path))
            self._identity = None

    def _is_foreign(self) -> bool:
        return is_foreign(self.path, MARKS[self._content.name], expected_schema(self._content))

    @contextmanager
    def lasting(self) -> Generator[None]:
        """What is committed inside is on the disk when it ends, even if the machine fails then."""
        db = self.database()
        db.conn.execute("PRAGMA synchronous=FULL")
        try:
            yield
        finally:
            db.conn.execute("PRAGMA synchronous=OFF")

    def empty_ahead(self) -> bool:
        """Move everything from the write-ahead log into the file, and cut it to nothing; whether that could
        be done. False while another process reads from it.
        """
        return self.path is None or has_emptied_ahead(self.database().conn)

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self._db is not None

    @property
    def is_alone(self) -> bool:
        """Whether the file is there, with nothing beside it that was not finished."""
        return self.path is not None and (
            self._found() is not None and not os.path.lexists(_unfinished(self.path))
        )

    @contextmanager
    def unchanged(self) -> Generator[Database | None]:
        """The database as it is, for reading only; None if there is no file yet.

        Raises:
            PlaceTaken: a file of somebody else lies there.
            sqlite3.Error, OSError: it cannot be opened.
        """
        self.refuse_foreign()
        if self.path is None:
            yield self._db
        elif self._found() is None:
            yield None
        else:
            with closing(looking_into(self.path, BUSY_TIMEOUT)) as connection:
                yield wrapped(connection)

    def close(self) -> None:
        """Release the connection."""
        if self._process.is_this:
            self._disconnect()
            self._lock.close()

    def let_go(self) -> None:
        """Close the connection before a fork; the next question opens one again."""
        if self.path is not None:
            self._disconnect()

    @contextmanager
    def _held(self) -> Generator[None]:
        with ExitStack() as stack:
            try:
                stack.enter_context(self._lock.held())
            except LogBusy as error:
                # Not the log is busy, but what stands beside it: that is not the caller's trouble.
                raise TimeoutError(str(error)) from error
            yield

    def refuse_foreign(self) -> None:
        """Refuse a file of somebody else; raises ``PlaceTaken``."""
        refuse_foreign(self.path, MARKS[self._content.name], expected_schema(self._content))

    def _opened(self) -> Database:
        self._identity = self._found()
        if self.path is not None and not (self._identity and self.path.stat().st_size):
            if self._identity is not None:
                logger.warning("%s is empty; making it again from the log", self.path)
            self._build(self.path)
        db = self._connected(self.path or ":memory:", "WAL")
        if self.path is None:
            with transaction(db, "IMMEDIATE"):
                self._begin(db)
        self._identity = self._found()
        return db

    def _build(self, path: Path) -> None:
        """Make a new file elsewhere and move it into place: there is a whole one or none."""
        place = _unfinished(path)
        self._delete(place)
        make_private(place, like=self._of)
        try:
            # Without a journal, each page is written once; of a crash nothing needs to be undone.
            with closing(self._connected(place, "OFF")) as db, transaction(db, "EXCLUSIVE"):
                self._begin(db)
                self._fill(db)
            self.refuse_foreign()  # It took a while.
            # What is left of a file that was there would be taken for a part of the new one.
            self._delete(path)
            name_new(place, path)
        finally:
            self._delete(place)

    def _begin(self, db: Database) -> None:
        begin(db, self._content)
        write_mark(db.conn, MARKS[self._content.name])
        write_reading_from(db, self._newest())

    def _connected(self, place: Path | str, journal: str) -> Database:
        connection = open_sqlite(
            place,
            timeout=BUSY_TIMEOUT,
            isolation_level=None,
            check_same_thread=False,
            kept=True,
            of=self._of,
        )
        try:
            connection.execute(f"PRAGMA page_size={PAGE_SIZE}")
            connection.execute(f"PRAGMA journal_mode={journal}")
            # A crash of the process loses nothing. A power loss may damage the file: every read notices,
            # and the rows are folded again. Syncs would only make rebuilding and following slower.
            connection.execute("PRAGMA synchronous=OFF")
            # What an erasure takes out must not stay in pages that are free.
            connection.execute("PRAGMA secure_delete=ON")
            connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
        except BaseException:
            connection.close()
            raise
        return wrapped(connection)

    def _found(self) -> tuple[int, int] | None:
        if self.path is None:
            return None
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino

    def _disconnect(self) -> None:
        if self._db is not None:
            with suppress(Exception):  # Closing writes, and says of damage what nobody can decode.
                self._db.close()
        self._db = None

    @staticmethod
    def _delete(path: Path) -> None:
        for suffix in ("", "-wal", "-shm", "-journal"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)


def begin(db: Database, content: Content) -> None:
    """Make the tables of an empty fold, in the transaction that is open."""
    content.create(db)
    create_positions(db)
    create_reading_from(db)
    write_progress(db, content.projections, nowhere(content.projections))


def _unfinished(path: Path) -> Path:
    return Path(f"{path}.new")


def _lies_at(path: Path, *, ours: bool) -> bool:
    """Whether there is anything of ours, finished or not."""
    ends = (".new", *(("", "-wal", "-shm", "-journal") if ours else ()))
    return any(os.path.lexists(f"{path}{end}") for end in ends)


@contextmanager
def transaction(db: Database, kind: str) -> Generator[None]:
    """All of what is done inside, or nothing."""
    db.conn.execute(f"BEGIN {kind}")
    try:
        yield
        db.conn.execute("COMMIT")
    finally:
        # Nothing is open after a commit; after an error nothing may stay.
        if db.conn.in_transaction:
            db.conn.execute("ROLLBACK")
