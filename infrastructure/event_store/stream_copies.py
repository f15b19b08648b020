"""Copy streams of events, list the copies, and find versions by time."""

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from eventsourcing.persistence import IntegrityError, StoredEvent
from eventsourcing.sqlite import SQLiteCursor

from refold.application.errors import LogDamaged, ThreadExists
from refold.application.ports.conversation_log import Fork
from refold.domain.events import ConversationForked, Event, MessageErased
from refold.domain.notes import MemoriesChosen
from refold.infrastructure.sqlite.sqlite_failures import retry

from .codec import CodecError
from .envelope import LONGEST_FRAME, EnvelopeError, EventMapper, UnsealedEvent, link_of
from .recorder import Head, LogRecorder, stamp_of
from .stream_reads import open_row

COPY_BATCH = 200
"""Number of rows in memory at once."""


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


class StreamCopier:
    """A copier of streams within one log. Each copy is stored completely or not at all."""

    def __init__(self, recorder: LogRecorder, mapper: EventMapper) -> None:
        self._recorder = recorder
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
            with self._recorder.datastore.transaction(commit=True) as c:
                known.append(self._copy_rows(c, source, version, into, events, stamp))
            return known[-1]

        try:
            return retry(store)
        except IntegrityError as error:
            # A writer without the lock was faster.
            raise _exists(into) from error

    def _is_at_head(self, stream: str, head: Head) -> bool:
        rows = self._recorder.select_versions(stream, [head.version])
        return any(link_of(row) == head.link for row in rows)

    def _copy_rows(
        self,
        c: SQLiteCursor,
        source: str,
        version: int,
        into: str,
        events: Sequence[Event],
        stamp: str,
    ) -> Copied:
        _begin(c, into)
        self._recorder.note_key(c)
        snapshots, links = _snapshots(c, source, version), dict[int, tuple[str, str]]()
        last, keys = Head(), dict[str, int]()
        recorded = self._recorded_erasures(c, source, version) | _rewrite(events)
        for batch in self._copies(c, source, version, into, recorded):
            self._insert(c, [pair.copy for pair in batch])
            keys.update({p.key: p.copy.originator_version for p in batch if p.key is not None})
            last = Head(batch[-1].copy.originator_version, link_of(batch[-1].copy))
            links.update(_links(batch, snapshots))
        added, head = self._seal(into, events, last, stamp)
        self._insert(c, added)
        # Taken from the events, because the index of the source may be wrong.
        self._recorder.keys.replace(c, into, keys)
        return Copied(head, links, last.link)

    def _copies(
        self, c: SQLiteCursor, source: str, version: int, into: str, recorded: frozenset[int]
    ) -> Iterator[list[_Pair]]:
        before, link = Head(), Head().link
        while before.version < version:
            copies: list[_Pair] = []
            for row in _rows(c, source, before.version, version):
                if row.originator_version != before.version + 1:
                    break
                try:
                    copy, key = self._mapper.moved(
                        row,
                        into,
                        follows=before.link,
                        previous=link,
                        salt=secrets.token_hex(16),
                        erased=row.originator_version in recorded,
                    )
                except (EnvelopeError, CodecError) as error:
                    raise LogDamaged(source, row.originator_version, str(error)) from error
                before, link = Head(row.originator_version, link_of(row)), link_of(copy)
                copies.append(_Pair(row, copy, key))
            if not copies:
                raise LogDamaged(source, before.version + 1, "the event is missing")
            yield copies

    def _recorded_erasures(self, c: SQLiteCursor, source: str, version: int) -> frozenset[int]:
        # An event is shown as erased in the copy only if an event of the copy says so.
        c.execute(
            "SELECT originator_version, topic, state FROM stored_events "
            "WHERE originator_id=? AND originator_version<=? AND topic='message_erased'",
            (source, version),
        )
        return _rewrite(
            open_row(self._mapper, StoredEvent(source, *row)).event for row in c.fetchall()
        )

    def _seal(
        self, into: str, events: Sequence[Event], head: Head, stamp: str
    ) -> tuple[list[StoredEvent], Head]:
        rows: list[StoredEvent] = []
        for event in events:
            salt = secrets.token_hex(16)
            new = UnsealedEvent(into, head.version + 1, stamp, event, head.link, salt)
            row, link = self._mapper.store(new)
            head = Head(head.version + 1, link)
            rows.append(row)
        return rows, head

    def _insert(self, c: SQLiteCursor, rows: Sequence[StoredEvent]) -> None:
        c.executemany(
            self._recorder.insert_events_statement,
            [(r.originator_id, r.originator_version, r.topic, r.state) for r in rows],
        )

    def forks(self) -> list[Fork]:
        """Return every conversation that began as a copy. A copy of a copy is listed once for each source."""
        with self._recorder.datastore.transaction(commit=False) as c:
            c.execute(
                "SELECT originator_id, originator_version, topic, state FROM stored_events "
                "WHERE topic='conversation_forked' ORDER BY rowid"
            )
            rows = [StoredEvent(*row) for row in c.fetchall()]
        found: list[Fork] = []
        for row in rows:
            event = open_row(self._mapper, row).event
            if isinstance(event, ConversationForked):
                found.append(Fork(str(row.originator_id), event.source, event.version))
        return found

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


def _rewrite(events: Iterable[Event]) -> frozenset[int]:
    erased = (event for event in events if isinstance(event, MessageErased | MemoriesChosen))
    return frozenset(rewritten.version for event in erased for rewritten in event.rewritten)


def _begin(c: SQLiteCursor, into: str) -> None:
    # The transaction starts with an empty write: one that reads before it writes can be refused at
    # once.
    c.execute("DELETE FROM stored_events WHERE 0")
    c.execute("SELECT 1 FROM stored_events WHERE originator_id=? LIMIT 1", (into,))
    if c.fetchone() is not None:
        raise _exists(into)


def _exists(thread_id: str) -> ThreadExists:
    return ThreadExists(
        f"a conversation {thread_id!r} already exists; give another thread id, or none"
    )


def _snapshots(c: SQLiteCursor, source: str, version: int) -> frozenset[int]:
    c.execute(
        "SELECT originator_version FROM stored_snapshots "
        "WHERE originator_id=? AND originator_version<=?",
        (source, version),
    )
    return frozenset(row[0] for row in c.fetchall())


def _rows(c: SQLiteCursor, source: str, after: int, last: int) -> list[StoredEvent]:
    c.execute(
        "SELECT originator_id, originator_version, topic, state FROM stored_events "
        "WHERE originator_id=? AND originator_version>? AND originator_version<=? "
        "ORDER BY originator_version LIMIT ?",
        (source, after, last, COPY_BATCH),
    )
    return [StoredEvent(*row) for row in c.fetchall()]


def _links(
    batch: Sequence[_Pair], versions: frozenset[int]
) -> Iterator[tuple[int, tuple[str, str]]]:
    for original, copy, _ in batch:
        if copy.originator_version in versions:
            yield copy.originator_version, (link_of(original), link_of(copy))
