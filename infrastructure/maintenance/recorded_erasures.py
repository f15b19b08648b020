"""What a log records as erased: read row by row, so that damage elsewhere does not hide it."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from refold.application.maintenance.maintenance_results import KnownErasures, RecordedErasure
from refold.domain.events import ConversationErased, MessageErased
from refold.infrastructure.event_store.codec import CodecError
from refold.infrastructure.event_store.envelope import LONGEST_FRAME, EnvelopeError, Place, framed
from refold.infrastructure.event_store.mapper import EventMapper
from refold.infrastructure.write_ahead.examination import read_write_ahead, write_ahead_path
from refold.infrastructure.write_ahead.main_file import is_without_pages

from .mended_log import Mended, mended, shelf_of

_NAMES = ("message_erased", "conversation_erased")
_ERASURES = f"""
SELECT originator_id, originator_version, topic, state FROM stored_events WHERE topic IN {_NAMES}
"""
_Row = tuple[str, int, str, object]
_FIRST = """
SELECT substr(state, 1, ?) FROM stored_events WHERE originator_id=? AND originator_version=1
"""


def erasures_in(path: Path, mapper: EventMapper) -> KnownErasures:
    """Every erasure that the log in this file records, and whether all of them could be read."""
    if is_without_pages(path) and read_write_ahead(write_ahead_path(path)) is None:
        return KnownErasures()
    found: list[RecordedErasure] = []
    try:
        with mended(path, path.parent) as log:
            mapper = mapper.reading(shelf_of(log.connection))
            for row in _recorded(log, mapper):
                found.extend(_read(log.connection, row, mapper))
            return KnownErasures(tuple(found), complete=log.is_whole)
    except (sqlite3.Error, OSError, EnvelopeError, CodecError):
        return KnownErasures(tuple(found), complete=False)


def _recorded(log: Mended, mapper: EventMapper) -> Iterator[_Row]:
    if not log.found:
        return log.connection.execute(_ERASURES)
    rows = log.rows_with(mapper)(log.connection).rows()
    return ((r.stream, r.version, r.name, r.state) for r in rows if r.name in _NAMES)


def _read(
    connection: sqlite3.Connection, row: _Row, mapper: EventMapper
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
