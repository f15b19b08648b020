"""The list of compaction attempts and how each ended."""

from collections.abc import Sequence

from refold.application.ports.conversation_log import LoggedEvent
from refold.application.ports.read_models import CompactionRow
from refold.domain.events import (
    CompactionFailed,
    CompactionPerformed,
    CompactionRequested,
    CompactionReverted,
)
from refold.domain.value import build_in_order

from .row_changes import Added, Cell, Change, Changed, fold_each, utc

VERSION = 2
"""Version of the fold; increase it when the fold or the row changes, so that stored rows are rebuilt."""


def changes(logged: LoggedEvent) -> Sequence[Change]:
    """Add a row for a requested compaction, and record its outcome when it ends."""
    event = logged.event
    match event:
        case CompactionRequested():
            return (Added(_new_row(logged, event)),)
        case CompactionPerformed():
            return _mark_ended(
                logged,
                event.attempt_id,
                outcome="performed",
                summary_id=event.summary_id,
                tokens_after=event.tokens_after,
                model_calls=event.model_calls,
            )
        case CompactionFailed():
            to: dict[str, Cell] = {"reason": event.reason, "model_calls": event.model_calls}
            return _mark_ended(logged, event.attempt_id, outcome="failed", **to)
        case CompactionReverted():
            return _mark_reverted(logged, event)
        case _:
            return ()


changes_of_run = fold_each(
    changes, CompactionRequested, CompactionPerformed, CompactionFailed, CompactionReverted
)


def erased_changes(left: LoggedEvent) -> Sequence[Change]:
    """Update the focus of an attempt that quoted erased text."""
    event = left.event
    if not isinstance(event, CompactionRequested):
        return ()
    attempt = {"thread_id": left.thread_id, "attempt_id": event.attempt_id}
    return (Changed(attempt, {"focus": event.focus}),)


def _mark_reverted(logged: LoggedEvent, event: CompactionReverted) -> tuple[Changed]:
    undone = {"thread_id": logged.thread_id, "summary_id": event.summary_id}
    return (Changed(undone, {"outcome": "reverted"}),)


def _mark_ended(logged: LoggedEvent, attempt_id: str, **to: Cell) -> tuple[Changed]:
    attempt = {"thread_id": logged.thread_id, "attempt_id": attempt_id}
    return (Changed(attempt, {"ended_at": logged.at, **to}),)


def _new_row(logged: LoggedEvent, event: CompactionRequested) -> CompactionRow:
    return build_in_order(
        CompactionRow,
        attempt_id=event.attempt_id,
        thread_id=logged.thread_id,
        trigger=event.trigger,
        outcome="requested",
        reason=None,
        summariser=event.summariser,
        summary_id=None,
        requested_at=utc(event.requested_at),
        ended_at=None,
        tokens_before=event.tokens_before,
        tokens_after=None,
        covered_count=event.coverage.count,
        focus=event.focus,
        model_calls=0,
    )
