"""Loading a stream: from the snapshot and the live tail, checking each link on the way."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from eventsourcing.persistence import StoredEvent

from refold.application.errors import LogDamaged, NewerLog
from refold.application.loaded import LoadedConversation
from refold.application.projections.window import Window, project
from refold.domain.conversation import Conversation, LiveMessage, fold
from refold.domain.events import Event, MessageAppended

from .codec import CodecError, NewerShape
from .envelope import EnvelopeError
from .mapper import EventMapper, RecordedEvent, link_of
from .snapshots import SnapshotStore
from .sqlite import Head, LogRecorder

SINGLES = 64
"""At most so many messages from before the snapshot are read one by one, else all in one go."""


class Stream(NamedTuple):
    """A loaded conversation and the head that the next event must follow."""

    loaded: LoadedConversation
    head: Head = Head()


class StreamLoader:
    """Reads streams. Raises ``LogDamaged`` where an event is missing, changed or out of line."""

    def __init__(
        self, recorder: LogRecorder, mapper: EventMapper, snapshots: SnapshotStore
    ) -> None:
        self._recorder = recorder
        self._mapper = mapper
        self._snapshots = snapshots

    def load(
        self, thread_id: str, *, at: int | None = None, snapshot_before: int | None = None
    ) -> Stream:
        """The stream at version ``at``, or now."""
        newest = _least(at, snapshot_before)
        snapshot = self._snapshots.newest(thread_id, newest)
        if snapshot is None:
            head, state, begin = Head(), Conversation(), 0
        else:
            head, state, begin = Head(snapshot.version, snapshot.link), snapshot.state, 1
        rows = self._recorder.select_events(thread_id, gt=head.version - begin, lte=at)
        if begin:
            if not rows or link_of(rows[0]) != head.link:
                # The snapshot is of another history: never let it stand for missing events.
                self._snapshots.distrust(thread_id, head.version)
                return self.load(thread_id, at=at, snapshot_before=head.version - 1)
            rows = rows[1:]
        events, head = self._follow(thread_id, head, rows)
        state = fold(events, state)
        early = self._before(thread_id, state, snapshot.version) if snapshot else []
        window = project(project(Window(), early), events)
        return Stream(LoadedConversation(thread_id, state, window), head)

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
        events, head = self._follow(thread_id, head, rows)
        return Stream(stream.loaded.after(events), head)

    def read(self, thread_id: str, first: int, last: int) -> list[RecordedEvent]:
        """The events from version ``first`` to ``last``, each following the one before it."""
        rows = self._recorder.select_events(thread_id, gt=max(0, first - 2), lte=last)
        recorded = [opened(self._mapper, row) for row in rows]
        for before, event in pairwise(recorded):
            follows(event, before.link, before.originator_version)
        found = [event for event in recorded if event.originator_version >= first]
        if found and found[0].originator_version != first:
            raise LogDamaged(thread_id, first, "the event is missing")
        return found

    def _follow(
        self, thread_id: str, head: Head, rows: Sequence[StoredEvent]
    ) -> tuple[list[Event], Head]:
        events: list[Event] = []
        for row in rows:
            recorded = opened(self._mapper, row)
            follows(recorded, head.link, head.version)
            head = Head(recorded.originator_version, recorded.link)
            events.append(recorded.event)
        return events, head

    def _before(self, thread_id: str, state: Conversation, base: int) -> list[Event]:
        """The messages that are live although they lie before the snapshot: kept on purpose."""
        early = [m for m in state.live if m.version <= base]
        if len(early) > SINGLES or state.older_live:
            recorded = self.read(thread_id, 1, base)
        else:
            recorded = [self._single(thread_id, message) for message in early]
        covers = state.summary.coverage.covers if state.summary else _nothing
        events = (r.event for r in recorded)
        return [e for e in events if isinstance(e, MessageAppended) and not covers(e.position)]

    def _single(self, thread_id: str, message: LiveMessage) -> RecordedEvent:
        for recorded in self.read(thread_id, message.version, message.version):
            event = recorded.event
            if isinstance(event, MessageAppended) and event.message_id == message.message_id:
                return recorded
        raise LogDamaged(thread_id, message.version, "the event is missing or another one")


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
    except NewerShape as error:
        raise NewerLog(f"{error}; install a newer refold to use this log") from error
    except (EnvelopeError, CodecError) as error:
        raise LogDamaged(str(row.originator_id), row.originator_version, str(error)) from error


def _least(*versions: int | None) -> int | None:
    known = [v for v in versions if v is not None]
    return min(known) if known else None


def _nothing(position: int) -> bool:
    return False
