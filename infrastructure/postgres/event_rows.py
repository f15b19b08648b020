"""Store and read events on a server: one durable commit an append, under the lock of the stream alone."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from hashlib import sha256
from itertools import groupby
from typing import Any, NoReturn
from uuid import UUID

from eventsourcing.persistence import (
    ApplicationRecorder,
    IntegrityError,
    Notification,
    StoredEvent,
    Subscription,
)

from refold.application.errors import LogDamaged
from refold.infrastructure.event_store.encryption import Keys
from refold.infrastructure.event_store.envelope import LONGEST_FRAME, link_in
from refold.infrastructure.event_store.recorder import MAX_VERSION, NO_HEADS, Head, Plain, Row

from .connections import Store, from_text, to_text
from .failures import retry
from .positions import Positions
from .sealing import open_state, seal_state

FRAME = f"string_to_array(encode(substring(e.state FROM 1 FOR {LONGEST_FRAME}), 'escape'), ' ')"
"""SQL for the fields of an event's frame, from 1: magic, shape, time, salt, digest, previous link."""
_LINK = f"encode(sha256(convert_to(left(({FRAME})[6], 64) || ({FRAME})[5], 'UTF8')), 'hex')"
"""SQL for the link of an event: see ``Envelope.link``."""

_INSERT = """
WITH locked AS MATERIALIZED (SELECT count(pg_advisory_xact_lock(%(lock)s::bigint))),
new AS (
    SELECT %(stream)s::text AS stream, %(first)s::bigint + n.place - 1 AS version, n.topic, n.state, n.key
    FROM unnest(%(topics)s::text[], %(states)s::bytea[], %(keys)s::bytea[])
        WITH ORDINALITY AS n(topic, state, key, place), locked
    WHERE (%(head)s::bigint = 0 OR EXISTS (
        SELECT FROM {stored_events} e WHERE e.originator_id = %(stream)s::text
        AND e.originator_version = %(head)s::bigint AND __LINK__ = %(link)s::text))
    AND (%(encrypts)s::boolean OR NOT EXISTS (SELECT FROM {encryption_keys}))
    ORDER BY n.place
),
event AS (
    INSERT INTO {stored_events} (originator_id, originator_version, topic, state)
    SELECT stream, version, topic, state FROM new RETURNING 1
),
key AS (
    INSERT INTO {payload_keys} SELECT stream, version, key FROM new RETURNING 1
)__MESSAGES__
SELECT 1 FROM event LIMIT 1
""".replace("__LINK__", _LINK)
_ONE = """
WITH event AS (
    INSERT INTO {stored_events} (originator_id, originator_version, topic, state)
    SELECT %(stream)s::text, %(first)s::bigint, %(topic)s::text, %(state)s::bytea
    FROM (SELECT pg_advisory_xact_lock(%(lock)s::bigint) OFFSET 0) AS locked
    WHERE (%(head)s::bigint = 0 OR EXISTS (
        SELECT FROM {stored_events} e WHERE e.originator_id = %(stream)s::text
        AND e.originator_version = %(head)s::bigint AND __LINK__ = %(link)s::text))
    AND (%(encrypts)s::boolean OR NOT EXISTS (SELECT FROM {encryption_keys}))
    RETURNING originator_id, originator_version
)
INSERT INTO {payload_keys} SELECT originator_id, originator_version, %(key)s::bytea FROM event RETURNING 1
""".replace("__LINK__", _LINK)
"""Statement for one event without an idempotency key, by far the most frequent: it costs half of the general one."""
_WITHOUT_KEYS = _INSERT.replace("__MESSAGES__", "")
_WITH_KEYS = _INSERT.replace(
    "__MESSAGES__",
    """,
message AS (
    INSERT INTO {message_keys} SELECT %(stream)s::text, m.d, m.v
    FROM unnest(%(key_digests)s::bytea[], %(key_versions)s::bigint[]) AS m(d, v)
    WHERE EXISTS (SELECT FROM new) RETURNING 1
)""",
)
_EVENTS = """
SELECT e.originator_id, e.originator_version, e.topic, e.state, k.key FROM {stored_events} e
LEFT JOIN {payload_keys} k ON k.originator_id = e.originator_id AND k.originator_version = e.originator_version
"""
_NEWEST = """
SELECT __LINK__ = %s AND NOT EXISTS (SELECT FROM {stored_events} a
    WHERE a.originator_id = e.originator_id AND a.originator_version > e.originator_version)
FROM {stored_events} e WHERE e.originator_id = %s AND e.originator_version = %s
""".replace("__LINK__", _LINK)
_NOTIFICATIONS = """
SELECT p.position, e.originator_id, e.originator_version, e.topic, e.state, k.key
FROM {log_positions} p JOIN {stored_events} e ON e.id = p.id
LEFT JOIN {payload_keys} k ON k.originator_id = e.originator_id AND k.originator_version = e.originator_version
"""


MessageKey = tuple[str, str, int]
"""An idempotency key of a row: stream, key and version."""
NO_HEAD = Head()


class PostgresRecorder(ApplicationRecorder):
    """The recorder of a log, with the interface of the eventsourcing library."""

    def __init__(self, store: Store, keys: Keys | None = None) -> None:
        """Create a recorder. ``prepare_schema`` must have prepared the schema.

        ``keys`` encrypt the events that are given to it. Without any, it refuses to write into an encrypted log.
        """
        super().__init__()
        self._keys = keys or Keys()
        self.store = store
        self._positions = Positions(store)

    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        """Store all events or none, and return their log positions."""
        self.append(stored_events, **kwargs)
        self._positions.give()
        return [number for event in stored_events for number in self._numbers(event)]

    def _numbers(self, event: StoredEvent) -> Iterator[int]:
        yield from (
            number
            for (number,) in self.store.rows(
                "SELECT p.position FROM {log_positions} p JOIN {stored_events} e ON e.id = p.id "
                "WHERE e.originator_id = %s AND e.originator_version = %s",
                (_name(event.originator_id), event.originator_version),
            )
        )

    def append(
        self,
        rows: Sequence[StoredEvent],
        *,
        keys: Sequence[MessageKey] = (),
        follows: Mapping[str, Head] = NO_HEADS,
    ) -> None:
        """Store all events or none, exactly once, with one commit. Repeat it after a lost connection.

        ``keys`` are idempotency keys: stream, key and version. ``follows`` has the newest event of each stream
        that the rows follow.

        Raises:
            IntegrityError: a row or a key is stored already, or another writer was faster.
            LogDamaged: the newest event of a stream is not the one that it was.
        """
        streams = [(stream, list(group)) for stream, group in groupby(rows, _stream_of)]
        tries = 0

        def append_all() -> None:
            nonlocal tries
            tries += 1
            # The commit may have succeeded although the connection was lost.
            if tries > 1 and all(self._are_stored(*one) for one in streams):
                return
            # One statement is a transaction already.
            with nullcontext() if len(streams) == 1 else self.store.transaction():
                for stream, of_stream in streams:
                    theirs = [key for key in keys if key[0] == stream]
                    self._append(stream, of_stream, theirs, follows.get(stream, NO_HEAD))

        if self.store.is_inside:
            append_all()  # A lost connection ends the whole transaction.
        else:
            retry(append_all)

    def _append(
        self, stream: str, rows: Sequence[StoredEvent], keys: Sequence[MessageKey], head: Head
    ) -> None:
        name, first = to_text(stream), rows[0].originator_version
        if any(row.originator_version != first + n for n, row in enumerate(rows)):
            raise IntegrityError("the versions have gaps")
        sealed = [seal_state(stream, row.originator_version, row.state) for row in rows]
        values: dict[str, Any] = {
            "lock": self.store.address.lock("stream", name),
            "stream": name,
            "first": first,
            "encrypts": self._keys.writing is not None,
            "head": head.version,
            "link": head.link,
        }
        if len(rows) == 1 and not keys:
            (one,) = sealed
            values |= {"topic": rows[0].topic, "state": one.state, "key": one.key}
            stored = self.store.rows(_ONE, values)
        else:
            values |= {
                "topics": [row.topic for row in rows],
                "states": [one.state for one in sealed],
                "keys": [one.key for one in sealed],
                "key_digests": [key_digest(stream, key) for _, key, _ in keys],
                "key_versions": [version for _, _, version in keys],
            }
            stored = self.store.rows(_WITH_KEYS if keys else _WITHOUT_KEYS, values)
        if not stored:
            self._refuse(stream, head)

    def _refuse(self, stream: str, head: Head) -> NoReturn:
        for (fingerprint,) in self.store.rows("SELECT fingerprint FROM {encryption_keys}"):
            self._keys.key(fingerprint)
        found = self.select_versions(stream, [head.version])
        if head.version and not any(link_in(row.state) == head.link for row in found):
            raise LogDamaged(
                stream, head.version, "the newest event was changed or removed since it was read"
            )
        raise IntegrityError("another writer was faster")

    def _are_stored(self, stream: str, rows: Sequence[StoredEvent]) -> bool:
        found = self.select_versions(stream, [row.originator_version for row in rows])
        return [row.state for row in found] == [row.state for row in rows]

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> list[StoredEvent]:
        """Return the events of a stream."""
        rows = self.read_rows(
            f"{_EVENTS} WHERE e.originator_id = %s AND e.originator_version > %s AND e.originator_version <= %s "
            f"ORDER BY e.originator_version {'DESC' if desc else 'ASC'} LIMIT %s",
            (
                to_text(_name(originator_id)),
                -1 if gt is None else gt,
                MAX_VERSION if lte is None else lte,
                limit,
            ),
        )
        return [_opened(row, originator_id) for row in rows]

    def select_versions(self, stream: str, versions: Sequence[int]) -> list[StoredEvent]:
        """Return the existing events with these versions, in the order of their versions."""
        rows = self.read_rows(
            f"{_EVENTS} WHERE e.originator_id = %s AND e.originator_version = ANY(%s::bigint[]) "
            "ORDER BY e.originator_version",
            (to_text(stream), list(versions)),
        )
        return [_opened(row) for row in rows]

    def select_named(self, name: str) -> list[StoredEvent]:
        """Return all events with a name, in the order of insertion."""
        return [
            *map(_opened, self.read_rows(f"{_EVENTS} WHERE e.topic = %s ORDER BY e.id", (name,)))
        ]

    def rows_at(self, stream: str, versions: Sequence[int]) -> list[Plain]:
        """Return version, name and bytes of the same events."""
        found = self.select_versions(stream, versions)
        return [(row.originator_version, row.topic, row.state) for row in found]

    def rows_of(self, stream: str, after: int, limit: int, last: int = MAX_VERSION) -> list[Plain]:
        """Return version, name and bytes of the next events of a stream up to version ``last``."""
        found = self.select_events(stream, gt=after, lte=last, limit=limit)
        return [(row.originator_version, row.topic, row.state) for row in found]

    def is_newest(self, stream: str, head: Head) -> bool:
        """Return whether a stream still ends with this event, and its frame was not changed."""
        return self.read_rows(_NEWEST, (head.link, to_text(stream), head.version)) == [(True,)]

    def rows_after(self, number: int, limit: int) -> list[Row]:
        """Return the next events of the whole log, after all committed events have got their positions."""
        self.max_notification_id()
        rows = self.read_rows(
            f"{_NOTIFICATIONS} WHERE p.position > %s ORDER BY p.position LIMIT %s", (number, limit)
        )
        return [_numbered(row) for row in rows]

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> list[Notification]:
        """Return events of the whole log by their positions, like the method of the library."""
        self.max_notification_id()
        first = (start or 0) + (0 if inclusive_of_start or start is None else 1)
        rows = self.read_rows(
            f"{_NOTIFICATIONS} WHERE p.position >= %s AND p.position <= %s "
            "AND (cardinality(%s::text[]) = 0 OR e.topic = ANY(%s::text[])) ORDER BY p.position LIMIT %s",
            (first, MAX_VERSION if stop is None else stop, list(topics), list(topics), limit),
        )
        return [
            Notification(
                id=number,
                originator_id=stream,
                originator_version=version,
                topic=topic,
                state=state,
            )
            for number, stream, version, topic, state in map(_numbered, rows)
        ]

    def max_notification_id(self) -> int | None:
        """Return the log position of the newest event, or None if the log is empty."""
        return retry(self._positions.give) or None

    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription[ApplicationRecorder]:
        """Raise ``NotImplementedError``: followers ask for what is new."""
        raise NotImplementedError

    def read_rows(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        """Return the rows of a query. After a lost connection, it is repeated."""
        if self.store.is_inside:
            return self.store.rows(statement, values)
        return retry(lambda: self.store.rows(statement, values))


def _stream_of(row: StoredEvent) -> str:
    return _name(row.originator_id)


def _name(originator_id: UUID | str) -> str:
    return str(originator_id)


def key_digest(stream: str, key: str) -> bytes:
    """Return what is stored of an idempotency key."""
    return sha256(f"{len(stream)}\0{stream}\0{key}".encode("utf-8", "surrogatepass")).digest()


def _opened(row: Sequence[Any], originator_id: UUID | str | None = None) -> StoredEvent:
    stream, version, topic, state, key = row
    name = from_text(stream)
    return StoredEvent(
        name if originator_id is None else originator_id,
        version,
        topic,
        open_state(name, version, state, key),
    )


def _numbered(row: Sequence[Any]) -> Row:
    number, stream, version, topic, state, key = row
    name = from_text(stream)
    return number, name, version, topic, open_state(name, version, state, key)
