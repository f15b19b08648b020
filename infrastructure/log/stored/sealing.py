"""Seals events into the rows that are stored: each follows the one before it."""

import secrets
from collections.abc import Sequence
from typing import NamedTuple

from eventsourcing.persistence import StoredEvent

from refold.domain.errors import InvalidMessage
from refold.domain.events import Event, MessageAppended
from refold.infrastructure.log.file.sqlite import Head

from .mapper import EventMapper, UnsealedEvent

LARGEST_EVENT = 32 * 1024 * 1024
"""Bytes of one event: no request with a larger message would be accepted."""


class SealedRows(NamedTuple):
    """Rows to insert."""

    rows: list[StoredEvent]
    keys: list[tuple[str, str, int]]
    """The idempotency keys among them: stream, key, version."""
    head: Head
    """Of the stream once they are stored."""


def sealed_rows(
    mapper: EventMapper, stream: str, head: Head, events: Sequence[Event], stamp: str
) -> SealedRows:
    """The rows of events that come after ``head``, logged at ``stamp``.

    Raises:
        InvalidMessage: one is larger than anything that could be sent.
    """
    rows: list[StoredEvent] = []
    keys: list[tuple[str, str, int]] = []
    salts = secrets.token_hex(16 * len(events))
    for index, event in enumerate(events):
        version = head.version + 1
        salt = salts[32 * index : 32 * index + 32]
        row, link = mapper.store(UnsealedEvent(stream, version, stamp, event, head.link, salt))
        head = Head(version, link)
        if len(row.state) > LARGEST_EVENT:
            raise InvalidMessage(
                "message",
                f"has {len(row.state):,} bytes; at most {LARGEST_EVENT:,} can be sent",
            )
        rows.append(row)
        if isinstance(event, MessageAppended) and event.key is not None:
            keys.append((stream, event.key, version))
    return SealedRows(rows, keys, head)
