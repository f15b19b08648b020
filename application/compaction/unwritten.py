"""Summaries that could not be written to the log: kept in memory, and written by the next transaction."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from refold.application.api.results import CompactionResult
from refold.application.conversation.loaded import LoadedConversation
from refold.application.errors import LogBusy, LogDamaged, LogError, LogFull, LogNotWritable
from refold.application.runtime.opening_process import waiting_at_most
from refold.application.runtime.plain_lines import conversation, plain_logger
from refold.domain.events import Event

if TYPE_CHECKING:
    from refold.application.ports.conversation_log import ConversationLog, Decision
    from refold.domain.compaction.summary_rules import Summary, SummaryRefused
    from refold.domain.cuts.planner import CompactionPlan
    from refold.domain.events import CompactionRequested

_LOCK = threading.Lock()
_LIVE: set[str] = set()


def begin(attempt_id: str) -> None:
    """Register an attempt of this process, before any other caller can see it."""
    with _LOCK:
        _LIVE.add(attempt_id)


def end(attempt_id: str) -> None:
    """Unregister an attempt of this process, if it is registered."""
    with _LOCK:
        _LIVE.discard(attempt_id)


def is_live(attempt_id: str) -> bool:
    """Return whether this process works on an attempt, or keeps its unwritten end."""
    return attempt_id in _LIVE


logger = plain_logger(__name__)

_REASONS = ((LogBusy, "busy"), (LogFull, "full"), (LogNotWritable, "not_writable"))
Written = Callable[[LoadedConversation, Sequence[Event]], CompactionResult | None]
"""Function that returns the result, if any, for the events and the conversation after them."""


def reason_of(error: LogError) -> str:
    """Return a short constant for the reason why the log could not be written."""
    if isinstance(error, LogDamaged):
        return "log_damaged"
    return next((f"log_{name}" for kind, name in _REASONS if isinstance(error, kind)), "log_failed")


@dataclass(slots=True, eq=False, repr=False)
class Unwritten:
    """A decision that waits to be written."""

    what: str
    """Description for log messages: ``summary``, ``end of a compaction``, ``notes``."""
    decide: Decision
    """Decision that never raises; parts that no longer fit the newest state are dropped."""
    written: Written
    attempt_id: str | None = None
    waiting: CompactionResult | None = None
    """Result to report while it waits, or None."""
    result: CompactionResult | None = None
    """Result to report after it was written, or None."""


class UnwrittenWrites:
    """All waiting decisions by conversation, in the order in which they were made."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.threads: dict[str, tuple[Unwritten, ...]] = {}
        """Waiting decisions of each conversation that has any, the oldest first."""

    def keep(self, thread_id: str, unwritten: Unwritten, error: LogError) -> None:
        """Keep a decision until it can be written, and log a warning."""
        with self._lock:
            self.threads[thread_id] = (*self.threads.get(thread_id, ()), unwritten)
        logger.warning(
            "%s: the %s cannot be written yet; it is kept in memory, and a later "
            "operation writes it: %s",
            conversation(thread_id),
            unwritten.what,
            error,
        )

    def find(self, thread_id: str) -> tuple[Unwritten, ...]:
        """Return the waiting decisions of one conversation, the oldest first."""
        return self.threads.get(thread_id, ())

    def done(self, thread_id: str, written: Sequence[Unwritten]) -> tuple[Unwritten, ...]:
        """Remove written decisions, and return those that were still waiting."""
        with self._lock:
            waiting = self.threads.get(thread_id, ())
            done = tuple(one for one in waiting if one in written)
            left = tuple(one for one in waiting if one not in written)
            if left:
                self.threads[thread_id] = left
            else:
                self.threads.pop(thread_id, None)
        for one in done:
            if one.attempt_id is not None:
                end(one.attempt_id)
        return done

    def extend(self, thread_id: str, decide: Decision) -> _CatchingUp | None:
        """Return the decision with the waiting ones before it, or None if there are none."""
        waiting = self.find(thread_id)
        return _CatchingUp(self, thread_id, waiting, decide) if waiting else None

    def forget(self, thread_id: str) -> None:
        """Remove all waiting decisions of a conversation that was erased."""
        self.done(thread_id, self.find(thread_id))

    def lose(self, thread_id: str, error: LogError) -> None:
        """Drop decisions that were not written before the memory closed, and log a warning."""
        for one in self.done(thread_id, self.find(thread_id)):
            logger.warning(
                "%s: the %s could not be written and is lost: %s",
                conversation(thread_id),
                one.what,
                error,
            )


class _CatchingUp:
    """A decision with the waiting ones before it."""

    def __init__(
        self,
        unwritten: UnwrittenWrites,
        thread_id: str,
        waiting: Sequence[Unwritten],
        own: Decision,
    ) -> None:
        self._unwritten = unwritten
        self._thread_id = thread_id
        self._waiting = waiting
        self._own = own
        self._stored: list[tuple[LoadedConversation, tuple[Event, ...]]] = []
        """Events of each waiting decision, with the conversation right after them."""

    def decide(self, loaded: LoadedConversation) -> Sequence[Event]:
        """Return the events of the waiting decisions and of this one; called again after a conflict."""
        self._stored.clear()
        for one in self._waiting:
            events = () if loaded.state.erased else tuple(one.decide(loaded))
            loaded = loaded.after(events) if events else loaded
            self._stored.append((loaded, events))
        return [*(event for _, events in self._stored for event in events), *self._own(loaded)]

    def stored(self, loaded: LoadedConversation, events: tuple[Event, ...]) -> tuple[Event, ...]:
        """Remove the written decisions, and return only the events of this one."""
        done = self._unwritten.done(self._thread_id, self._waiting)
        for one, (after, own) in zip(self._waiting, self._stored, strict=True):
            if one in done:
                one.result = one.written(after, own)
        return events[sum(len(own) for _, own in self._stored) :]


def write_waiting(
    log: ConversationLog, unwritten: UnwrittenWrites, thread_id: str, *, at: datetime
) -> list[CompactionResult]:
    """Write the waiting decisions of a conversation now, and return their results.

    Raises:
        LogError: the log still cannot be written.
    """
    waiting = unwritten.find(thread_id)
    if waiting:
        log.transact(thread_id, lambda _: (), at=at)
    return [one.result for one in waiting if one.result is not None]


def write_all_waiting(
    log: ConversationLog, unwritten: UnwrittenWrites, *, at: datetime, wait: float
) -> None:
    """Write all waiting decisions before the memory closes; log those that are lost."""
    for thread_id in tuple(unwritten.threads):
        try:
            with waiting_at_most(wait):
                write_waiting(log, unwritten, thread_id, at=at)
        except LogError as error:
            unwritten.lose(thread_id, error)
            wait = 0.0  # The log will not be free for the next one either.


class Attempt(Protocol):
    """The attempt that made a summary."""

    def performed(self, loaded: LoadedConversation, events: Sequence[Event]) -> CompactionResult:
        """Return the result after the summary was written."""
        ...

    def failed(self, loaded: LoadedConversation, reason: str, detail: str) -> CompactionResult:
        """Return the result after the summary was refused."""
        ...

    def ending(self, now: LoadedConversation, reason: str, detail: str) -> Sequence[Event]:
        """Return the events that record the refusal."""
        ...

    def notify(self, result: CompactionResult) -> None:
        """Notify the observers."""
        ...


class KeptSummary:
    """A kept summary, written against the newest state; it is refused if its messages have changed."""

    def __init__(
        self,
        attempt: Attempt,
        requested: CompactionRequested,
        plan: CompactionPlan,
        summary: Summary,
    ) -> None:
        self._attempt = attempt
        self._requested = requested
        self._plan = plan
        self._summary = summary
        self._refused: SummaryRefused | None = None

    def decide(self, now: LoadedConversation) -> Sequence[Event]:
        """Return the events to write."""
        from refold.domain.compaction.compacting import perform_compaction
        from refold.domain.compaction.summary_rules import SummaryRefused

        self._refused = None
        active = now.state.summary
        if active is not None and active.summary_id == self._summary.summary_id:
            return ()  # The commit that was reported as failed was made.
        try:
            return perform_compaction(now.state, self._requested, self._plan, self._summary)
        except SummaryRefused as refused:
            self._refused = refused
            return self._attempt.ending(now, refused.reason, str(refused))

    def written(self, loaded: LoadedConversation, events: Sequence[Event]) -> CompactionResult:
        """Return the result and notify the observers."""
        from refold.domain.events import CompactionPerformed

        summary = loaded.window.summary
        if self._refused is not None or summary is None:
            reason = self._refused.reason if self._refused else "overtaken"
            result = self._attempt.failed(loaded, reason, str(self._refused or ""))
        else:
            performed = [event for event in events if isinstance(event, CompactionPerformed)]
            result = self._attempt.performed(loaded, performed or [summary])
        self._attempt.notify(result)
        return result
