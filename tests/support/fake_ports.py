"""Fakes of the ports that a use case needs: a log in memory, a plain counter, clock and ids."""

import math
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from refold.application.conversation.loaded import LoadedConversation
from refold.application.errors import LogError, ThreadExists
from refold.application.maintenance.maintenance_results import (
    AnchorState,
    BackedUp,
    Compressed,
    ErasedPlace,
    KnownErasures,
    Salvaged,
    Sizes,
)
from refold.application.ports.conversation_log import (
    ConversationLog,
    Damage,
    Decision,
    Erasure,
    ErasureDecision,
    Fork,
    LoggedEvent,
    Stored,
)
from refold.application.ports.log_keeper import Checked
from refold.application.ports.observer import Observer
from refold.application.ports.processes import UNNAMED_OWNER, Owner
from refold.application.ports.read_models import (
    Beginning,
    CompactionRow,
    ConversationOrder,
    ConversationRow,
    ConversationsPage,
    MessageRow,
    NoteRow,
    RequestSizesRow,
    SummaryRow,
    TopicSeen,
)
from refold.application.ports.summariser import Summariser
from refold.application.ports.token_counter import TokenCount
from refold.application.projections.row_changes import utc
from refold.application.runtime.core import Core
from refold.application.runtime.memory_settings import Settings
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.events import ConversationForked, Event, EventLost, MessageAppended
from refold.domain.messages import THINKING, Message, readable, text_of
from refold.domain.notes import Rewritten

from .builders import NOON
from .fake_recall import recall_of
from .fake_summarisers import GoodSummariser


class MemoryLog:
    """A log in lists. ``before_deciding`` runs once, in the next ``transact``: a writer in between."""

    def __init__(self) -> None:
        self.streams: dict[str, list[Event]] = {}
        self.before_deciding: Callable[[], None] | None = None
        self.broken = False
        self._erased: set[tuple[str, int]] = set()
        self._lock = threading.RLock()

    def load(self, thread_id: str, *, at: int | None = None) -> LoadedConversation:
        if self.broken:
            raise LogError("the log is broken on purpose")
        events = self.streams.get(thread_id, [])
        kept = events if at is None else events[: max(at, 0)]
        return LoadedConversation(thread_id).after(kept)

    def transact(
        self, thread_id: str, decide: Decision, *, at: datetime
    ) -> tuple[LoadedConversation, tuple[Event, ...]]:
        del at
        between, self.before_deciding = self.before_deciding, None
        if between is not None:
            between()
        with self._lock:
            events = tuple(decide(self.load(thread_id)))
            keys = [e.key for e in events if isinstance(e, MessageAppended) and e.key is not None]
            if self.versions_of_keys(thread_id, keys):
                events = tuple(decide(self.load(thread_id)))
            self.streams.setdefault(thread_id, []).extend(events)
            return self.load(thread_id), events

    def erase(self, decide: ErasureDecision, *, at: datetime) -> Mapping[str, Stored]:
        del at
        with self._lock:
            erasures = decide(self.load)
            return {thread_id: self._erase(thread_id, one) for thread_id, one in erasures.items()}

    def _erase(self, thread_id: str, erasure: Erasure) -> Stored:
        stream, rewritten = self.streams[thread_id], list[Rewritten]()
        if erasure.remains is None:
            stream[:] = [e if isinstance(e, ConversationForked) else EventLost() for e in stream]
        for version, remains in sorted((erasure.remains or {}).items()):
            stream[version - 1] = remains
            self._erased.add((thread_id, version))
            rewritten.append(Rewritten(version=version, remains=""))
        happened = tuple(erasure.events(rewritten))
        stream.extend(happened)
        return Stored(self.load(thread_id), happened)

    def finish_erasures(self, drop: Callable[[], bool]) -> bool:
        return drop()

    def newest(self) -> int:
        return sum(map(len, self.streams.values()))

    def fork(
        self, source: str, version: int, into: str, decide: Decision, *, at: datetime
    ) -> LoadedConversation:
        del at
        if self.streams.get(into):
            raise ThreadExists(into)
        with self._lock:
            events = decide(self.load(source, at=version))
            self.streams[into] = [*self.streams.get(source, [])[:version], *events]
            self._erased |= {(into, v) for t, v in self._erased if t == source and v <= version}
        return self.load(into)

    def forks(self) -> Sequence[Fork]:
        return [
            Fork(thread_id, event.source, event.version)
            for thread_id, events in self.streams.items()
            for event in events
            if isinstance(event, ConversationForked)
        ]

    def existing(self, thread_ids: Collection[str]) -> Collection[str]:
        return {thread_id for thread_id in thread_ids if self.streams.get(thread_id)}

    def version_at(self, thread_id: str, moment: datetime) -> int:
        del moment
        return len(self.streams.get(thread_id, []))

    def versions_of(
        self, thread_id: str, kinds: Collection[type[Event]], after: int
    ) -> Sequence[int]:
        events = enumerate(self.streams.get(thread_id, []), 1)
        return [version for version, e in events if version > after and type(e) in kinds]

    def versions_of_keys(self, thread_id: str, keys: Sequence[str]) -> Mapping[str, int]:
        stored = [
            (event.key, version)
            for version, event in enumerate(self.streams.get(thread_id, []), 1)
            if isinstance(event, MessageAppended)
        ]
        return {key: version for key, version in stored if key is not None and key in keys}

    def read(self, thread_id: str, first: int, last: int) -> Sequence[LoggedEvent]:
        events = enumerate(self.streams.get(thread_id, []), 1)
        return [
            LoggedEvent(0, thread_id, v, "", e, (thread_id, v) in self._erased)
            for v, e in events
            if first <= v <= last
        ]

    def pages(self, thread_id: str, first: int, last: int) -> Iterator[Sequence[LoggedEvent]]:
        yield self.read(thread_id, first, last)

    def read_at(self, thread_id: str, versions: Collection[int]) -> Sequence[LoggedEvent]:
        events = self.read(thread_id, 1, max(versions, default=0))
        return [logged for logged in events if logged.version in versions]

    def scan(self, after: int = 0) -> Iterator[LoggedEvent]:
        del after
        for thread_id in self.streams:
            yield from self.read(thread_id, 1, len(self.streams[thread_id]))

    def check(self) -> Iterator[Damage]:
        return iter(())

    def close(self) -> None:
        pass


class NoKeeper:
    """Keeps nothing: a log in memory is gone with its process."""

    def check(self, exported: Path | None) -> Checked:
        del exported
        return Checked(0, 0, ())

    def repair(self, damage: Sequence[Damage]) -> Sequence[str]:
        del damage
        return ()

    def anchor(self, *, out: Path | None, accept: bool) -> AnchorState:
        return AnchorState(path=out, conversations=0, accepted=accept)

    def salvage(self, to: Path) -> Salvaged:
        return Salvaged(path=to, events=0, conversations=0, lost=())

    def backup(self, to: Path, *, replace: bool) -> BackedUp:
        del replace
        return BackedUp(path=to, bytes=0, events=0, conversations=0)

    def erasures_in(self, other: Path) -> KnownErasures:
        del other
        return KnownErasures()

    def compress(self, *, keep: int) -> Compressed:
        raise AssertionError(keep)

    def erased_places(self) -> Sequence[ErasedPlace]:
        return ()

    def wait_for_erasures(self, seconds: float) -> bool:
        del seconds
        return True

    def damaged_copies(self) -> Sequence[Path]:
        return ()

    def earlier_logs(self) -> Sequence[Path]:
        return ()

    def sizes(self) -> Sizes:
        return Sizes(conversations=(), frames=(), files=())


class MessageViews:
    """Read models that know messages only, straight from a log."""

    def __init__(self, log: ConversationLog) -> None:
        self._log = log

    def messages_by_id(self, thread_id: str, ids: Collection[str]) -> Sequence[MessageRow]:
        rows = self.messages(thread_id, 0, self._log.load(thread_id).state.length)
        return [row for row in rows if row.message_id in ids]

    def messages(self, thread_id: str, start: int, stop: int) -> Sequence[MessageRow]:
        last = self._log.load(thread_id).state.version
        return [
            _row(logged, logged.event)
            for logged in self._log.read(thread_id, 1, last)
            if isinstance(logged.event, MessageAppended) and start <= logged.event.position < stop
        ]

    def newest_message_by(self, thread_id: str, at: str) -> MessageRow | None:
        rows = self.messages(thread_id, 0, 2**31)
        return next((row for row in reversed(rows) if row.at <= at), None)

    def conversations(self) -> Sequence[ConversationRow]:
        return ()

    def iter_conversations(self, prefix: str = "") -> Iterator[ConversationRow]:
        return (row for row in self.conversations() if row.thread_id.startswith(prefix))

    def conversations_page(
        self, start: int, count: int, owner: str | None, order: ConversationOrder
    ) -> ConversationsPage:
        del start, count, owner, order
        return ConversationsPage(rows=(), count=0)

    def conversations_before(
        self, before: Beginning | None, count: int, owner: str | None
    ) -> Sequence[ConversationRow]:
        del before, count, owner
        return ()

    def conversations_of(self, owner: str) -> Sequence[ConversationRow]:
        del owner
        return ()

    def owned_conversations(self, owner: str | None = None) -> frozenset[str]:
        del owner
        return frozenset()

    def has_others(self, thread_id: str, owner: str, start: int, stop: int) -> bool:
        del thread_id, owner, start, stop
        return False

    def messages_of(self, owner: str) -> Mapping[str, frozenset[int]]:
        del owner
        return {}

    def owners_of(self, thread_id: str) -> Mapping[int, str]:
        del thread_id
        return {}

    def guests_of(self, owner: str) -> Mapping[str, Mapping[int, str]]:
        del owner
        return {}

    def conversation(self, thread_id: str) -> ConversationRow | None:
        del thread_id
        return None

    def summaries(self, thread_id: str) -> Sequence[SummaryRow]:
        del thread_id
        return ()

    def summary(self, thread_id: str, summary_id: str) -> SummaryRow | None:
        rows = self.summaries(thread_id)
        return next((row for row in rows if row.summary_id == summary_id), None)

    def conversations_with_summary(self, summary_id: str) -> Sequence[str]:
        del summary_id
        return ()

    def compactions(self, thread_id: str) -> Sequence[CompactionRow]:
        del thread_id
        return ()

    def topics(self, thread_id: str) -> Sequence[TopicSeen]:
        del thread_id
        return ()

    def notes(self, thread_id: str) -> Sequence[NoteRow]:
        del thread_id
        return ()

    def request_sizes(self, thread_id: str) -> Sequence[RequestSizesRow]:
        del thread_id
        return ()

    def notes_of(self, owner: str) -> Sequence[NoteRow]:
        del owner
        return ()

    def active_summaries_of(self, owner: str) -> Sequence[SummaryRow]:
        del owner
        return ()

    def all_notes(self) -> Sequence[NoteRow]:
        return ()

    def check(self) -> Iterator[Damage]:
        return iter(())

    def rebuild(self) -> int:
        return 0

    def forget_erased(self) -> bool:
        return self.drop()

    def drop(self) -> bool:
        return True

    def close(self) -> None:
        pass


def _row(logged: LoggedEvent, event: MessageAppended) -> MessageRow:
    return MessageRow(
        thread_id=logged.thread_id,
        position=event.position,
        version=logged.version,
        message_id=event.message_id,
        role=event.message.role,
        at=utc(event.written_at) if event.written_at else logged.at,
        tokens=event.tokens,
        text=readable(event.message),
    )


class PlainCounter:
    """One token for four characters, rounded up: figures that a test can follow."""

    def count_text(self, text: str) -> int:
        return math.ceil(len(text) / 4)

    def count_message(self, message: Message) -> TokenCount:
        thought = sum(
            self.count_text(str(b.get("thinking", b.get("data", ""))))
            for b in message.blocks()
            if b.get("type") in THINKING
        )
        said = sum(self._block(b) for b in message.blocks() if b.get("type") not in THINKING)
        return TokenCount(total=said + thought + 4, thinking=thought)

    def count_tools(self, tools: tuple[dict[str, object], ...]) -> int:
        return sum(self.count_text(str(tool)) for tool in tools)

    def _block(self, block: Mapping[str, Any]) -> int:
        if block.get("type") == "tool_use":
            return self.count_text(str(block.get("input")))
        return self.count_text(text_of(block))


class Ticking:
    """A clock that goes on by a second whenever it is asked."""

    def __init__(self, start: datetime = NOON) -> None:
        self.now = start

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


class Counting:
    """Ids in a row: ``id1``, ``id2`` …"""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self) -> str:
        self.number += 1
        return f"id{self.number}"


def core_of(
    log: ConversationLog | None = None,
    *,
    window: int = 8_000,
    policy: CompactionPolicy | None = None,
    summariser: Summariser | None = None,
    fallback: Summariser | None = None,
    background: bool = False,
    owner: Owner = UNNAMED_OWNER,
    observers: tuple[Observer, ...] = (),
    compaction_wait: float = 0.0,
) -> Core:
    """A core on fakes: a log in memory unless one is given, and a good summariser."""
    log = log or MemoryLog()
    return Core(
        log=log,
        keeper=NoKeeper(),
        views=MessageViews(log),
        recall=recall_of(log),
        counter=PlainCounter(),
        summariser=summariser or GoodSummariser(),
        fallback=fallback or GoodSummariser(),
        clock=Ticking(),
        new_id=Counting(),
        settings=Settings(
            window=window,
            policy=policy or CompactionPolicy(),
            background=background,
            compaction_wait=compaction_wait,
        ),
        observers=observers,
        owner=owner,
    )
