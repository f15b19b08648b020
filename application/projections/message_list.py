"""The list of messages as readable text."""

from collections.abc import Sequence
from typing import TypeVar

from refold.application.ports.conversation_log import LoggedEvent, MessageFields
from refold.domain.events import EventLost
from refold.domain.messages import (
    CALLS,
    THINKING,
    Block,
    block_text,
    call_text,
    readable_content,
)

from .row_changes import Appended, Cell, Change, Replaced, listed_time

VERSION = 4
"""Version of the fold; increase it when the fold or the row changes, so that stored rows are rebuilt."""

LOST = "[lost]"
"""Text for a message that was damaged and lost."""


def changes_of_run(run: Sequence[LoggedEvent]) -> Sequence[Change]:
    """Return one new row for each message."""
    rows: list[tuple[Cell | bytes, ...]] = []
    for logged in run:
        if (message := logged.message) is not None:
            try:
                text: str | bytes = _utf8_text(message["message"]["content"])
            except UnicodeEncodeError:
                text = readable_content(message["message"]["content"])
            rows.append(_message_row(logged, message, text))
        elif isinstance(event := logged.event, EventLost) and event.position is not None:
            rows.append(_lost_row(logged, event.position))
    return (Appended(rows, _TEXT),) if rows else ()


def _utf8_text(content: str | Sequence[Block]) -> bytes:
    """Return ``readable_content`` as UTF-8, faster: the arrow before a call makes all of a text twice as large.

    Raises:
        UnicodeEncodeError: the content has a lone surrogate.
    """
    if isinstance(content, str):
        return content.encode()
    parts: list[bytes] = []
    for block in content:
        kind = block.get("type")
        if kind in CALLS:
            parts.append(_ARROW + call_text(block).encode())
        elif kind not in THINKING and (text := block_text(block)) and not text.isspace():
            parts.append(text.encode())
    return parts[0] if len(parts) == 1 else b"\n".join(parts)


_ARROW = "→ ".encode()


def erased_changes(left: LoggedEvent) -> Sequence[Change]:
    """Replace the row of an erased message with its remaining content."""
    message = left.message
    if message is None:
        return ()
    text = readable_content(message["message"]["content"])
    return (Replaced(_message_row(left, message, text)),)


_TEXT = 7
"""Index of the text in a row."""
T = TypeVar("T")


def _message_row(
    logged: LoggedEvent, message: MessageFields, text: T
) -> tuple[str, int, int, str, str, str, int, T, str | None]:
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
        text,
        message.get("owner"),
    )


def _lost_row(logged: LoggedEvent, position: int) -> tuple[Cell, ...]:
    """Return a row for a lost message, so that positions have no gaps."""
    place = (logged.thread_id, position, logged.version)
    return (*place, f"lost-{position}", "unknown", logged.at, 0, LOST, None)
