"""Check the tables of a log: the events of each stream, the index of keys, and snapshots."""

import dataclasses
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Set
from hashlib import sha256

from eventsourcing.persistence import StoredEvent

from refold.application.ports.conversation_log import Damage
from refold.domain.conversation import Conversation
from refold.domain.events import (
    ConversationErased,
    ConversationForked,
    EventLost,
    MessageAppended,
    MessageErased,
)
from refold.domain.evolve import fold
from refold.domain.notes import MemoriesChosen
from refold.infrastructure.event_store.codec import SHAPES, SNAPSHOT, decode_snapshot
from refold.infrastructure.event_store.envelope import (
    GENESIS,
    EnvelopeError,
    EventMapper,
    Place,
    RecordedEvent,
)
from refold.infrastructure.event_store.message_keys import MessageKeys, has_chain, has_chains
from refold.infrastructure.event_store.plain_shapes import CodecError

from .row_proof import DAMAGE, RawRow, refuse_trouble

LOG = "log"
"""Place name in reports about damage of the log as a whole."""

BELIEVED = 1_000
"""Maximum distance from the newest intact event at which the version of a damaged row is plausible."""


class _Notes:
    """Notes about the events of a stream, which most streams do not need."""

    __slots__ = ("erased", "gaps", "kept", "keys", "rewritten", "unread")

    def __init__(self) -> None:
        self.keys: set[tuple[str, int]] = set()
        self.unread: set[int] = set()
        self.gaps: list[range] = []
        self.erased: dict[int, str] = {}
        self.rewritten: dict[int, str] = {}
        self.kept: set[int] = set()


_NO_NOTES = _Notes()
"""Notes of all streams without any. A log has very many of them, so it is shared and never changed."""


class StreamCheck:
    """The state of the check of one stream. It is small, because a log may have very many streams."""

    __slots__ = ("_link", "_notes", "_pending", "gone", "thread_id", "version")

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        self.version = 0
        self._notes = _NO_NOTES
        self.gone = 0
        """Version at which the conversation was erased, or 0."""
        self._link: str | None = GENESIS
        """Link of the newest event, or None if it is not known."""
        self._pending: int | None = None
        """Version of an event that does not follow the one before. The next event shows which of the two
        is wrong.
        """

    @property
    def keys(self) -> Set[tuple[str, int]]:
        """Idempotency keys in the stream, with their versions."""
        return self._notes.keys

    @property
    def unread(self) -> Set[int]:
        """Versions of damaged events, whose content is not known."""
        return self._notes.unread

    def _note(self) -> _Notes:
        """Return the notes, to add one."""
        if self._notes is _NO_NOTES:
            self._notes = _Notes()
        return self._notes

    def take(
        self, row: RawRow, link: str, recorded: RecordedEvent | None, problem: Damage | None
    ) -> Iterator[Damage]:
        """Check the next event. ``link`` is that of its frame, or empty if the frame is damaged."""
        version = row.version
        if problem is not None and version != self.version + 1:
            pass  # The place in its columns is unreliable.
        elif version <= self.version:
            yield from self._late(version)
        else:
            yield from self._settle(recorded)
            if version > self.version + 1:
                self._note().gaps.append(range(self.version + 1, version))
            elif recorded and self._link is not None and recorded.previous != self._link:
                self._pending = version
            # An event after a damaged one cannot be expected to follow it.
            self.version, self._link = version, link if recorded else None
        if problem is not None:
            self._note().unread.add(version)
            yield problem
        if recorded is not None:
            self._take_event(recorded)

    def finish(self, read: Callable[[int], bytes | None]) -> Iterator[Damage]:
        """Report damage that is known only at the end of the stream.

        ``read`` returns the payload of the event with this version, or None if it is not known.
        """
        yield from self._settle(None)
        beyond = [v for v in self.unread if self.version < v <= self.version + BELIEVED]
        if beyond:
            # There is no intact event after it that would show a gap before it.
            self._note().gaps.append(range(self.version + 1, max(beyond) + 1))
        for first, last in self._missing():
            detail = "the event is" if first == last else f"events {first} to {last} are"
            yield self._damage(first, "gap", f"{detail} missing")
        yield from self._check_erasures(read)

    def has(self, version: int) -> bool:
        """Return whether an event with this version exists in any state."""
        return 0 < version <= self.version and not any(version in gap for gap in self._notes.gaps)

    def _missing(self) -> Iterator[tuple[int, int]]:
        for gap in self._notes.gaps:
            first = gap[0]
            for version in sorted(v for v in self.unread if v in gap):
                if first < version:
                    yield first, version - 1
                first = version + 1
            if first <= gap[-1]:
                yield first, gap[-1]

    def _late(self, version: int) -> Iterator[Damage]:
        gap = next((gap for gap in self._notes.gaps if version in gap), None)
        if gap is None:
            yield self._damage(version, "duplicate", "the log has an event of this version twice")
            return
        at = self._notes.gaps.index(gap)
        parts = (range(gap.start, version), range(version + 1, gap.stop))
        self._notes.gaps[at : at + 1] = [part for part in parts if part]
        yield self._damage(version, "reordered", "it is stored after later events")

    def _settle(self, following: RecordedEvent | None) -> Iterator[Damage]:
        if self._pending is None:
            return
        if following is not None and following.previous == self._link:
            detail = (
                "it does not follow the event before: one of the two belongs to another history"
            )
            yield self._damage(self._pending, "chain", detail)
        else:
            detail = "it neither follows the event before nor precedes the next one: it belongs to another history"
            yield self._damage(self._pending, "foreign", detail)
            self._link = None
        self._pending = None

    def _take_event(self, recorded: RecordedEvent) -> None:
        if recorded.remains is not None:
            self._note().erased[recorded.originator_version] = recorded.remains
        match recorded.event:
            case MessageAppended(key=str(key)):
                self._note().keys.add((key, recorded.originator_version))
            case MessageErased(rewritten=rewritten) | MemoriesChosen(rewritten=rewritten):
                self._note().rewritten.update((r.version, r.remains) for r in rewritten)
            case EventLost() if recorded.remains is None:
                self._note().kept.add(recorded.originator_version)
            case ConversationForked():
                # The origin of a fork remains when the conversation is erased.
                self._note().kept.add(recorded.originator_version)
            case ConversationErased():
                self.gone = recorded.originator_version
            case _:
                pass

    def _check_erasures(self, read: Callable[[int], bytes | None]) -> Iterator[Damage]:
        for version, remains in self._notes.erased.items():
            if version > self.gone and self._notes.rewritten.get(version) != remains:
                detail = "its content was removed without an erasure"
                yield self._damage(version, "erased", detail)
        expected = self._notes.rewritten.keys() | set(range(1, self.gone))
        for version in sorted(
            expected - self._notes.erased.keys() - self.unread - self._notes.kept
        ):
            if self.has(version) and not self._is_reduced(version, read(version)):
                detail = "it was erased, but its content is present"
                yield self._damage(version, "restored", detail)

    def _is_reduced(self, version: int, payload: bytes | None) -> bool:
        """Return whether an event has only what an erasure left of it. Earlier versions copied it without a mark."""
        left = self._notes.rewritten.get(version)
        return payload is not None and left == sha256(payload).hexdigest()

    def _damage(self, version: int, kind: str, detail: str) -> Damage:
        return Damage(LOG, self.thread_id, version, kind, detail)


def stored_payload(mapper: EventMapper, row: StoredEvent) -> bytes | None:
    """Return the payload of a row, or None if it is damaged."""
    place = Place(str(row.originator_id), row.originator_version, row.topic)
    try:
        return mapper.open(place, row.state)[0].payload
    except (EnvelopeError, CodecError):
        return None


KEYS = "keys"
"""Place name in reports about the index of keys. It is repaired from the events."""
INDEX_TABLES = frozenset({"message_keys", "sealed_keys"})


def check_keys(
    connection: sqlite3.Connection, mapper: EventMapper, streams: Mapping[str, StreamCheck]
) -> Iterator[Damage]:
    """Report all differences between the index of keys and the events."""
    try:
        yield from _KeyCheck(connection, mapper, streams).rows()
    except DAMAGE as error:
        refuse_trouble(error)
        yield Damage(KEYS, "", 0, "unreadable", f"the index of keys cannot be read: {error}")


def check_chains(
    connection: sqlite3.Connection, mapper: EventMapper, streams: Mapping[str, StreamCheck]
) -> Iterator[Damage]:
    """Report damage of the chains of the index of keys, in a log with intact events."""
    try:
        yield from _KeyCheck(connection, mapper, streams).chains()
    except DAMAGE as error:
        refuse_trouble(error)
        yield Damage(KEYS, "", 0, "unreadable", f"the proof of the index cannot be read: {error}")


class _KeyCheck:
    def __init__(
        self,
        connection: sqlite3.Connection,
        mapper: EventMapper,
        streams: Mapping[str, StreamCheck],
    ) -> None:
        self._cursor = connection.cursor()
        self._cursor.row_factory = None
        self._streams = streams
        self._keys = MessageKeys(mapper.encoder)
        # Damaged rows may have any value in any column.
        self._known: dict[object, set[tuple[object, object]]] = {}
        self._cursor.execute("SELECT originator_id, key, originator_version FROM message_keys")
        for stream, key, version in self._cursor.fetchall():
            self._known.setdefault(stream, set()).add((key, version))
        self._lacking = {
            pair for name, s in streams.items() for pair in s.keys - self._known.get(name, set())
        }
        """Keys, with their versions, that are missing in the index of their conversation."""

    def rows(self) -> Iterator[Damage]:
        """Report damage of the rows that map keys to events."""
        nothing = StreamCheck("")
        for name in sorted(self._known.keys() | self._streams.keys(), key=repr):
            stream = self._streams.get(str(name), nothing)
            known = self._known.get(name, set())
            # The events of an erased conversation have no keys any more.
            keys = set[tuple[str, int]]() if stream.gone else stream.keys
            for key, version in sorted(known - keys, key=repr):
                if version not in stream.unread:
                    yield self._unexpected(name, stream, key, version)
            for key, version in sorted(keys - known):
                detail = f"the key {key!r} of this message is not in the index of keys"
                yield Damage(KEYS, str(name), version, "keys", detail)

    def chains(self) -> Iterator[Damage]:
        """Report damage of the chains, whose rows prove the rows that map keys to events."""
        if not has_chains(self._cursor):
            return
        self._cursor.execute("SELECT DISTINCT originator_id FROM sealed_keys")
        for (name,) in self._cursor.fetchall():
            stream = self._streams.get(str(name))
            keys = () if stream is None or stream.gone else (key for key, _ in stream.keys)
            if stream is None or not self._keys.is_whole(self._cursor, str(name), keys):
                detail = "the proof of the index of keys does not fit the messages"
                yield Damage(KEYS, str(name), 0, "keys", detail)

    def _unexpected(
        self, name: object, stream: StreamCheck, key: object, version: object
    ) -> Damage:
        """Return the damage for a row without its event: the event is lost, or the row is wrong."""
        place, number = str(name), version if isinstance(version, int) else 0
        if self._was_stored(name, stream, key, version):
            detail = f"the index of keys has the message {key!r} here, but the log does not"
            return Damage(LOG, place, number, "missing", detail)
        return Damage(KEYS, place, 0, "keys", f"the index of keys has a wrong row for {key!r}")

    def _was_stored(self, name: object, stream: StreamCheck, key: object, version: object) -> bool:
        if not (isinstance(name, str) and isinstance(key, str) and isinstance(version, int)):
            return False
        if (key, version) in self._lacking or any(key == known for known, _ in stream.keys):
            return False  # The event exists in another place.
        if has_chain(self._cursor, name):
            return self._keys.seals(self._cursor, name, key)
        is_of_before = stream.version > 0 or not has_chains(self._cursor)
        return is_of_before and version > stream.version


SNAPSHOTS = "snapshots"
"""Place name in reports about snapshots. They are repaired from the events."""
BATCH = 500


def check_snapshots(connection: sqlite3.Connection, mapper: EventMapper) -> Iterator[Damage]:
    """Report all differences between snapshots and the events that they cover."""
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
            yield Damage(SNAPSHOTS, str(thread_id), 0, "snapshot", "it has no valid version")
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
            return  # The event itself is reported; later events cannot be judged.
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
    return snapshot_problem(mapper, StoredEvent(thread_id, state.version, *row), state, link)


def snapshot_problem(
    mapper: EventMapper, row: StoredEvent, state: Conversation, link: str
) -> str | None:
    """Return how a snapshot differs from the state after the event with this link, or None."""
    try:
        envelope = mapper.unsealed(dataclasses.replace(row, topic=SNAPSHOT))
    except EnvelopeError as error:
        return str(error)
    if row.topic != SNAPSHOT:
        return "it has another name"
    if envelope.shape != SHAPES[SNAPSHOT]:
        return None  # A snapshot of another version of refold is not used and not damaged.
    if envelope.previous != link:
        return "it belongs to another history"
    kept = decode_snapshot(envelope.shape, envelope.payload)
    return None if kept == state else "it differs from a replay of its events"


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
