"""Erase events in the log file: rewrite rows in place and remove their older bytes from all files."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing

from eventsourcing.persistence import StoredEvent
from eventsourcing.sqlite import SQLiteCursor

from refold.application.errors import LogDamaged
from refold.application.ports.conversation_log import Erasure
from refold.application.runtime.plain_lines import plain_logger
from refold.domain.events import Event
from refold.domain.notes import Rewritten
from refold.infrastructure.sqlite.sqlite_connection import open_sqlite, sync_fully
from refold.infrastructure.sqlite.sqlite_failures import retry

from .envelope import EnvelopeError, EventMapper
from .recorder import Head, LogRecorder, SealedRows, seal_rows
from .stored_log import Appended

BATCH = 500
"""Number of rows in memory at once."""
TRIES = 20
PAUSE = 0.05
"""Seconds between attempts to empty the write-ahead log while it is being read."""

PENDING = "pending_erasures"
"""Table with a row for each erasure whose older bytes may still be in a file."""

logger = plain_logger(__name__)

WithRows = Callable[[SQLiteCursor], Callable[[SQLiteCursor], None]]
"""A function that makes zeros of rows in the transaction that stores an event; what it returns makes them shorter."""


class StreamEraser:
    """The part of an erasure that changes rows and files."""

    def __init__(self, recorder: LogRecorder, mapper: EventMapper) -> None:
        self._recorder = recorder
        self._mapper = mapper

    def erase(
        self, erasures: Mapping[str, tuple[Head, Erasure]], stamp: str
    ) -> Mapping[str, Appended]:
        """Erase in all of these streams and append to each its event, or change nothing.

        Raises:
            LogDamaged: an event to erase, or the newest one, is missing or changed.
        """
        sealed: dict[str, SealedRows] = {}
        happened: dict[str, tuple[Event, ...]] = {}
        with_rows: list[WithRows] = []
        for stream, (head, erasure) in erasures.items():
            rewritten: list[Rewritten] = []
            if erasure.remains is None:
                with_rows.append(self._prepare_emptying(stream, head))
            else:
                rows, rewritten = self._rewrite_rows(stream, erasure.remains)
                with_rows.append(_prepare_replacing(stream, rows, head))
            happened[stream] = tuple(erasure.events(rewritten))
            sealed[stream] = seal_rows(self._mapper, stream, head, happened[stream], stamp)

        def erase(c: SQLiteCursor) -> None:
            # No row becomes shorter before all of them are zeros: see _zero.
            finishing = [zero(c) for zero in with_rows]
            for finish in finishing:
                finish(c)

        numbers = self._recorder.insert_events(
            [row for one in sealed.values() for row in one.rows],
            follows={stream: head for stream, (head, _) in erasures.items()},
            with_rows=erase,
        )
        done, last = dict[str, Appended](), -1
        for stream, one in sealed.items():
            last += len(one.rows)
            number = numbers[last] if numbers else None
            done[stream] = Appended(happened[stream], one.head, number)
        return done

    def _rewrite_rows(
        self, stream: str, remains: Mapping[int, Event]
    ) -> tuple[list[StoredEvent], list[Rewritten]]:
        """Return the rows that contain only these remains, and their entries in the event of the erasure."""
        versions, rows = sorted(remains), list[StoredEvent]()
        rewritten: list[Rewritten] = []
        for start in range(0, len(versions), BATCH):
            wanted = versions[start : start + BATCH]
            found = self._recorder.select_versions(stream, wanted)
            if len(found) < len(wanted):
                present = {row.originator_version for row in found}
                missing = next(v for v in wanted if v not in present)
                raise LogDamaged(stream, missing, "the event is missing")
            for row in found:
                version = row.originator_version
                row, digest = self._redact(row, remains[version])
                rows.append(row)
                rewritten.append(Rewritten(version=version, remains=digest))
        return rows, rewritten

    def _prepare_emptying(self, stream: str, head: Head) -> WithRows:
        """Return a function that makes zeros of all events up to ``head``; what it returns empties them.

        Their keys are removed as well.

        Places, times and links stay. The origin of a fork stays too: it has ids only, and copies refer
        to it.
        """

        def zero(c: SQLiteCursor) -> Callable[[SQLiteCursor], None]:
            emptied: list[StoredEvent] = []
            for first in range(1, head.version + 1, BATCH):
                c.execute(
                    "SELECT originator_id, originator_version, topic, state FROM stored_events "
                    "WHERE originator_id=? AND originator_version BETWEEN ? AND ? "
                    "AND topic!='conversation_forked'",
                    (stream, first, min(first + BATCH - 1, head.version)),
                )
                rows = [self._redact(StoredEvent(*row), None)[0] for row in c.fetchall()]
                _zero(c, rows)
                emptied += rows

            def empty(c: SQLiteCursor) -> None:
                _update(c, emptied)
                self._recorder.keys.drop(c, stream)
                _forget(c, stream, 1)

            return empty

        return zero

    def pending(self) -> int | None:
        """Return the newest unfinished erasure, or None."""
        with self._recorder.datastore.transaction(commit=False) as c:
            c.execute("SELECT 1 FROM sqlite_schema WHERE type='table' AND name=?", (PENDING,))
            if c.fetchone() is None:
                return None
            c.execute(f"SELECT max(number) FROM {PENDING}")
            found: int | None = c.fetchone()[0]
            return found

    def finish(self, number: int) -> bool:
        """Remove older bytes from the files and mark all erasures up to ``number`` as finished.

        Return False while another process reads from the write-ahead log, or if another program checkpoints it.
        """
        if not self._recorder.may_checkpoint:
            logger.warning(
                "another program checkpoints this log (checkpoints=False), so erased content stays in the write-ahead "
                "log: stop that program, then erase again with checkpoints=True (REFOLD_CHECKPOINTS=true)"
            )
            return False
        if not retry(self._has_emptied_wal):
            logger.warning(
                "another process is reading the log: erased content is removed from its files when "
                "the log is opened next, or at the next erasure"
            )
            return False
        retry(lambda: self._note_finished(number))
        return True

    def _note_finished(self, number: int) -> None:
        with self._recorder.datastore.transaction(commit=True) as c:
            c.execute(f"DELETE FROM {PENDING} WHERE number<=?", (number,))

    def _redact(self, row: StoredEvent, remains: Event | None) -> tuple[StoredEvent, str]:
        try:
            return self._mapper.redact(row, remains)
        except EnvelopeError as error:
            stream, version = str(row.originator_id), row.originator_version
            raise LogDamaged(stream, version, str(error)) from error

    def _has_emptied_wal(self) -> bool:
        pool = self._recorder.datastore.pool
        if pool.is_sqlite_memory_mode:
            return True
        with closing(open_sqlite(pool.db_name, timeout=PAUSE, isolation_level=None)) as own:
            # In the file, pages were overwritten with zeros (secure_delete). In the write-ahead
            # log, older bytes stay until it is truncated.
            own.execute("PRAGMA secure_delete=ON")
            own.execute("PRAGMA synchronous=FULL")
            sync_fully(own)
            for _ in range(TRIES):
                busy, _, _ = own.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if not busy:
                    return True
                time.sleep(PAUSE)
        return False


def _prepare_replacing(stream: str, rows: Sequence[StoredEvent], head: Head) -> WithRows:
    """Return a function that makes zeros of the stored rows; what it returns replaces them with these."""
    first = min((row.originator_version for row in rows), default=head.version)

    def zero(c: SQLiteCursor) -> Callable[[SQLiteCursor], None]:
        _zero(c, rows)
        return replace

    def replace(c: SQLiteCursor) -> None:
        _update(c, rows)
        _forget(c, stream, first)

    return zero


def replace_rows(c: SQLiteCursor, rows: Sequence[StoredEvent]) -> None:
    """Replace stored rows by these, which contain less, in the open transaction."""
    _zero(c, rows)
    _update(c, rows)
    firsts: dict[str, int] = {}
    for row in rows:
        stream, version = str(row.originator_id), row.originator_version
        firsts[stream] = min(version, firsts.get(stream, version))
    for stream, first in firsts.items():
        _forget(c, stream, first)


def _zero(c: SQLiteCursor, rows: Sequence[StoredEvent]) -> None:
    """Make zeros of the same length of these rows, which SQLite writes in their place.

    A row that becomes shorter may make it merge pages, and bytes of a row that is moved stay behind in the old page.
    """
    c.executemany(
        "UPDATE stored_events SET state=zeroblob(length(state)) "
        "WHERE originator_id=? AND originator_version=?",
        [(row.originator_id, row.originator_version) for row in rows],
    )


def _update(c: SQLiteCursor, rows: Sequence[StoredEvent]) -> None:
    c.executemany(
        "UPDATE stored_events SET state=? WHERE originator_id=? AND originator_version=?",
        [(row.state, row.originator_id, row.originator_version) for row in rows],
    )


def _forget(c: SQLiteCursor, stream: str, first: int) -> None:
    """Remove what was derived from the events from version ``first`` on, and note that older bytes remain."""
    c.execute(
        "DELETE FROM stored_snapshots WHERE originator_id=? AND NOT (originator_version<?)",
        (stream, first),
    )
    c.execute(f"CREATE TABLE IF NOT EXISTS {PENDING} (number INTEGER PRIMARY KEY AUTOINCREMENT)")
    c.execute(f"INSERT INTO {PENDING} DEFAULT VALUES")
