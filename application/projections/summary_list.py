"""The list of summaries, the messages that each covers, and which one is active."""

import json
from collections.abc import Sequence

from refold.application.ports.conversation_log import LoggedEvent
from refold.application.ports.read_models import SummaryRow
from refold.domain.events import (
    CompactionPerformed,
    CompactionReverted,
    MessageAppended,
    SummarySuperseded,
)
from refold.domain.value import build_in_order

from .row_changes import Added, Cell, Change, Changed, fold_each

VERSION = 3
"""Version of the fold; increase it when the fold or the row changes, so that stored rows are rebuilt."""


def changes(logged: LoggedEvent) -> Sequence[Change]:
    """Add a row for a new summary and make it the only active one."""
    event = logged.event
    match event:
        case MessageAppended():
            return ()
        case CompactionPerformed():
            active: dict[str, Cell] = {"thread_id": logged.thread_id, "is_active": 1}
            return (Changed(active, {"is_active": 0}), Added(_summary_row(logged, event)))
        case SummarySuperseded():
            old = {"thread_id": logged.thread_id, "summary_id": event.summary_id}
            return (Changed(old, {"superseded_by": event.by}),)
        case CompactionReverted():
            return _mark_reverted(logged, event)
        case _:
            return ()


changes_of_run = fold_each(changes, CompactionPerformed, SummarySuperseded, CompactionReverted)


def erased_changes(left: LoggedEvent) -> Sequence[Change]:
    """Update the text of a summary that lost content."""
    event = left.event
    if not isinstance(event, CompactionPerformed):
        return ()
    made = {"thread_id": left.thread_id, "summary_id": event.summary_id}
    to: dict[str, Cell] = {
        "summary_text": event.text,
        "split_turn_prefix": event.split_turn_prefix,
    }
    return (Changed(made, to),)


def _mark_reverted(logged: LoggedEvent, event: CompactionReverted) -> Sequence[Change]:
    made = {"thread_id": logged.thread_id, "summary_id": event.summary_id}
    undone = Changed(made, {"is_active": 0, "is_reverted": 1})
    if event.restored is None:
        return (undone,)
    before = {"thread_id": logged.thread_id, "summary_id": event.restored.summary_id}
    return (undone, Changed(before, {"is_active": 1, "superseded_by": None}))


def _summary_row(logged: LoggedEvent, event: CompactionPerformed) -> SummaryRow:
    coverage = event.coverage
    return build_in_order(
        SummaryRow,
        summary_id=event.summary_id,
        thread_id=logged.thread_id,
        summary_text=event.text,
        compact_up_to_index=coverage.stop - 1,
        first_kept_index=coverage.stop,
        compacted_at=logged.at,
        message_count=event.message_count,
        is_split_turn=event.is_split_turn,
        split_turn_prefix=event.split_turn_prefix,
        is_active=True,
        created_at=logged.at,
        covered_from=coverage.start,
        covered_count=coverage.count,
        exclusions=json.dumps(coverage.exclusions),
        first_message_id=coverage.first_message_id,
        last_message_id=coverage.last_message_id,
        version=logged.version,
        tokens=event.tokens,
        model=event.model,
        superseded_by=None,
        is_reverted=False,
    )
