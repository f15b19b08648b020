"""The log on SQLite: load by snapshot and newer events, append under a lock, read back and check."""

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import datetime
from functools import partial
from pathlib import Path

from eventsourcing.persistence import IntegrityError

from refold.application.conversation.loaded import LoadedConversation, must_reload
from refold.application.errors import LogDamaged, LogError
from refold.application.maintenance.maintenance_results import Compressed
from refold.application.ports.conversation_log import (
    Damage,
    Decision,
    ErasureDecision,
    Fork,
    LoggedEvent,
    Stored,
)
from refold.application.runtime.opening_process import OpeningProcess
from refold.domain.errors import RefoldError
from refold.domain.events import Event
from refold.infrastructure.maintenance.compressed_payloads import LogCompressor, old_versions
from refold.infrastructure.observability.log_observer import Notice, ignore
from refold.infrastructure.sqlite.sqlite_failures import look_twice, translate_errors

from .anchor import Mark
from .conversation_loader import RememberedStreams, Stream, StreamLoader, is_due
from .encryption import KeySource
from .envelope import EventMapper
from .erased_rows import Appended, StreamEraser
from .recorder import DurableDatastore, Row, seal_rows, stamp_of
from .snapshots import state_after_erasing
from .stream_copies import StreamCopier
from .stream_reads import SCAN_BATCH, StreamReader, read_complete, scan_events
from .turn_files import open_log_file

CONFLICTS = 20
"""Attempts to decide again after another program stored events without taking the lock."""


class SQLiteLog:
    """A ``ConversationLog`` in one SQLite file."""

    def __init__(
        self,
        path: str | Path,
        *,
        create: bool = True,
        anchor: bool = True,
        key: KeySource | None = None,
        notify: Callable[[Notice], None] = ignore,
    ) -> None:
        """Open the log at ``path``; ``":memory:"`` creates a log that exists as long as this object.

        ``anchor`` says whether to compare the log with an anchor file next to it and to keep that up to
        date. ``key`` encrypts new events.

        Raises:
            LogError: the path or the file is not suitable; see ``check_place`` and ``identify``.
            LogLocked: the log is encrypted, and the key is missing or wrong.
        """
        self.path = Path(path)
        self._process = OpeningProcess(str(path))
        self._closed = False
        opened = open_log_file(self.path, create=create, anchor=anchor, key=key, notify=notify)
        self._lock, self._datastore, self._recorder, encodings, mapper, snapshots = opened[:6]
        self._mapper, self._snapshots, self.held = mapper, snapshots, opened.held
        self.known, self._keys, self.turns = opened.known, opened.keys, opened.turns
        self._forget = self._datastore.forget_pages
        self._reader = StreamReader(self._recorder, mapper, self._forget)
        self._loader = StreamLoader(self._reader, snapshots, self.held)
        self._copier = StreamCopier(self._recorder, mapper)
        self._eraser = StreamEraser(self._recorder, mapper)
        self._compressor = LogCompressor(self._recorder, encodings, self._lock)
        self._remembered = RememberedStreams()

    def load(self, thread_id: str, *, at: int | None = None) -> LoadedConversation:
        """Load a conversation at version ``at``, or at the newest version."""
        with self._guard():
            if at is not None:
                return self._loader.load(thread_id, at=at).loaded
            return self._refresh(thread_id).loaded

    def transact(
        self, thread_id: str, decide: Decision, *, at: datetime
    ) -> tuple[LoadedConversation, tuple[Event, ...]]:
        """Decide on the current state of a conversation and append the resulting events."""
        stamp = stamp_of(at)
        with self._guard(), self._lock.held():
            for _ in range(CONFLICTS):
                stream, events = self._decide(thread_id, decide)
                if not events:
                    return stream.loaded, ()
                if not self.held.is_admitted:
                    self.held.admit()
                self.known.refuse(thread_id)
                try:
                    insert = partial(self._insert, stream, events, stamp)
                    stream = look_twice(insert, self._forget)
                except IntegrityError:
                    # Another writer appended after the cached state: reload and decide again.
                    self._refresh(thread_id)
                    continue
                self._remembered.put(thread_id, stream)
                if is_due(stream.loaded.state, events):
                    self._snapshots.take(thread_id, stream.loaded.state, stream.head.link)
                return stream.loaded, events
        raise self._overtaken_error()

    def erase(self, decide: ErasureDecision, *, at: datetime) -> Mapping[str, Stored]:
        """Erase content as decided, and return what was stored in each conversation."""
        with self._guard(), self._lock.held():
            for _ in range(CONFLICTS):
                streams: dict[str, Stream] = {}
                erasures = decide(partial(self._load_into, streams))
                if not erasures:
                    return {}
                self.held.admit()
                heads = {t: (streams[t].head, erasure) for t, erasure in erasures.items()}
                try:
                    appended = self._eraser.erase(heads, stamp_of(at))
                except IntegrityError:
                    continue
                return self._reload_erased(streams, appended)
        raise self._overtaken_error()

    def finish_erasures(self, drop: Callable[[], bool]) -> bool:
        """Remove older bytes of erased content from all files. Return whether nothing is left."""
        with self._guard():
            number = self._eraser.pending()
            if number is None:
                return True
            if not drop():
                return False
            self._compressor.renew_dictionaries()
            with self._lock.held():
                return self._eraser.finish(number)

    def newest(self) -> int:
        """Return the log position of the newest event."""
        with self._guard():
            return self._recorder.max_notification_id() or 0

    def fork(
        self, source: str, version: int, into: str, decide: Decision, *, at: datetime
    ) -> LoadedConversation:
        """Copy a conversation up to a version into a new one, and append the decided events."""
        with self._guard(), self._lock.held():
            with suppress(LogDamaged):  # Events before the damage can still be copied.
                self._refresh(source).loaded.present()
            before = self._loader.load(source, at=version).loaded
            self.held.admit()
            events = tuple(decide(before))
            copied = self._copier.copy(source, version, into, events, stamp_of(at))
            self.held.keep(into, copied.head)
            self._snapshots.copy(source, into, copied.links)
            if version not in copied.links:
                self._snapshots.take(into, before.state, copied.link)
            if must_reload(events):
                return self._refresh(into).loaded
            stream = Stream(self._loader.copied(before, into))
            stream = self._loader.after(stream, events, copied.head)
            self._remembered.put(into, stream)
            return stream.loaded

    def forks(self) -> Sequence[Fork]:
        """Return all forks in the log."""
        with self._guard():
            return self._copier.forks()

    def version_at(self, thread_id: str, moment: datetime) -> int:
        """Return the newest version that was logged at or before a moment."""
        with self._guard():
            return self._copier.version_at(thread_id, moment)

    def versions_of_keys(self, thread_id: str, keys: Sequence[str]) -> Mapping[str, int]:
        """Map those of these keys that are stored to the versions of their messages."""
        with self._guard():
            return self._keys.versions(thread_id, keys)

    def read(self, thread_id: str, first: int, last: int) -> Sequence[LoggedEvent]:
        """Return the events from version ``first`` to ``last``."""
        with self._guard():
            read = partial(self._reader.read, thread_id, first, last)
            return read_complete(
                thread_id, range(first, last + 1), read, partial(self._head, thread_id)
            )

    def read_at(self, thread_id: str, versions: Collection[int]) -> Sequence[LoggedEvent]:
        """Return the events with these versions."""
        with self._guard():
            read = partial(self._reader.read_at, thread_id, versions)
            return read_complete(thread_id, sorted(versions), read, partial(self._head, thread_id))

    def scan(self, after: int = 0) -> Iterator[LoggedEvent]:
        """Yield all events after a log position."""
        self._process.check()
        expected, anchored = self.held.anchor.changed(self.held.proved)
        seen: dict[str, int] = {}
        with self._guard():
            yield from scan_events(self._rows_after, self._mapper, after, seen, self._forget)
        if expected:
            self.held.prove(expected, seen, after)
        self.held.proved = anchored

    def check(self) -> Iterator[Damage]:
        """Yield all damage of the log."""
        with self._guard():
            yield from self.held.check(self._mapper).damage

    def compress(self, keep: int) -> Compressed:
        """Compress payloads, except for the newest ``keep`` events of each conversation."""
        with self._guard():
            old = old_versions(self._recorder, self._snapshots, self._loader, keep)
            return self._compressor.compress(old)

    def parts(self) -> tuple[DurableDatastore, EventMapper]:
        """Return the datastore and the mapper, for maintenance."""
        with self._guard():
            return self._datastore, self._mapper

    def writing(self, *, or_reading: bool = False) -> AbstractContextManager[None]:
        """Hold the lock of the writers. With ``or_reading``, hold nothing if the log cannot be written."""
        with self._guard():
            return nullcontext() if or_reading and self._lock.refuses else self._lock.held()

    def renew_keys(self) -> None:
        """Rebuild the index of keys from the events."""
        with self._guard(), self._lock.held():
            self._keys.renew_all()

    def close(self) -> None:
        """Close the log. Do nothing in a process that was forked from the one that opened it."""
        if not self._process.is_this:
            return
        self._closed = True
        self._remembered.clear()
        for part in (self.held.anchor, self.known, self._datastore, self._lock):
            part.close()

    @contextmanager
    def _guard(self) -> Generator[None]:
        """Check that the log is open here, convert errors, and record damage that a read finds."""
        self._process.check()
        if self._closed:
            raise LogError(f"{self.path} was closed; open it again to go on")
        try:
            with translate_errors(self.path):
                yield
        except LogDamaged as error:
            self.known.note_event(error.thread_id, error.version)
            raise

    def _overtaken_error(self) -> LogError:
        return LogError(
            f"{self.path}: another writer was faster {CONFLICTS} times; nothing was stored"
        )

    def _rows_after(self, number: int) -> Sequence[Row]:
        with self._guard():
            return self._recorder.rows_after(number, SCAN_BATCH)

    def _decide(self, thread_id: str, decide: Decision) -> tuple[Stream, tuple[Event, ...]]:
        # A cached state is good enough for a decision that leads to an insert: the insert fails if
        # the state is stale. A refusal or an empty decision needs the newest state.
        cached = self._remembered.find(thread_id)
        if cached is not None:
            with suppress(RefoldError):
                events = tuple(decide(cached.loaded))
                if events:
                    return cached, events
        stream = self._refresh(thread_id)
        return stream, tuple(decide(stream.loaded))

    def _head(self, thread_id: str) -> int:
        return self._refresh(thread_id).head.version

    def _refresh(self, thread_id: str) -> Stream:
        known = self._remembered.find(thread_id)
        stream = self._loader.load(thread_id) if known is None else self._loader.catch_up(known)
        self._remembered.put(thread_id, stream)
        return stream

    def _insert(self, stream: Stream, events: Sequence[Event], stamp: str) -> Stream:
        thread_id = stream.loaded.thread_id
        rows, keys, head = seal_rows(self._mapper, thread_id, stream.head, events, stamp)
        follows = {thread_id: stream.head}
        numbers = self._recorder.insert_events(rows, keys=keys, follows=follows)
        if numbers:
            self.held.anchor.keep(Mark(thread_id, *head, numbers[-1]), self.held.marks)
        else:
            self.held.keep(thread_id, head)
        if must_reload(events):
            return self._loader.load(thread_id)
        return self._loader.after(stream, events, head)

    def _load_into(self, streams: dict[str, Stream], thread_id: str) -> LoadedConversation:
        if thread_id not in streams:
            streams[thread_id] = self._refresh(thread_id)
        return streams[thread_id].loaded

    def _reload_erased(
        self, before: Mapping[str, Stream], appended: Mapping[str, Appended]
    ) -> Mapping[str, Stored]:
        self._remembered.forget(appended)
        self.held.keep_all({t: (one.head, one.number) for t, one in appended.items()})
        stored: dict[str, Stored] = {}
        for thread_id, (events, head, _) in appended.items():
            state = state_after_erasing(before[thread_id].loaded.state, events)
            state = state or self._loader.load(thread_id).loaded.state
            self._snapshots.take(thread_id, state, head.link)
            stream = self._refresh(thread_id)
            stored[thread_id] = Stored(stream.loaded, events)
        return stored
