"""Copies of streams, snapshots, idempotency keys and erasures: the rows of a log on a server besides appending."""

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from eventsourcing.persistence import StoredEvent

from refold.application.errors import LogDamaged, LogLocked
from refold.domain.events import MessageAppended
from refold.infrastructure.event_store.encodings import DictionaryDamaged
from refold.infrastructure.event_store.encryption import Keys
from refold.infrastructure.event_store.envelope import (
    Encoder,
    EnvelopeError,
    EventMapper,
    PlainHead,
)
from refold.infrastructure.event_store.plain_shapes import CodecError
from refold.infrastructure.event_store.recorder import MAX_VERSION, stamp_of
from refold.infrastructure.event_store.stream_copies import COPY_BATCH, REWRITING, thread_exists

from .connections import Store, from_text, to_text
from .event_rows import FRAME, PostgresRecorder, key_digest
from .failures import retry
from .sealing import open_state, seal_state

_SNAPSHOTS = """
SELECT s.originator_id, s.originator_version, s.topic, s.state, k.key FROM {stored_snapshots} s
LEFT JOIN {payload_keys} k ON k.originator_id = s.originator_id AND k.originator_version = -s.originator_version
"""


class PostgresCopyRows:
    """The ``CopyRows`` of a log on a server, within the transaction that copies."""

    def __init__(self, recorder: PostgresRecorder) -> None:
        self._recorder = recorder
        self._store = recorder.store

    @contextmanager
    def begin(self, into: str) -> Generator["PostgresCopyRows"]:
        """Begin a transaction that creates the stream ``into``."""
        with self._store.transaction():
            self._store.lock("stream", to_text(into))
            if self._recorder.select_events(into, limit=1):
                raise thread_exists(into)
            yield self

    def select_versions(self, stream: str, versions: Sequence[int]) -> Sequence[StoredEvent]:
        """Return the existing events with these versions."""
        return self._recorder.select_versions(stream, versions)

    def beginnings(self) -> Sequence[StoredEvent]:
        """Return the event that begins each copy, in the order of insertion."""
        return self._recorder.select_named("conversation_forked")

    def existing(self, streams: Sequence[str]) -> Collection[str]:
        """Return those of these streams that have events."""
        found = self._recorder.read_rows(
            "SELECT s FROM unnest(%s::text[]) AS s "
            "WHERE EXISTS (SELECT FROM {stored_events} e WHERE e.originator_id = s)",
            ([to_text(stream) for stream in streams],),
        )
        return {from_text(row[0]) for row in found}

    def version_at(self, thread_id: str, moment: datetime) -> int:
        """Return the newest version that was logged at or before ``moment``; 0 if there was none."""
        found = self._recorder.read_rows(
            f"SELECT e.originator_version FROM {{stored_events}} e WHERE e.originator_id = %s AND ({FRAME})[3] <= %s "
            "ORDER BY e.originator_version DESC LIMIT 1",
            (to_text(thread_id), stamp_of(moment)),
        )
        return int(found[0][0]) if found else 0

    def versions_of(self, stream: str, names: Sequence[str], after: int) -> Sequence[int]:
        """Return the versions after ``after`` whose events have one of these names, in order."""
        found = self._recorder.read_rows(
            "SELECT originator_version FROM {stored_events} "
            "WHERE originator_id = %s AND originator_version > %s AND topic = ANY(%s::text[]) "
            "ORDER BY originator_version",
            (to_text(stream), after, list(names)),
        )
        return [row[0] for row in found]

    def snapshots(self, source: str, version: int) -> Iterable[int]:
        """Return the versions of the snapshots of a stream up to a version."""
        if self._store.is_replica:
            return ()  # A replica has no tables that are not in the write-ahead log.
        found = self._store.rows(
            "SELECT originator_version FROM {stored_snapshots} "
            "WHERE originator_id = %s AND originator_version <= %s",
            (to_text(source), version),
        )
        return [row[0] for row in found]

    def erasures(self, source: str, version: int) -> Sequence[StoredEvent]:
        """Return the events up to a version that may record which earlier events lost content."""
        found = self._store.rows(
            "SELECT originator_version FROM {stored_events} "
            "WHERE originator_id = %s AND originator_version <= %s AND topic = ANY(%s::text[])",
            (to_text(source), version, list(REWRITING)),
        )
        return self._recorder.select_versions(source, [row[0] for row in found]) if found else ()

    def rows(self, source: str, after: int, last: int) -> Sequence[StoredEvent]:
        """Return the next events of a stream."""
        return self._recorder.select_events(source, gt=after, lte=last, limit=COPY_BATCH)

    def insert(self, rows: Sequence[StoredEvent]) -> None:
        """Store these rows."""
        self._recorder.append(rows)

    def replace_keys(self, into: str, keys: Mapping[str, int]) -> None:
        """Replace all keys of a stream with these keys and versions."""
        stream = to_text(into)
        self._store.run("DELETE FROM {message_keys} WHERE originator_id = %s", (stream,))
        self._store.run(
            "INSERT INTO {message_keys} SELECT %s, * FROM unnest(%s::bytea[], %s::bigint[])",
            (stream, [key_digest(into, key) for key in keys], list(keys.values())),
        )

    def renew_keys(self, stream: str, mapper: EventMapper) -> None:
        """Rebuild the keys of a stream from its events."""
        with self._store.transaction():
            self._store.lock("stream", to_text(stream))
            keys = dict[str, int]()
            after = 0
            while rows := self._recorder.select_events(stream, gt=after, limit=COPY_BATCH):
                after = rows[-1].originator_version
                for row in rows:
                    if (key := read_key(mapper, row)) is not None:
                        keys[key] = row.originator_version
            self.replace_keys(stream, keys)


class PostgresSnapshots:
    """The ``SnapshotRows`` of a log on a server. The table is not in the write-ahead log: after a crash it is empty."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def select_events(
        self,
        originator_id: str,
        *,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        """Return the snapshots of a stream up to version ``lte``."""
        if self._store.is_replica:
            return ()  # A replica has no tables that are not in the write-ahead log.
        rows = self._store.rows(
            f"{_SNAPSHOTS} WHERE s.originator_id = %s AND s.originator_version <= %s "
            f"ORDER BY s.originator_version {'DESC' if desc else 'ASC'} LIMIT %s",
            (to_text(originator_id), MAX_VERSION if lte is None else lte, limit),
        )
        return [
            StoredEvent(
                originator_id, version, topic, open_state(originator_id, -version, state, key)
            )
            for _, version, topic, state, key in rows
        ]

    def newest(self, stream: str, last: int) -> tuple[StoredEvent | None, bool]:
        """Return the newest snapshot up to a version, and False: the events are not looked at."""
        rows = self.select_events(stream, lte=last, desc=True, limit=1)
        return (rows[0] if rows else None), False

    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        """Store these snapshots."""
        if self._store.is_replica:
            return None
        with self._store.transaction():
            for row in stored_events:
                stream, version = str(row.originator_id), row.originator_version
                sealed = seal_state(stream, -version, row.state)
                self._store.run(
                    "INSERT INTO {stored_snapshots} VALUES (%s, %s, %s, %s)",
                    (to_text(stream), version, row.topic, sealed.state),
                )
                self._store.run(
                    "INSERT INTO {payload_keys} VALUES (%s, %s, %s) "
                    "ON CONFLICT (originator_id, originator_version) DO UPDATE SET key = excluded.key",
                    (to_text(stream), -version, sealed.key),
                )
        return None

    def drop(self, places: Sequence[tuple[str, int]]) -> None:
        """Remove these snapshots."""
        with self._store.transaction():
            for stream, version in places:
                drop_snapshots(self._store, stream, version, version)


def drop_snapshots(store: Store, stream: str, first: int, last: int = MAX_VERSION) -> None:
    """Remove the snapshots of a stream in a range of versions, with their keys."""
    values = (to_text(stream), first, last)
    store.run(
        "DELETE FROM {stored_snapshots} WHERE originator_id = %s AND originator_version BETWEEN %s AND %s",
        values,
    )
    store.run(
        "DELETE FROM {payload_keys} WHERE originator_id = %s AND originator_version <= -%s::bigint "
        "AND originator_version >= -%s::bigint",
        values,
    )


class PostgresShelf:
    """The ``Shelf`` of a log on a server, which is encrypted from its first event on or never."""

    def __init__(self, store: Store, *, shown: str) -> None:
        self._store = store
        self._shown = shown

    def begin(self, keys: Keys) -> None:
        """Record the key that new events are encrypted with.

        Raises:
            LogLocked: the log has events that are not encrypted.
        """
        if keys.fingerprint is None:
            return
        with self._store.transaction():
            self._store.lock("keys")
            known = self.fingerprints()
            if keys.fingerprint in known or self._store.is_replica:
                return
            if not known and self._store.rows("SELECT FROM {stored_events} LIMIT 1"):
                raise LogLocked(
                    f"{self._shown} has events that are not encrypted; copy it with the key into another database: "
                    "`refold copy`. Nothing was changed"
                )
            self._store.run("INSERT INTO {encryption_keys} VALUES (%s)", (keys.fingerprint,))

    def dictionary(self, number: int, encoder: Encoder) -> bytes:
        """Raise ``DictionaryDamaged``: nothing is compressed here."""
        del encoder
        raise DictionaryDamaged(number, "is missing")

    def fingerprints(self) -> frozenset[str]:
        """Return the fingerprints of all keys that the log was ever written with."""
        return frozenset(
            str(row[0]) for row in self._store.rows("SELECT fingerprint FROM {encryption_keys}")
        )

    def plain_head(self, stream: str, encoder: Encoder) -> PlainHead | None:
        """Return a head before the first event if the log is encrypted, or None."""
        del stream, encoder
        return PlainHead() if self.fingerprints() else None

    def newest_key(self) -> str | None:
        """Return None: the record of the keys comes before the first event."""
        return None

    def refuse_unnoted(self) -> None:
        """Do nothing: the key was recorded when the log was opened."""


class PostgresKeys:
    """The idempotency keys of a log on a server: digests in an index, proved by the events."""

    def __init__(self, recorder: PostgresRecorder, mapper: EventMapper) -> None:
        self._recorder = recorder
        self._mapper = mapper

    def versions(self, stream: str, keys: Sequence[str]) -> Mapping[str, int]:
        """Map those of these keys that are stored to the versions of their messages.

        Raises:
            LogDamaged: the index names an event that has another key.
        """
        digests = {key_digest(stream, key): key for key in keys}
        store = self._recorder.store
        look = lambda: store.rows(  # noqa: E731
            "SELECT digest, originator_version FROM {message_keys} "
            "WHERE originator_id = %s AND digest = ANY(%s::bytea[])",
            (to_text(stream), list(digests)),
        )
        found = {digests[bytes(digest)]: int(version) for digest, version in retry(look)}
        for row in self._recorder.select_versions(stream, sorted(found.values())) if found else ():
            key = next(k for k, v in found.items() if v == row.originator_version)
            if read_key(self._mapper, row) != key:
                raise LogDamaged(
                    stream, row.originator_version, "it is not the message whose key the index has"
                )
        return found


def read_key(mapper: EventMapper, row: StoredEvent) -> str | None:
    """Return the idempotency key of a stored event, or None if it has none or cannot be read."""
    try:
        event = mapper.to_domain_event(row).event
    except (EnvelopeError, CodecError):
        return None
    return event.key if isinstance(event, MessageAppended) else None
