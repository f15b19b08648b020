"""The file of the vectors: opened by many processes, dropped and made again when it is broken."""

import os
import sqlite3
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cache
from pathlib import Path

from refold.application.errors import LogBusy
from refold.application.ports.conversation_log import Damage
from refold.application.runtime.opening_process import OpeningProcess
from refold.application.runtime.plain_lines import plain_logger
from refold.infrastructure.files.lock import WriteLock
from refold.infrastructure.files.private_files import make_private
from refold.infrastructure.projection_store.emptying import has_emptied_ahead
from refold.infrastructure.projection_store.ownership import (
    MARKS,
    PlaceTaken,
    is_foreign,
    name_new,
    refuse_foreign,
)
from refold.infrastructure.projection_store.projection_damage import (
    BROKEN,
    FoldDamaged,
    blamed_on_file,
)
from refold.infrastructure.sqlite.sqlite_connection import open_sqlite, transaction
from refold.infrastructure.sqlite.sqlite_failures import is_forbidden

from .vector_rows import (
    damaged_in,
    delete_rows,
    forget_model,
    model_in,
    overwrite_others,
    problems_of,
)

FORMAT = 1
"""Of the file. One of another format is dropped: what it held is made again."""
BUSY_TIMEOUT = 30
"""Seconds that a connection waits for another process (requirement A9)."""
MARK = MARKS["vectors"]
"""What tells the file from those of others."""
PAGE_SIZE = 8_192
"""Bytes; three vectors of 512 dimensions fill one."""

_BEGIN = f"""
BEGIN EXCLUSIVE;
CREATE TABLE models (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dimension INTEGER NOT NULL);
CREATE TABLE vectors (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    model INTEGER NOT NULL,
    digest TEXT NOT NULL,
    vector BLOB NOT NULL,
    checksum INTEGER NOT NULL,
    UNIQUE (model, digest)
);
PRAGMA user_version={FORMAT};
PRAGMA application_id={MARK};
COMMIT;
"""


class VectorsFile:
    """One connection to the file, renewed when another file has taken its place.

    Whoever writes, drops or prunes holds a lock beside the file: a file that is being replaced is
    written by nobody, and a write-ahead log is never paired with a database that it was not made for.
    """

    def __init__(self, path: Path | None, *, of: Path | None = None) -> None:
        """``path`` None is a database in memory. ``of``: whoever may use that file may use this one."""
        self.path = path
        self.times_opened = 0
        """Counts up whenever it may be another file than before."""
        self._of = of
        self._lock = WriteLock(Path(f"{path}.lock") if path else None, BUSY_TIMEOUT, of=of)
        self._process = OpeningProcess(f"{of or path}")
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None

    def exists(self) -> bool:
        """Whether there is anything of ours."""
        if self.path is None:
            return self._connection is not None
        return self._found() is not None and not self._is_foreign()

    @property
    def is_replaced(self) -> bool:
        """Whether the file that was opened is gone, or another one lies there."""
        try:
            return self._identity is not None and self._identity != self._found()
        except OSError:
            return False

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection | None]:
        """What is there, as it is at one moment; None if there is no file yet.

        Raises:
            FoldDamaged, sqlite3.Error, OSError: it cannot be used.
        """
        if self.path is not None and self._found() is None:
            yield None
            return
        connection = self._current()
        with transaction(connection, "DEFERRED"):
            yield connection

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection]:
        """All of what is done inside, or nothing; nobody replaces the file meanwhile.

        Raises:
            FoldDamaged, sqlite3.Error, OSError: it cannot be used.
        """
        while True:
            connection = self._current()
            with self._held():
                if self._identity == self._found():
                    with transaction(connection, "IMMEDIATE"):
                        yield connection
                    return

    def refuse_foreign(self) -> None:
        """Refuse a file of somebody else; raises ``PlaceTaken``."""
        refuse_foreign(self.path, MARK, _declared())

    def drop(self, *, only_mine: bool = False) -> None:
        """Delete the file, if it is ours; ``only_mine``: unless another process has replaced it already."""
        if self.path is None or not self._lies_here(self.path):
            # Without the lock, whose file would say that one of ours had been there.
            self._disconnect()
            return
        with self._held():
            replaced = self.is_replaced
            self._disconnect()
            if not (only_mine and replaced):
                _delete(self.path)
            _delete(_unfinished(self.path))

    def prune(self, keep: frozenset[str]) -> None:
        """Delete the vectors of all other texts, so that no byte of them is left in a file."""
        if self.path is None:
            with self.writing() as connection:
                gone = [(one,) for one in _digests(connection) if one not in keep]
                connection.executemany("DELETE FROM vectors WHERE digest = ?", gone)
            return
        if not self._lies_here(self.path) or self._is_pruned_in_place(self.path, keep):
            return
        with self._held():
            if self._found() is None:
                _delete(self.path)  # What is left of one that was deleted by hand.
                return
            self._disconnect()
            place = _unfinished(self.path)
            try:
                self._copy(self.path, place, keep)
                _delete(self.path)
                name_new(place, self.path)
            finally:
                _delete(place)

    def _is_pruned_in_place(self, path: Path, keep: frozenset[str]) -> bool:
        """Overwrite the vectors of all other texts, if they are few; False: the file is to be written anew."""
        if self._found() is None or os.path.lexists(_unfinished(path)):
            return False
        try:
            with blamed_on_file():
                with self.writing() as connection:
                    if not overwrite_others(connection, keep):
                        return False
                return has_emptied_ahead(self._current())
        except BROKEN:
            return False

    def close(self) -> None:
        """Release the connection."""
        if self._process.is_this:
            self._disconnect()
            self._lock.close()

    def let_go(self) -> None:
        """Close the connection before a fork; the next question opens one again."""
        if self.path is not None:
            self._disconnect()

    def _current(self) -> sqlite3.Connection:
        self._process.check()
        if self._connection is not None and self._identity != self._found():
            self._disconnect()
        if self._connection is None:
            self.refuse_foreign()
            with self._held():
                self._connection = self._opened()
        return self._connection

    def _is_foreign(self) -> bool:
        return is_foreign(self.path, MARK, _declared())

    def _lies_here(self, path: Path) -> bool:
        """Whether there is anything of ours, finished or not."""
        ends = ("", ".new", "-wal", "-shm", "-journal")
        return any(os.path.lexists(f"{path}{end}") for end in ends) and not self._is_foreign()

    def _opened(self) -> sqlite3.Connection:
        if self.path is not None and not (self._found() and self.path.stat().st_size):
            _delete(self.path)
            self._copy(None, _unfinished(self.path), frozenset())
            name_new(_unfinished(self.path), self.path)
        connection = _connected(self.path or ":memory:", "WAL", self._of)
        try:
            if self.path is None:
                connection.executescript(_BEGIN)
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version != FORMAT:
                raise FoldDamaged(f"a file of format {version}, not {FORMAT}")
        except BaseException:
            connection.close()
            raise
        self._identity = self._found()
        self.times_opened += 1
        return connection

    def _copy(self, source: Path | None, into: Path, keep: frozenset[str]) -> None:
        """Make a file with what is to be kept of another: there is a whole one or none."""
        _delete(into)
        make_private(into, like=self._of)
        with closing(_connected(into, "OFF", self._of)) as new:
            new.executescript(_BEGIN)
            if source is None:
                return
            with (
                closing(_connected(source, "WAL", self._of)) as old,
                transaction(new, "EXCLUSIVE"),
            ):
                models = old.execute("SELECT id, name, dimension FROM models").fetchall()
                new.executemany("INSERT INTO models VALUES (?, ?, ?)", models)
                new.executemany(
                    "INSERT INTO vectors (model, digest, vector, checksum) VALUES (?, ?, ?, ?)",
                    _kept(old, keep),
                )

    @contextmanager
    def _held(self) -> Generator[None]:
        with ExitStack() as stack:
            try:
                stack.enter_context(self._lock.held())
            except LogBusy as error:
                # Not the log is busy, but what stands beside it: that is not the caller's trouble.
                raise TimeoutError(str(error)) from error
            yield

    def _found(self) -> tuple[int, int] | None:
        if self.path is None:
            return None
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(Exception):  # Closing writes, and says of damage what nobody can decode.
                self._connection.close()
        self._connection = self._identity = None


def _connected(place: Path | str, journal: str, of: Path | None) -> sqlite3.Connection:
    connection = open_sqlite(
        place,
        timeout=BUSY_TIMEOUT,
        isolation_level=None,
        check_same_thread=False,
        kept=True,
        of=of,
    )
    try:
        connection.execute(f"PRAGMA page_size={PAGE_SIZE}")
        connection.execute(f"PRAGMA journal_mode={journal}")
        # Vectors may have been paid for: a power loss must not cost all of them.
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA secure_delete=ON")
    except BaseException:
        connection.close()
        raise
    return connection


@cache
def _declared() -> Mapping[str, str]:
    """What a file of vectors declares, by name."""
    with closing(open_sqlite(":memory:", isolation_level=None)) as connection:
        connection.executescript(_BEGIN)
        rows = connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
        return {str(name): str(sql) for name, sql in rows}


def _digests(connection: sqlite3.Connection) -> list[str]:
    return [one for (one,) in connection.execute("SELECT DISTINCT digest FROM vectors")]


def _kept(old: sqlite3.Connection, keep: frozenset[str]) -> Iterable[tuple[int, str, bytes, int]]:
    rows = old.execute("SELECT model, digest, vector, checksum FROM vectors ORDER BY id")
    return (row for row in rows if row[1] in keep)


def _unfinished(path: Path) -> Path:
    return Path(f"{path}.new")


def _delete(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


PLACE = "vectors"
"""What damage names."""

logger = plain_logger(__name__)


def damage_of(file: VectorsFile) -> Iterator[Damage]:
    """What is not as it was stored; a file that is not there is as it should be."""
    try:
        with blamed_on_file(), file.reading() as db:
            if db is not None:
                for problem in problems_of(db):
                    yield Damage(PLACE, "", 0, "unreadable", problem)
                for number in damaged_in(db):
                    yield Damage(PLACE, "", 0, "differs", f"vector {number} was changed")
    except PlaceTaken as error:
        yield Damage(PLACE, "", 0, "foreign", str(error))
    except BROKEN as error:
        if is_forbidden(error):
            logger.warning("the vectors %s cannot be checked: %s", file.path, error)
            return
        yield Damage(PLACE, "", 0, "unreadable", str(error))


def taken(path: Path | None) -> Iterator[Damage]:
    """Whether a file of somebody else lies in the place of ours."""
    try:
        VectorsFile(path).refuse_foreign()
    except PlaceTaken as error:
        yield Damage(PLACE, "", 0, "foreign", str(error))


def delete_damaged(file: VectorsFile) -> bool:
    """Delete the vectors that were changed; whether that helps, or the file as such is damaged."""
    try:
        with blamed_on_file(), file.writing() as db:
            if any(problems_of(db)):
                return False
            delete_rows(db, list(damaged_in(db)))
    except BROKEN:
        return False
    return True


def delete_of_other_dimension(file: VectorsFile, model: str, dimension: int) -> int | None:
    """Delete a model's vectors where they have another dimension; how many there were, None if they fit."""
    with file.reading() as db:
        known = None if db is None else model_in(db, model)
    if known is None or known.dimension == dimension:
        return None
    with file.writing() as db:
        return forget_model(db, known)
