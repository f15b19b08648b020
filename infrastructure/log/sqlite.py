"""The SQLite file of a log: opening, checking, durable connections, and the recorder."""

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from eventsourcing.persistence import PersistenceError, StoredEvent
from eventsourcing.sqlite import (
    SQLiteApplicationRecorder,
    SQLiteConnection,
    SQLiteConnectionPool,
    SQLiteCursor,
    SQLiteDatastore,
)

from refold.application.errors import (
    LogBusy,
    LogDamaged,
    LogError,
    LogFull,
    LogNotFound,
    LogNotWritable,
    NewerLog,
    NotARefoldLog,
)

from .envelope import GENESIS
from .mapper import link_of

APPLICATION_ID = 0x5246_4C44  # "RFLD"
FORMAT_VERSION = 1
LOCK_TIMEOUT = 30
"""Seconds that a connection waits for another process (requirement A9)."""


class Head(NamedTuple):
    """The newest event of a stream: its version and link."""

    version: int = 0
    link: str = GENESIS


class DurablePool(SQLiteConnectionPool):
    """Connections that survive power loss: WAL with a sync at every commit."""

    def _create_connection(self) -> SQLiteConnection:
        connection = super()._create_connection()
        cursor = connection.cursor()
        # NORMAL would lose acknowledged commits at power loss.
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute("PRAGMA secure_delete=ON")
        return connection


class DurableDatastore(SQLiteDatastore):
    """The library's data store over durable connections, with streams named by text."""

    def __init__(self, db_name: str) -> None:
        super().__init__(db_name, lock_timeout=LOCK_TIMEOUT, originator_id_type="text")
        self.pool = DurablePool(db_name=db_name, lock_timeout=LOCK_TIMEOUT)


class LogRecorder(SQLiteApplicationRecorder):
    """The library's recorder, with an index of idempotency keys written in the same transaction."""

    def construct_create_table_statements(self) -> list[str]:
        """The tables of a log."""
        return [
            *super().construct_create_table_statements(),
            "CREATE TABLE IF NOT EXISTS message_keys (originator_id TEXT, key TEXT, "
            "originator_version INTEGER, PRIMARY KEY (originator_id, key)) WITHOUT ROWID",
        ]

    def _insert_events(
        self,
        c: SQLiteCursor,
        stored_events: Sequence[StoredEvent],
        *,
        keys: Sequence[tuple[str, str, int]] = (),
        follows: Head | None = None,
        **kwargs: Any,
    ) -> Sequence[int] | None:
        numbers = super()._insert_events(c, stored_events, **kwargs)
        if keys:
            c.executemany("INSERT INTO message_keys VALUES (?,?,?)", keys)
        if follows is not None and follows.version:
            self._check_head(c, str(stored_events[0].originator_id), follows)
        return numbers

    def _check_head(self, c: SQLiteCursor, stream: str, head: Head) -> None:
        # After the insert, so that the transaction holds the write lock when it reads.
        c.execute(
            "SELECT topic, state FROM stored_events WHERE originator_id=? AND originator_version=?",
            (stream, head.version),
        )
        row = c.fetchone()
        if row is None or head.link != link_of(
            StoredEvent(stream, head.version, row["topic"], row["state"])
        ):
            raise LogDamaged(
                stream, head.version, "the newest event was changed or removed since it was read"
            )

    def versions_of_keys(self, stream: str, keys: Sequence[str]) -> dict[str, int]:
        """The versions of the events that were stored under these keys."""
        found: dict[str, int] = {}
        with self.datastore.transaction(commit=False) as c:
            for start in range(0, len(keys), 500):
                part = keys[start : start + 500]
                marks = ",".join("?" * len(part))
                c.execute(
                    "SELECT key, originator_version FROM message_keys "
                    f"WHERE originator_id=? AND key IN ({marks})",
                    [stream, *part],
                )
                found.update({row["key"]: row["originator_version"] for row in c.fetchall()})
        return found


def prepare(path: Path, *, create: bool) -> None:
    """Check that ``path`` holds a log that this version can use; make an empty one if asked to.

    Raises:
        LogNotFound, LogNotWritable, NotARefoldLog, NewerLog, LogBusy, LogFull: as the names say.
    """
    if path.is_dir():
        raise NotARefoldLog(f"{path} is a folder; give the path of a file")
    if not path.parent.is_dir():
        raise LogNotFound(f"the folder {path.parent} does not exist; create it first")
    if not path.exists() and not create:
        raise LogNotFound(f"there is no log at {path}; check the path, or import something first")
    with translated(path), closing(sqlite3.connect(path, timeout=LOCK_TIMEOUT)) as connection:
        application_id = _pragma(connection, "application_id")
        if application_id == APPLICATION_ID:
            version = _pragma(connection, "user_version")
            if version > FORMAT_VERSION:
                raise NewerLog(
                    f"{path} has log format {version}, and this refold reads up to "
                    f"{FORMAT_VERSION}; install a newer refold"
                )
            return
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        if application_id or tables:
            raise NotARefoldLog(f"{path} is an SQLite file of something else; give another path")
        _create(connection, path)


def _create(connection: sqlite3.Connection, path: Path) -> None:
    datastore = DurableDatastore(str(path))
    try:
        recorder = LogRecorder(datastore)
        statements = [
            *recorder.create_table_statements,
            *_snapshot_statements(datastore),
            f"PRAGMA user_version={FORMAT_VERSION}",
            f"PRAGMA application_id={APPLICATION_ID}",
        ]
    finally:
        datastore.close()
    connection.execute("PRAGMA journal_mode=WAL")
    connection.isolation_level = None
    connection.execute("BEGIN IMMEDIATE")
    for statement in statements:
        connection.execute(statement)
    connection.execute("COMMIT")


def _snapshot_statements(datastore: SQLiteDatastore) -> list[str]:
    from eventsourcing.sqlite import SQLiteAggregateRecorder

    return SQLiteAggregateRecorder(datastore, "stored_snapshots").create_table_statements


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


@contextmanager
def translated(path: Path) -> Generator[None]:
    """Turn errors of SQLite and of the library below into errors of the log."""
    try:
        yield
    except (sqlite3.Error, PersistenceError, PermissionError) as error:
        raise _typed(path, error) from error


def _typed(path: Path, error: Exception) -> LogError:
    text = str(error).lower()
    if "full" in text:
        return LogFull(
            f"the disk with {path} is full; free some space and try again, nothing is lost"
        )
    if "readonly" in text or "unable to open" in text or isinstance(error, PermissionError):
        return LogNotWritable(f"{path} cannot be written ({error}); check its permissions")
    if "locked" in text or "busy" in text:
        return LogBusy(f"{path} is in use by another program for over {LOCK_TIMEOUT} s; try again")
    if "not a database" in text:
        return NotARefoldLog(f"{path} is not a log of refold; give another path")
    if "malformed" in text:
        return LogDamaged("", 0, f"the file {path} is damaged ({error})")
    return LogError(f"the log {path} failed: {error}; what was acknowledged before is safe")
