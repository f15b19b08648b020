"""A log of stored events: load by snapshot and newer events, decide on the newest state, append and erase.

What differs between stores is behind its recorder and the methods that a subclass must have.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from eventsourcing.persistence import IntegrityError

from refold.application.conversation.loaded import LoadedConversation, must_reload
from refold.application.errors import LogDamaged, LogError, was_closed
from refold.application.ports.conversation_log import (
    PAGE,
    Decision,
    Erasure,
    ErasureDecision,
    Fork,
    LoggedEvent,
    Stored,
)
from refold.application.runtime.opening_process import OpeningProcess
from refold.domain.errors import RefoldError
from refold.domain.events import Event
from refold.infrastructure.sqlite.sqlite_failures import look_twice

from .conversation_loader import Read, RememberedStreams, Stream, StreamLoader, is_due, read_all
from .envelope import EventMapper, link_in
from .message_keys import StoredKeys
from .recorder import Head, Row, SealedRows, seal_rows, stamp_of
from .snapshots import SnapshotStore, state_after_erasing
from .stream_reads import StreamReader, scan_events

if TYPE_CHECKING:
    from .stream_copies import Copied, StreamCopier

CONFLICTS = 20
"""Attempts to decide again after another writer was faster."""


class Appended(NamedTuple):
    """The events that were appended to a stream by an erasure."""

    events: tuple[Event, ...]
    head: Head
    number: int | None
    """Log position of the last event, or None if it is not known."""


class Eraser(Protocol):
    """The part of an erasure that changes stored rows."""

    def erase(
        self, erasures: Mapping[str, tuple[Head, Erasure]], stamp: str
    ) -> Mapping[str, Appended]:
        """Erase in all of these streams and append to each its event, or change nothing."""
        ...


class LogParts(NamedTuple):
    """The parts that a log works with."""

    mapper: EventMapper
    reader: StreamReader
    loader: StreamLoader
    snapshots: SnapshotStore
    copier: "StreamCopier"
    eraser: Eraser
    keys: StoredKeys


R = TypeVar("R")
Decided = tuple[LoadedConversation, tuple[Event, ...]]
"""The conversation after a decision, and the events that were stored."""


class _Done(NamedTuple, Generic[R]):
    """Work that the end of a transaction stores."""

    result: R
    heads: Mapping[str, Head]
    """Newest event of each stream that it appended to."""


class Ready(NamedTuple):
    """Events that were decided on and sealed, and can be inserted."""

    before: Stream
    events: tuple[Event, ...]
    sealed: SealedRows
    after: Stream | None
    """The stream with the events, or None if it must be loaded."""

    @property
    def thread_id(self) -> str:
        """Name of the stream."""
        return self.before.loaded.thread_id

    def answer(self) -> "Decided":
        """Return the result of the decision, once it is stored."""
        assert self.after is not None
        return self.after.loaded, self.events

    @property
    def may_share(self) -> bool:
        """True if nothing else must be stored after the commit, so that it may be one with other appends."""
        return self.after is not None and not is_due(self.after.loaded.state, self.events)

    def done(self) -> "_Done[tuple[Stream, tuple[Event, ...]]] | None":
        """Return the result of storing it, or None if the stream must be loaded."""
        if self.after is None:
            return None
        return _Done((self.after, self.events), {self.thread_id: self.after.head})


class Alone(Protocol):
    """Stores an append in a commit of its own. The lock of the writers is held."""

    def __call__(self, ready: Ready | None, *, is_doubtful: bool = False) -> "Decided":
        """Store it. ``ready`` is None if it must be decided again; ``is_doubtful``: it may be stored already."""
        ...


class StoredLog(ABC):
    """The part of a ``ConversationLog`` that does not depend on the store."""

    def __init__(self, shown: str, parts: LogParts) -> None:
        """Create a log. ``shown`` names it for people."""
        self._shown = shown
        self._parts = parts
        self._process = OpeningProcess(shown)
        self._closed = False
        self._remembered = RememberedStreams()

    def load(self, thread_id: str, *, at: int | None = None) -> LoadedConversation:
        """Load a conversation at version ``at``, or at the newest version."""
        with self._guard():
            if at is not None:
                return self._parts.loader.load(thread_id, at=at).loaded
            return self._refresh(thread_id).loaded

    def transact(
        self, thread_id: str, decide: Decision, *, at: datetime
    ) -> tuple[LoadedConversation, tuple[Event, ...]]:
        """Decide on the current state of a conversation and append the resulting events."""
        stamp = stamp_of(at)
        with self._guard():
            # Everything that needs no lock comes first: others wait only for the insert.
            ready = self._ready(thread_id, decide, stamp)
            return self._in_turn(ready, partial(self._store_alone, thread_id, decide, stamp))

    def _in_turn(self, ready: Ready | None, alone: Alone) -> Decided:
        """Store an append when it is the turn of this thread."""
        with self._writing():
            return alone(ready)

    def _store_alone(
        self,
        thread_id: str,
        decide: Decision,
        stamp: str,
        ready: Ready | None,
        *,
        is_doubtful: bool = False,
    ) -> "Decided":
        before = ready.done() if ready is not None and is_doubtful else None
        for tries in range(CONFLICTS):
            try:
                done = self._store_once(
                    lambda: self._alone(thread_id, tries),  # noqa: B023 (called in this round)
                    partial(self._decide_and_insert, thread_id, decide, stamp, ready),
                    before,
                )
            except IntegrityError:
                # Another writer appended after the state that was decided on: decide again.
                ready = before = None
                continue
            stream, events = done.result
            if events:
                self._remembered.put(thread_id, stream)
                if is_due(stream.loaded.state, events):
                    self._parts.snapshots.take(thread_id, stream.loaded.state, stream.head.link)
            return stream.loaded, events
        raise self._overtaken_error()

    def _ready(self, thread_id: str, decide: Decision, stamp: str) -> Ready | None:
        """Return what to insert according to the remembered state, or None if that decides on no event.

        It is good enough for a decision that leads to an insert: the insert fails if the state is stale. A
        refusal or an empty decision needs the newest state.
        """
        cached = self._presumed(thread_id)
        if cached is not None:
            with suppress(RefoldError):
                if events := tuple(decide(cached.loaded)):
                    return self._prepare(cached, events, stamp)
        return None

    def _prepare(self, stream: Stream, events: tuple[Event, ...], stamp: str) -> Ready:
        thread_id = stream.loaded.thread_id
        sealed = seal_rows(self._parts.mapper, thread_id, stream.head, events, stamp)
        if must_reload(events):
            return Ready(stream, events, sealed, None)
        return Ready(stream, events, sealed, self._parts.loader.after(stream, events, sealed.head))

    def _decide_and_insert(
        self, thread_id: str, decide: Decision, stamp: str, ready: Ready | None
    ) -> "_Done[tuple[Stream, tuple[Event, ...]]]":
        known = self._remembered.find(thread_id)
        if ready is not None and known is not ready.before and (known or ready.before.head.version):
            ready = self._ready(thread_id, decide, stamp)  # Another thread has appended since.
        if ready is None:
            stream = self._refresh(thread_id)
            if not (events := tuple(decide(stream.loaded))):
                return _Done((stream, ()), {})
            ready = self._prepare(stream, events, stamp)
        self._admit((thread_id,))
        stream = look_twice(partial(self._insert, ready), self._parts.reader.forget)
        return _Done((stream, ready.events), {thread_id: stream.head})

    def erase(self, decide: ErasureDecision, *, at: datetime) -> Mapping[str, Stored]:
        """Erase content as decided, and return what was stored in each conversation."""
        with self._guard(), self._writing():
            for tries in range(CONFLICTS):
                erase = partial(self._decide_and_erase, decide, stamp_of(at), is_again=tries > 0)
                try:
                    done = self._store_once(self._erasing, erase)
                except IntegrityError:
                    continue
                self._parts.reader.forget_opened()
                return self._reload_erased(*done.result)
        raise self._overtaken_error()

    def _decide_and_erase(
        self, decide: ErasureDecision, stamp: str, *, is_again: bool
    ) -> "_Done[tuple[Mapping[str, Stream], Mapping[str, Appended]]]":
        streams: dict[str, Stream] = {}
        erasures = decide(partial(self._load_into, streams, is_again))
        if not erasures:
            return _Done((streams, {}), {})
        self._admit(())
        heads = {t: (streams[t].head, erasure) for t, erasure in erasures.items()}
        appended = self._parts.eraser.erase(heads, stamp)
        return _Done((streams, appended), {t: one.head for t, one in appended.items()})

    def fork(
        self, source: str, version: int, into: str, decide: Decision, *, at: datetime
    ) -> LoadedConversation:
        """Copy a conversation up to a version into a new one, and append the decided events."""
        loader = self._parts.loader

        def copy() -> "_Done[tuple[LoadedConversation, tuple[Event, ...], Copied]]":
            with suppress(LogDamaged):  # Events before the damage can still be copied.
                self._refresh(source).loaded.present()
            before = loader.load(source, at=version).loaded
            self._admit(())
            events = tuple(decide(before))
            copied = self._parts.copier.copy(source, version, into, events, stamp_of(at))
            return _Done((before, events, copied), {into: copied.head})

        with self._guard(), self._writing():
            before, events, copied = self._store_once(self._copying, copy).result
            self._note_heads({into: (copied.head, None)})
            self._parts.snapshots.copy(source, into, copied.links)
            if version not in copied.links:
                self._parts.snapshots.take(into, before.state, copied.link)
            if must_reload(events):
                return self._refresh(into).loaded
            stream = Stream(loader.copied(before, into))
            stream = loader.after(stream, events, copied.head)
            self._remembered.put(into, stream)
            return stream.loaded

    def _store_once(
        self,
        enter: Callable[[], AbstractContextManager[object]],
        act: "Callable[[], _Done[R]]",
        before: "_Done[R] | None" = None,
    ) -> "_Done[R]":
        """Return the result of ``act`` within a context whose end stores it, exactly once.

        A commit may have succeeded although an error was reported. ``before`` is what such a commit stored.
        """
        tried: list[_Done[R]] = [] if before is None else [before]

        def attempt() -> "_Done[R]":  # As text: it would be made at each call.
            heads: Mapping[str, Head] = tried[-1].heads if tried else {}
            if heads and all(self._is_stored(*head) for head in heads.items()):
                return tried[-1]
            with enter():
                tried.append(act())
            return tried[-1]

        return self._retry(attempt)

    def _is_stored(self, thread_id: str, head: Head) -> bool:
        rows = self._parts.reader.recorder.rows_at(thread_id, [head.version])
        return any(link_in(state) == head.link for _, _, state in rows)

    def _retry(self, attempt: Callable[[], R]) -> R:
        """Return the result of ``attempt``, which is safe to repeat."""
        return attempt()

    def forks(self) -> Sequence[Fork]:
        """Return all forks in the log."""
        with self._guard():
            return self._parts.copier.forks()

    def existing(self, thread_ids: Collection[str]) -> Collection[str]:
        """Return those of these conversations that have events."""
        with self._guard():
            return self._parts.copier.existing(thread_ids)

    def version_at(self, thread_id: str, moment: datetime) -> int:
        """Return the newest version that was logged at or before a moment."""
        with self._guard():
            return self._parts.copier.version_at(thread_id, moment)

    def versions_of(
        self, thread_id: str, kinds: Collection[type[Event]], after: int
    ) -> Sequence[int]:
        """Return the versions after ``after`` whose events are of these kinds."""
        with self._guard():
            return self._parts.copier.versions_of(thread_id, kinds, after)

    def versions_of_keys(self, thread_id: str, keys: Sequence[str]) -> Mapping[str, int]:
        """Map those of these keys that are stored to the versions of their messages."""
        with self._guard():
            return self._parts.keys.versions(thread_id, keys)

    def read(self, thread_id: str, first: int, last: int) -> Sequence[LoggedEvent]:
        """Return the events from version ``first`` to ``last``."""
        read = partial(self._parts.reader.read, thread_id, first, last)
        return self._complete(thread_id, range(first, last + 1), read)

    def pages(self, thread_id: str, first: int, last: int) -> Iterator[Sequence[LoggedEvent]]:
        """Yield the same events in pages."""
        for start in range(first, last + 1, PAGE):
            yield self.read(thread_id, start, min(start + PAGE - 1, last))

    def read_at(self, thread_id: str, versions: Collection[int]) -> Sequence[LoggedEvent]:
        """Return the events with these versions."""
        read = partial(self._parts.reader.read_at, thread_id, versions)
        return self._complete(thread_id, sorted(versions), read)

    def _complete(self, stream: str, wanted: Sequence[int], read: Read) -> Sequence[LoggedEvent]:
        with self._guard():
            return read_all(stream, wanted, read, lambda: self._refresh(stream).head.version)

    def _writing(self) -> AbstractContextManager[object]:
        """Hold the lock of all writers, if the store has one."""
        return nullcontext()

    @abstractmethod
    def _guard(self) -> AbstractContextManager[None]:
        """Check that the log is open here, and convert errors."""

    @abstractmethod
    def _rows_after(self, number: int) -> Sequence[Row]:
        """Return the next rows of the whole log."""

    @abstractmethod
    def _store(self, thread_id: str, sealed: SealedRows, before: Head) -> None:
        """Store rows that follow ``before``. Raise ``IntegrityError`` if another writer was faster."""

    def _alone(self, thread_id: str, tries: int) -> AbstractContextManager[object]:
        """Keep other writers of a conversation away while it is decided and stored."""
        del thread_id, tries
        return nullcontext()

    def _keep_away(self, thread_id: str) -> None:
        """Keep other writers of a conversation away until the open transaction ends."""
        del thread_id

    def _erasing(self) -> AbstractContextManager[object]:
        """Keep away everything that could copy content while it is erased."""
        return nullcontext()

    def _copying(self) -> AbstractContextManager[object]:
        """Keep erasures away while a conversation is copied."""
        return nullcontext()

    def _presumed(self, thread_id: str) -> Stream | None:
        """Return the state that a conversation probably has, or None. An insert fails if it is another one."""
        return self._remembered.find(thread_id)

    @abstractmethod
    def _admit(self, thread_ids: Sequence[str]) -> None:
        """Refuse to write if stored events are known to be missing or damaged."""

    @abstractmethod
    def _note_heads(self, heads: Mapping[str, tuple[Head, int | None]]) -> None:
        """Record the newest events outside the log, if the store has a place for that."""

    def _check_open(self) -> None:
        self._process.check()
        if self._closed:
            raise was_closed(self._shown)

    def _scan(self, after: int, seen: dict[str, int]) -> Iterator[LoggedEvent]:
        forget, mapper = self._parts.reader.forget, self._parts.mapper
        return scan_events(self._scanned_rows, mapper, after, seen, forget)

    def _scanned_rows(self, number: int) -> Sequence[Row]:
        with self._guard():
            return self._rows_after(number)

    def _overtaken_error(self) -> LogError:
        return LogError(
            f"{self._shown}: another writer was faster {CONFLICTS} times; nothing was stored"
        )

    def _refresh(self, thread_id: str) -> Stream:
        known, loader = self._remembered.find(thread_id), self._parts.loader
        stream = loader.load(thread_id) if known is None else loader.catch_up(known)
        self._remembered.put(thread_id, stream)
        return stream

    def _insert(self, ready: Ready) -> Stream:
        self._store(ready.thread_id, ready.sealed, ready.before.head)
        return ready.after or self._parts.loader.load(ready.thread_id)

    def _load_into(
        self, streams: dict[str, Stream], is_again: bool, thread_id: str
    ) -> LoadedConversation:
        if thread_id not in streams:
            if is_again:
                self._keep_away(thread_id)
            streams[thread_id] = self._refresh(thread_id)
        return streams[thread_id].loaded

    def _reload_erased(
        self, before: Mapping[str, Stream], appended: Mapping[str, Appended]
    ) -> Mapping[str, Stored]:
        self._remembered.forget(appended)
        self._note_heads({t: (one.head, one.number) for t, one in appended.items()})
        stored: dict[str, Stored] = {}
        for thread_id, (events, head, _) in appended.items():
            state = state_after_erasing(before[thread_id].loaded.state, events)
            state = state or self._parts.loader.load(thread_id).loaded.state
            self._parts.snapshots.take(thread_id, state, head.link)
            stream = self._refresh(thread_id)
            stored[thread_id] = Stored(stream.loaded, events)
        return stored
