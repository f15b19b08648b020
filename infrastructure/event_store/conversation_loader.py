"""Fold a stream, read batch by batch, into a state and a window."""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple, TypeVar

from eventsourcing.persistence import StoredEvent

from refold.application.conversation.loaded import LoadedConversation
from refold.application.errors import LogDamaged, LogError, NewerLog
from refold.application.ports.conversation_log import LoggedEvent
from refold.application.projections.entries import LongEntries
from refold.application.projections.window import Window, must_reload, project, reverted_summaries
from refold.domain.conversation import Conversation
from refold.domain.events import (
    CompactionPerformed,
    Event,
    MessageAppended,
    MessageErased,
    MessagePinned,
    Shortening,
)
from refold.domain.evolve import fold
from refold.domain.notes import MemoriesChosen
from refold.infrastructure.sqlite.sqlite_failures import look_twice

from .anchor_check import HeldLog
from .codec import CodecError, NewerShape
from .envelope import GENESIS, Envelope, EnvelopeError, EventMapper, Place, RecordedEvent, link_of
from .recorder import Head, LogRecorder
from .snapshots import BATCH, MessageReader, SnapshotStore, stored_run, trim_window


class StreamFolding:
    """The state and the window folded so far. The window starts at the live messages."""

    def __init__(self, state: Conversation, undone: frozenset[str] = frozenset()) -> None:
        """Start from ``state``: that of a snapshot, or the initial one.

        ``undone`` has the compactions that are known to be reverted.
        """
        self.state = state
        self.window = Window()
        self.head = Head()
        self.link = ""
        """Link of the event that the state started from."""
        self.undone = undone
        self.lacks = False
        """True if the window lacks messages that a reverted compaction had covered."""
        self._version = state.version
        self._performed: set[str] = set()

    def begin(self, early: Sequence[Event]) -> None:
        """Fold the older events that are still shown."""
        self.window = project(self.window, early)

    def take(self, recorded: Sequence[RecordedEvent]) -> None:
        """Fold the next events."""
        events = [one.event for one in recorded]
        new = [one.event for one in recorded if one.originator_version > self._version]
        for one in recorded:
            if one.originator_version == self._version:
                self.link = one.link
        self._note_undone(events, new)
        if not self.lacks:
            self.window = project(self.window, events, self.undone)
        self.state = fold(new, self.state)
        self.head = Head(recorded[-1].originator_version, recorded[-1].link)

    def _note_undone(self, events: Sequence[Event], new: Sequence[Event]) -> None:
        # Behind a snapshot, what is undone may have covered what was never read; behind an earlier batch,
        # what was dropped from the window there.
        undone = frozenset(reverted_summaries(events)) - self.undone
        is_dropped = not self._performed.isdisjoint(undone)
        self.lacks = self.lacks or is_dropped or (self._version > 0 and must_reload(new))
        self.undone |= undone
        self._performed |= {e.summary_id for e in events if isinstance(e, CompactionPerformed)}


Answer = TypeVar("Answer")


class Stream(NamedTuple):
    """A loaded conversation and the head that the next event must follow."""

    loaded: LoadedConversation
    head: Head = Head()


class StreamLoader:
    """A loader of streams. It raises ``LogDamaged`` if an event is missing, changed or out of order."""

    def __init__(
        self,
        recorder: LogRecorder,
        mapper: EventMapper,
        snapshots: SnapshotStore,
        held: HeldLog,
        forget: Callable[[], None],
    ) -> None:
        """Create a loader. ``forget`` drops cached reads before a read that seems damaged is repeated."""
        self._recorder = recorder
        self._held = held
        self._mapper = mapper
        self._snapshots = snapshots
        self._forget = forget

    def load(self, thread_id: str, *, at: int | None = None) -> Stream:
        """Load the complete stream at version ``at``, or at the newest version."""
        return self._look(lambda: self._load_held(thread_id, at))

    def _load_held(self, thread_id: str, at: int | None) -> Stream:
        known = self._held.anchor.find(thread_id)
        stream = self._load(thread_id, at)
        self._held.hold(thread_id, known, stream.head, at)
        if at is None:
            self._snapshots.mend(thread_id, stream.loaded.state, stream.head.link)
        return stream

    def _load(self, thread_id: str, at: int | None) -> Stream:
        snapshot = self._snapshots.newest(thread_id, at)
        state = snapshot.state if snapshot else Conversation()
        run = self._read_on(StreamFolding(state), thread_id, at)
        if snapshot and run.link != snapshot.link:
            # The snapshot belongs to another history. It must not hide missing events.
            self._snapshots.distrust(thread_id, snapshot.version)
            return self._load(thread_id, at)
        while run.lacks:
            # A compaction was reverted, and it had covered messages before the part that was read.
            run = self._read_on(StreamFolding(run.state, run.undone), thread_id, at)
        return Stream(LoadedConversation(thread_id, run.state, run.window), run.head)

    def _look(self, look: Callable[[], Answer]) -> Answer:
        return look_twice(look, self._forget)

    def _read_on(self, run: StreamFolding, thread_id: str, at: int | None) -> StreamFolding:
        first = 1 if run.state.older_live else run.state.live_from
        run.begin([recorded.event for recorded in self._early(thread_id, run.state)])
        stored = stored_run(
            run.state, partial(self._read_logged, thread_id), self._messages(thread_id)
        )
        if stored is not None:
            first, run.window = stored.first, Window(LongEntries((), stored.run, ()))
        for recorded in self._batches(thread_id, first, at):
            run.take(recorded)
            run.window = trim_window(run.window, run.state, self._messages(thread_id))
        return run

    def _read_logged(self, thread_id: str, first: int, last: int) -> list[LoggedEvent]:
        return [recorded.logged() for recorded in self.read(thread_id, first, last)]

    def _messages(self, thread_id: str) -> MessageReader:
        return MessageReader(thread_id, self._batches, self._envelopes)

    def after(self, stream: Stream, events: Sequence[Event], head: Head) -> Stream:
        """Return the stream with these new events. None of them may revert a compaction."""
        loaded = stream.loaded.after(events)
        window = trim_window(loaded.window, loaded.state, self._messages(loaded.thread_id))
        return Stream(LoadedConversation(loaded.thread_id, loaded.state, window), head)

    def copied(self, loaded: LoadedConversation, into: str) -> LoadedConversation:
        """Return the conversation under the name of its copy."""
        window = loaded.window.read_from(self._messages(into))
        return LoadedConversation(into, loaded.state, window)

    def catch_up(self, stream: Stream) -> Stream:
        """Return the stream with the events appended since, after checking that its head is unchanged."""
        return self._look(lambda: self._caught_up(stream))

    def _caught_up(self, stream: Stream) -> Stream:
        thread_id, head = stream.loaded.thread_id, stream.head
        while True:
            rows = self._newer(thread_id, head)
            if not rows:
                return stream
            events: list[Event] = []
            for row in rows:
                recorded = open_row(self._mapper, row)
                follows(recorded, head.link, head.version)
                head = Head(recorded.originator_version, recorded.link)
                events.append(recorded.event)
            if must_reload(events):
                return self._load_held(thread_id, None)
            stream = self.after(stream, events, head)

    def _newer(self, thread_id: str, head: Head) -> Sequence[StoredEvent]:
        """Return the next events after the head."""
        rows = self._recorder.select_events(thread_id, gt=max(0, head.version - 1), limit=BATCH)
        if not head.version:
            return rows
        if not rows or link_of(rows[0]) != head.link:
            raise LogDamaged(thread_id, head.version, "the newest event was changed or removed")
        return rows[1:]

    def read(self, thread_id: str, first: int, last: int | None) -> list[RecordedEvent]:
        """Return the events from version ``first`` to ``last``, after checking that each follows the one
        before it.
        """
        batches = partial(self._batches, thread_id, first, last)
        return self._look(lambda: [event for batch in batches() for event in batch])

    def _batches(
        self, thread_id: str, first: int, last: int | None, size: int = BATCH
    ) -> Iterator[list[RecordedEvent]]:
        select = partial(self._recorder.select_events, thread_id)
        after, before, wanted = max(0, first - 2), None, first
        while True:
            recorded = self._open_rows(partial(select, gt=after, lte=last, limit=size))
            if not recorded:
                return
            if before is not None:
                follows(recorded[0], before.link, before.originator_version)
            elif recorded[0].originator_version == 1:
                follows(recorded[0], GENESIS)
            for one, event in pairwise(recorded):
                follows(event, one.link, one.originator_version)
            before = recorded[-1]
            after = before.originator_version
            found = [event for event in recorded if event.originator_version >= first]
            if found and found[0].originator_version != wanted:
                raise LogDamaged(thread_id, wanted, "the event is missing")
            if found:
                wanted = after + 1
                yield found
            if len(recorded) < size:
                return

    def _open_rows(self, select: Callable[[], Sequence[StoredEvent]]) -> list[RecordedEvent]:
        return self._look(lambda: [open_row(self._mapper, row) for row in select()])

    def _envelopes(self, thread_id: str, first: int) -> Iterator[tuple[str, Envelope]]:
        """Yield the names and checked envelopes of the events from version ``first`` on."""
        after = first - 1
        while found := self._look(partial(self._unseal_rows, thread_id, after)):
            yield from found
            after += len(found)

    def _unseal_rows(self, thread_id: str, after: int) -> list[tuple[str, Envelope]]:
        rows = self._recorder.rows_of(thread_id, after, BATCH)
        return [
            (name, unseal_row(self._mapper, Place(thread_id, version, name), state))
            for version, name, state in rows
        ]

    def read_at(self, thread_id: str, versions: Collection[int]) -> list[RecordedEvent]:
        """Return the existing events with these versions, each checked against the one before it."""
        return self._look(lambda: self._read_at(thread_id, versions))

    def _read_at(self, thread_id: str, versions: Collection[int]) -> list[RecordedEvent]:
        wanted = frozenset(versions)
        before = {version - 1 for version in wanted if version > 1}
        links = {0: GENESIS}
        found: list[RecordedEvent] = []
        for row in self._recorder.select_versions(thread_id, sorted(before | wanted)):
            version = row.originator_version
            if version in wanted:
                event = open_row(self._mapper, row)
                follows(event, links.get(version - 1))
                found.append(event)
                links[version] = event.link
            else:
                links[version] = link_of(row)
        return found

    def _early(self, thread_id: str, state: Conversation) -> list[RecordedEvent]:
        """Return the older events that are still shown.

        These are pinned messages and texts, decisions that shorten parts of messages, a summary that is
        active again, and the choice of quoted memories.
        """
        if state.older_live:
            return []  # In this case everything is read.
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
        found = {row.originator_version: open_row(self._mapper, row) for row in rows}
        for version in wanted:
            match found[version].event if version in found else None:
                case MessageAppended(message_id=message_id):
                    right = message_id == messages.get(version)
                case event if isinstance(event, Shortening | MessageErased):
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


def follows(event: RecordedEvent, link: str | None, version: int | None = None) -> None:
    """Check that an event directly follows the event with this link and version.

    Raises:
        LogDamaged: an event between them is missing, or the event follows another one.
    """
    if version is not None and event.originator_version != version + 1:
        raise LogDamaged(event.originator_id, version + 1, "the event is missing")
    if link is not None and event.previous != link:
        raise LogDamaged(
            event.originator_id, event.originator_version, "it does not follow the event before"
        )


def open_row(mapper: EventMapper, row: StoredEvent) -> RecordedEvent:
    """Decode a row. Raise ``LogDamaged`` with the place of the row if it is damaged."""
    try:
        return mapper.to_domain_event(row)
    except (EnvelopeError, CodecError) as error:
        place = Place(str(row.originator_id), row.originator_version, row.topic)
        raise _damage_error(place, error) from error


def unseal_row(mapper: EventMapper, place: Place, state: object) -> Envelope:
    """Check a row without decoding it. Raise ``LogDamaged`` with the place of the row if it is damaged."""
    try:
        return mapper.unsealed_columns(place, state)
    except EnvelopeError as error:
        raise _damage_error(place, error) from error


def open_columns(mapper: EventMapper, place: Place, state: object) -> tuple[Envelope, Event]:
    """Check and decode a row that is given as columns without its link."""
    try:
        return mapper.open(place, state)
    except (EnvelopeError, CodecError) as error:
        raise _damage_error(place, error) from error


def _damage_error(place: Place, error: EnvelopeError | CodecError) -> LogError:
    if isinstance(error, NewerShape):
        return NewerLog(f"{error}; install a newer refold to use this log")
    return LogDamaged(place.stream, place.version, str(error))
