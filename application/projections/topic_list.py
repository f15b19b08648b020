"""The list of topics of the covered messages, with how often and where they occur."""

from collections.abc import Sequence

from refold.application.ports.conversation_log import LoggedEvent
from refold.application.ports.read_models import TopicRow
from refold.domain.events import CompactionPerformed, CompactionReverted
from refold.domain.value import build_in_order

from .row_changes import Added, Cell, Change, Changed, Removed, fold_each

VERSION = 1
"""Version of the fold; increase it when the fold or the row changes, so that stored rows are rebuilt."""


def changes(logged: LoggedEvent) -> Sequence[Change]:
    """Replace the active topics for a new summary, and restore the earlier ones when it is reverted."""
    event = logged.event
    match event:
        case CompactionPerformed():
            active: dict[str, Cell] = {"thread_id": logged.thread_id, "is_active": 1}
            return (Changed(active, {"is_active": 0}), *_topic_rows(logged, event))
        case CompactionReverted():
            return _mark_reverted(logged, event)
        case _:
            return ()


changes_of_run = fold_each(changes, CompactionPerformed, CompactionReverted)


def _topic_rows(logged: LoggedEvent, event: CompactionPerformed) -> Sequence[Added]:
    return [
        Added(
            build_in_order(
                TopicRow,
                thread_id=logged.thread_id,
                summary_id=event.summary_id,
                rank=rank,
                topic=topic.name,
                count=topic.count,
                last_position=topic.last_position,
                is_shown=rank < event.topics_shown,
                is_active=True,
            )
        )
        for rank, topic in enumerate(event.topics)
    ]


def erased_changes(left: LoggedEvent) -> Sequence[Change]:
    """Remove the topics of a summary that was withdrawn."""
    event = left.event
    if not isinstance(event, CompactionPerformed) or event.topics:
        return ()
    return (Removed({"thread_id": left.thread_id, "summary_id": event.summary_id}),)


def _mark_reverted(logged: LoggedEvent, event: CompactionReverted) -> Sequence[Change]:
    of_undone = {"thread_id": logged.thread_id, "summary_id": event.summary_id}
    undone = Changed(of_undone, {"is_active": 0})
    if event.restored is None:
        return (undone,)
    before = {"thread_id": logged.thread_id, "summary_id": event.restored.summary_id}
    return (undone, Changed(before, {"is_active": 1}))
