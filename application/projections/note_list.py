"""The list of durable notes, with their times and source messages."""

import json
from collections.abc import Sequence

from refold.application.ports.conversation_log import LoggedEvent
from refold.application.ports.read_models import NoteRow
from refold.domain.notes import NotesFlushed
from refold.domain.value import build_in_order

from .row_changes import Added, Change, Removed, fold_each

VERSION = 4
"""Version of the fold; increase it when the fold or the row changes, so that stored rows are rebuilt."""


def changes(logged: LoggedEvent) -> Sequence[Change]:
    """Add one row for each note; a note on demand can be withdrawn again."""
    event = logged.event
    match event:
        case NotesFlushed(is_on_demand=True, replaces=str(flush_id)):
            return (Removed({"thread_id": logged.thread_id, "flush_id": flush_id}),)
        case NotesFlushed():
            return [Added(row) for row in _rows(logged, event)]
        case _:
            return ()


changes_of_run = fold_each(changes, NotesFlushed)


def erased_changes(left: LoggedEvent) -> Sequence[Change]:
    """Remove notes that were withdrawn."""
    event = left.event
    if not isinstance(event, NotesFlushed) or event.notes:
        return ()
    return (Removed({"thread_id": left.thread_id, "flush_id": event.flush_id}),)


def _rows(logged: LoggedEvent, event: NotesFlushed) -> Sequence[NoteRow]:
    return [
        build_in_order(
            NoteRow,
            thread_id=logged.thread_id,
            flush_id=event.flush_id,
            number=number,
            kind=note.kind,
            text=note.text,
            positions=json.dumps(note.positions),
            taken_at=event.taken_at or logged.at,
            taken_by=event.taken_by,
            start=event.start,
            stop=event.stop,
            version=logged.version,
            reason=event.reason,
        )
        for number, note in enumerate(event.notes)
    ]
