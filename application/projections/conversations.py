"""Which conversations are there, how large are they, and when was each last used?"""

from collections import Counter
from collections.abc import Sequence
from typing import assert_never

from refold.application.event_log import LoggedEvent
from refold.application.read_models import ConversationRow
from refold.domain.events import (
    CompactionFailed,
    CompactionPerformed,
    CompactionRequested,
    CompactionReverted,
    ConversationErased,
    ConversationForked,
    ConversationLabelled,
    EventLost,
    MessageAppended,
    MessageErased,
    MessagePinned,
    MessagesCondensed,
    MessageUnpinned,
    SummarySuperseded,
    ToolContentOffloaded,
    UserContentShortened,
)
from refold.domain.frames import RequestFrameChanged
from refold.domain.remembering import MemoriesChosen, NotesFlushed

from .row_changes import Added, Cell, Change, Changed

VERSION = 4
"""Grows when the fold or the row changes: stored rows of another version are dropped and replayed."""


def changes(logged: LoggedEvent) -> Sequence[Change]:
    """The first event of a conversation makes its row, every one counts into it."""
    return changes_of_run((logged,))


def changes_of_run(run: Sequence[LoggedEvent]) -> Sequence[Change]:
    """One change for the whole run, however long it is."""
    to: dict[str, Cell] = {"version": run[-1].version}
    more = Counter[str]()
    for logged in run:
        event = logged.event
        match event:
            case MessageAppended():
                to["last_activity"] = logged.at
                more.update(messages=1, tokens=event.tokens)
                if event.conversation_owner is not None:
                    to["owner"] = event.conversation_owner
            case CompactionPerformed():
                more["compactions"] += 1
            case EventLost():
                more["messages"] += event.position is not None
            case ConversationErased():
                to["erased"] = 1
            case ConversationLabelled():
                to["label"] = event.label
            case ConversationForked():
                to |= {"forked_from": event.source, "forked_at": event.version}
            case (
                CompactionRequested()
                | CompactionFailed()
                | CompactionReverted()
                | SummarySuperseded()
                | ToolContentOffloaded()
                | MessagesCondensed()
                | UserContentShortened()
                | MessagePinned()
                | MessageUnpinned()
                | NotesFlushed()
                | MemoriesChosen()
                | RequestFrameChanged()
                | MessageErased()
            ):
                pass
            case _:
                assert_never(event)
    row = Changed({"thread_id": run[0].thread_id}, to, +more)
    return (Added(_begun(run[0])), row) if run[0].version == 1 else (row,)


def _begun(logged: LoggedEvent) -> ConversationRow:
    return ConversationRow(
        thread_id=logged.thread_id,
        label=None,
        messages=0,
        tokens=0,
        compactions=0,
        created_at=logged.at,
        last_activity=logged.at,
        version=logged.version,
        erased=False,
        forked_from=None,
        forked_at=None,
        owner=None,
    )
