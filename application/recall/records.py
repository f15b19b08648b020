"""Original records: messages as the log has them, with what the context makes of each, page by page."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from refold.application.addresses import address_of
from refold.application.core import Core
from refold.application.event_log import LoggedEvent
from refold.application.loaded import LoadedConversation
from refold.application.projections.messages import readable
from refold.application.projections.row_changes import utc
from refold.application.projections.seen import Fate
from refold.application.read_models import MessageRow
from refold.domain.events import MessageAppended
from refold.domain.value import Value

from .sight import Sight
from .words import events_at

AT_ONCE = 500
"""Messages that are looked at in one go."""
BEFORE_MATCH = 200
"""Characters before the text that was looked for, where a record must be cut."""


class HistoryRecord(Value, frozen=True):
    """An original message, and what became of it."""

    position: int
    version: int
    """Of the conversation when the message was appended."""
    message_id: str
    address: str
    """``chat.read(address)`` gives all of it, with its blocks."""
    role: str
    at: str
    """When it was written, or else logged: ISO 8601, UTC."""
    tokens: int
    """Of the whole message."""
    text: str
    """What it says, word for word: all of it, or the part that has room."""
    start: int
    stop: int
    """Where ``text`` stands in ``StoredMessage.text``."""
    length: int
    """Characters of all that it says; ``chat.read_part`` gives them part by part."""
    fate: Fate
    erased: bool


class RecordPage(NamedTuple):
    """Some records, and where to go on."""

    records: tuple[HistoryRecord, ...]
    next: int | None
    """The position of the first record that is wanted and not here."""
    tokens: int
    """Of all texts here."""


class Wanted(NamedTuple):
    """Which records, and how many of them."""

    positions: Sequence[int]
    """In their order."""
    text: str | None
    """Only those that contain this, whatever its case."""
    limit: int
    room: int
    """In tokens; the first record is there in any case, cut if need be."""


def record_page(core: Core, loaded: LoadedConversation, wanted: Wanted) -> RecordPage:
    """The first records that are wanted.

    Raises:
        LogError: the log cannot be read.
    """
    sight, count = Sight(loaded), core.counter.count_text
    records: list[HistoryRecord] = []
    spent = 0
    for row, logged in _rows(core, loaded.thread_id, wanted):
        if len(records) == wanted.limit:
            return RecordPage(tuple(records), row.position, spent)
        event = logged.event
        if not isinstance(event, MessageAppended):
            continue
        record = _record(logged, event, sight)
        if wanted.text and wanted.text.casefold() not in record.text.casefold():
            continue  # It was erased since.
        size = count(record.text)
        if spent + size > wanted.room:
            if records:
                return RecordPage(tuple(records), row.position, spent)
            record = _cut(record, wanted.text, wanted.room, count)
            size = count(record.text)
        records.append(record)
        spent += size
    return RecordPage(tuple(records), None, spent)


def message_rows(core: Core, thread_id: str, positions: Sequence[int]) -> Iterator[MessageRow]:
    """The rows of the messages at these positions, in their order, read as they are asked for."""
    for begin in range(0, len(positions), AT_ONCE):
        some = positions[begin : begin + AT_ONCE]
        for first, last in _runs(some):
            yield from core.views.messages(thread_id, first, last + 1)


def _rows(core: Core, thread_id: str, wanted: Wanted) -> Iterator[tuple[MessageRow, LoggedEvent]]:
    """What is wanted, each with its event as the log has it now."""
    needle = wanted.text.casefold() if wanted.text else ""
    fitting: list[MessageRow] = []
    for row in message_rows(core, thread_id, wanted.positions):
        if needle in row.text.casefold():
            fitting.append(row)
        if len(fitting) > min(wanted.limit, AT_ONCE):
            yield from _logged(core, fitting)
            fitting = []
    yield from _logged(core, fitting)


def _logged(core: Core, rows: Iterable[MessageRow]) -> Iterator[tuple[MessageRow, LoggedEvent]]:
    some = list(rows)
    events = events_at(core, ((row.thread_id, row.version) for row in some))
    for row in some:
        if (row.thread_id, row.version) in events:
            yield row, events[row.thread_id, row.version]


def _record(logged: LoggedEvent, event: MessageAppended, sight: Sight) -> HistoryRecord:
    text = readable(event.message)
    return HistoryRecord(
        position=event.position,
        version=logged.version,
        message_id=event.message_id,
        address=address_of(logged.thread_id, event.position),
        role=event.message.role,
        at=utc(event.written_at) if event.written_at else logged.at,
        tokens=event.tokens,
        text=text,
        start=0,
        stop=len(text),
        length=len(text),
        fate=sight.fate(event.position, erased=logged.erased),
        erased=logged.erased,
    )


def _cut(
    record: HistoryRecord, text: str | None, room: int, count: Callable[[str], int]
) -> HistoryRecord:
    """The part of a record that has room, from shortly before the text that was looked for."""
    start = begin_of(record.text, text)
    length = max(1, len(record.text) * room // max(1, count(record.text)))
    while length > 1 and count(record.text[start : start + length]) > room:
        length = length * 9 // 10
    shown = record.text[start : start + length]
    return record.replaced(text=shown, start=start, stop=start + len(shown))


def begin_of(text: str, wanted: str | None) -> int:
    """Where to begin to read, so that what is wanted of a text comes soon, whatever its case."""
    found = re.search(re.escape(wanted), text, re.IGNORECASE) if wanted else None
    return max(0, found.start() - BEFORE_MATCH) if found else 0


def _runs(positions: Sequence[int]) -> Iterator[tuple[int, int]]:
    """First and last of each row of positions one after the other."""
    first = last = positions[0]
    for position in positions[1:]:
        if position != last + 1:
            yield first, last
            first = position
        last = position
    yield first, last
