"""Snapshots of the bounded state, taken after each compaction, so that loading costs the live part."""

import logging
from typing import NamedTuple

from eventsourcing.persistence import AggregateRecorder, PersistenceError, StoredEvent

from refold.domain.conversation import Conversation

from .codec import SHAPES, SNAPSHOT, decode_snapshot, encode
from .envelope import EnvelopeError, Place, seal, unseal

logger = logging.getLogger(__name__)


class Snapshot(NamedTuple):
    """The state at a version, and the link of the event that has this version."""

    version: int
    link: str
    state: Conversation


class SnapshotStore:
    """Snapshots are a convenience: a missing or damaged one only makes a load slower."""

    def __init__(self, recorder: AggregateRecorder) -> None:
        self._recorder = recorder
        self._distrusted: set[tuple[str, int]] = set()

    def newest(self, thread_id: str, before: int | None) -> Snapshot | None:
        """The newest usable snapshot at or before a version."""
        while True:
            rows = self._recorder.select_events(thread_id, lte=before, desc=True, limit=1)
            if not rows:
                return None
            snapshot = _opened(rows[0])
            if snapshot is not None and (thread_id, snapshot.version) not in self._distrusted:
                return snapshot
            before = rows[0].originator_version - 1

    def distrust(self, thread_id: str, version: int) -> None:
        """Never use this snapshot again: the log does not bear it out."""
        logger.warning("conversation %r: snapshot at %d does not match the log", thread_id, version)
        self._distrusted.add((thread_id, version))

    def take(self, thread_id: str, state: Conversation, link: str) -> None:
        """Keep ``state``. A failure is only logged: nothing depends on it."""
        try:
            name, shape, payload = encode(state)
            place = Place(thread_id, state.version, name)
            _, blob = seal(place, shape, "-", "-", link, payload)
            self._recorder.insert_events([StoredEvent(thread_id, state.version, name, blob)])
        except PersistenceError as error:
            logger.warning("conversation %r: no snapshot was kept: %s", thread_id, error)


def _opened(row: StoredEvent) -> Snapshot | None:
    try:
        envelope = unseal(
            Place(str(row.originator_id), row.originator_version, SNAPSHOT), row.state
        )
    except EnvelopeError as error:
        logger.warning(
            "conversation %r: damaged snapshot at %d is not used: %s",
            row.originator_id,
            row.originator_version,
            error,
        )
        return None
    if row.topic != SNAPSHOT or envelope.shape != SHAPES[SNAPSHOT]:
        return None
    state = decode_snapshot(envelope.shape, envelope.payload)
    if state is None or state.version != row.originator_version:
        return None
    return Snapshot(row.originator_version, envelope.previous, state)
