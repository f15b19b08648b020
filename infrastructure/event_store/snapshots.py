"""Snapshots of the bounded state, taken after each compaction, so that loading costs the live part."""

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from heapq import heappush, heapreplace
from typing import NamedTuple

from eventsourcing.persistence import StoredEvent
from eventsourcing.sqlite import SQLiteAggregateRecorder, SQLiteDatastore

from refold.application.conversation.stream_places import ReadEvents, StreamPlaces
from refold.application.errors import LogError
from refold.application.ports.conversation_log import LoggedEvent
from refold.application.projections.entries import (
    Entry,
    LongEntries,
    Looked,
    StoredMessages,
    StoredRun,
    Words,
    entry_of,
)
from refold.application.projections.window import Window
from refold.application.runtime.plain_lines import conversation, plain_logger
from refold.domain.compaction.budget import live_messages
from refold.domain.conversation import Conversation
from refold.domain.events import (
    CompactionFailed,
    CompactionPerformed,
    CompactionRequested,
    CompactionReverted,
    ConversationErased,
    ConversationForked,
    ConversationLabelled,
    Event,
    EventLost,
    MessageAppended,
    MessageErased,
)
from refold.domain.evolve import REMEMBERED, fold
from refold.domain.frames import RequestFrameChanged
from refold.domain.notes import NotesFlushed
from refold.infrastructure.observability.log_observer import Notice, ignore
from refold.infrastructure.sqlite.sqlite_failures import STORE_ERRORS, retry

from .codec import SHAPES, SNAPSHOT, decode_snapshot, encode
from .envelope import (
    PLAIN,
    Encoder,
    Envelope,
    EnvelopeError,
    Place,
    RecordedEvent,
    framed,
    seal,
    unseal,
)
from .recorder import MAX_VERSION

logger = plain_logger(__name__)

EVERY = 16_384
"""Events of a conversation too long for all of its messages to be remembered, between two snapshots."""
AT_ONCE = 50
"""Snapshots that are copied in one go."""


class Snapshot(NamedTuple):
    """The state at a version, and the link of the event that has this version."""

    version: int
    link: str
    state: Conversation


class SnapshotStore:
    """Snapshots are a convenience: a missing or damaged one only makes a load slower."""

    def __init__(
        self,
        recorder: SQLiteAggregateRecorder,
        encoder: Encoder = PLAIN,
        told: Callable[[Notice], None] = ignore,
    ) -> None:
        """``told``: of each snapshot that was replaced."""
        self._recorder = recorder
        self._told = told
        self._encoder = encoder
        self._distrusted: set[tuple[str, int]] = set()
        self._damaged: dict[str, set[int]] = {}

    def newest(self, thread_id: str, before: int | None) -> Snapshot | None:
        """The newest usable snapshot at or before a version."""
        while True:
            rows = self._select(thread_id, before)
            if not rows:
                return None
            snapshot = _opened(rows[0], self._encoder)
            if snapshot is not None and (thread_id, snapshot.version) not in self._distrusted:
                return snapshot
            if snapshot is None and rows[0].topic == SNAPSHOT and _is_ours(rows[0]):
                self._damaged.setdefault(thread_id, set()).add(rows[0].originator_version)
            before = rows[0].originator_version - 1
            if before < 1:
                return None

    def _select(self, thread_id: str, before: int | None) -> Sequence[StoredEvent]:
        try:
            return retry(
                lambda: self._recorder.select_events(
                    thread_id,
                    # A damaged version may be text, which SQLite sorts after all numbers.
                    lte=MAX_VERSION if before is None else before,
                    desc=True,
                    limit=1,
                )
            )
        except STORE_ERRORS as error:
            logger.warning("%s: no snapshot could be read: %s", conversation(thread_id), error)
            return ()

    def distrust(self, thread_id: str, version: int) -> None:
        """Never use this snapshot again: the log does not bear it out."""
        logger.warning(
            "%s: snapshot at %d does not match the log", conversation(thread_id), version
        )
        self._distrusted.add((thread_id, version))
        self._damaged.setdefault(thread_id, set()).add(version)

    def mend(self, thread_id: str, state: Conversation, link: str) -> None:
        """Put a new snapshot in the place of those that were found to be damaged, if any were."""
        damaged = self._damaged.pop(thread_id, None)
        if not damaged:
            return
        try:
            drop_snapshots(self._recorder.datastore, [(thread_id, v) for v in damaged])
        except (*STORE_ERRORS, LogError) as error:
            logger.warning("%s: a damaged snapshot stays: %s", conversation(thread_id), error)
            return
        self._distrusted -= {(thread_id, version) for version in damaged}
        if state.version:
            self.take(thread_id, state, link)
        self._told(Notice("snapshot.replaced", thread_id, {"snapshots": len(damaged)}))

    def take(self, thread_id: str, state: Conversation, link: str) -> None:
        """Keep ``state``. A failure is only logged: nothing depends on it."""
        self._keep(thread_id, [(state, link)])

    def copy(self, source: str, into: str, links: Mapping[int, tuple[str, str]]) -> None:
        """Keep the snapshots of ``source`` at these versions for its copy as well.

        ``links``: of the event with this version, in the source and in the copy.
        """
        versions = sorted(links)
        for start in range(0, len(versions), AT_ONCE):
            found = (self.newest(source, v) for v in versions[start : start + AT_ONCE])
            # One that the source does not bear out must not be borne out by the copy.
            right = [s for s in found if s and s.link == links.get(s.version, ("", ""))[0]]
            self._keep(into, [(s.state, links[s.version][1]) for s in right])

    def _keep(self, thread_id: str, states: Iterable[tuple[Conversation, str]]) -> None:
        try:
            self._recorder.insert_events(
                [_sealed(thread_id, *known, self._encoder) for known in states]
            )
        except (*STORE_ERRORS, LogError) as error:
            # The event is stored already: nothing that fails now may say otherwise.
            logger.warning("%s: no snapshot was kept: %s", conversation(thread_id), error)


def is_due(state: Conversation, appended: Sequence[Event]) -> bool:
    """Whether it is time for a snapshot, after these events gave this state."""
    if any(isinstance(event, CompactionPerformed | CompactionReverted) for event in appended):
        return True
    before = state.version - len(appended)
    return state.older_live > 0 and state.version // EVERY > before // EVERY


def state_after_erasing(before: Conversation, events: Sequence[Event]) -> Conversation | None:
    """The state after an erasure, as replay of what is left gives it; None where it is to be replayed.

    The state remembers what live messages do, and what is left of one may do less. Of others it knows sizes,
    which stay as they were.
    """
    erased = {event.position for event in events if isinstance(event, MessageErased)}
    is_emptied = any(isinstance(event, ConversationErased) for event in events)
    if is_emptied or any(message.position in erased for message in before.live):
        return None
    return fold(events, before)


def drop_snapshots(datastore: SQLiteDatastore, places: Iterable[tuple[str, int]]) -> None:
    """Remove the snapshots of these conversations and versions, and those that say neither."""
    with datastore.transaction(commit=True) as c:
        c.executemany(
            "DELETE FROM stored_snapshots WHERE originator_id=? AND originator_version=?",
            list(places),
        )
        c.execute(
            "DELETE FROM stored_snapshots "
            "WHERE typeof(originator_version)!='integer' OR typeof(originator_id)!='text'"
        )


def _is_ours(row: StoredEvent) -> bool:
    """Whether it is not simply of another version of refold."""
    try:
        return framed(row.state).shape == SHAPES[SNAPSHOT]
    except EnvelopeError:
        return True


def _sealed(thread_id: str, state: Conversation, link: str, encoder: Encoder) -> StoredEvent:
    name, shape, payload = encode(state)
    place = Place(thread_id, state.version, name)
    # Beside a ciphertext the digest must not be one that could be guessed.
    salt = secrets.token_hex(16) if encoder.encoding else "-"
    _, blob = seal(place, shape, "-", salt, link, payload, encoder)
    return StoredEvent(thread_id, state.version, name, blob)


def _opened(row: StoredEvent, encoder: Encoder) -> Snapshot | None:
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


BATCH = 1_000
"""Events that are in memory at once."""

Batches = Callable[[str, int, int | None, int], Iterator[list[RecordedEvent]]]
"""Reads the events of a stream from one version to another, so many at once."""
Envelopes = Callable[[str, int], Iterator[tuple[str, Envelope]]]
"""Reads names and envelopes of the events of a stream from a version on."""

_USER = b'"message":{"role":"user"'
_RESULT = b'"tool_result"'
_POSITION = b'{"position":'
_LETTERS = bytes(c if chr(c).isalpha() and c < 128 else 32 for c in bytes(range(256)).lower())
_APOSTROPHE = b"'"


class MessageReader:
    """``StoredMessages`` of one stream."""

    def __init__(self, thread_id: str, batches: Batches, envelopes: Envelopes) -> None:
        self._thread_id = thread_id
        self._batches = batches
        self._envelopes = envelopes

    def read(self, start: int, stop: int) -> Iterator[Entry]:
        """See ``StoredMessages``."""
        # A message never has a smaller version than the number of messages up to it.
        size = max(4, min(BATCH, stop - start + 4))
        for batch in self._batches(self._thread_id, start + 1, None, size):
            for recorded in batch:
                match recorded.event:
                    case MessageAppended(position=position) as event if position >= start:
                        if position >= stop:
                            return
                        yield entry_of(event)
                    case EventLost(position=int(position)) if position >= stop:
                        return
                    case _:
                        pass

    def look_through(self, start: int, stop: int, words: Words, most: int) -> Looked:
        """See ``StoredMessages``. The words are looked for in the stored bytes: nothing is decoded."""
        digest, best = sha256(), list[tuple[float, int]]()
        for name, envelope in self._envelopes(self._thread_id, start + 1):
            if name != "message_appended":
                continue
            position = _position(envelope.payload)
            if position is None or position < start:
                continue
            if position >= stop:
                break
            digest.update(envelope.digest.encode("ascii"))
            score = _score(envelope.payload, words)
            if score and len(best) < most:
                heappush(best, (score, position))
            elif score and (score, position) > best[0]:
                heapreplace(best, (score, position))
        return Looked(digest.hexdigest(), frozenset(position for _, position in best))


def _position(payload: bytes) -> int | None:
    if not payload.startswith(_POSITION):
        return None
    number = payload[len(_POSITION) : payload.find(b",", len(_POSITION))]
    return int(number) if number.isdigit() else None


def _score(payload: bytes, words: Words) -> float:
    """What the words of a message promise; what models say and tools return promises nothing."""
    if _USER not in payload or _RESULT in payload:
        return 0.0
    said = words.promises.keys() & payload.translate(_LETTERS, _APOSTROPHE).split()
    best = max([words.promises[word] for word in said], default=0.0)
    if payload.isascii():
        return best
    return max(best, *(promise for word, promise in words.others if word in payload))


MOST_HELD = REMEMBERED + REMEMBERED // 4
"""More of the newest messages than so many are not held in memory, once they are larger than any window.
Every cut lies among the newest that the state remembers."""
LARGEST_WINDOW = 1_200_000
"""Tokens. No model reads more at once; what fits it is held in memory, however many messages it has."""
MOST_DECISIONS = 64
"""Among more decisions than so many nobody looks for one that changes what is shown."""
HARMLESS = (
    CompactionRequested,
    CompactionFailed,
    ConversationForked,
    ConversationLabelled,
    NotesFlushed,
    RequestFrameChanged,
)
"""Events that change nothing that is shown."""


class Stored(NamedTuple):
    """What stays in the log, and the version from which on the others are read."""

    run: StoredRun
    first: int


def stored_run(state: Conversation, read: ReadEvents, log: StoredMessages) -> Stored | None:
    """All but the newest messages, if they can stay in the log: nothing that was decided up to this state
    changes how they are shown. None: they must be read.
    """
    others = state.version - live_messages(state)
    if not state.older_live or state.live_tokens < LARGEST_WINDOW or others > MOST_DECISIONS:
        return None
    places = StreamPlaces(read, state.version, state.length)
    decided = [*places.decisions_after(0)] if others else []
    first = state.version - REMEMBERED + 1
    if len(decided) < others or not all(_is_harmless(one, first) for one in decided):
        return None
    count = first - 1 - sum(1 for one in decided if one.version < first)
    return Stored(StoredRun(0, count, count, log, {}), first)


def _is_harmless(decided: LoggedEvent, first: int) -> bool:
    """Whether a decision changes nothing of what is not read, from version ``first`` on all being read."""
    if decided.version >= first and isinstance(decided.event, MessageErased):
        return True  # It brings the measure of what is left of the message.
    return isinstance(decided.event, HARMLESS)


def trimmed(window: Window, state: Conversation, log: StoredMessages) -> Window:
    """The window with only the newest messages in memory, where no model could read all of them."""
    entries = window.entries
    held = entries.newest if isinstance(entries, LongEntries) else entries
    if len(held) < MOST_HELD or state.live_tokens < LARGEST_WINDOW:
        return window
    return window.shelved(REMEMBERED, log)
