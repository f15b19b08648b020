"""What are the covered messages about, how often does it come up, and where last?"""

from collections.abc import Sequence

from refold.application.ports.conversation_log import LoggedEvent
from refold.application.ports.read_models import TopicRow
from refold.domain.events import CompactionPerformed, CompactionReverted

from .row_changes import Added, Cell, Change, Changed, Removed, one_by_one

VERSION = 1
"""Grows when the fold or the row changes: stored rows of another version are dropped and replayed."""


def changes(logged: LoggedEvent) -> Sequence[Change]:
    """The topics of a new summary take the place of those before; an undone one gives it back."""
    event = logged.event
    match event:
        case CompactionPerformed():
            active: dict[str, Cell] = {"thread_id": logged.thread_id, "is_active": 1}
            return (Changed(active, {"is_active": 0}), *_made(logged, event))
        case CompactionReverted():
            return _undone(logged, event)
        case _:
            return ()


changes_of_run = one_by_one(changes, CompactionPerformed, CompactionReverted)


def _made(logged: LoggedEvent, event: CompactionPerformed) -> Sequence[Added]:
    return [
        Added(
            TopicRow(
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
    """The topics of a summary that was withdrawn go with it."""
    event = left.event
    if not isinstance(event, CompactionPerformed) or event.topics:
        return ()
    return (Removed({"thread_id": left.thread_id, "summary_id": event.summary_id}),)


def _undone(logged: LoggedEvent, event: CompactionReverted) -> Sequence[Change]:
    of_undone = {"thread_id": logged.thread_id, "summary_id": event.summary_id}
    undone = Changed(of_undone, {"is_active": 0})
    if event.restored is None:
        return (undone,)
    before = {"thread_id": logged.thread_id, "summary_id": event.restored.summary_id}
    return (undone, Changed(before, {"is_active": 1}))
