"""The list of messages as readable text."""

from collections.abc import Sequence

from refold.application.ports.conversation_log import LoggedEvent, MessageFields
from refold.domain.events import EventLost
from refold.domain.messages import readable_content

from .row_changes import Appended, Cell, Change, Replaced, listed_time

VERSION = 4
"""Version of the fold; increase it when the fold or the row changes, so that stored rows are rebuilt."""

LOST = "[lost]"
"""Text for a message that was damaged and lost."""


def changes_of_run(run: Sequence[LoggedEvent]) -> Sequence[Change]:
    """Return one new row for each message."""
    rows: list[tuple[Cell, ...]] = []
    for logged in run:
        if (message := logged.message) is not None:
            rows.append(_message_row(logged, message))
        elif isinstance(event := logged.event, EventLost) and event.position is not None:
            rows.append(_lost_row(logged, event.position))
    return (Appended(rows),) if rows else ()


def erased_changes(left: LoggedEvent) -> Sequence[Change]:
    """Replace the row of an erased message with its remaining content."""
    message = left.message
    return () if message is None else (Replaced(_message_row(left, message)),)


def _message_row(logged: LoggedEvent, message: MessageFields) -> tuple[Cell, ...]:
    """Return the columns of ``MessageRow`` in order; a tuple costs half as much as an object."""
    said = message["message"]
    return (
        logged.thread_id,
        message["position"],
        logged.version,
        message["message_id"],
        said["role"],
        listed_time(logged, message),
        message["tokens"],
        readable_content(said["content"]),
        message.get("owner"),
    )


def _lost_row(logged: LoggedEvent, position: int) -> tuple[Cell, ...]:
    """Return a row for a lost message, so that positions have no gaps."""
    place = (logged.thread_id, position, logged.version)
    return (*place, f"lost-{position}", "unknown", logged.at, 0, LOST, None)
