"""What a log records as erased: read row by row, so that damage elsewhere does not hide it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from refold.application.upkeep.housekeeping import KnownErasures, RecordedErasure
from refold.domain.events import ConversationErased, MessageErased
from refold.infrastructure.log.stored.codec import CodecError
from refold.infrastructure.log.stored.envelope import LONGEST_FRAME, EnvelopeError, Place, framed
from refold.infrastructure.log.stored.mapper import EventMapper
from refold.infrastructure.log.upkeep.unopened import shelf_of

_ERASURES = """
SELECT originator_id, originator_version, topic, state FROM stored_events
WHERE topic IN ('message_erased', 'conversation_erased')
"""
_FIRST = """
SELECT substr(state, 1, ?) FROM stored_events WHERE originator_id=? AND originator_version=1
"""


def erasures_in(path: Path, mapper: EventMapper) -> KnownErasures:
    """Every erasure that the log in this file records, and whether all of them could be read."""
    if not path.stat().st_size:
        return KnownErasures()
    found: list[RecordedErasure] = []
    try:
        with closing(sqlite3.connect(path)) as connection:
            mapper = mapper.reading(shelf_of(connection))
            for row in connection.execute(_ERASURES):
                found.extend(_read(connection, row, mapper))
    except (sqlite3.Error, EnvelopeError, CodecError):
        return KnownErasures(tuple(found), complete=False)
    return KnownErasures(tuple(found))


def _read(
    connection: sqlite3.Connection, row: tuple[str, int, str, object], mapper: EventMapper
) -> Iterator[RecordedErasure]:
    stream, version, name, state = row
    _, event = mapper.open(Place(stream, version, name), state)
    match event:
        case MessageErased(position=position, message_id=message_id):
            yield RecordedErasure(stream, position, message_id, event.reason)
        case ConversationErased():
            yield RecordedErasure(stream, None, _begun_at(connection, stream), event.reason)
        case _:
            pass


def _begun_at(connection: sqlite3.Connection, stream: str) -> str:
    """When the first event was logged: its frame is there even when its content was erased."""
    row = connection.execute(_FIRST, (LONGEST_FRAME, stream)).fetchone()
    return "" if row is None else framed(row[0]).at
