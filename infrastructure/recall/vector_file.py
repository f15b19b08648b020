"""The file of the vectors: its tables, consistent reads, and pruning."""

import sqlite3
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path

from refold.application.ports.conversation_log import Damage
from refold.infrastructure.projection_store.database_file import DatabaseFile, FileKind
from refold.infrastructure.projection_store.projection_check import look_over
from refold.infrastructure.projection_store.row_checksums import BROKEN, FoldDamaged, blamed_on_file
from refold.infrastructure.sqlite.sqlite_connection import declared_in, open_sqlite, transaction

from .vector_rows import (
    damaged_in,
    delete_rows,
    forget_model,
    model_in,
    overwrite_others,
    problems_of,
)

FORMAT = 1
"""Format of the file. A file of another format is deleted and its vectors are computed again."""

_BEGIN = (
    "CREATE TABLE models (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dimension INTEGER NOT NULL)",
    """CREATE TABLE vectors (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    model INTEGER NOT NULL,
    digest TEXT NOT NULL,
    vector BLOB NOT NULL,
    checksum INTEGER NOT NULL,
    UNIQUE (model, digest)
)""",
    f"PRAGMA user_version={FORMAT}",
)


def _begin(connection: sqlite3.Connection) -> None:
    for statement in _BEGIN:
        connection.execute(statement)


@cache
def _expected_schema() -> Mapping[str, str]:
    with closing(open_sqlite(":memory:", isolation_level=None)) as connection:
        _begin(connection)
        return declared_in(connection)


def _check_format(connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != FORMAT:
        raise FoldDamaged(f"a file of format {version}, not {FORMAT}")


VECTORS = FileKind(
    "vectors",
    "the vectors",
    # Vectors may have been paid for, so a power loss must not cost all of them.
    ("PRAGMA synchronous=NORMAL",),
    begin=_begin,
    declared=_expected_schema,
    check=_check_format,
)


class VectorsFile(DatabaseFile):
    """The vectors of texts by model and digest, in a file that many processes share."""

    def __init__(self, path: Path | None, *, of: Path | None = None) -> None:
        """Create an object for the file at ``path``, or for a database in memory if ``path`` is None.

        ``of`` is the log file, which gives the new file its permissions.
        """
        super().__init__(path, VECTORS, of=of)

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection | None]:
        """Open the database for reads at one moment. Yield None if there is no file yet.

        Raises:
            FoldDamaged, sqlite3.Error, OSError: the file cannot be used.
        """
        if self.path is not None and self._find() is None:
            yield None
            return
        connection = self.connection()
        with transaction(connection, "DEFERRED"):
            yield connection

    def prune(self, keep: frozenset[str]) -> None:
        """Delete the vectors of all texts that are not in ``keep``, and every byte of them in the files."""
        path = self.path
        if path is None:
            with self.writing() as connection:
                gone = [(one,) for one in _digests(connection) if one not in keep]
                connection.executemany("DELETE FROM vectors WHERE digest = ?", gone)
        elif not self.is_there:
            self.drop(any_file=True)
        elif not self._prune_in_place(keep):
            self.make_again(lambda new: self._copy(path, new, keep))

    def _prune_in_place(self, keep: frozenset[str]) -> bool:
        """Overwrite the vectors of other texts, if they are few. Return False if the file must be rebuilt."""
        if not self.is_alone:
            return False
        try:
            with blamed_on_file():
                with self.writing() as connection:
                    if not overwrite_others(connection, keep):
                        return False
                return self.empty_ahead()
        except BROKEN:
            return False

    def _copy(self, source: Path, new: sqlite3.Connection, keep: frozenset[str]) -> None:
        with closing(self.connected(source, "WAL")) as old:
            models = old.execute("SELECT id, name, dimension FROM models").fetchall()
            new.executemany("INSERT INTO models VALUES (?, ?, ?)", models)
            new.executemany(
                "INSERT INTO vectors (model, digest, vector, checksum) VALUES (?, ?, ?, ?)",
                _select_kept(old, keep),
            )


def _digests(connection: sqlite3.Connection) -> list[str]:
    return [one for (one,) in connection.execute("SELECT DISTINCT digest FROM vectors")]


def _select_kept(
    old: sqlite3.Connection, keep: frozenset[str]
) -> Iterable[tuple[int, str, bytes, int]]:
    rows = old.execute("SELECT model, digest, vector, checksum FROM vectors ORDER BY id")
    return (row for row in rows if row[1] in keep)


def damage_of(file: VectorsFile) -> Iterator[Damage]:
    """Yield the differences from what was stored. A missing file has none."""

    def found() -> Iterator[Damage]:
        with file.reading() as db:
            if db is not None:
                for problem in problems_of(db):
                    yield Damage(VECTORS.name, "", 0, "unreadable", problem)
                for number in damaged_in(db):
                    yield Damage(VECTORS.name, "", 0, "differs", f"vector {number} was changed")

    return look_over(file, found)


def delete_damaged(file: VectorsFile) -> bool:
    """Delete changed vectors. Return whether that helps, or False if the file as a whole is damaged."""
    try:
        with blamed_on_file(), file.writing() as db:
            if any(problems_of(db)):
                return False
            delete_rows(db, list(damaged_in(db)))
    except BROKEN:
        return False
    return True


def delete_of_other_dimension(file: VectorsFile, model: str, dimension: int) -> int | None:
    """Delete a model's vectors of another dimension. Return their number, or None if they have this one."""
    with file.reading() as db:
        known = None if db is None else model_in(db, model)
    if known is None or known.dimension == dimension:
        return None
    with file.writing() as db:
        return forget_model(db, known)
