"""Loading a stream: from the snapshot and the live tail, checking each link on the way."""

from collections.abc import Sequence
from typing import NamedTuple

from eventsourcing.persistence import StoredEvent

from refold.application.errors import LogDamaged, NewerLog
from refold.application.loaded import LoadedConversation
from refold.application.projections.window import Window, project
from refold.domain.conversation import Conversation, fold
from refold.domain.events import Event

from .codec import CodecError, NewerShape
from .envelope import EnvelopeError
from .mapper import EventMapper, RecordedEvent, link_of
from .snapshots import SnapshotStore
from .sqlite import Head, LogRecorder

SINGLES = 64
"""At most so many messages from before the snapshot are read one by one."""


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
        base = snapshot.version if snapshot else 0
        if base and _reaches_before(state, base):
            return self.load(thread_id, at=at, snapshot_before=state.live_from - 1)
        early = [m.version for m in state.live if m.version <= base]
        window = project(Window(), self._singles(thread_id, early))
        return Stream(LoadedConversation(thread_id, state, project(window, events)), head)

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

    def _follow(
        self, thread_id: str, head: Head, rows: Sequence[StoredEvent]
    ) -> tuple[list[Event], Head]:
        events: list[Event] = []
        for row in rows:
            recorded = opened(self._mapper, row)
            if recorded.originator_version != head.version + 1:
                raise LogDamaged(thread_id, head.version + 1, "the event is missing")
            if recorded.previous != head.link:
                raise LogDamaged(
                    thread_id, recorded.originator_version, "it does not follow the event before"
                )
            head = Head(recorded.originator_version, recorded.link)
            events.append(recorded.event)
        return events, head

    def _singles(self, thread_id: str, versions: Sequence[int]) -> list[Event]:
        events: list[Event] = []
        for version in versions:
            rows = self._recorder.select_events(thread_id, gt=version - 1, lte=version)
            if not rows:
                raise LogDamaged(thread_id, version, "the event is missing")
            events.append(opened(self._mapper, rows[0]).event)
        return events


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


def _reaches_before(state: Conversation, base: int) -> bool:
    # The live part begins before the snapshot, for more than a few messages that are kept on purpose.
    early = sum(1 for m in state.live if m.version <= base)
    return bool(state.older_live) or early > SINGLES
