"""The log by thread id: an erased conversation keeps its stream, and its id continues in a new stream."""

import dataclasses
from collections.abc import Callable, Collection, Container, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Protocol

from refold.application.errors import LogBehindAnchor, LogDamaged
from refold.application.ports.conversation_log import (
    ConversationLog,
    Damage,
    Decision,
    Erasure,
    ErasureDecision,
    Fork,
    Loading,
    LoggedEvent,
    Stored,
)
from refold.application.ports.log_observer import LogObserver
from refold.domain.conversation import Conversation
from refold.domain.errors import ConversationGone
from refold.domain.events import ConversationForked, Event, MessageAppended
from refold.domain.evolve import are_messages
from refold.domain.value import build_unvalidated, replace

from .addresses import SEPARATOR, successor_of, thread_of
from .loaded import LoadedConversation


class Extension(Protocol):
    """A decision that stores additional events in the same commit."""

    def decide(self, loaded: LoadedConversation) -> Sequence[Event]:
        """Return the events to store; called again after a conflict."""
        ...

    def stored(self, loaded: LoadedConversation, events: tuple[Event, ...]) -> tuple[Event, ...]:
        """Handle the commit, and return the events to report for the decision."""
        ...


class Companion(Protocol):
    """A source of additional events that are stored with the next decision on a conversation."""

    @property
    def threads(self) -> Container[str]:
        """Conversations that it may have events for."""
        ...

    def extend(self, thread_id: str, decide: Decision) -> Extension | None:
        """Return the decision with the additional events, or None if there are none."""
        ...


class ThreadLog:
    """A log that uses thread ids and maps each to its newest stream.

    An erased thread id can be used again: the first appended message begins another stream. ``companions``
    extend each decision, the first one closest to it. ``observer`` receives what is stored.
    """

    def __init__(
        self,
        log: ConversationLog,
        *companions: Companion,
        observer: LogObserver | None = None,
    ) -> None:
        self._log = log
        self._companions = companions
        self._observer = observer
        self._streams: dict[str, str] = {}
        """Newest known stream of each thread that was erased and began again; there may be a newer one."""

    def stream_of(self, thread_id: str) -> str:
        """Return the newest stream of a thread, even if its events are damaged."""
        try:
            return self._newest(thread_id, self._log.load)[0]
        except LogDamaged:
            return self._last_stream(thread_id)

    def known_stream_of(self, thread_id: str) -> str:
        """Return the newest known stream of a thread. If it was erased, there may be a newer one."""
        return self._streams.get(thread_id, thread_id)

    def load(self, thread_id: str, *, at: int | None = None) -> LoadedConversation:
        """Load a conversation at version ``at``, or at the newest version.

        With ``at``, the events before a damaged one can be read.
        """
        with self._reporting_damage():
            if at is None:
                return _rename(self._newest(thread_id, self._log.load)[1], thread_id)
            return _rename(self._log.load(self.stream_of(thread_id), at=at), thread_id)

    def transact(
        self, thread_id: str, decide: Decision, *, at: datetime
    ) -> tuple[LoadedConversation, tuple[Event, ...]]:
        """Decide and store. An erased conversation accepts only a message, which begins a new stream."""
        extensions: list[Extension] = []
        for companion in self._companions:
            if thread_id not in companion.threads:
                continue
            extension = companion.extend(thread_id, decide)
            if extension is not None:
                extensions.append(extension)
                decide = extension.decide
        try:
            before, loaded, events = self._transact(thread_id, decide, at=at)
        except (LogDamaged, LogBehindAnchor) as error:
            self._report_damage(error)
            raise
        self._report(thread_id, before, loaded.state, events)
        for extension in reversed(extensions):
            events = extension.stored(loaded, events)
        return loaded, events

    def _transact(
        self, thread_id: str, decide: Decision, *, at: datetime
    ) -> tuple[Conversation, LoadedConversation, tuple[Event, ...]]:
        stream, gone = self._streams.get(thread_id, thread_id), None
        while True:
            deciding = _Deciding(thread_id, decide, gone)
            try:
                loaded, events = self._log.transact(stream, deciding.decide, at=at)
            except ConversationGone as error:
                if gone is not None and deciding.is_unused:
                    raise
                gone, stream = error, successor_of(stream)
                continue
            if loaded.state.erased and self._exists(successor_of(stream)):
                stream = successor_of(stream)
                continue
            self._know(thread_id, stream)
            before = deciding.before or build_unvalidated(Conversation)
            return before, _rename(loaded, thread_id), events

    def erase(self, decide: ErasureDecision, *, at: datetime) -> Mapping[str, Stored]:
        """Erase content of the newest stream of each thread."""
        before: dict[str, Conversation] = {}

        def by_stream(load: Loading) -> Mapping[str, Erasure]:
            def newest(thread_id: str) -> LoadedConversation:
                return _rename(self._newest(thread_id, load)[1], thread_id)

            erasures = decide(newest)
            before.update((thread_id, newest(thread_id).state) for thread_id in erasures)
            return {self._newest(t, load)[0]: erasure for t, erasure in erasures.items()}

        stored = {
            thread_of(stream): one._replace(loaded=_rename(one.loaded, thread_of(stream)))
            for stream, one in self._log.erase(by_stream, at=at).items()
        }
        for thread_id, (loaded, events) in stored.items():
            was = loaded.state if loaded.state.erased else before[thread_id]
            self._report(thread_id, was, loaded.state, events)
        return stored

    def finish_erasures(self, drop: Callable[[], bool]) -> bool:
        """Remove remains of erasures from the files of the log. Return whether none are left.

        ``drop`` deletes the data folded from the log, and returns whether that was possible.
        """
        return self._log.finish_erasures(drop)

    def newest(self) -> int:
        """Return the log position of the newest event."""
        return self._log.newest()

    def fork(
        self, source: str, version: int, into: str, decide: Decision, *, at: datetime
    ) -> LoadedConversation:
        """Copy ``source`` up to ``version`` into a new stream of ``into``, and append the decided events."""
        stream, (target, there) = self.stream_of(source), self._newest(into, self._log.load)
        target = successor_of(target) if there.state.erased else target
        events: Sequence[Event] = ()

        def decided(loaded: LoadedConversation) -> Sequence[Event]:
            nonlocal events
            events = decide(_rename(loaded, source))
            return [
                replace(event, source=stream) if isinstance(event, ConversationForked) else event
                for event in events
            ]

        forked = self._log.fork(stream, version, target, decided, at=at)
        self._know(into, target)
        self._report(into, build_unvalidated(Conversation), forked.state, events)
        return _rename(forked, into)

    def forks(self) -> Sequence[Fork]:
        """Return every conversation that was created as a copy and has not begun again since."""
        forks = self._log.forks()
        streams = {stream for fork in forks for stream in (fork.thread_id, fork.source)}
        later = self._log.existing({successor_of(stream) for stream in streams})
        newest = {stream for stream in streams if successor_of(stream) not in later}
        return [
            Fork(thread_of(fork.thread_id), thread_of(fork.source), fork.version)
            for fork in forks
            if fork.thread_id in newest and fork.source in newest
        ]

    def existing(self, thread_ids: Collection[str]) -> Collection[str]:
        """Return those of these threads that have, or had, events."""
        return self._log.existing(thread_ids)

    def version_at(self, thread_id: str, moment: datetime) -> int:
        """Return the newest version that was logged at or before ``moment``."""
        return self._log.version_at(self.stream_of(thread_id), moment)

    def versions_of_keys(self, thread_id: str, keys: Sequence[str]) -> Mapping[str, int]:
        """Return the versions of these idempotency keys; an erased conversation has none."""
        stream, loaded = self._newest(thread_id, self._log.load)
        return {} if loaded.state.erased else self._log.versions_of_keys(stream, keys)

    def versions_of(
        self, thread_id: str, kinds: Collection[type[Event]], after: int
    ) -> Sequence[int]:
        """Return the versions after ``after`` whose events are of these kinds."""
        return self._log.versions_of(self.stream_of(thread_id), kinds, after)

    def read(self, thread_id: str, first: int, last: int) -> Sequence[LoggedEvent]:
        """Return events by version, from ``first`` to ``last``."""
        with self._reporting_damage():
            return list(map(self._given, self._log.read(self.stream_of(thread_id), first, last)))

    def pages(self, thread_id: str, first: int, last: int) -> Iterator[Sequence[LoggedEvent]]:
        """Yield the same events in pages. All are from the stream that is the newest at the call."""
        return self._pages(self.stream_of(thread_id), first, last)

    def _pages(self, stream: str, first: int, last: int) -> Iterator[Sequence[LoggedEvent]]:
        with self._reporting_damage():
            for page in self._log.pages(stream, first, last):
                yield list(map(self._given, page))

    def read_at(self, thread_id: str, versions: Collection[int]) -> Sequence[LoggedEvent]:
        """Return the events with these versions."""
        read = partial(self._log.read_at, versions=versions)
        with self._reporting_damage():
            known = self.known_stream_of(thread_id)
            found = read(known)
            # A message that is there proves that its stream was not erased, and so is the newest.
            if not any(map(_is_whole_message, found)):
                stream = self.stream_of(thread_id)
                found = found if stream == known else read(stream)
            return list(map(self._given, found))

    def scan(self, after: int = 0) -> Iterator[LoggedEvent]:
        """Iterate over all events of all conversations after a log position."""
        with self._reporting_damage():
            yield from map(self._given, self._log.scan(after))

    def check(self) -> Iterator[Damage]:
        """Report all damage of the log."""
        for damage in self._log.check():
            yield damage._replace(thread_id=thread_of(damage.thread_id))

    def close(self) -> None:
        """Release files and connections."""
        self._log.close()

    def _given(self, logged: LoggedEvent) -> LoggedEvent:
        """Return an event for a caller. The observer receives its damage also if that is found later."""
        logged = _address_by_thread(logged)
        if self._observer is not None:
            logged.report_damage(self._observer.damaged)
        return logged

    @contextmanager
    def _reporting_damage(self) -> Generator[None]:
        try:
            yield
        except (LogDamaged, LogBehindAnchor) as error:
            self._report_damage(error)
            raise

    def _report_damage(self, error: LogDamaged | LogBehindAnchor) -> None:
        if self._observer is not None:
            self._observer.damaged(error)

    def _report(
        self, thread_id: str, before: Conversation, after: Conversation, events: Sequence[Event]
    ) -> None:
        if self._observer is not None and not are_messages(events):
            self._observer.stored(thread_id, before, after, events)

    def _newest(self, thread_id: str, load: Loading) -> tuple[str, LoadedConversation]:
        """Return the newest stream of a thread that has events, and the conversation in it."""
        stream = self._streams.get(thread_id, thread_id)
        loaded = load(stream)
        while loaded.state.erased:
            following = load(successor_of(stream))
            if not following.state.version:
                break
            stream, loaded = successor_of(stream), following
        self._know(thread_id, stream)
        return stream, loaded

    def _last_stream(self, thread_id: str) -> str:
        """Return the newest stream of a thread that has events, even if these are damaged."""
        stream = self._streams.get(thread_id, thread_id)
        while self._exists(successor_of(stream)):
            stream = successor_of(stream)
        return stream

    def _exists(self, stream: str) -> bool:
        try:
            return bool(self._log.load(stream).state.version)
        except LogDamaged:
            return True

    def _know(self, thread_id: str, stream: str) -> None:
        if stream != thread_id:
            self._streams[thread_id] = stream


class _Deciding:
    """A decision on a stream under the name of its thread; ``gone``: the earlier streams were erased."""

    def __init__(self, thread_id: str, own: Decision, gone: ConversationGone | None) -> None:
        self._thread_id = thread_id
        self._own = own
        self._gone = gone
        self.before: Conversation | None = None
        """State that was decided on, or None before a decision."""
        self.is_unused = False
        """True if the stream has no events."""

    def decide(self, loaded: LoadedConversation) -> Sequence[Event]:
        """Return the events to store.

        Raises:
            ConversationGone: all streams of the thread were erased, and no message is appended.
        """
        self.before = loaded.state
        self.is_unused = not loaded.state.version
        events = self._own(_rename(loaded, self._thread_id))
        if self._gone is None or not self.is_unused:
            return events
        if not any(isinstance(event, MessageAppended) for event in events):
            raise self._gone
        return events


def _rename(loaded: LoadedConversation, thread_id: str) -> LoadedConversation:
    if loaded.thread_id == thread_id:
        return loaded
    return dataclasses.replace(loaded, thread_id=thread_id)


def _is_whole_message(logged: LoggedEvent) -> bool:
    return logged.is_unread or (not logged.erased and logged.kind is MessageAppended)


def _address_by_thread(logged: LoggedEvent) -> LoggedEvent:
    is_fork = not logged.is_unread and logged.kind is ConversationForked
    if SEPARATOR not in logged.thread_id and not is_fork:
        return logged
    event = logged.event
    if isinstance(event, ConversationForked):
        event = replace(event, source=thread_of(event.source))
    at = logged.number, thread_of(logged.thread_id), logged.version, logged.at
    return LoggedEvent(*at, event, logged.erased)
