"""A log that records a changed frame with whatever is stored next: no commit of its own."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime

from refold.application.errors import LogError
from refold.application.event_log import (
    ConversationLog,
    Damage,
    Decision,
    ErasureDecision,
    Fork,
    LoggedEvent,
    Stored,
)
from refold.application.loaded import LoadedConversation
from refold.application.patience import BRIEFLY, waiting_at_most
from refold.domain.events import Event, MessageAppended

from .asked import Asked


class FramedLog:
    """``log``, with the changes of frames that ``asked`` knows of."""

    def __init__(self, log: ConversationLog, asked: Asked) -> None:
        self._log = log
        self._asked = asked

    def transact(
        self, thread_id: str, decide: Decision, *, at: datetime
    ) -> tuple[LoadedConversation, tuple[Event, ...]]:
        """Decide behind a frame that has changed, and store both."""
        is_noted = False

        def framed(loaded: LoadedConversation) -> Sequence[Event]:
            nonlocal is_noted
            change = self._asked.change(thread_id, loaded.state)
            events = decide(loaded if change is None else loaded.after((change,)))
            if change is None and any(map(_thinks, events)):
                change = self._asked.change(thread_id, loaded.state, thinks=True)
                events = events if change is None else decide(loaded.after((change,)))
            is_noted = change is not None and bool(events)
            return (change, *events) if change is not None and events else events

        stored = self._log.transact(thread_id, framed, at=at)
        if is_noted:
            self._asked.recorded(thread_id)
        return stored

    def record_waiting(self, *, at: datetime, wait: float) -> None:
        """Record the frames of requests without an answer, before the memory is closed.

        Another process may store the answer without knowing the request. A busy log is waited for only
        briefly; a frame that cannot be recorded is lost.
        """
        for thread_id in self._asked.waiting():
            try:
                with waiting_at_most(min(wait, BRIEFLY)):
                    self._log.transact(thread_id, self._changed, at=at)
            except LogError:
                return

    def _changed(self, loaded: LoadedConversation) -> Sequence[Event]:
        """Return the change of the frame, if an earlier frame or a first choice of memories makes it matter."""
        if loaded.state.frame is None and not self._asked.has_chosen(loaded.thread_id):
            return ()
        change = self._asked.change(loaded.thread_id, loaded.state)
        return () if change is None else (change,)

    def load(self, thread_id: str, *, at: int | None = None) -> LoadedConversation:
        """See ``ConversationLog.load``."""
        return self._log.load(thread_id, at=at)

    def erase(self, decide: ErasureDecision, *, at: datetime) -> Mapping[str, Stored]:
        """See ``ConversationLog.erase``."""
        return self._log.erase(decide, at=at)

    def finish_erasures(self, drop: Callable[[], bool]) -> bool:
        """See ``ConversationLog.finish_erasures``."""
        return self._log.finish_erasures(drop)

    def newest(self) -> int:
        """See ``ConversationLog.newest``."""
        return self._log.newest()

    def fork(
        self, source: str, version: int, into: str, decide: Decision, *, at: datetime
    ) -> LoadedConversation:
        """See ``ConversationLog.fork``."""
        return self._log.fork(source, version, into, decide, at=at)

    def forks(self) -> Sequence[Fork]:
        """See ``ConversationLog.forks``."""
        return self._log.forks()

    def version_at(self, thread_id: str, moment: datetime) -> int:
        """See ``ConversationLog.version_at``."""
        return self._log.version_at(thread_id, moment)

    def versions_of_keys(self, thread_id: str, keys: Sequence[str]) -> Mapping[str, int]:
        """See ``ConversationLog.versions_of_keys``."""
        return self._log.versions_of_keys(thread_id, keys)

    def read(self, thread_id: str, first: int, last: int) -> Sequence[LoggedEvent]:
        """See ``ConversationLog.read``."""
        return self._log.read(thread_id, first, last)

    def read_at(self, thread_id: str, versions: Collection[int]) -> Sequence[LoggedEvent]:
        """See ``ConversationLog.read_at``."""
        return self._log.read_at(thread_id, versions)

    def scan(self, after: int = 0) -> Iterator[LoggedEvent]:
        """See ``ConversationLog.scan``."""
        return self._log.scan(after)

    def check(self) -> Iterator[Damage]:
        """See ``ConversationLog.check``."""
        return self._log.check()

    def close(self) -> None:
        """See ``ConversationLog.close``."""
        self._log.close()


def _thinks(event: Event) -> bool:
    return isinstance(event, MessageAppended) and event.thinking_tokens > 0
