"""The log and the read models by thread id: an erased conversation keeps its stream, a new one gets another."""

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol, Self, TypeVar

from refold.application.conversation.loaded import LoadedConversation
from refold.application.errors import LogDamaged
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
from refold.application.ports.read_models import (
    CompactionRow,
    ConversationRow,
    MessageRow,
    NoteRow,
    ReadModels,
    SummaryRow,
    TopicSeen,
)
from refold.domain.errors import ConversationGone
from refold.domain.events import ConversationForked, Event, MessageAppended
from refold.domain.value import replace

SEPARATOR = "\x1f"
"""No thread id has it: those are printable."""


def successor_of(stream: str) -> str:
    """Return the name of the stream that follows when this one was erased."""
    thread_id, _, number = stream.partition(SEPARATOR)
    return f"{thread_id}{SEPARATOR}{int(number or 1) + 1}"


def thread_of(stream: str) -> str:
    """Return the thread id of a stream."""
    return stream.partition(SEPARATOR)[0]


class GenerationsLog:
    """``log``, in which an erased thread id can be used again: the first message that is appended begins
    another stream. Everybody above knows threads only, each as its newest stream.
    """

    def __init__(self, log: ConversationLog) -> None:
        self._log = log
        self._streams: dict[str, str] = {}
        """Of threads that began again: the newest stream that is known; there may be a newer one."""

    def stream_of(self, thread_id: str) -> str:
        """The newest stream of a thread, also where what it holds is damaged."""
        try:
            return self._newest(thread_id, self._log.load)[0]
        except LogDamaged:
            return self._last_stream(thread_id)

    def load(self, thread_id: str, *, at: int | None = None) -> LoadedConversation:
        """See ``ConversationLog``. With ``at``, what lies before a damage can be looked at."""
        if at is None:
            return _named(self._newest(thread_id, self._log.load)[1], thread_id)
        return _named(self._log.load(self.stream_of(thread_id), at=at), thread_id)

    def transact(
        self, thread_id: str, decide: Decision, *, at: datetime
    ) -> tuple[LoadedConversation, tuple[Event, ...]]:
        """See ``ConversationLog``. In an erased conversation only a message can be what comes next."""
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
            return _named(loaded, thread_id), events

    def erase(self, decide: ErasureDecision, *, at: datetime) -> Mapping[str, Stored]:
        """See ``ConversationLog``."""

        def by_stream(load: Loading) -> Mapping[str, Erasure]:
            def newest(thread_id: str) -> LoadedConversation:
                return _named(self._newest(thread_id, load)[1], thread_id)

            return {self._newest(t, load)[0]: erasure for t, erasure in decide(newest).items()}

        stored = self._log.erase(by_stream, at=at)
        return {
            thread_of(stream): one._replace(loaded=_named(one.loaded, thread_of(stream)))
            for stream, one in stored.items()
        }

    def finish_erasures(self, drop: Callable[[], bool]) -> bool:
        """See ``ConversationLog``."""
        return self._log.finish_erasures(drop)

    def newest(self) -> int:
        """See ``ConversationLog``."""
        return self._log.newest()

    def fork(
        self, source: str, version: int, into: str, decide: Decision, *, at: datetime
    ) -> LoadedConversation:
        """See ``ConversationLog``."""
        stream, (target, there) = self.stream_of(source), self._newest(into, self._log.load)
        target = successor_of(target) if there.state.erased else target

        def decided(loaded: LoadedConversation) -> Sequence[Event]:
            events = decide(_named(loaded, source))
            return [
                replace(event, source=stream) if isinstance(event, ConversationForked) else event
                for event in events
            ]

        forked = self._log.fork(stream, version, target, decided, at=at)
        self._know(into, target)
        return _named(forked, into)

    def forks(self) -> Sequence[Fork]:
        """See ``ConversationLog``. An erased conversation that began again is no copy any more."""
        found: list[Fork] = []
        for fork in self._log.forks():
            thread_id, source = thread_of(fork.thread_id), thread_of(fork.source)
            if self._is_newest(fork.thread_id) and self._is_newest(fork.source):
                found.append(Fork(thread_id, source, fork.version))
        return found

    def version_at(self, thread_id: str, moment: datetime) -> int:
        """See ``ConversationLog``."""
        return self._log.version_at(self.stream_of(thread_id), moment)

    def versions_of_keys(self, thread_id: str, keys: Sequence[str]) -> Mapping[str, int]:
        """See ``ConversationLog``. An erased conversation has none."""
        stream, loaded = self._newest(thread_id, self._log.load)
        return {} if loaded.state.erased else self._log.versions_of_keys(stream, keys)

    def read(self, thread_id: str, first: int, last: int) -> Sequence[LoggedEvent]:
        """See ``ConversationLog``."""
        return list(map(_told, self._log.read(self.stream_of(thread_id), first, last)))

    def read_at(self, thread_id: str, versions: Collection[int]) -> Sequence[LoggedEvent]:
        """See ``ConversationLog``."""
        return list(map(_told, self._log.read_at(self.stream_of(thread_id), versions)))

    def scan(self, after: int = 0) -> Iterator[LoggedEvent]:
        """See ``ConversationLog``."""
        return map(_told, self._log.scan(after))

    def check(self) -> Iterator[Damage]:
        """See ``ConversationLog``."""
        for damage in self._log.check():
            yield damage._replace(thread_id=thread_of(damage.thread_id))

    def close(self) -> None:
        """See ``ConversationLog``."""
        self._log.close()

    def _newest(self, thread_id: str, load: Loading) -> tuple[str, LoadedConversation]:
        """The newest stream of a thread that has events, and the conversation in it."""
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
        """The newest stream of a thread that has events, also where these are damaged."""
        stream = self._streams.get(thread_id, thread_id)
        while self._exists(successor_of(stream)):
            stream = successor_of(stream)
        return stream

    def _is_newest(self, stream: str) -> bool:
        return not self._exists(successor_of(stream))

    def _exists(self, stream: str) -> bool:
        try:
            return bool(self._log.load(stream).state.version)
        except LogDamaged:
            return True

    def _know(self, thread_id: str, stream: str) -> None:
        if stream != thread_id:
            self._streams[thread_id] = stream


class _Deciding:
    """A decision on a stream, told as its thread; ``gone``: the streams before it were erased."""

    def __init__(self, thread_id: str, own: Decision, gone: ConversationGone | None) -> None:
        self._thread_id = thread_id
        self._own = own
        self._gone = gone
        self.is_unused = False
        """Whether the stream has no events."""

    def decide(self, loaded: LoadedConversation) -> Sequence[Event]:
        """Decide.

        Raises:
            ConversationGone: all streams of the thread were erased, and no message is appended.
        """
        self.is_unused = not loaded.state.version
        events = self._own(_named(loaded, self._thread_id))
        if self._gone is None or not self.is_unused:
            return events
        if not any(isinstance(event, MessageAppended) for event in events):
            raise self._gone
        return events


def _named(loaded: LoadedConversation, thread_id: str) -> LoadedConversation:
    if loaded.thread_id == thread_id:
        return loaded
    return dataclasses.replace(loaded, thread_id=thread_id)


def _told(logged: LoggedEvent) -> LoggedEvent:
    event = logged.event
    if isinstance(event, ConversationForked) and SEPARATOR in event.source:
        logged = logged._replace(event=replace(event, source=thread_of(event.source)))
    if SEPARATOR not in logged.thread_id:
        return logged
    return logged._replace(thread_id=thread_of(logged.thread_id))


class _OfConversation(Protocol):
    """A row that names its conversation."""

    @property
    def thread_id(self) -> str: ...

    def __replace__(self, *, thread_id: str) -> Self: ...


Row = TypeVar("Row", bound=_OfConversation)


class GenerationsViews:
    """``views``, asked by thread id."""

    def __init__(self, views: ReadModels, log: GenerationsLog) -> None:
        self._views = views
        self._log = log

    def conversations(self) -> Sequence[ConversationRow]:
        """See ``ReadModels``."""
        return list(map(_told_of_views, self._views.conversations()))

    def conversations_of(self, owner: str) -> Sequence[ConversationRow]:
        """See ``ReadModels``."""
        return list(map(_told_of_views, self._views.conversations_of(owner)))

    def has_others(self, thread_id: str, owner: str, start: int, stop: int) -> bool:
        """See ``ReadModels``."""
        return self._views.has_others(self._log.stream_of(thread_id), owner, start, stop)

    def messages_of(self, owner: str) -> Mapping[str, frozenset[int]]:
        """See ``ReadModels``."""
        found = self._views.messages_of(owner).items()
        # Of an earlier stream everything is erased.
        newest = ((thread_of(s), s, positions) for s, positions in found)
        return {t: positions for t, s, positions in newest if self._log.stream_of(t) == s}

    def owners_of(self, thread_id: str) -> Mapping[int, str]:
        """See ``ReadModels``."""
        return self._views.owners_of(self._log.stream_of(thread_id))

    def guests_of(self, owner: str) -> Mapping[str, Mapping[int, str]]:
        """See ``ReadModels``."""
        found = self._views.guests_of(owner).items()
        return {thread_of(stream): guests for stream, guests in found}

    def conversation(self, thread_id: str) -> ConversationRow | None:
        """See ``ReadModels``."""
        row = self._views.conversation(self._log.stream_of(thread_id))
        return None if row is None else _told_of_views(row)

    def messages(self, thread_id: str, start: int, stop: int) -> Sequence[MessageRow]:
        """See ``ReadModels``."""
        return _of(self._views.messages(self._log.stream_of(thread_id), start, stop))

    def newest_message_by(self, thread_id: str, at: str) -> MessageRow | None:
        """See ``ReadModels``."""
        row = self._views.newest_message_by(self._log.stream_of(thread_id), at)
        return None if row is None else _of([row])[0]

    def summaries(self, thread_id: str) -> Sequence[SummaryRow]:
        """See ``ReadModels``."""
        return _of(self._views.summaries(self._log.stream_of(thread_id)))

    def compactions(self, thread_id: str) -> Sequence[CompactionRow]:
        """See ``ReadModels``."""
        return _of(self._views.compactions(self._log.stream_of(thread_id)))

    def topics(self, thread_id: str) -> Sequence[TopicSeen]:
        """See ``ReadModels``."""
        return _of(self._views.topics(self._log.stream_of(thread_id)))

    def notes(self, thread_id: str) -> Sequence[NoteRow]:
        """See ``ReadModels``."""
        return _of(self._views.notes(self._log.stream_of(thread_id)))

    def notes_of(self, owner: str) -> Sequence[NoteRow]:
        """See ``ReadModels``."""
        return _of(self._views.notes_of(owner))

    def active_summaries_of(self, owner: str) -> Sequence[SummaryRow]:
        """See ``ReadModels``."""
        return _of(self._views.active_summaries_of(owner))

    def all_notes(self) -> Sequence[NoteRow]:
        """See ``ReadModels``."""
        return _of(self._views.all_notes())

    def check(self) -> Iterator[Damage]:
        """See ``ReadModels``."""
        return self._views.check()

    def rebuild(self) -> int:
        """See ``ReadModels``."""
        return self._views.rebuild()

    def drop(self) -> bool:
        """See ``ReadModels``."""
        return self._views.drop()

    def forget_erased(self) -> bool:
        """See ``ReadModels``."""
        return self._views.forget_erased()

    def close(self) -> None:
        """See ``ReadModels``."""
        self._views.close()


def _of(rows: Sequence[Row]) -> Sequence[Row]:
    if not rows or not any(SEPARATOR in row.thread_id for row in rows):
        return rows
    return [row.__replace__(thread_id=thread_of(row.thread_id)) for row in rows]


def _told_of_views(row: ConversationRow) -> ConversationRow:
    if SEPARATOR not in row.thread_id and SEPARATOR not in (row.forked_from or ""):
        return row
    source = None if row.forked_from is None else thread_of(row.forked_from)
    return replace(row, thread_id=thread_of(row.thread_id), forked_from=source)
