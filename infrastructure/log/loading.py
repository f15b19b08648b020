"""Loading a stream: from the snapshot and the live tail, checking each link on the way."""

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import NamedTuple

from eventsourcing.persistence import StoredEvent

from refold.application.errors import LogDamaged, LogError, NewerLog
from refold.application.loaded import LoadedConversation
from refold.application.projections.window import Window, must_reload, project
from refold.domain.conversation import Conversation
from refold.domain.events import (
    CompactionPerformed,
    Event,
    MessageAppended,
    MessageErased,
    MessagePinned,
    MessagesCondensed,
    ToolContentOffloaded,
)
from refold.domain.folding import fold
from refold.domain.remembering import MemoriesChosen

from .anchoring import HeldLog
from .file.sqlite import Head, LogRecorder
from .snapshots import SnapshotStore
from .stored.codec import CodecError, NewerShape
from .stored.envelope import GENESIS, Envelope, EnvelopeError, Place
from .stored.mapper import EventMapper, RecordedEvent, link_of


class Stream(NamedTuple):
    """A loaded conversation and the head that the next event must follow."""

    loaded: LoadedConversation
    head: Head = Head()


class StreamLoader:
    """Reads streams. Raises ``LogDamaged`` where an event is missing, changed or out of line."""

    def __init__(
        self,
        recorder: LogRecorder,
        mapper: EventMapper,
        snapshots: SnapshotStore,
        held: HeldLog,
    ) -> None:
        self._recorder = recorder
        self._held = held
        self._mapper = mapper
        self._snapshots = snapshots

    def load(self, thread_id: str, *, at: int | None = None) -> Stream:
        """The stream at version ``at``, or now; nothing of it may be missing."""
        known = self._held.anchor.find(thread_id)
        stream = self._load(thread_id, at)
        self._held.hold(thread_id, known, stream.head, at)
        if at is None:
            self._snapshots.mend(thread_id, stream.loaded.state, stream.head.link)
        return stream

    def _load(self, thread_id: str, at: int | None) -> Stream:
        snapshot = self._snapshots.newest(thread_id, at)
        if snapshot is None:
            events = self.read(thread_id, 1, at)
            return _stream(thread_id, fold(e.event for e in events), events)
        live = self._live(thread_id, snapshot.state, at)
        behind = snapshot.version - live[0].originator_version + 1 if live else 0
        if not 0 < behind <= len(live) or live[behind - 1].link != snapshot.link:
            # The snapshot is of another history: never let it stand for missing events.
            self._snapshots.distrust(thread_id, snapshot.version)
            return self._load(thread_id, at)
        tail = [recorded.event for recorded in live[behind:]]
        state, early = fold(tail, snapshot.state), snapshot.state
        if must_reload(tail):
            live, early = self._live(thread_id, state, at), state
        return _stream(thread_id, state, [*self._early(thread_id, early), *live])

    def _live(self, thread_id: str, state: Conversation, at: int | None) -> list[RecordedEvent]:
        return self.read(thread_id, 1 if state.older_live else state.live_from, at)

    def catch_up(self, stream: Stream) -> Stream:
        """The stream with what was appended since, after a check that its head still stands."""
        thread_id, head = stream.loaded.thread_id, stream.head
        rows = self._recorder.select_events(thread_id, gt=max(0, head.version - 1))
        if head.version:
            if not rows or link_of(rows[0]) != head.link:
                raise LogDamaged(
                    thread_id, head.version, "the newest event was changed or removed since"
                )
            rows = rows[1:]
        if not rows:
            return stream
        events: list[Event] = []
        for row in rows:
            recorded = opened(self._mapper, row)
            follows(recorded, head.link, head.version)
            head = Head(recorded.originator_version, recorded.link)
            events.append(recorded.event)
        if must_reload(events):
            return self.load(thread_id)
        return Stream(stream.loaded.after(events), head)

    def read(self, thread_id: str, first: int, last: int | None) -> list[RecordedEvent]:
        """The events from version ``first`` to ``last``, each following the one before it."""
        rows = self._recorder.select_events(thread_id, gt=max(0, first - 2), lte=last)
        recorded = [opened(self._mapper, row) for row in rows]
        if recorded and recorded[0].originator_version == 1:
            follows(recorded[0], GENESIS)
        for before, event in pairwise(recorded):
            follows(event, before.link, before.originator_version)
        found = [event for event in recorded if event.originator_version >= first]
        if found and found[0].originator_version != first:
            raise LogDamaged(thread_id, first, "the event is missing")
        return found

    def read_at(self, thread_id: str, versions: Collection[int]) -> list[RecordedEvent]:
        """The events with these versions that are there, each following the one before it."""
        wanted = frozenset(versions)
        before = {version - 1 for version in wanted if version > 1}
        links = {0: GENESIS}
        found: list[RecordedEvent] = []
        for row in self._recorder.select_versions(thread_id, sorted(before | wanted)):
            version = row.originator_version
            if version in wanted:
                event = opened(self._mapper, row)
                follows(event, links.get(version - 1))
                found.append(event)
                links[version] = event.link
            else:
                links[version] = link_of(row)
        return found

    def _early(self, thread_id: str, state: Conversation) -> list[RecordedEvent]:
        """What lies before the live messages and is still shown: messages that are kept on purpose,
        the decisions that shorten parts of them, pinned texts, a summary that is active again, and the
        choice of the memories that are quoted.
        """
        if state.older_live:
            return []  # Then everything is read.
        before = state.live_from
        messages = {m.version: m.message_id for m in state.live if m.version < before}
        decisions = {v for m in state.live if m.version < before for v in m.offloads if v < before}
        pins = {
            pin.version: pin.pin_id for pin in state.pins if pin.tokens and pin.version < before
        }
        summaries = {s.version: s.summary_id for s in (state.summary,) if s and s.version < before}
        chosen = {state.memories_at} if 0 < state.memories_at < before else set[int]()
        wanted = sorted({*messages, *decisions, *pins, *summaries, *chosen})
        if not wanted:
            return []
        rows = self._recorder.select_versions(thread_id, wanted)
        found = {row.originator_version: opened(self._mapper, row) for row in rows}
        for version in wanted:
            match found[version].event if version in found else None:
                case MessageAppended(message_id=message_id):
                    right = message_id == messages.get(version)
                case ToolContentOffloaded() | MessagesCondensed() | MessageErased():
                    right = version in decisions
                case MessagePinned(pin_id=pin_id):
                    right = pin_id == pins.get(version)
                case CompactionPerformed(summary_id=summary_id):
                    right = summary_id == summaries.get(version)
                case MemoriesChosen():
                    right = version in chosen
                case _:
                    right = False
            if not right:
                raise LogDamaged(thread_id, version, "the event is missing or another one")
        return list(found.values())


def _stream(thread_id: str, state: Conversation, events: Sequence[RecordedEvent]) -> Stream:
    """A stream of which the window is made from ``events``, the newest event the last of them."""
    window = project(Window(), [recorded.event for recorded in events])
    newest = events[-1] if events else None
    head = Head(newest.originator_version, newest.link) if newest else Head()
    return Stream(LoadedConversation(thread_id, state, window), head)


def follows(event: RecordedEvent, link: str | None, version: int | None = None) -> None:
    """Check that an event comes right after the one with this link and version.

    Raises:
        LogDamaged: an event between them is missing, or it follows another one.
    """
    if version is not None and event.originator_version != version + 1:
        raise LogDamaged(event.originator_id, version + 1, "the event is missing")
    if link is not None and event.previous != link:
        raise LogDamaged(
            event.originator_id, event.originator_version, "it does not follow the event before"
        )


def opened(mapper: EventMapper, row: StoredEvent) -> RecordedEvent:
    """Open a row; damage becomes an error of the log that names the place."""
    try:
        return mapper.to_domain_event(row)
    except (EnvelopeError, CodecError) as error:
        place = Place(str(row.originator_id), row.originator_version, row.topic)
        raise _refused(place, error) from error


def opened_columns(mapper: EventMapper, place: Place, state: object) -> tuple[Envelope, Event]:
    """The same for a row that comes as its columns, without its link."""
    try:
        return mapper.open(place, state)
    except (EnvelopeError, CodecError) as error:
        raise _refused(place, error) from error


def _refused(place: Place, error: EnvelopeError | CodecError) -> LogError:
    if isinstance(error, NewerShape):
        return NewerLog(f"{error}; install a newer refold to use this log")
    return LogDamaged(place.stream, place.version, str(error))
