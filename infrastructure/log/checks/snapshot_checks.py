"""Checking snapshots: each must be whole, and be what folding the events up to its version gives."""

import sqlite3
from collections.abc import Iterator

from eventsourcing.persistence import StoredEvent

from refold.application.event_log import Damage
from refold.domain.conversation import Conversation
from refold.domain.folding import fold
from refold.infrastructure.log.stored.codec import SHAPES, SNAPSHOT, CodecError, decode_snapshot
from refold.infrastructure.log.stored.envelope import EnvelopeError
from refold.infrastructure.log.stored.mapper import EventMapper, RecordedEvent

from .rows import DAMAGE, refuse_trouble

SNAPSHOTS = "snapshots"
"""The place of damage that is of snapshots: it is repaired from the events."""
BATCH = 500


def check_snapshots(connection: sqlite3.Connection, mapper: EventMapper) -> Iterator[Damage]:
    """Everything in which snapshots differ from the events that they stand for."""
    try:
        found = connection.execute(
            "SELECT originator_id, originator_version FROM stored_snapshots "
            "ORDER BY originator_id, originator_version"
        ).fetchall()
    except DAMAGE as error:
        refuse_trouble(error)
        yield Damage(SNAPSHOTS, "", 0, "unreadable", f"they cannot be read: {error}")
        return
    threads: dict[str, list[int]] = {}
    for thread_id, version in found:
        if not isinstance(version, int):
            yield Damage(
                SNAPSHOTS, str(thread_id), 0, "snapshot", "it does not say of which version"
            )
            continue
        threads.setdefault(str(thread_id), []).append(version)
    for thread_id, versions in threads.items():
        yield from _check_stream(connection, mapper, thread_id, versions)


def _check_stream(
    connection: sqlite3.Connection, mapper: EventMapper, thread_id: str, versions: list[int]
) -> Iterator[Damage]:
    state, link = Conversation(), ""
    for version in versions:
        problem = None
        try:
            for recorded in _events(connection, mapper, thread_id, state.version, version):
                state, link = fold([recorded.event], state), recorded.link
            if state.version == version:
                problem = _problem(connection, mapper, thread_id, state, link)
            else:
                problem = "the log has no event of this version"
        except (EnvelopeError, CodecError):
            return  # Said of the event itself; nothing can be told of what follows.
        except DAMAGE as error:
            refuse_trouble(error)
            problem = f"it cannot be read: {error}"
        if problem is not None:
            yield Damage(SNAPSHOTS, thread_id, version, "snapshot", problem)


def _problem(
    connection: sqlite3.Connection,
    mapper: EventMapper,
    thread_id: str,
    state: Conversation,
    link: str,
) -> str | None:
    row = connection.execute(
        "SELECT topic, state FROM stored_snapshots WHERE originator_id=? AND originator_version=?",
        (thread_id, state.version),
    ).fetchone()
    if row is None:
        return "its row cannot be found by its place"
    try:
        envelope = mapper.unsealed(StoredEvent(thread_id, state.version, SNAPSHOT, row[1]))
    except EnvelopeError as error:
        return str(error)
    if row[0] != SNAPSHOT:
        return "it has another name"
    if envelope.shape != SHAPES[SNAPSHOT]:
        return None  # Of another version of refold: not used, and no damage.
    if envelope.previous != link:
        return "it is of another history"
    kept = decode_snapshot(envelope.shape, envelope.payload)
    return None if kept == state else "it differs from what its events give"


def _events(
    connection: sqlite3.Connection, mapper: EventMapper, thread_id: str, after: int, last: int
) -> Iterator[RecordedEvent]:
    while after < last:
        rows = connection.execute(
            "SELECT originator_id, originator_version, topic, state FROM stored_events "
            "WHERE originator_id=? AND originator_version>? AND originator_version<=? "
            "ORDER BY originator_version LIMIT ?",
            (thread_id, after, last, BATCH),
        ).fetchall()
        for row in rows:
            yield mapper.to_domain_event(StoredEvent(*row))
        if not rows:
            return
        after = rows[-1][1]
