"""A finished summary that could not be written: what is written of it later, and what is told then."""

from collections.abc import Sequence
from typing import Protocol

from refold.domain.compacting import perform_compaction
from refold.domain.cuts.planner import CompactionPlan
from refold.domain.events import CompactionPerformed, CompactionRequested, Event
from refold.domain.judging import Summary, SummaryRefused

from .loaded import LoadedConversation
from .results import CompactionResult


class Attempt(Protocol):
    """The attempt that made it."""

    def performed(self, loaded: LoadedConversation, events: Sequence[Event]) -> CompactionResult:
        """The result where the summary was written."""
        ...

    def failed(self, loaded: LoadedConversation, reason: str, detail: str) -> CompactionResult:
        """The result where it was refused."""
        ...

    def ending(self, now: LoadedConversation, reason: str, detail: str) -> Sequence[Event]:
        """What is recorded then."""
        ...

    def tell(self, result: CompactionResult) -> None:
        """Tell the observers."""
        ...


class KeptSummary:
    """Written against the newest state as any summary is: refused where what it covers has changed."""

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
        """What is written."""
        self._refused = None
        active = now.state.summary
        if active is not None and active.summary_id == self._summary.summary_id:
            return ()  # The commit that was told to have failed was made.
        try:
            return perform_compaction(now.state, self._requested, self._plan, self._summary)
        except SummaryRefused as refused:
            self._refused = refused
            return self._attempt.ending(now, refused.reason, str(refused))

    def written(self, loaded: LoadedConversation, events: Sequence[Event]) -> CompactionResult:
        """What became of it; the observers are told."""
        summary = loaded.window.summary
        if self._refused is not None or summary is None:
            reason = self._refused.reason if self._refused else "overtaken"
            result = self._attempt.failed(loaded, reason, str(self._refused or ""))
        else:
            performed = [event for event in events if isinstance(event, CompactionPerformed)]
            result = self._attempt.performed(loaded, performed or [summary])
        self._attempt.tell(result)
        return result
