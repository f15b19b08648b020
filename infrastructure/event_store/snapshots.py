"""Snapshots of the bounded state, taken after each compaction so that a load reads only newer events."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from eventsourcing.persistence import StoredEvent
from eventsourcing.sqlite import SQLiteAggregateRecorder

from refold.application.errors import LogError
from refold.application.runtime.plain_lines import conversation, plain_logger
from refold.domain.conversation import Conversation
from refold.domain.events import (
    ConversationErased,
    Event,
    MessageErased,
)
from refold.domain.evolve import fold
from refold.domain.value import build_unvalidated
from refold.infrastructure.observability.log_observer import Notice, ignore
from refold.infrastructure.sqlite.sqlite_failures import STORE_ERRORS, retry

from .codec import SHAPES, SNAPSHOT, decode_snapshot, encode
from .envelope import (
    GENESIS,
    PLAIN,
    Encoder,
    EnvelopeError,
    Place,
    parse_frame,
    random_hex,
    seal,
    unseal,
)
from .recorder import MAX_VERSION

logger = plain_logger(__name__)

AT_ONCE = 50
"""Number of snapshots that are copied at once."""


_NEWEST = (
    "SELECT originator_id, originator_version, topic, state FROM stored_snapshots "
    "WHERE originator_id=? AND originator_version<=? ORDER BY originator_version DESC LIMIT 1"
)
_ANY_EVENT = "SELECT 1 FROM stored_events WHERE originator_id=? LIMIT 1"


class Snapshot(NamedTuple):
    """The state at a version, and the link of the event with this version."""

    version: int
    link: str
    state: Conversation


class SnapshotRows(Protocol):
    """The rows of the snapshots: the part of an ``AggregateRecorder`` that a store needs, and ``drop``."""

    def newest(self, stream: str, last: int) -> tuple[StoredEvent | None, bool]:
        """Return the newest snapshot up to a version, and True if the stream is known to have no events."""
        ...

    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        """Store these snapshots."""
        ...

    def drop(self, places: Sequence[tuple[str, int]]) -> None:
        """Remove these snapshots, and all whose columns do not identify them."""
        ...


class SQLiteSnapshots(SQLiteAggregateRecorder):
    """The rows of the snapshots in the file of a log."""

    def newest(self, stream: str, last: int) -> tuple[StoredEvent | None, bool]:
        """Return the newest snapshot up to a version, and True if the stream is known to have no events."""
        with self.datastore.transaction(commit=False) as c:
            c.sqlite_cursor.row_factory = None
            c.execute(_NEWEST, (stream, last))
            for row in c.fetchall():
                return StoredEvent(*row), False
            c.execute(_ANY_EVENT, (stream,))
            return None, not c.fetchall()

    def drop(self, places: Sequence[tuple[str, int]]) -> None:
        """Remove these snapshots, and all whose columns do not identify them."""
        with self.datastore.transaction(commit=True) as c:
            c.executemany(
                "DELETE FROM stored_snapshots WHERE originator_id=? AND originator_version=?",
                places,
            )
            c.execute(
                "DELETE FROM stored_snapshots "
                "WHERE typeof(originator_version)!='integer' OR typeof(originator_id)!='text'"
            )


class SnapshotStore:
    """The snapshots of a log. A missing or damaged snapshot only makes a load slower."""

    def __init__(
        self,
        recorder: SnapshotRows,
        encoder: Encoder = PLAIN,
        notify: Callable[[Notice], None] = ignore,
    ) -> None:
        """Create a store. ``notify`` is called for each snapshot that is replaced."""
        self._recorder = recorder
        self._notify = notify
        self._encoder = encoder
        self._distrusted: set[tuple[str, int]] = set()
        self._damaged: dict[str, set[int]] = {}

    def newest(self, thread_id: str, before: int | None) -> Snapshot | None:
        """Return the newest usable snapshot at or before a version, or None.

        A stream without events has one at version 0.
        """
        # A damaged version may be text, which SQLite sorts after all numbers.
        last = MAX_VERSION if before is None else before
        while True:
            row, is_empty = self._select(thread_id, last)
            if row is None:
                return Snapshot(0, GENESIS, build_unvalidated(Conversation)) if is_empty else None
            snapshot = _open(row, self._encoder)
            if snapshot is not None and (thread_id, snapshot.version) not in self._distrusted:
                return snapshot
            if snapshot is None and row.topic == SNAPSHOT and _is_ours(row):
                self._damaged.setdefault(thread_id, set()).add(row.originator_version)
            last = row.originator_version - 1
            if last < 1:
                return None

    def _select(self, thread_id: str, last: int) -> tuple[StoredEvent | None, bool]:
        try:
            return retry(lambda: self._recorder.newest(thread_id, last))
        except STORE_ERRORS as error:
            logger.warning("%s: no snapshot could be read: %s", conversation(thread_id), error)
            return None, False

    def distrust(self, thread_id: str, version: int) -> None:
        """Exclude this snapshot from now on, because it contradicts the log."""
        logger.warning(
            "%s: snapshot at %d does not match the log", conversation(thread_id), version
        )
        self._distrusted.add((thread_id, version))
        self._damaged.setdefault(thread_id, set()).add(version)

    def mend(self, thread_id: str, state: Conversation, link: str) -> None:
        """Replace the snapshots that were found to be damaged, if there are any."""
        damaged = self._damaged.pop(thread_id, None)
        if not damaged:
            return
        try:
            self._recorder.drop([(thread_id, v) for v in damaged])
        except (*STORE_ERRORS, LogError) as error:
            logger.warning(
                "%s: a damaged snapshot cannot be replaced: %s", conversation(thread_id), error
            )
            return
        self._distrusted -= {(thread_id, version) for version in damaged}
        if state.version:
            self.take(thread_id, state, link)
        self._notify(Notice("snapshot.replaced", thread_id, {"snapshots": len(damaged)}))

    def take(self, thread_id: str, state: Conversation, link: str) -> None:
        """Store a snapshot of ``state``. A failure is only logged, because nothing depends on the
        snapshot.
        """
        self._keep(thread_id, [(state, link)])

    def copy(self, source: str, into: str, links: Mapping[int, tuple[str, str]]) -> None:
        """Copy the snapshots of ``source`` at these versions to its fork.

        ``links`` maps a version to the links of its event in the source and in the copy.
        """
        versions = sorted(links)
        for start in range(0, len(versions), AT_ONCE):
            found = (self.newest(source, v) for v in versions[start : start + AT_ONCE])
            # A snapshot that contradicts the source must not be accepted in the copy.
            right = [s for s in found if s and s.link == links.get(s.version, ("", ""))[0]]
            self._keep(into, [(s.state, links[s.version][1]) for s in right])

    def _keep(self, thread_id: str, states: Iterable[tuple[Conversation, str]]) -> None:
        try:
            self._recorder.insert_events(
                [_seal(thread_id, *known, self._encoder) for known in states]
            )
        except (*STORE_ERRORS, LogError) as error:
            # The event is already stored, so a failure here must not look like a failed append.
            logger.warning("%s: no snapshot was stored: %s", conversation(thread_id), error)


def state_after_erasing(before: Conversation, events: Sequence[Event]) -> Conversation | None:
    """Return the state after an erasure, or None if the events must be replayed to get it.

    The state remembers what live messages contain, and less may be left of one. For other messages it
    has only their sizes, which do not change.
    """
    erased = {event.position for event in events if isinstance(event, MessageErased)}
    is_emptied = any(isinstance(event, ConversationErased) for event in events)
    if is_emptied or any(message.position in erased for message in before.live):
        return None
    return fold(events, before)


def _is_ours(row: StoredEvent) -> bool:
    """Return whether the row is a snapshot that this version of refold should be able to read."""
    try:
        return parse_frame(row.state).shape == SHAPES[SNAPSHOT]
    except EnvelopeError:
        return True


def _seal(thread_id: str, state: Conversation, link: str, encoder: Encoder) -> StoredEvent:
    name, shape, payload = encode(state)
    place = Place(thread_id, state.version, name)
    # Next to a ciphertext, the digest must not be one that can be guessed.
    salt = random_hex(16) if encoder.encoding else "-"
    _, blob = seal(place, shape, "-", salt, link, payload, encoder)
    return StoredEvent(thread_id, state.version, name, blob)


def _open(row: StoredEvent, encoder: Encoder) -> Snapshot | None:
    try:
        envelope = unseal(
            Place(str(row.originator_id), row.originator_version, SNAPSHOT), row.state, encoder
        )
    except EnvelopeError as error:
        logger.warning(
            "%s: damaged snapshot at %d is not used: %s",
            conversation(str(row.originator_id)),
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
