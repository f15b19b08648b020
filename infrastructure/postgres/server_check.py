"""Check a log on a server: events, chain, keys, positions and snapshots, in one pass over the rows."""

from collections.abc import Iterator
from functools import partial
from itertools import groupby
from typing import Any

from eventsourcing.persistence import StoredEvent

from refold.application.ports.conversation_log import Damage
from refold.application.ports.log_keeper import Checked
from refold.domain.conversation import Conversation
from refold.domain.evolve import fold
from refold.infrastructure.event_store.envelope import EventMapper, link_in
from refold.infrastructure.maintenance.check import open_checked
from refold.infrastructure.maintenance.row_proof import RawRow
from refold.infrastructure.maintenance.table_checks import (
    KEYS,
    LOG,
    SNAPSHOTS,
    StreamCheck,
    snapshot_problem,
    stored_payload,
)

from .connections import Store, from_text, lift_time_limits, to_text
from .event_rows import PostgresRecorder, key_digest
from .sealing import open_state
from .stream_rows import PostgresSnapshots

SIZE = 500
"""Number of rows in memory at once."""

_ROWS = """
SELECT e.originator_id, e.originator_version, e.topic, e.state, k.key FROM {stored_events} e
LEFT JOIN {payload_keys} k ON k.originator_id = e.originator_id AND k.originator_version = e.originator_version
"""
_ORDER = "ORDER BY e.originator_id, e.originator_version"
_ONE = "WHERE e.originator_id = %s AND e.originator_version = %s"


def check_log(recorder: PostgresRecorder, mapper: EventMapper) -> Checked:
    """Read all rows, and report the damage and the number of events and conversations."""
    recorder.max_notification_id()
    check = _Check(recorder.store, mapper)
    found = tuple(check.damage())
    return Checked(check.events, check.conversations, found)


class _Check:
    def __init__(self, store: Store, mapper: EventMapper) -> None:
        self.events = 0
        self.conversations = 0
        self._store = store
        self._mapper = mapper
        self._snapshots = PostgresSnapshots(store)

    def damage(self) -> Iterator[Damage]:
        # A read of one moment: what others append meanwhile is not in it.
        with self._store.transaction() as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            lift_time_limits(connection)
            rows = self._store.stream(_ROWS + _ORDER, None, SIZE)
            for stream, of_stream in groupby(rows, lambda row: from_text(row[0])):
                self.conversations += 1
                yield from self._check_stream(stream, of_stream)
            yield from self._check_positions()
            yield from self._check_orphans()

    def _check_stream(self, stream: str, rows: Iterator[Any]) -> Iterator[Damage]:
        check, snapshots = StreamCheck(stream), self._snapshots_of(stream)
        state, is_whole = Conversation(), True
        for _, version, name, sealed, key in rows:
            self.events += 1
            row = StoredEvent(stream, version, name, open_state(stream, version, sealed, key))
            link = link_in(row.state)
            recorded, problem = open_checked(self._mapper, row)
            is_whole = is_whole and problem is None
            yield from check.take(
                RawRow(0, stream, version, name, row.state), link, recorded, problem
            )
            if snapshots and is_whole and recorded is not None:
                state = fold([recorded.event], state)
                snapshot = snapshots.pop(version, None)
                if snapshot is not None:
                    wrong = snapshot_problem(self._mapper, snapshot, state, recorded.link)
                    if wrong is not None:
                        yield Damage(SNAPSHOTS, stream, version, "snapshot", wrong)
        yield from check.finish(partial(self._payload, stream))
        if is_whole:
            for version in snapshots:
                yield Damage(SNAPSHOTS, stream, version, "snapshot", "it has no event")
        yield from self._check_keys(stream, check)

    def _payload(self, stream: str, version: int) -> bytes | None:
        for _, _, name, sealed, key in self._store.rows(_ROWS + _ONE, (to_text(stream), version)):
            state = open_state(stream, version, sealed, key)
            return stored_payload(self._mapper, StoredEvent(stream, version, name, state))
        return None

    def _snapshots_of(self, stream: str) -> dict[int, StoredEvent]:
        rows = self._snapshots.select_events(stream)
        return {row.originator_version: row for row in rows}

    def _check_keys(self, stream: str, check: StreamCheck) -> Iterator[Damage]:
        rows = self._store.rows(
            "SELECT digest, originator_version FROM {message_keys} WHERE originator_id = %s",
            (to_text(stream),),
        )
        stored = {(bytes(digest), int(version)) for digest, version in rows}
        of_events = () if check.gone else check.keys
        wanted = {(key_digest(stream, key), version) for key, version in of_events}
        for _, version in sorted(wanted - stored):
            detail = "the key of this message is not in the index of keys"
            yield Damage(KEYS, stream, version, "keys", detail)
        for _, version in sorted(stored - wanted):
            if version in check.unread:
                continue
            if version > check.version:
                detail = "the index of keys has a message here, but the log does not"
                yield Damage(LOG, stream, version, "missing", detail)
            else:
                yield Damage(KEYS, stream, version, "keys", "the index of keys has a wrong row")

    def _check_positions(self) -> Iterator[Damage]:
        ((count, highest, known),) = self._store.rows(
            "SELECT count(*), coalesce(max(p.position), 0), count(e.id) "
            "FROM {log_positions} p LEFT JOIN {stored_events} e ON e.id = p.id"
        )
        if count != highest:
            yield Damage(
                LOG, "", 0, "gap", f"{highest} log positions were given, {count} are there"
            )
        if known != count:
            yield Damage(LOG, "", 0, "missing", f"{count - known} log positions have no event")

    def _check_orphans(self) -> Iterator[Damage]:
        rows = self._store.rows(
            "SELECT DISTINCT m.originator_id FROM {message_keys} m LEFT JOIN {stored_events} e "
            "ON e.originator_id = m.originator_id AND e.originator_version = 1 WHERE e.id IS NULL"
        )
        for (stream,) in rows:
            detail = "the index of keys has messages, but the log does not have the conversation"
            yield Damage(LOG, from_text(stream), 1, "missing", detail)
