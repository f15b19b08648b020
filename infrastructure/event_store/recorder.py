"""The SQLite file of a log: durable connections and the recorder."""

import sqlite3
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, cast
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
from refold.infrastructure.sqlite.connection_pool import (
    DurableConnection,
    OpenedFiles,
    SteadyPool,
)
from refold.infrastructure.sqlite.read_only import ReadingConnection, ReadOnlyPlace, read_once
from refold.infrastructure.sqlite.sqlite_connection import (
    CheckedConnection,
    Transaction,
    insert_rows,
    open_sqlite,
    sync_fully,
)
from refold.infrastructure.sqlite.sqlite_failures import retry, retrying

from .encodings import Encodings
from .encryption import Keys
from .envelope import GENESIS, LONGEST_FRAME, PLAIN, EventMapper, UnsealedEvent, link_in, random_hex
from .file_format import identify
from .message_keys import CHAIN, INDEX, MessageKeys
from .shelf import TABLES, begin_key

MAX_VERSION = 2**62
MOST_FRAMES = 256
"""Maximum number of remembered frames."""
_FRAME = (
    f"SELECT substr(state, 1, {LONGEST_FRAME}) FROM stored_events "
    "WHERE originator_id=? AND originator_version=?"
)
_OTHERS = (
    "SELECT 1 FROM stored_events WHERE originator_id=? AND originator_version NOT BETWEEN 1 AND ?"
)
LOCK_TIMEOUT = 30
"""Seconds to wait for a lock of another process."""


class Head(NamedTuple):
    """The newest event of a stream: its version and link."""

    version: int = 0
    link: str = GENESIS


NO_HEADS: Mapping[str, Head] = {}
"""Empty mapping of heads, for rows that need not follow any event."""

Plain = tuple[int, str, bytes]
"""Version, name and bytes of a stored event."""
Row = tuple[int, str, int, str, bytes]
"""A stored event: log position, stream, version, name and bytes. Bytes of a damaged row may be anything."""


class DurablePool(SteadyPool):
    """A pool of connections whose commits survive a power loss: WAL mode with a sync at every commit."""

    def __init__(
        self, *, db_name: str, reading: ReadOnlyPlace | None = None, checkpoints: bool = True
    ) -> None:
        """Create a pool. ``reading`` is the log if ``db_name`` can only be read.

        ``checkpoints``: SQLite may empty the write-ahead log after a commit.
        """
        super().__init__(db_name=db_name)
        self._reading = reading
        self.checkpoints = checkpoints
        self._files: OpenedFiles | None = None

    def _create_connection(self) -> SQLiteConnection:
        if self._reading is not None:
            return ReadingConnection(self._reading, self.db_name, self.max_age)
        try:
            return self._durable_connection()
        except sqlite3.Error as error:
            return read_once(Path(self.db_name), error)

    def _durable_connection(self) -> DurableConnection:
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
            # Checked before anything is changed, because the file may belong to another program.
            identify(connection, self.db_name)
            if not self.is_sqlite_memory_mode:
                connection.execute("PRAGMA journal_mode=WAL")
            # NORMAL would lose acknowledged commits at power loss.
            connection.execute("PRAGMA synchronous=FULL")
            sync_fully(connection)
            connection.execute("PRAGMA secure_delete=ON")
            if not self.checkpoints:
                connection.execute("PRAGMA wal_autocheckpoint=0")
            # From the first read on, the files next to the log exist, and no process deletes them.
            connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
            if not self.is_sqlite_memory_mode and not (self._files and self._files.users):
                self._files = OpenedFiles(self.db_name, self._files)
        except BaseException:
            connection.close()
            raise
        connection.row_factory = sqlite3.Row
        return DurableConnection(connection, self.max_age, self._files)

    def forget_pages(self) -> None:
        """Make idle connections reload their cached pages from the disk."""
        with GATE.used():
            for pooled in tuple(self._pool):
                if not pooled.closed:
                    pooled.cursor().execute("PRAGMA shrink_memory")


class DurableDatastore(SQLiteDatastore):
    """A datastore of the eventsourcing library with durable connections and text stream names."""

    pool: DurablePool

    def __init__(
        self, db_name: str, *, reading: ReadOnlyPlace | None = None, checkpoints: bool = True
    ) -> None:
        """Create a datastore. The parameters are those of the pool."""
        super().__init__(db_name, originator_id_type="text")
        self.pool = DurablePool(db_name=db_name, reading=reading, checkpoints=checkpoints)
        self._process = OpeningProcess(db_name)

    def forget_pages(self) -> None:
        """Make idle connections reload their cached pages from the disk."""
        self.pool.forget_pages()

    def transaction(self, *, commit: bool, is_single: bool = False) -> Any:
        """Return a ``Transaction``: a context manager like that of the library, with fewer layers."""
        # Before the locks of the pool: a thread of the parent may hold one, and it does not exist
        # in a forked process.
        self._process.check()
        return Transaction(self.pool, commit=commit, is_single=is_single)

    @contextmanager
    def get_connection(self, *, commit: bool) -> Generator[SQLiteConnection]:
        """Yield a connection, like the method of the library."""
        self._process.check()
        with GATE.used(), super().get_connection(commit=commit) as connection:
            try:
                yield connection
            finally:
                if isinstance(connection, CheckedConnection):
                    connection.finish()


class LogRecorder(SQLiteApplicationRecorder):
    """A recorder that also writes an index of idempotency keys, in the same transaction."""

    def __init__(self, datastore: DurableDatastore, encodings: Encodings | None = None) -> None:
        """Create a recorder. ``encodings`` are those of stored events, or None if they are plain."""
        super().__init__(datastore)
        self._store = datastore
        self._encodings = encodings
        self._frames: dict[str, bytes] = {}  # Of rows that this recorder inserted, by link.
        self.keys = MessageKeys(encodings or PLAIN)

    @property
    def may_checkpoint(self) -> bool:
        """True unless another program moves the write-ahead log into the file."""
        pool = self.datastore.pool
        return not isinstance(pool, DurablePool) or pool.checkpoints

    def construct_create_table_statements(self) -> list[str]:
        """Return the statements that create the tables of a log."""
        return [*super().construct_create_table_statements(), INDEX, CHAIN, *TABLES]

    def note_key(self, c: SQLiteCursor) -> None:
        """Record the key, or check that no key is needed, at the start of a transaction that stores events.

        It starts with a write, if only an empty one: a transaction that reads before it writes can be refused
        at once. From the first encrypted event on, every writer encrypts.

        Raises:
            LogLocked: the log is encrypted, and no key was given.
            LogDamaged: the log is encrypted, and the record of that was removed.
        """
        if not self._is_encrypting:
            c.execute("DELETE FROM encryption_keys WHERE 0")
            self._refuse_plain(c)
            return
        assert self._encodings is not None
        c.execute(
            "INSERT OR IGNORE INTO encryption_keys VALUES (?)", (self._encodings.fingerprint,)
        )
        if c.sqlite_cursor.rowcount:
            begin_key(c, self._encodings)

    @property
    def _is_encrypting(self) -> bool:
        return self._encodings is not None and self._encodings.fingerprint is not None

    def _refuse_plain(self, c: SQLiteCursor) -> None:
        c.execute("SELECT fingerprint FROM encryption_keys LIMIT 1")
        for (fingerprint,) in c.fetchall():
            Keys().key(fingerprint)

    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        """Store all events or none, exactly once. Retry after a temporary error."""
        insert = super().insert_events
        tries = 0

        def store() -> "Sequence[int] | None":
            nonlocal tries
            tries += 1
            # A commit may have succeeded although an error was reported.
            if tries > 1 and self._are_stored(stored_events):
                return None
            return insert(stored_events, **kwargs)

        return retry(store)

    def insert_together(
        self, groups: Sequence[tuple["SealedRows", Mapping[str, Head]]]
    ) -> Sequence[Sequence[int] | None]:
        """Store groups of events in one commit. Return the log positions of each, or None if it was overtaken.

        Each group is the rows and the heads that they follow. After an error, all may be stored or none.
        """
        found: list[Sequence[int] | None] = []
        with self.datastore.transaction(commit=True) as c:
            for (rows, keys, head), follows in groups:
                c.execute("SAVEPOINT one")
                try:
                    numbers = self._insert_events(
                        c, rows, keys=keys, follows=follows, link=head.link
                    )
                    found.append(numbers)
                except sqlite3.IntegrityError:
                    c.execute("ROLLBACK TO one")
                    found.append(None)
                c.execute("RELEASE one")
        return found

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
        link: str = "",
        with_rows: Callable[[SQLiteCursor], None] | None = None,
        **_: Any,
    ) -> Sequence[int] | None:
        # The transaction starts with a write: one that reads before it writes can be refused at once.
        if self._is_encrypting:
            self.note_key(c)
        numbers = insert_rows(c, stored_events)
        if not self._is_encrypting:
            self._refuse_plain(c)
        if with_rows is not None:
            with_rows(c)
        for event in stored_events:
            if event.originator_version == 1:
                self.keys.begin(c, str(event.originator_id))
        if keys:
            self.keys.add(c, keys, are_copied=not link)
        for stream, head in follows.items():
            if head.version:
                self._check_head(c, stream, head)
            elif numbers and numbers[0] > 1:  # A log that was empty has no other events.
                c.execute(_OTHERS, (stream, len(stored_events)))
                if c.fetchall():  # The stream must be loaded.
                    raise sqlite3.IntegrityError(f"the stream {stream!r} has other events")
        if link:
            if len(self._frames) >= MOST_FRAMES:
                self._frames.clear()
            self._frames[link] = stored_events[-1].state[:LONGEST_FRAME]
        return numbers

    def _check_head(self, c: SQLiteCursor, stream: str, head: Head) -> None:
        # After the insert, so that the transaction holds the write lock when it reads.
        row = c.sqlite_cursor.execute(_FRAME, (stream, head.version)).fetchone()
        frame: object = None if row is None else row[0]
        if frame is None or (
            frame != self._frames.get(head.link) and head.link != link_in(cast(bytes, frame))
        ):
            problem = "the newest event was changed or removed since it was read"
            raise LogDamaged(stream, head.version, problem)

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
        """Return the events of a stream, like the method of the library but three times as fast."""
        statement = (
            f"{self.select_events_statement} AND originator_version>? AND originator_version<=? "
            f"ORDER BY originator_version {'DESC' if desc else 'ASC'} LIMIT ?"
        )
        lowest = -1 if gt is None else gt
        highest = MAX_VERSION if lte is None else lte
        most = -1 if limit is None else limit
        # In the order of insertion.
        stream = originator_id.hex if isinstance(originator_id, UUID) else originator_id
        with self._store.transaction(commit=False, is_single=True) as c:
            c.execute(statement, (stream, lowest, highest, most))
            return [StoredEvent(*row) for row in c.fetchall()]

    @retrying
    def is_newest(self, stream: str, head: Head) -> bool:
        """Return whether a stream still ends with this event, and its frame was not changed."""
        with self._store.transaction(commit=False, is_single=True) as c:
            c.sqlite_cursor.row_factory = None
            c.execute(
                "SELECT originator_version, topic, substr(state, 1, ?) FROM stored_events "
                "WHERE originator_id=? AND originator_version>=? ORDER BY originator_version LIMIT 2",
                (LONGEST_FRAME, stream, head.version),
            )
            match c.fetchall():
                case [(version, topic, frame)]:
                    newest = StoredEvent(stream, version, topic, frame)
                    return version == head.version and link_in(newest.state) == head.link
                case _:
                    return False

    @retrying
    def max_notification_id(self) -> int:
        """Return the log position of the newest event, or None like the method of the library."""
        with self._store.transaction(commit=False, is_single=True) as c:
            return self._max_notification_id(c)

    def rows_of(self, stream: str, after: int, limit: int, last: int = MAX_VERSION) -> list[Plain]:
        """Return the next events of a stream up to version ``last``, twice as fast as ``select_events``."""
        between = "originator_version>? AND originator_version<=?"
        return self._plain_rows(between, (stream, after, last, limit))

    def rows_at(self, stream: str, versions: Sequence[int]) -> list[Plain]:
        """Return the existing events with these versions, in the order of their versions."""
        marks = ",".join("?" * len(versions))
        return self._plain_rows(f"originator_version IN ({marks})", (stream, *versions, -1))

    @retrying
    def _plain_rows(self, condition: str, values: Sequence[str | int]) -> list[Plain]:
        with self._store.transaction(commit=False, is_single=True) as c:
            c.sqlite_cursor.row_factory = None
            c.execute(
                f"SELECT originator_version, topic, state FROM {self.events_table_name} "
                f"WHERE originator_id=? AND {condition} ORDER BY originator_version LIMIT ?",
                values,
            )
            rows: list[Plain] = c.fetchall()
            return rows

    @retrying
    def rows_after(self, number: int, limit: int) -> list[Row]:
        """Return the next events of the whole log, three times as fast as notifications."""
        with self._store.transaction(commit=False, is_single=True) as c:
            c.sqlite_cursor.row_factory = None
            c.execute(
                "SELECT rowid, originator_id, originator_version, topic, state "
                f"FROM {self.events_table_name} WHERE rowid>? ORDER BY rowid LIMIT ?",
                (number, limit),
            )
            rows: list[Row] = c.fetchall()
            return rows

    def select_versions(self, stream: str, versions: Sequence[int]) -> list[StoredEvent]:
        """Return the existing events with these versions, in the order of their versions."""
        return [StoredEvent(stream, *row) for row in self.rows_at(stream, versions)]


def stamp_of(moment: datetime) -> str:
    """Format a time for frames: ISO 8601, UTC, microseconds."""
    utc = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    return f"{utc.isoformat(timespec='microseconds')[:-6]}Z"


LARGEST_EVENT = 32 * 1024 * 1024
"""Maximum number of bytes of an event. No API accepts a request with a larger message."""


class SealedRows(NamedTuple):
    """Rows to insert."""

    rows: list[StoredEvent]
    keys: list[tuple[str, str, int]]
    """Idempotency keys in the rows: stream, key and version."""
    head: Head
    """Head of the stream after the rows are stored."""


def seal_rows(
    mapper: EventMapper, stream: str, head: Head, events: Sequence[Event], stamp: str
) -> SealedRows:
    """Return the rows of events that follow ``head`` and are logged at ``stamp``.

    Raises:
        InvalidMessage: an event is larger than any request could be.
    """
    rows: list[StoredEvent] = []
    keys: list[tuple[str, str, int]] = []
    salts = random_hex(16 * len(events))
    for index, event in enumerate(events):
        version = head.version + 1
        salt = salts[32 * index : 32 * index + 32]
        row, link = mapper.store(UnsealedEvent(stream, version, stamp, event, head.link, salt))
        head = Head(version, link)
        if len(row.state) > LARGEST_EVENT:
            problem = f"has {len(row.state):,} bytes; at most {LARGEST_EVENT:,} can be sent"
            raise InvalidMessage("message", problem)
        rows.append(row)
        if isinstance(event, MessageAppended) and event.key is not None:
            keys.append((stream, event.key, version))
    return SealedRows(rows, keys, head)
