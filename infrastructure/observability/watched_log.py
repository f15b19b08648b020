"""Where notices come from: a log that tells what is decided in it, and who stepped in for whom."""

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime

from refold.application.api.results import CompactionResult
from refold.application.conversation.loaded import LoadedConversation
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
from refold.application.runtime.foreign_code import Contained
from refold.application.runtime.plain_lines import plain_logger, raised
from refold.domain.conversation import Conversation
from refold.domain.events import Event, MessageAppended

from .notices import Notice, of_damage, of_decisions, of_fallback

logger = plain_logger(__name__)

Watcher = Callable[[Notice], None]


def tell(watchers: Sequence[Watcher], notice: Notice) -> None:
    """Tell every watcher."""
    for watcher in watchers:
        try:
            with Contained():
                watcher(notice)
        except Exception as error:  # What looks on must not disturb what was stored.
            logger.warning("a watcher failed: %s", raised(error))


class FallbackObserver:
    """Tells when a compaction was made by another summariser than ``configured``."""

    def __init__(self, configured: str, watchers: Sequence[Watcher]) -> None:
        self._configured = configured
        self._watchers = watchers

    def compaction_ended(self, result: CompactionResult) -> None:
        """Tell, if somebody stepped in."""
        notice = of_fallback(result, self._configured)
        if notice is not None:
            for watcher in self._watchers:
                watcher(notice)

    def request_made(self, thread_id: str, tokens: int, tokens_repeated: int) -> None:
        """Nothing that it tells."""


class WatchedLog:
    """``log``, with every decision that it stores told to ``watchers``; appends are none."""

    def __init__(
        self,
        log: ConversationLog,
        watchers: Sequence[Watcher],
        *,
        breaker_after: int,
    ) -> None:
        self._log = log
        self._watchers = watchers
        self._breaker_after = breaker_after

    def transact(
        self, thread_id: str, decide: Decision, *, at: datetime
    ) -> tuple[LoadedConversation, tuple[Event, ...]]:
        """Decide, store, tell."""
        before = Conversation()

        def watched(loaded: LoadedConversation) -> Sequence[Event]:
            nonlocal before
            before = loaded.state
            return decide(loaded)

        with self._damage_told():
            loaded, events = self._log.transact(thread_id, watched, at=at)
        if not all(isinstance(event, MessageAppended) for event in events):
            self._tell(thread_id, before, loaded.state, events)
        return loaded, events

    def _tell(
        self, thread_id: str, before: Conversation, after: Conversation, events: Sequence[Event]
    ) -> None:
        for notice in of_decisions(
            thread_id, before, after, events, breaker_after=self._breaker_after
        ):
            tell(self._watchers, notice)

    @contextmanager
    def _damage_told(self) -> Generator[None]:
        try:
            yield
        except (LogDamaged, LogBehindAnchor) as error:
            tell(self._watchers, of_damage(error))
            raise

    def erase(self, decide: ErasureDecision, *, at: datetime) -> Mapping[str, Stored]:
        """Erase, tell."""
        before: dict[str, Conversation] = {}

        def watched(load: Loading) -> Mapping[str, Erasure]:
            erasures = decide(load)
            before.update((thread_id, load(thread_id).state) for thread_id in erasures)
            return erasures

        stored = self._log.erase(watched, at=at)
        for thread_id, (loaded, events) in stored.items():
            was = loaded.state if loaded.state.erased else before[thread_id]
            self._tell(thread_id, was, loaded.state, events)
        return stored

    def finish_erasures(self, drop: Callable[[], bool]) -> bool:
        """See ``ConversationLog.finish_erasures``."""
        return self._log.finish_erasures(drop)

    def newest(self) -> int:
        """See ``ConversationLog.newest``."""
        return self._log.newest()

    def fork(
        self, source: str, version: int, into: str, decide: Decision, *, at: datetime
    ) -> LoadedConversation:
        """Fork, tell."""
        events: Sequence[Event] = ()

        def watched(loaded: LoadedConversation) -> Sequence[Event]:
            nonlocal events
            events = decide(loaded)
            return events

        loaded = self._log.fork(source, version, into, watched, at=at)
        self._tell(into, Conversation(), loaded.state, events)
        return loaded

    def forks(self) -> Sequence[Fork]:
        """See ``ConversationLog.forks``."""
        return self._log.forks()

    def version_at(self, thread_id: str, moment: datetime) -> int:
        """See ``ConversationLog.version_at``."""
        return self._log.version_at(thread_id, moment)

    def load(self, thread_id: str, *, at: int | None = None) -> LoadedConversation:
        """See ``ConversationLog.load``."""
        with self._damage_told():
            return self._log.load(thread_id, at=at)

    def versions_of_keys(self, thread_id: str, keys: Sequence[str]) -> Mapping[str, int]:
        """See ``ConversationLog.versions_of_keys``."""
        return self._log.versions_of_keys(thread_id, keys)

    def read(self, thread_id: str, first: int, last: int) -> Sequence[LoggedEvent]:
        """See ``ConversationLog.read``."""
        with self._damage_told():
            return self._log.read(thread_id, first, last)

    def read_at(self, thread_id: str, versions: Collection[int]) -> Sequence[LoggedEvent]:
        """See ``ConversationLog.read_at``."""
        with self._damage_told():
            return self._log.read_at(thread_id, versions)

    def scan(self, after: int = 0) -> Iterator[LoggedEvent]:
        """See ``ConversationLog.scan``."""
        with self._damage_told():
            yield from self._log.scan(after)

    def check(self) -> Iterator[Damage]:
        """See ``ConversationLog.check``."""
        return self._log.check()

    def close(self) -> None:
        """See ``ConversationLog.close``."""
        self._log.close()
