"""A log that writes what could not be written before, together with whatever is written next."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime

from refold.domain.events import Event

from .errors import LogError
from .event_log import (
    ConversationLog,
    Damage,
    Decision,
    ErasureDecision,
    Fork,
    LoggedEvent,
    Stored,
)
from .loaded import LoadedConversation
from .patience import waiting_at_most
from .plain_lines import plain_logger
from .results import CompactionResult
from .unwritten import Unwritten, UnwrittenWrites

logger = plain_logger(__name__)


class UnwrittenLog:
    """``log``, whose every transaction first stores what waits of its conversation, in the same commit."""

    def __init__(self, log: ConversationLog, unwritten: UnwrittenWrites) -> None:
        self._log = log
        self._unwritten = unwritten

    def transact(
        self, thread_id: str, decide: Decision, *, at: datetime
    ) -> tuple[LoadedConversation, tuple[Event, ...]]:
        """See ``ConversationLog``. The answer has the events of ``decide`` alone."""
        waiting = self._unwritten.of(thread_id)
        if not waiting:
            return self._log.transact(thread_id, decide, at=at)
        catching_up = _CatchingUp(waiting, decide)
        loaded, events = self._log.transact(thread_id, catching_up.decide, at=at)
        done = self._unwritten.done(thread_id, waiting)
        for one, (after, own) in zip(waiting, catching_up.stored, strict=True):
            if one in done:
                one.result = one.written(after, own)
        return loaded, events[catching_up.count :]

    def erase(self, decide: ErasureDecision, *, at: datetime) -> Mapping[str, Stored]:
        """See ``ConversationLog``."""
        return self._log.erase(decide, at=at)

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
        return self._log.fork(source, version, into, decide, at=at)

    def forks(self) -> Sequence[Fork]:
        """See ``ConversationLog``."""
        return self._log.forks()

    def version_at(self, thread_id: str, moment: datetime) -> int:
        """See ``ConversationLog``."""
        return self._log.version_at(thread_id, moment)

    def load(self, thread_id: str, *, at: int | None = None) -> LoadedConversation:
        """See ``ConversationLog``."""
        return self._log.load(thread_id, at=at)

    def versions_of_keys(self, thread_id: str, keys: Sequence[str]) -> Mapping[str, int]:
        """See ``ConversationLog``."""
        return self._log.versions_of_keys(thread_id, keys)

    def read(self, thread_id: str, first: int, last: int) -> Sequence[LoggedEvent]:
        """See ``ConversationLog``."""
        return self._log.read(thread_id, first, last)

    def read_at(self, thread_id: str, versions: Collection[int]) -> Sequence[LoggedEvent]:
        """See ``ConversationLog``."""
        return self._log.read_at(thread_id, versions)

    def scan(self, after: int = 0) -> Iterator[LoggedEvent]:
        """See ``ConversationLog``."""
        return self._log.scan(after)

    def check(self) -> Iterator[Damage]:
        """See ``ConversationLog``."""
        return self._log.check()

    def close(self) -> None:
        """See ``ConversationLog``."""
        self._log.close()


class _CatchingUp:
    """A decision with what waits before it."""

    def __init__(self, waiting: Sequence[Unwritten], own: Decision) -> None:
        self._waiting = waiting
        self._own = own
        self.stored: list[tuple[LoadedConversation, tuple[Event, ...]]] = []
        """For each that waits: what is stored of it, and the conversation right after it."""

    @property
    def count(self) -> int:
        """How many events stand before those of the decision itself."""
        return sum(len(events) for _, events in self.stored)

    def decide(self, loaded: LoadedConversation) -> Sequence[Event]:
        """Decide; asked again after a conflict, begin anew."""
        self.stored.clear()
        for one in self._waiting:
            events = () if loaded.state.erased else tuple(one.decide(loaded))
            loaded = loaded.after(events) if events else loaded
            self.stored.append((loaded, events))
        return [*(event for _, events in self.stored for event in events), *self._own(loaded)]


def write_waiting(
    log: ConversationLog, unwritten: UnwrittenWrites, thread_id: str, *, at: datetime
) -> list[CompactionResult]:
    """Write what waits of a conversation now, and return the results of it.

    Raises:
        LogError: it cannot be written yet either.
    """
    waiting = unwritten.of(thread_id)
    if waiting:
        log.transact(thread_id, lambda _: (), at=at)
    return [one.result for one in waiting if one.result is not None]


def write_all_waiting(
    log: ConversationLog, unwritten: UnwrittenWrites, *, at: datetime, wait: float
) -> None:
    """Write what waits, before the memory is closed; what cannot be written is lost, and told so."""
    for thread_id in unwritten.threads():
        try:
            with waiting_at_most(wait):
                write_waiting(log, unwritten, thread_id, at=at)
        except LogError as error:
            unwritten.lose(thread_id, error)
            wait = 0.0  # The log will not be free for the next one either.
