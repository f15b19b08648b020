"""The list of messages as readable text."""

from collections.abc import Sequence

from refold.application.ports.conversation_log import LoggedEvent
from refold.domain.events import EventLost, MessageAppended
from refold.domain.messages import readable

from .row_changes import Appended, Cell, Change, Replaced, utc

VERSION = 4
"""Version of the fold; increase it when the fold or the row changes, so that stored rows are rebuilt."""

LOST = "[lost]"
"""Text for a message that was damaged and lost."""


def changes_of_run(run: Sequence[LoggedEvent]) -> Sequence[Change]:
    """Return one new row for each message."""
    rows: list[tuple[Cell, ...]] = []
    for logged in run:
        event = logged.event
        match event:
            case MessageAppended():
                rows.append(_message_row(logged, event))
            case EventLost(position=int(position)):
                rows.append(_lost_row(logged, position))
            case _:
                pass
    return (Appended(rows),) if rows else ()


def erased_changes(left: LoggedEvent) -> Sequence[Change]:
    """Replace the row of an erased message with its remaining content."""
    event = left.event
    return (Replaced(_message_row(left, event)),) if isinstance(event, MessageAppended) else ()


def _message_row(logged: LoggedEvent, event: MessageAppended) -> tuple[Cell, ...]:
    """Return the columns of ``MessageRow`` in order; a tuple costs half as much as an object."""
    message = event.message
    return (
        logged.thread_id,
        event.position,
        logged.version,
        event.message_id,
        message.role,
        utc(event.written_at) if event.written_at else logged.at,
        event.tokens,
        readable(message),
        event.owner,
    )


def _lost_row(logged: LoggedEvent, position: int) -> tuple[Cell, ...]:
    """Return a row for a lost message, so that positions have no gaps."""
    place = (logged.thread_id, position, logged.version)
    return (*place, f"lost-{position}", "unknown", logged.at, 0, LOST, None)
