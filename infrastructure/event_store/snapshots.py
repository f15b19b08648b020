"""Snapshots of the bounded state, taken after each compaction so that a load reads only newer events."""

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
    ScanResult,
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
    parse_frame,
    seal,
    unseal,
)
from .recorder import MAX_VERSION

logger = plain_logger(__name__)

EVERY = 16_384
"""Events between two snapshots of a conversation that has too many messages to remember all."""
AT_ONCE = 50
"""Number of snapshots that are copied at once."""


class Snapshot(NamedTuple):
    """The state at a version, and the link of the event with this version."""

    version: int
    link: str
    state: Conversation


class SnapshotStore:
    """The snapshots of a log. A missing or damaged snapshot only makes a load slower."""

    def __init__(
        self,
        recorder: SQLiteAggregateRecorder,
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
        """Return the newest usable snapshot at or before a version, or None."""
        while True:
            rows = self._select(thread_id, before)
            if not rows:
                return None
            snapshot = _open(rows[0], self._encoder)
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
            drop_snapshots(self._recorder.datastore, [(thread_id, v) for v in damaged])
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


def is_due(state: Conversation, appended: Sequence[Event]) -> bool:
    """Return whether a snapshot is due after these events led to this state."""
    if any(isinstance(event, CompactionPerformed | CompactionReverted) for event in appended):
        return True
    before = state.version - len(appended)
    return state.older_live > 0 and state.version // EVERY > before // EVERY


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


def drop_snapshots(datastore: SQLiteDatastore, places: Iterable[tuple[str, int]]) -> None:
    """Remove these snapshots, and all whose columns do not identify them."""
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
    """Return whether the row is a snapshot that this version of refold should be able to read."""
    try:
        return parse_frame(row.state).shape == SHAPES[SNAPSHOT]
    except EnvelopeError:
        return True


def _seal(thread_id: str, state: Conversation, link: str, encoder: Encoder) -> StoredEvent:
    name, shape, payload = encode(state)
    place = Place(thread_id, state.version, name)
    # Next to a ciphertext, the digest must not be one that can be guessed.
    salt = secrets.token_hex(16) if encoder.encoding else "-"
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


BATCH = 1_000
"""Number of events in memory at once."""

Batches = Callable[[str, int, int | None, int], Iterator[list[RecordedEvent]]]
"""A function that reads the events of a stream between two versions, in batches of a given size."""
Envelopes = Callable[[str, int], Iterator[tuple[str, Envelope]]]
"""A function that reads the names and envelopes of a stream from a version on."""

_USER = b'"message":{"role":"user"'
_RESULT = b'"tool_result"'
_POSITION = b'{"position":'
_LETTERS = bytes(c if chr(c).isalpha() and c < 128 else 32 for c in bytes(range(256)).lower())
_APOSTROPHE = b"'"


class MessageReader:
    """The ``StoredMessages`` of one stream."""

    def __init__(self, thread_id: str, batches: Batches, envelopes: Envelopes) -> None:
        self._thread_id = thread_id
        self._batches = batches
        self._envelopes = envelopes

    def read(self, start: int, stop: int) -> Iterator[Entry]:
        """Yield the messages from position ``start`` up to ``stop``."""
        # The version of a message is at least the number of messages up to it.
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

    def scan(self, start: int, stop: int, words: Words, most: int) -> ScanResult:
        """Search the stored messages. The words are looked for in the stored bytes: nothing is decoded."""
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
        return ScanResult(digest.hexdigest(), frozenset(position for _, position in best))


def _position(payload: bytes) -> int | None:
    if not payload.startswith(_POSITION):
        return None
    number = payload[len(_POSITION) : payload.find(b",", len(_POSITION))]
    return int(number) if number.isdigit() else None


def _score(payload: bytes, words: Words) -> float:
    """Score the payload by its words. Model output and tool results score zero."""
    if _USER not in payload or _RESULT in payload:
        return 0.0
    said = words.promises.keys() & payload.translate(_LETTERS, _APOSTROPHE).split()
    best = max([words.promises[word] for word in said], default=0.0)
    if payload.isascii():
        return best
    return max(best, *(promise for word, promise in words.others if word in payload))


MOST_HELD = REMEMBERED + REMEMBERED // 4
"""Maximum number of messages kept in memory for a conversation that exceeds every context window.

Cuts are only made among the newest messages that the state remembers, and these are kept.
"""
LARGEST_WINDOW = 1_200_000
"""Maximum tokens of a context window of any model. Messages that fit it are kept in memory, however many
they are.
"""
MOST_DECISIONS = 64
"""Maximum number of decisions to search for one that changes what is shown."""
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
    """The messages that stay in the log, and the version from which on events are read."""

    run: StoredRun
    first: int


def stored_run(state: Conversation, read: ReadEvents, log: StoredMessages) -> Stored | None:
    """Return the older messages that can stay in the log, or None if they must be read.

    They can stay if no decision up to this state changes how they are shown.
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
    """Return whether a decision changes none of the messages before version ``first``, which are not read."""
    if decided.version >= first and isinstance(decided.event, MessageErased):
        return True  # The event contains the new size of what is left of the message.
    return isinstance(decided.event, HARMLESS)


def trim_window(window: Window, state: Conversation, log: StoredMessages) -> Window:
    """Return the window with only the newest messages in memory, if no model could read all of them."""
    entries = window.entries
    held = entries.newest if isinstance(entries, LongEntries) else entries
    if len(held) < MOST_HELD or state.live_tokens < LARGEST_WINDOW:
        return window
    return window.shelve(REMEMBERED, log)
