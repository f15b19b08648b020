"""Copy streams of events, list the copies, and find versions by time and by kind."""

import json
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import NamedTuple, Protocol

from eventsourcing.persistence import IntegrityError, StoredEvent
from eventsourcing.sqlite import SQLiteCursor

from refold.application.errors import LogDamaged, ThreadExists
from refold.application.ports.conversation_log import Fork
from refold.domain.events import ConversationForked, Event, MessageErased
from refold.domain.notes import MemoriesChosen
from refold.infrastructure.sqlite.sqlite_failures import retry

from .codec import NAME_OF
from .envelope import (
    LONGEST_FRAME,
    EnvelopeError,
    EventMapper,
    Place,
    RecordedEvent,
    UnsealedEvent,
    link_in,
    random_hex,
)
from .plain_shapes import CodecError
from .recorder import Head, LogRecorder, stamp_of
from .stream_reads import record_row

COPY_BATCH = 200
"""Number of rows in memory at once."""
REWRITING = ("message_erased", "memories_chosen")
"""Names of the events that record which earlier events lost content."""


class Copied(NamedTuple):
    """A finished copy."""

    head: Head
    """Head of the new stream."""
    links: Mapping[int, tuple[str, str]]
    """Links in the source and in the copy of each event that a snapshot of the source belongs to."""
    link: str
    """Link of the last copied event in the copy."""


class _Pair(NamedTuple):
    original: StoredEvent
    copy: StoredEvent
    key: str | None


class CopyingRows(Protocol):
    """The rows of a log within the transaction that copies a stream."""

    def snapshots(self, source: str, version: int) -> Iterable[int]:
        """Return the versions of the snapshots of a stream up to a version."""
        ...

    def erasures(self, source: str, version: int) -> Sequence[StoredEvent]:
        """Return the events up to a version that may record which earlier events lost content."""
        ...

    def rows(self, source: str, after: int, last: int) -> Sequence[StoredEvent]:
        """Return the next ``COPY_BATCH`` events of a stream after version ``after``, up to ``last``."""
        ...

    def insert(self, rows: Sequence[StoredEvent]) -> None:
        """Store these rows."""
        ...

    def replace_keys(self, into: str, keys: Mapping[str, int]) -> None:
        """Replace all keys of a stream with these keys and versions."""
        ...


class CopyRows(Protocol):
    """The part of a store that copies streams, lists the copies, and finds versions by time and by kind."""

    def begin(self, into: str) -> AbstractContextManager[CopyingRows]:
        """Begin a transaction that creates the stream ``into``.

        Raises:
            ThreadExists: ``into`` already has events.
        """
        ...

    def select_versions(self, stream: str, versions: Sequence[int]) -> Sequence[StoredEvent]:
        """Return the existing events with these versions."""
        ...

    def beginnings(self) -> Sequence[StoredEvent]:
        """Return the event that begins each copy, in the order of the log."""
        ...

    def existing(self, streams: Sequence[str]) -> Collection[str]:
        """Return those of these streams that have events."""
        ...

    def version_at(self, thread_id: str, moment: datetime) -> int:
        """Return the newest version that was logged at or before ``moment``; 0 if there was none."""
        ...

    def versions_of(self, stream: str, names: Sequence[str], after: int) -> Sequence[int]:
        """Return the versions after ``after`` whose events have one of these names, in order."""
        ...


class StreamCopier:
    """A copier of streams within one log. Each copy is stored completely or not at all."""

    def __init__(self, rows: CopyRows, mapper: EventMapper) -> None:
        self._rows = rows
        self._mapper = mapper

    def copy(
        self, source: str, version: int, into: str, events: Sequence[Event], stamp: str
    ) -> Copied:
        """Copy the events of ``source`` up to ``version`` with their times, and append ``events``.

        Raises:
            ThreadExists: ``into`` already has events.
            LogDamaged: an event of ``source`` is missing or changed; nothing was stored.
        """
        known: list[Copied] = []

        def store() -> Copied:
            # A commit may have succeeded although an error was reported.
            if known and self._is_at_head(into, known[-1].head):
                return known[-1]
            with self._rows.begin(into) as c:
                known.append(self._copy_rows(c, source, version, into, events, stamp))
            return known[-1]

        try:
            return retry(store)
        except IntegrityError as error:
            # A writer without the lock was faster.
            raise thread_exists(into) from error

    def _is_at_head(self, stream: str, head: Head) -> bool:
        rows = self._rows.select_versions(stream, [head.version])
        return any(link_in(row.state) == head.link for row in rows)

    def _copy_rows(
        self,
        c: CopyingRows,
        source: str,
        version: int,
        into: str,
        events: Sequence[Event],
        stamp: str,
    ) -> Copied:
        snapshots, links = frozenset(c.snapshots(source, version)), dict[int, tuple[str, str]]()
        last, keys = Head(), dict[str, int]()
        recorded = self._recorded_erasures(c, source, version) | _rewrite(events)
        for batch in self._copies(c, source, version, into, recorded):
            c.insert([pair.copy for pair in batch])
            keys.update({p.key: p.copy.originator_version for p in batch if p.key is not None})
            last = Head(batch[-1].copy.originator_version, link_in(batch[-1].copy.state))
            links.update(_links(batch, snapshots))
        added, head = self._seal(into, events, last, stamp)
        c.insert(added)
        # Taken from the events, because the index of the source may be wrong.
        c.replace_keys(into, keys)
        return Copied(head, links, last.link)

    def _copies(
        self, c: CopyingRows, source: str, version: int, into: str, recorded: frozenset[int]
    ) -> Iterator[list[_Pair]]:
        before, link = Head(), Head().link
        while before.version < version:
            copies: list[_Pair] = []
            for row in c.rows(source, before.version, version):
                if row.originator_version != before.version + 1:
                    break
                try:
                    copy, key = self._mapper.moved(
                        row,
                        into,
                        follows=before.link,
                        previous=link,
                        salt=random_hex(16),
                        erased=row.originator_version in recorded,
                    )
                except (EnvelopeError, CodecError) as error:
                    raise LogDamaged(source, row.originator_version, str(error)) from error
                before, link = Head(row.originator_version, link_in(row.state)), link_in(copy.state)
                copies.append(_Pair(row, copy, key))
            if not copies:
                raise LogDamaged(source, before.version + 1, "the event is missing")
            yield copies

    def _recorded_erasures(self, c: CopyingRows, source: str, version: int) -> frozenset[int]:
        # An event is shown as erased in the copy only if an event of the copy says so.
        rows = c.erasures(source, version)
        return _rewrite(_open_row(self._mapper, row).event for row in rows)

    def _seal(
        self, into: str, events: Sequence[Event], head: Head, stamp: str
    ) -> tuple[list[StoredEvent], Head]:
        rows: list[StoredEvent] = []
        for event in events:
            salt = random_hex(16)
            new = UnsealedEvent(into, head.version + 1, stamp, event, head.link, salt)
            row, link = self._mapper.store(new)
            head = Head(head.version + 1, link)
            rows.append(row)
        return rows, head

    def forks(self) -> list[Fork]:
        """Return every conversation that began as a copy. A copy of a copy is listed once for each source."""
        found: list[Fork] = []
        for row in self._rows.beginnings():
            event = _open_row(self._mapper, row).event
            if isinstance(event, ConversationForked):
                found.append(Fork(str(row.originator_id), event.source, event.version))
        return found

    def existing(self, streams: Collection[str]) -> Collection[str]:
        """Return those of these streams that have events."""
        return self._rows.existing(list(streams))

    def version_at(self, thread_id: str, moment: datetime) -> int:
        """Return the newest version that was logged at or before ``moment``; 0 if there was none."""
        return self._rows.version_at(thread_id, moment)

    def versions_of(self, stream: str, kinds: Collection[type[Event]], after: int) -> Sequence[int]:
        """Return the versions after ``after`` whose events are of these kinds, in order."""
        return self._rows.versions_of(stream, sorted(NAME_OF[kind] for kind in kinds), after)


def _rewrite(events: Iterable[Event]) -> frozenset[int]:
    erased = (event for event in events if isinstance(event, MessageErased | MemoriesChosen))
    return frozenset(rewritten.version for event in erased for rewritten in event.rewritten)


def thread_exists(thread_id: str) -> ThreadExists:
    """Return the error for a copy into a conversation that has events already."""
    return ThreadExists(
        f"a conversation {thread_id!r} already exists; give another thread id, or none"
    )


def _links(
    batch: Sequence[_Pair], versions: frozenset[int]
) -> Iterator[tuple[int, tuple[str, str]]]:
    for original, copy, _ in batch:
        if copy.originator_version in versions:
            yield copy.originator_version, (link_in(original.state), link_in(copy.state))


class SQLiteCopyRows:
    """The ``CopyRows`` of the file of a log."""

    def __init__(self, recorder: LogRecorder) -> None:
        self._recorder = recorder

    @contextmanager
    def begin(self, into: str) -> Generator["SQLiteCopyingRows"]:
        """Begin a transaction that creates the stream ``into``."""
        with self._recorder.datastore.transaction(commit=True) as c:
            # The transaction starts with an empty write: one that reads before it writes can be
            # refused at once.
            c.execute("DELETE FROM stored_events WHERE 0")
            c.execute("SELECT 1 FROM stored_events WHERE originator_id=? LIMIT 1", (into,))
            if c.fetchone() is not None:
                raise thread_exists(into)
            self._recorder.note_key(c)
            yield SQLiteCopyingRows(self._recorder, c)

    def select_versions(self, stream: str, versions: Sequence[int]) -> Sequence[StoredEvent]:
        """Return the existing events with these versions."""
        return self._recorder.select_versions(stream, versions)

    def beginnings(self) -> Sequence[StoredEvent]:
        """Return the event that begins each copy, in the order of the log."""
        with self._recorder.datastore.transaction(commit=False) as c:
            c.execute(
                "SELECT originator_id, originator_version, topic, state FROM stored_events "
                "WHERE topic='conversation_forked' ORDER BY rowid"
            )
            return [StoredEvent(*row) for row in c.fetchall()]

    def existing(self, streams: Sequence[str]) -> Collection[str]:
        """Return those of these streams that have events."""
        with self._recorder.datastore.transaction(commit=False) as c:
            c.execute(
                "SELECT value FROM json_each(?) WHERE EXISTS "
                "(SELECT 1 FROM stored_events WHERE originator_id = value)",
                (json.dumps(streams),),
            )
            return {row[0] for row in c.fetchall()}

    def version_at(self, thread_id: str, moment: datetime) -> int:
        """Return the newest version that was logged at or before ``moment``. Only frames of events are read."""
        # Stored times are text in one format, so they sort correctly. Newest first, because the
        # clock may have gone backwards.
        with self._recorder.datastore.transaction(commit=False) as c:
            c.execute(
                "WITH frames AS (SELECT originator_version AS version, "
                f"CAST(substr(state, 9, {LONGEST_FRAME}) AS TEXT) AS frame "
                "FROM stored_events WHERE originator_id=?) "
                "SELECT version FROM frames "
                "WHERE substr(frame, instr(frame, ' ') + 1, 27) <= ? "
                "ORDER BY version DESC LIMIT 1",
                (thread_id, stamp_of(moment)),
            )
            row = c.fetchone()
        return int(row[0]) if row else 0

    def versions_of(self, stream: str, names: Sequence[str], after: int) -> Sequence[int]:
        """Return the versions after ``after`` whose events have one of these names, in order."""
        marks = ",".join("?" * len(names))
        with self._recorder.datastore.transaction(commit=False) as c:
            c.execute(
                "SELECT originator_version FROM stored_events "
                "WHERE originator_id=? AND originator_version>? "
                f"AND topic IN ({marks}) ORDER BY originator_version",
                (stream, after, *names),
            )
            return [row[0] for row in c.fetchall()]


class SQLiteCopyingRows:
    """The ``CopyingRows`` of an open transaction."""

    def __init__(self, recorder: LogRecorder, c: SQLiteCursor) -> None:
        self._recorder = recorder
        self._c = c

    def snapshots(self, source: str, version: int) -> Iterable[int]:
        """Return the versions of the snapshots of a stream up to a version."""
        self._c.execute(
            "SELECT originator_version FROM stored_snapshots "
            "WHERE originator_id=? AND originator_version<=?",
            (source, version),
        )
        return [row[0] for row in self._c.fetchall()]

    def erasures(self, source: str, version: int) -> Sequence[StoredEvent]:
        """Return the events up to a version that may record which earlier events lost content."""
        return self._select(f"originator_version<=? AND topic IN {REWRITING}", (source, version))

    def rows(self, source: str, after: int, last: int) -> Sequence[StoredEvent]:
        """Return the next events of a stream."""
        return self._select(
            "originator_version>? AND originator_version<=? ORDER BY originator_version LIMIT ?",
            (source, after, last, COPY_BATCH),
        )

    def _select(self, condition: str, values: tuple[object, ...]) -> Sequence[StoredEvent]:
        self._c.execute(
            "SELECT originator_id, originator_version, topic, state FROM stored_events "
            f"WHERE originator_id=? AND {condition}",
            values,
        )
        return [StoredEvent(*row) for row in self._c.fetchall()]

    def insert(self, rows: Sequence[StoredEvent]) -> None:
        """Store these rows."""
        self._c.executemany(
            self._recorder.insert_events_statement,
            [(r.originator_id, r.originator_version, r.topic, r.state) for r in rows],
        )

    def replace_keys(self, into: str, keys: Mapping[str, int]) -> None:
        """Replace all keys of a stream with these keys and versions."""
        self._recorder.keys.replace(self._c, into, keys)


def _open_row(mapper: EventMapper, row: StoredEvent) -> RecordedEvent:
    """Decode a row. Raise ``LogDamaged`` with the place of the row if it is damaged."""
    place = Place(str(row.originator_id), row.originator_version, row.topic)
    return record_row(mapper, place, row.state)
