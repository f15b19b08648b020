"""The SQLite file of a log: durable connections, and the recorder."""

import secrets
import sqlite3
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any, NamedTuple
from uuid import UUID

from eventsourcing.persistence import StoredEvent
from eventsourcing.sqlite import (
    SQLiteApplicationRecorder,
    SQLiteConnection,
    SQLiteCursor,
    SQLiteDatastore,
)

from refold.application.errors import LogDamaged
from refold.application.runtime.opening_process import OpeningProcess
from refold.domain.errors import InvalidMessage
from refold.domain.events import Event, MessageAppended
from refold.infrastructure.files.fork_gate import GATE
from refold.infrastructure.sqlite.connection_pool import DurableConnection, OpenedFiles, SteadyPool
from refold.infrastructure.sqlite.read_only import ReadingConnection, ReadOnlyPlace
from refold.infrastructure.sqlite.sqlite_connection import open_sqlite
from refold.infrastructure.sqlite.sqlite_failures import retry, retrying

from .encodings import Encodings
from .envelope import GENESIS, LONGEST_FRAME, PLAIN, EventMapper, UnsealedEvent, link_of
from .file_format import identify
from .message_keys import INDEX, MessageKeys
from .shelf import TABLES, note_key

MAX_VERSION = 2**62
LOCK_TIMEOUT = 30
"""Seconds that a connection waits for another process (requirement A9)."""


class Head(NamedTuple):
    """The newest event of a stream: its version and link."""

    version: int = 0
    link: str = GENESIS


NO_HEADS: Mapping[str, Head] = {}
"""Nothing that rows must follow."""

Row = tuple[int, str, int, str, bytes]
"""A stored event: number, stream, version, name, and the bytes, which may be anything if damaged."""


def sync_fully(connection: sqlite3.Connection) -> None:
    """Have a sync reach the disk itself; on macOS it ends in the cache of the drive otherwise.

    Nothing changes on other systems: SQLite has no other sync there.
    """
    connection.execute("PRAGMA fullfsync=ON")
    connection.execute("PRAGMA checkpoint_fullfsync=ON")


class DurablePool(SteadyPool):
    """Connections to a log that survive power loss: WAL with a sync at every commit."""

    def __init__(self, *, db_name: str, reading: ReadOnlyPlace | None = None) -> None:
        """``reading``: the log that ``db_name`` can only be read from."""
        super().__init__(db_name=db_name)
        self._reading = reading
        self._files: OpenedFiles | None = None

    def _create_connection(self) -> SQLiteConnection:
        if self._reading is not None:
            return ReadingConnection(self._reading, self.db_name, self.max_age)
        if self._files is not None:
            self._files.check()
        connection = open_sqlite(
            self.db_name,
            timeout=LOCK_TIMEOUT,
            isolation_level=None,
            check_same_thread=False,
            uri=self.is_sqlite_memory_mode,
            kept=True,
        )
        try:
            # Before anything is changed: the file may be somebody else's.
            identify(connection, self.db_name)
            if not self.is_sqlite_memory_mode:
                connection.execute("PRAGMA journal_mode=WAL")
            # NORMAL would lose acknowledged commits at power loss.
            connection.execute("PRAGMA synchronous=FULL")
            sync_fully(connection)
            connection.execute("PRAGMA secure_delete=ON")
            # From the first read on, the files beside the log are there, and nobody else deletes them.
            connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
            if not self.is_sqlite_memory_mode and not (self._files and self._files.users):
                self._files = OpenedFiles(self.db_name, self._files)
        except BaseException:
            connection.close()
            raise
        connection.row_factory = sqlite3.Row
        return DurableConnection(connection, self.max_age, self._files)

    def forget_pages(self) -> None:
        """Have the idle connections read again from the disk what they have in memory."""
        for pooled in tuple(self._pool):
            if not pooled.closed:
                pooled.cursor().execute("PRAGMA shrink_memory")


class DurableDatastore(SQLiteDatastore):
    """The library's data store over durable connections, with streams named by text."""

    def __init__(self, db_name: str, *, reading: ReadOnlyPlace | None = None) -> None:
        """``reading``: see ``DurablePool``."""
        super().__init__(db_name, originator_id_type="text")
        self.pool = DurablePool(db_name=db_name, reading=reading)
        self._process = OpeningProcess(db_name)

    def forget_pages(self) -> None:
        """See ``DurablePool``."""
        assert isinstance(self.pool, DurablePool)
        with GATE.used():
            self.pool.forget_pages()

    @contextmanager
    def get_connection(self, *, commit: bool) -> Generator[SQLiteConnection]:
        """A connection, as in the library."""
        # Before the locks of the pool: a thread that holds one in a forked process's parent does not live there.
        self._process.check()
        with GATE.used(), super().get_connection(commit=commit) as connection:
            try:
                yield connection
            finally:
                if isinstance(connection, DurableConnection):
                    connection.settle()


class LogRecorder(SQLiteApplicationRecorder):
    """The library's recorder, with an index of idempotency keys written in the same transaction."""

    def __init__(self, datastore: SQLiteDatastore, encodings: Encodings | None = None) -> None:
        """``encodings``: of the events that are stored; None: they are plain."""
        super().__init__(datastore)
        self._encodings = encodings
        self.keys = MessageKeys(encodings or PLAIN)

    def construct_create_table_statements(self) -> list[str]:
        """The tables of a log."""
        return [
            *super().construct_create_table_statements(),
            INDEX,
            *TABLES,
        ]

    def note_key(self, c: SQLiteCursor) -> None:
        """Note our key, or that we have none, before anything else in a transaction that stores events.

        Raises:
            LogLocked: the log is encrypted, and we have no key.
        """
        note_key(c, self._encodings)

    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        """Store events, all or none, once; tried again after a trouble that passes."""
        insert = super().insert_events
        tries = 0

        def store() -> Sequence[int] | None:
            nonlocal tries
            tries += 1
            # A commit may have been made although it was reported to have failed.
            if tries > 1 and self._are_stored(stored_events):
                return None
            return insert(stored_events, **kwargs)

        return retry(store)

    def _are_stored(self, events: Sequence[StoredEvent]) -> bool:
        streams = groupby(events, lambda event: str(event.originator_id))
        return all(
            self.select_versions(stream, [row.originator_version for row in rows]) == rows
            for stream, rows in ((stream, list(group)) for stream, group in streams)
        )

    def _insert_events(
        self,
        c: SQLiteCursor,
        stored_events: Sequence[StoredEvent],
        *,
        keys: Sequence[tuple[str, str, int]] = (),
        follows: Mapping[str, Head] = NO_HEADS,
        beside: Callable[[SQLiteCursor], None] | None = None,
        **kwargs: Any,
    ) -> Sequence[int] | None:
        self.note_key(c)
        numbers = super()._insert_events(c, stored_events, **kwargs)
        if beside is not None:
            beside(c)
        for event in stored_events:
            if event.originator_version == 1:
                self.keys.begin(c, str(event.originator_id))
        if keys:
            self.keys.add(c, keys)
        for stream, head in follows.items():
            if head.version:
                self._check_head(c, stream, head)
        return numbers

    def _check_head(self, c: SQLiteCursor, stream: str, head: Head) -> None:
        # After the insert, so that the transaction holds the write lock when it reads.
        c.execute(
            "SELECT topic, substr(state, 1, ?) FROM stored_events "
            "WHERE originator_id=? AND originator_version=?",
            (LONGEST_FRAME, stream, head.version),
        )
        row = c.fetchone()
        if row is None or head.link != link_of(StoredEvent(stream, head.version, *row)):
            raise LogDamaged(
                stream, head.version, "the newest event was changed or removed since it was read"
            )

    @retrying
    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> list[StoredEvent]:
        """The events of a stream; as in the library, at a third of its cost for each row."""
        statement = (
            f"{self.select_events_statement} AND originator_version>? AND originator_version<=? "
            f"ORDER BY originator_version {'DESC' if desc else 'ASC'} LIMIT ?"
        )
        lowest = -1 if gt is None else gt
        highest = MAX_VERSION if lte is None else lte
        most = -1 if limit is None else limit
        # As they are inserted.
        stream = originator_id.hex if isinstance(originator_id, UUID) else originator_id
        with self.datastore.transaction(commit=False) as c:
            c.execute(statement, (stream, lowest, highest, most))
            return [StoredEvent(*row) for row in c.fetchall()]

    @retrying
    def max_notification_id(self) -> int:
        """The number of the newest event, as in the library."""
        return super().max_notification_id()

    @retrying
    def rows_of(self, stream: str, after: int, limit: int) -> list[tuple[int, str, bytes]]:
        """The next events of a stream: version, name and bytes; at half of what ``select_events`` costs."""
        with self.datastore.transaction(commit=False) as c:
            c.sqlite_cursor.row_factory = None
            c.execute(
                f"SELECT originator_version, topic, state FROM {self.events_table_name} "
                "WHERE originator_id=? AND originator_version>? "
                "ORDER BY originator_version LIMIT ?",
                (stream, after, limit),
            )
            rows: list[tuple[int, str, bytes]] = c.fetchall()
            return rows

    @retrying
    def rows_after(self, number: int, limit: int) -> list[Row]:
        """The next events of the whole log, at a third of what notifications cost for each."""
        with self.datastore.transaction(commit=False) as c:
            # Plain tuples: nobody asks for these columns by name.
            c.sqlite_cursor.row_factory = None
            c.execute(
                "SELECT rowid, originator_id, originator_version, topic, state "
                f"FROM {self.events_table_name} WHERE rowid>? ORDER BY rowid LIMIT ?",
                (number, limit),
            )
            rows: list[Row] = c.fetchall()
            return rows

    @retrying
    def select_versions(self, stream: str, versions: Sequence[int]) -> list[StoredEvent]:
        """The events with these versions, in their order; what is missing is left out."""
        marks = ",".join("?" * len(versions))
        with self.datastore.transaction(commit=False) as c:
            c.execute(
                f"{self.select_events_statement} AND originator_version IN ({marks}) "
                "ORDER BY originator_version",
                [stream, *versions],
            )
            return [StoredEvent(*row) for row in c.fetchall()]


LARGEST_EVENT = 32 * 1024 * 1024
"""Bytes of one event: no request with a larger message would be accepted."""


class SealedRows(NamedTuple):
    """Rows to insert."""

    rows: list[StoredEvent]
    keys: list[tuple[str, str, int]]
    """The idempotency keys among them: stream, key, version."""
    head: Head
    """Of the stream once they are stored."""


def sealed_rows(
    mapper: EventMapper, stream: str, head: Head, events: Sequence[Event], stamp: str
) -> SealedRows:
    """The rows of events that come after ``head``, logged at ``stamp``.

    Raises:
        InvalidMessage: one is larger than anything that could be sent.
    """
    rows: list[StoredEvent] = []
    keys: list[tuple[str, str, int]] = []
    salts = secrets.token_hex(16 * len(events))
    for index, event in enumerate(events):
        version = head.version + 1
        salt = salts[32 * index : 32 * index + 32]
        row, link = mapper.store(UnsealedEvent(stream, version, stamp, event, head.link, salt))
        head = Head(version, link)
        if len(row.state) > LARGEST_EVENT:
            raise InvalidMessage(
                "message",
                f"has {len(row.state):,} bytes; at most {LARGEST_EVENT:,} can be sent",
            )
        rows.append(row)
        if isinstance(event, MessageAppended) and event.key is not None:
            keys.append((stream, event.key, version))
    return SealedRows(rows, keys, head)
