"""Load a conversation: fold its stream into a state and a window, and remember it for the next call."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from refold.application.conversation.entries import LongEntries
from refold.application.conversation.loaded import (
    LoadedConversation,
    Window,
    must_reload,
    project,
    reverted_summaries,
)
from refold.application.errors import LogDamaged
from refold.application.ports.conversation_log import LoggedEvent
from refold.domain.conversation import Conversation
from refold.domain.events import (
    CompactionPerformed,
    CompactionReverted,
    Event,
    LinesRecalled,
    MessageAppended,
    MessageErased,
    MessagePinned,
    Shortening,
)
from refold.domain.evolve import REMEMBERED, are_messages, fold
from refold.domain.notes import MemoriesChosen
from refold.domain.value import build_unvalidated
from refold.infrastructure.sqlite.sqlite_failures import look_twice

from .anchor import Anchored
from .envelope import Place, RecordedEvent, link_in
from .recorder import Head, Plain
from .snapshots import SnapshotStore
from .stored_messages import LARGEST_WINDOW, MOST_HELD, MessageReader, stored_run
from .stream_reads import BATCH, StreamReader, follows, record_row

Read = Callable[[], Sequence[LoggedEvent]]
"""Reads events of one stream."""


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


class Holding(Protocol):
    """A source outside the log that knows the newest events."""

    def known(self, thread_id: str) -> Anchored | None:
        """Return the newest event of a conversation, or None. It is called before the log is read."""
        ...

    def hold(self, thread_id: str, known: Anchored | None, head: Head, at: int | None) -> None:
        """Reject a load that ended at ``head`` if ``known`` is a newer event."""
        ...


class StreamLoader:
    """A loader of streams. It raises ``LogDamaged`` if an event is missing, changed or out of order."""

    def __init__(self, reader: StreamReader, snapshots: SnapshotStore, held: Holding) -> None:
        self._reader = reader
        self._snapshots = snapshots
        self._held = held
        # Also prepares the class in the thread that opens the log, before the first load or append.
        self._initial = build_unvalidated(Conversation)

    def new(self, thread_id: str) -> Stream:
        """Return a conversation without events."""
        return Stream(LoadedConversation(thread_id, self._initial, Window()))

    def load(self, thread_id: str, *, at: int | None = None) -> Stream:
        """Load the complete stream at version ``at``, or at the newest version."""
        return self._look(lambda: self._load_held(thread_id, at))

    def _load_held(self, thread_id: str, at: int | None) -> Stream:
        known = self._held.known(thread_id)
        stream = self._load(thread_id, at)
        self._held.hold(thread_id, known, stream.head, at)
        if at is None:
            self._snapshots.mend(thread_id, stream.loaded.state, stream.head.link)
        return stream

    def _load(self, thread_id: str, at: int | None) -> Stream:
        snapshot = self._snapshots.newest(thread_id, at)
        if snapshot and not snapshot.version:
            return self.new(thread_id)
        state = snapshot.state if snapshot else self._initial
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
        return look_twice(look, self._reader.forget)

    def _read_on(self, run: StreamFolding, thread_id: str, at: int | None) -> StreamFolding:
        first = 1 if run.state.older_live else run.state.live_from
        run.begin([recorded.event for recorded in self._early(thread_id, run.state)])
        stored = stored_run(self._reader, thread_id, run.state)
        if stored is not None:
            first, run.window = stored.first, Window(LongEntries((), stored.run, ()))
        for recorded in self._reader.batches(thread_id, first, at):
            run.take(recorded)
            run.window = self._trim(run.window, run.state, thread_id)
        return run

    def after(self, stream: Stream, events: Sequence[Event], head: Head) -> Stream:
        """Return the stream with these new events. None of them may revert a compaction."""
        loaded = stream.loaded.after(events)
        window = self._trim(loaded.window, loaded.state, loaded.thread_id)
        if window is not loaded.window:
            loaded = LoadedConversation(loaded.thread_id, loaded.state, window)
        return Stream(loaded, head)

    def _trim(self, window: Window, state: Conversation, thread_id: str) -> Window:
        """Return the window with only the newest messages in memory, if no model could read all of them."""
        entries = window.entries
        held = entries.newest if isinstance(entries, LongEntries) else entries
        if len(held) < MOST_HELD or state.live_tokens < LARGEST_WINDOW:
            return window
        return window.shelve(REMEMBERED, MessageReader(self._reader, thread_id))

    def copied(self, loaded: LoadedConversation, into: str) -> LoadedConversation:
        """Return the conversation under the name of its copy."""
        window = loaded.window.read_from(MessageReader(self._reader, into))
        return LoadedConversation(into, loaded.state, window)

    def catch_up(self, stream: Stream) -> Stream:
        """Return the stream with the events appended since, after checking that its head is unchanged."""
        return self._look(lambda: self._caught_up(stream))

    def _caught_up(self, stream: Stream) -> Stream:
        thread_id, head = stream.loaded.thread_id, stream.head
        if head.version and self._reader.recorder.is_newest(thread_id, head):
            return stream
        while True:
            rows = self._newer(thread_id, head)
            if not rows:
                return stream
            events: list[Event] = []
            for version, name, state in rows:
                recorded = record_row(self._reader.mapper, Place(thread_id, version, name), state)
                follows(recorded, head.link, head.version)
                head = Head(recorded.originator_version, recorded.link)
                events.append(recorded.event)
            if must_reload(events):
                return self._load_held(thread_id, None)
            stream = self.after(stream, events, head)

    def _newer(self, thread_id: str, head: Head) -> Sequence[Plain]:
        """Return the next events after the head."""
        rows = self._reader.recorder.rows_of(thread_id, max(0, head.version - 1), BATCH)
        if not head.version:
            return rows
        if not rows or link_in(rows[0][-1]) != head.link:
            raise LogDamaged(thread_id, head.version, "the newest event was changed or removed")
        return rows[1:]

    def _early(self, thread_id: str, state: Conversation) -> list[RecordedEvent]:
        """Return the older events that are still shown.

        These are pinned messages and texts, decisions that shorten parts of messages, recalled lines, a
        summary that is active again, and the choice of quoted memories.
        """
        if state.older_live:
            return []  # In this case everything is read.
        before = state.live_from
        messages = {m.version: m.message_id for m in state.live if m.version < before}
        decisions = {v for m in state.live if m.version < before for v in m.offloads if v < before}
        recalled = {m.recalled_at for m in state.live if m.version < before and m.recalled_at}
        pins = {
            pin.version: pin.pin_id for pin in state.pins if pin.tokens and pin.version < before
        }
        summaries = {s.version: s.summary_id for s in (state.summary,) if s and s.version < before}
        chosen = {state.memories_at} if 0 < state.memories_at < before else set[int]()
        recalled = {version for version in recalled if version < before}
        wanted = sorted({*messages, *decisions, *recalled, *pins, *summaries, *chosen})
        if not wanted:
            return []
        found = {
            version: record_row(self._reader.mapper, Place(thread_id, version, name), state)
            for version, name, state in self._reader.recorder.rows_at(thread_id, wanted)
        }
        for version in wanted:
            match found[version].event if version in found else None:
                case MessageAppended(message_id=message_id):
                    right = message_id == messages.get(version)
                case event if isinstance(event, Shortening | MessageErased):
                    right = version in decisions
                case LinesRecalled():
                    right = version in recalled
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


EVERY = 16_384
"""Events between two snapshots of a conversation that has too many messages to remember all."""


def is_due(state: Conversation, appended: Sequence[Event]) -> bool:
    """Return whether a snapshot is due after these events led to this state."""
    if not are_messages(appended) and any(
        isinstance(event, (CompactionPerformed, CompactionReverted)) for event in appended
    ):
        return True
    before = state.version - len(appended)
    return state.older_live > 0 and state.version // EVERY > before // EVERY


CAPACITY = 64
"""Maximum number of remembered conversations; the least recently used is dropped first."""


class RememberedStreams:
    """Loaded conversations by thread id. They may be behind the log. Threads may share this object."""

    def __init__(self) -> None:
        self._streams: OrderedDict[str, Stream] = OrderedDict()
        self._threads = threading.Lock()

    def find(self, thread_id: str) -> Stream | None:
        """Return the conversation as it was last stored here, or None."""
        return self._streams.get(thread_id)

    def put(self, thread_id: str, stream: Stream) -> None:
        """Remember the conversation in its current state."""
        with self._threads:
            self._streams[thread_id] = stream
            self._streams.move_to_end(thread_id)
            if len(self._streams) > CAPACITY:
                self._streams.popitem(last=False)

    def forget(self, thread_ids: Iterable[str]) -> None:
        """Remove these conversations."""
        with self._threads:
            for thread_id in thread_ids:
                self._streams.pop(thread_id, None)

    def clear(self) -> None:
        """Remove all conversations."""
        self._streams.clear()


def read_all(
    thread_id: str,
    wanted: Sequence[int],
    read: Read,
    head: Callable[[], int],
) -> Sequence[LoggedEvent]:
    """Return the events that ``read`` returns, after checking that all ``wanted`` versions are among them.

    Versions after ``head()``, the newest version of the stream, may be missing.

    Raises:
        LogDamaged: an event is missing.
    """
    lacking: int | None = None
    while True:
        found = read()
        missing = _first_missing(found, wanted)
        if missing is None or missing > head():
            return found
        if missing == lacking:
            raise LogDamaged(thread_id, missing, "the event is missing")
        # Another process may have appended it between the two reads.
        lacking = missing


def _first_missing(found: Sequence[LoggedEvent], wanted: Sequence[int]) -> int | None:
    if len(found) == len(wanted):
        return None
    there = {event.version for event in found}
    return next((version for version in wanted if version not in there), None)
