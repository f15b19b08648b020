"""What was made and could not be written to the log yet: kept in memory, and written by the next that can."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from refold.domain.events import Event

from .errors import LogBusy, LogDamaged, LogError, LogFull, LogNotWritable
from .event_log import Decision
from .live_attempts import end
from .loaded import LoadedConversation
from .plain_lines import conversation, plain_logger
from .results import CompactionResult

logger = plain_logger(__name__)

_REASONS = ((LogBusy, "busy"), (LogFull, "full"), (LogNotWritable, "not_writable"))
Written = Callable[[LoadedConversation, Sequence[Event]], CompactionResult | None]
"""Given the conversation right after it was written, and what was: the result, where it has one."""


def reason_of(error: LogError) -> str:
    """Return a short constant for why the log could not be written."""
    if isinstance(error, LogDamaged):
        return "log_damaged"
    return next((f"log_{name}" for kind, name in _REASONS if isinstance(error, kind)), "log_failed")


@dataclass(slots=True, eq=False)
class Unwritten:
    """Something that is decided and waits to be written."""

    what: str
    """For people: ``summary``, ``end of a compaction``, ``notes``."""
    decide: Decision
    """Never raises: what does not fit the newest state any more is dropped."""
    written: Written
    attempt_id: str | None = None
    waiting: CompactionResult | None = None
    """What is told of it while it waits."""
    result: CompactionResult | None = None
    """What is told of it when it was written."""


class UnwrittenWrites:
    """All that waits, by conversation, in the order in which it was made."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, tuple[Unwritten, ...]] = {}

    def keep(self, thread_id: str, unwritten: Unwritten, error: LogError) -> None:
        """Keep something until it can be written; says so in the log lines."""
        with self._lock:
            self._waiting[thread_id] = (*self._waiting.get(thread_id, ()), unwritten)
        logger.warning(
            "%s: the %s cannot be written yet; it is kept in memory, and the next "
            "operation that can writes it: %s",
            conversation(thread_id),
            unwritten.what,
            error,
        )

    def of(self, thread_id: str) -> tuple[Unwritten, ...]:
        """What waits of one conversation, the oldest first."""
        return self._waiting.get(thread_id, ())

    def threads(self) -> tuple[str, ...]:
        """The conversations of which something waits."""
        with self._lock:
            return tuple(self._waiting)

    def done(self, thread_id: str, written: Sequence[Unwritten]) -> tuple[Unwritten, ...]:
        """Let go of what was written; which of it waited until now."""
        with self._lock:
            waiting = self._waiting.get(thread_id, ())
            done = tuple(one for one in waiting if one in written)
            left = tuple(one for one in waiting if one not in written)
            if left:
                self._waiting[thread_id] = left
            else:
                self._waiting.pop(thread_id, None)
        for one in done:
            if one.attempt_id is not None:
                end(one.attempt_id)
        return done

    def forget(self, thread_id: str) -> None:
        """Let go of all that waits of a conversation, which is erased."""
        self.done(thread_id, self.of(thread_id))

    def lose(self, thread_id: str, error: LogError) -> None:
        """Let go of what could not be written until the memory was closed; says so."""
        for one in self.done(thread_id, self.of(thread_id)):
            logger.warning(
                "%s: the %s was never written, and is lost with this process: %s",
                conversation(thread_id),
                one.what,
                error,
            )
