"""Erase events on a server: new sealed bytes in place, the old keys deleted and their partition rewritten."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from eventsourcing.persistence import StoredEvent

from refold.application.errors import LogDamaged
from refold.application.ports.conversation_log import Erasure
from refold.domain.events import Event
from refold.domain.notes import Rewritten
from refold.infrastructure.event_store.envelope import EnvelopeError, EventMapper
from refold.infrastructure.event_store.recorder import Head, seal_rows
from refold.infrastructure.event_store.stored_log import Appended

from .connections import to_text
from .event_rows import PostgresRecorder
from .remains import ErasedRemains
from .sealing import seal_state
from .stream_rows import drop_snapshots

BATCH = 500
"""Number of rows in memory at once."""


class _Rows(NamedTuple):
    rows: list[StoredEvent]
    rewritten: list[Rewritten]


class PostgresEraser:
    """The ``Eraser`` of a log on a server. ``erase`` runs in the open transaction."""

    def __init__(
        self, recorder: PostgresRecorder, mapper: EventMapper, remains: ErasedRemains
    ) -> None:
        self._recorder = recorder
        self._store = recorder.store
        self._mapper = mapper
        self._remains = remains

    def erase(
        self, erasures: Mapping[str, tuple[Head, Erasure]], stamp: str
    ) -> Mapping[str, Appended]:
        """Erase in all of these streams and append to each its event, or change nothing.

        Raises:
            LogDamaged: an event to erase, or the newest one, is missing or changed.
        """
        for stream in sorted(map(to_text, erasures)):
            self._store.lock("stream", stream)
        done: dict[str, Appended] = {}
        for stream, (head, erasure) in erasures.items():
            if erasure.remains is None:
                found = self._emptied(stream, head)
                first = 1
            else:
                found = self._rewritten(stream, erasure.remains)
                first = min(erasure.remains, default=head.version)
            events = tuple(erasure.events([] if erasure.remains is None else found.rewritten))
            sealed = seal_rows(self._mapper, stream, head, events, stamp)
            self._recorder.append(sealed.rows, follows={stream: head})
            self._replace(stream, found.rows)
            if erasure.remains is None:
                self.forget_keys(stream)
            drop_snapshots(self._store, stream, first)
            self._store.run(
                "INSERT INTO {pending_erasures} (originator_id) VALUES (%s)", (to_text(stream),)
            )
            done[stream] = Appended(events, sealed.head, None)
        return done

    def _rewritten(self, stream: str, remains: Mapping[int, Event]) -> _Rows:
        """Return the rows that contain only these remains, and their entries in the event of the erasure."""
        found = _Rows([], [])
        rows = self._recorder.select_versions(stream, sorted(remains))
        missing = remains.keys() - {row.originator_version for row in rows}
        if missing:
            raise LogDamaged(stream, min(missing), "the event is missing")
        for row in rows:
            version = row.originator_version
            redacted, digest = self._redact(row, remains[version])
            found.rows.append(redacted)
            found.rewritten.append(Rewritten(version=version, remains=digest))
        return found

    def _emptied(self, stream: str, head: Head) -> _Rows:
        """Return the rows of a stream without content. Places, times, links and the origin of a fork stay."""
        rows: list[StoredEvent] = []
        after = 0
        while batch := self._recorder.select_events(
            stream, gt=after, lte=head.version, limit=BATCH
        ):
            after = batch[-1].originator_version
            rows += [
                self._redact(row, None)[0] for row in batch if row.topic != "conversation_forked"
            ]
        return _Rows(rows, [])

    def rewrite(self, stream: str, rows: Sequence[StoredEvent]) -> None:
        """Replace stored events by these, which contain less, in the open transaction."""
        self._replace(stream, rows)
        drop_snapshots(self._store, stream, min(row.originator_version for row in rows))
        self._store.run(
            "INSERT INTO {pending_erasures} (originator_id) VALUES (%s)", (to_text(stream),)
        )

    def forget_keys(self, stream: str) -> None:
        """Remove all idempotency keys of a conversation, in the open transaction."""
        self._store.run("DELETE FROM {message_keys} WHERE originator_id = %s", (to_text(stream),))

    def _redact(self, row: StoredEvent, remains: Event | None) -> tuple[StoredEvent, str]:
        try:
            return self._mapper.redact(row, remains)
        except EnvelopeError as error:
            stream, version = str(row.originator_id), row.originator_version
            raise LogDamaged(stream, version, str(error)) from error

    def _replace(self, stream: str, rows: Sequence[StoredEvent]) -> None:
        """Replace stored bytes and their keys."""
        for start in range(0, len(rows), BATCH):
            part = rows[start : start + BATCH]
            sealed = [seal_state(stream, row.originator_version, row.state) for row in part]
            versions = [row.originator_version for row in part]
            for table, column, new in (
                ("stored_events", "state", [one.state for one in sealed]),
                ("payload_keys", "key", [one.key for one in sealed]),
            ):
                self._store.run(
                    f"UPDATE {{{table}}} t SET {column} = n.new "
                    "FROM unnest(%s::bigint[], %s::bytea[]) AS n(version, new) "
                    "WHERE t.originator_id = %s AND t.originator_version = n.version",
                    (versions, new, to_text(stream)),
                )

    def pending(self) -> int | None:
        """Return the newest unfinished erasure, or None."""
        ((number,),) = self._store.rows("SELECT max(number) FROM {pending_erasures}")
        return None if number is None else int(number)

    def finish(self, number: int) -> bool:
        """Remove the keys that erasures up to ``number`` deleted for good. Return whether that was possible."""
        return self._remains.rewrite_keys(number)
