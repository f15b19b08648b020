"""The original records of a conversation by id, by range or by what they say."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, cast

from refold.application.conversation.addresses import SCHEME, address_of, position_in
from refold.application.conversation.loaded import LoadedConversation
from refold.application.ports.conversation_log import LoggedEvent
from refold.application.ports.read_models import MessageRow
from refold.application.projections.fates import Fate
from refold.application.projections.message_list import readable
from refold.application.projections.row_changes import utc
from refold.application.recall.hits import Sight
from refold.application.recall.ranking import events_at
from refold.application.recall.recall_query import LEAST_TOKENS, MOST_TOKENS, whole_number
from refold.application.runtime.core import Core
from refold.domain.errors import InvalidSetting
from refold.domain.events import MessageAppended
from refold.domain.text_cuts import fitting_length
from refold.domain.value import Value, replace

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
    """``conversation.read(address)`` gives all of it, with its blocks."""
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
    """Characters of all that it says; ``conversation.read_part`` gives them part by part."""
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
            record = _part_with_room(record, wanted.text, wanted.room, count)
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


def _part_with_room(
    record: HistoryRecord, text: str | None, room: int, count: Callable[[str], int]
) -> HistoryRecord:
    """The part of a record that has room, from shortly before the text that was looked for."""
    start = begin_of(record.text, text)

    def fits(length: int) -> bool:
        return count(record.text[start : start + length]) <= room

    length = fitting_length(count(record.text), len(record.text), room, fits)
    shown = record.text[start : start + length]
    return replace(record, text=shown, start=start, stop=start + len(shown))


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


MOST_RECORDS = 200


class HistoryPage(Value, frozen=True):
    """Original records in their order."""

    thread_id: str
    records: tuple[HistoryRecord, ...]
    next: int | None
    """Ask again with ``start`` at this position for what follows; None: this is the last page."""
    length: int
    """How many messages the conversation has."""
    missing: tuple[str, ...] = ()
    """Ids that no message has."""
    notice: str | None = None
    """What is worth knowing of this answer, in a sentence."""
    tokens: int = 0
    """Of all texts here."""


class HistoryQuery(NamedTuple):
    """Which records are asked for; several conditions hold together."""

    ids: Sequence[str | int] = ()
    """Of messages; addresses and positions are understood as well. None: any."""
    start: int | None = None
    """A position; negative ones count from the end."""
    stop: int | None = None
    """Up to but not including this one."""
    text: str | None = None
    """What they contain, whatever its case. Blank: anything."""
    limit: int = 20
    max_tokens: int | None = None
    """Of all texts together, from 50; None: as long as the settings say."""
    recall: str = "recall"
    """How who asks calls the search by words; a notice names it."""
    hidden: frozenset[int] = frozenset()
    """Positions that are out of reach for who asks."""


def query_history(core: Core, thread_id: str, query: HistoryQuery) -> HistoryPage:
    """One page of the records.

    Raises:
        InvalidSetting: what is asked for cannot be, such as a ``stop`` that is not after ``start``.
        ForeignAddress, InvalidAddress: an id is an address of another conversation, or of none.
        ConversationGone: the conversation was erased as a whole.
        LogError: the log cannot be read.
    """
    query = _checked(query)
    limit = whole_number("limit", query.limit, 1, MOST_RECORDS)
    room = room_of(core, query.max_tokens)
    loaded = core.log.load(thread_id).present()
    length = loaded.state.length
    reach = range(length)[query.start : query.stop]
    if not length:
        nothing = HistoryPage(thread_id=thread_id, records=(), next=None, length=0)
        return replace(nothing, notice=f"there is no message in conversation {thread_id!r}")
    missing: tuple[str, ...] = ()
    positions: Sequence[int] = reach
    if query.hidden:
        positions = [position for position in reach if position not in query.hidden]
    if query.ids:
        found, missing = _positions(core, loaded, query.ids)
        positions = sorted(p for p in found if p in reach and p not in query.hidden)
    page = record_page(core, loaded, Wanted(positions, query.text, limit, room))
    notices = [*_missed(core, thread_id, missing)]
    if page.records:
        notices += _in_part(page.records)
    elif positions or not missing:
        notices.append(_nothing(query, positions, reach, length))
    return replace(page_of(loaded, page), missing=missing, notice="; ".join(notices) or None)


def _checked(query: HistoryQuery) -> HistoryQuery:
    """The query with its ids in a list, and without a blank text.

    Raises:
        InvalidSetting: names what cannot be.
    """
    ids = _listed(query.ids)
    for name, position in (("start", query.start), ("stop", query.stop)):
        whole = isinstance(cast("object", position), int) and not isinstance(position, bool)
        _require(whole or position is None, name, position, "a position, as a whole number")
    text, start, stop = query.text, query.start or 0, query.stop
    _require(text is None or isinstance(cast("object", text), str), "text", text, "a text")
    # Of one that counts from the end and one that does not, only the conversation knows.
    ordered = stop is None or (start < 0) != (stop < 0) or start < stop
    _require(ordered, "stop", stop, f"greater than start, which is {start}")
    return query._replace(ids=ids, text=text if text and text.strip() else None)


def _listed(given: object) -> Sequence[str | int]:
    """Ids as a list; a single one as a list of it."""
    ids = [given] if isinstance(given, str) else given
    listed = list(cast("Iterable[object]", ids)) if isinstance(ids, Iterable) else [None]
    fine = all(isinstance(one, str | int) for one in listed)
    _require(fine, "ids", given, "a list of ids, addresses or positions")
    return cast("Sequence[str | int]", listed)


def _require(fine: bool, name: str, given: object, wanted: str) -> None:
    if not fine:
        told = f"{name}={str(given)[:80]!r} cannot be: {name} must be {wanted}"
        raise InvalidSetting(told, setting=name, value=given)


def page_of(loaded: LoadedConversation, page: RecordPage) -> HistoryPage:
    """Some records of a conversation as an answer."""
    return HistoryPage(
        thread_id=loaded.thread_id,
        records=page.records,
        next=page.next,
        length=loaded.state.length,
        tokens=page.tokens,
    )


def room_of(core: Core, max_tokens: int | None) -> int:
    """The room of a page in tokens.

    Raises:
        InvalidSetting: it cannot be.
    """
    if max_tokens is None:
        return core.settings.recall_tokens
    return whole_number("max_tokens", max_tokens, LEAST_TOKENS, MOST_TOKENS)


def _positions(
    core: Core, loaded: LoadedConversation, ids: Iterable[str | int]
) -> tuple[set[int], tuple[str, ...]]:
    """Where messages with these ids stand, and which ids none has."""
    given = [str(one).strip() for one in ids]
    length, wanted = loaded.state.length, set(given)
    rows = message_rows(core, loaded.thread_id, range(length))
    known = {row.message_id: row.position for row in rows if row.message_id in wanted}
    found, missing = set[int](), list[str]()
    for one in given:
        position = known.get(one)
        if position is None and (one.startswith(SCHEME) or one.isdecimal()):
            position = position_in(loaded.thread_id, one)
        if position is not None and position < length:
            found.add(position)
        else:
            missing.append(one)
    return found, tuple(dict.fromkeys(missing))


def _missed(core: Core, thread_id: str, missing: Sequence[str]) -> Iterator[str]:
    """What is told of ids that no message has."""
    if not missing:
        return
    summaries = {row.summary_id for row in core.views.summaries(thread_id)}
    for one in missing:
        if one in summaries:
            yield f"{one} is a summary: expand it"
    if unknown := [one for one in missing if one not in summaries]:
        yield f"no message has the id {', '.join(unknown)[:200]}"


def _in_part(records: Sequence[HistoryRecord]) -> Iterator[str]:
    """Which of these is not here as a whole, if any is."""
    cut = next((r for r in records if r.stop - r.start < r.length), None)
    if cut is not None:
        yield (
            f"message {cut.position} is cut: characters {cut.start:,} to {cut.stop:,} of "
            f"{cut.length:,} are here, {cut.address} has all of them"
        )


def _nothing(
    query: HistoryQuery, positions: Sequence[int], reach: Sequence[int], length: int
) -> str:
    """Why there is no record."""
    if not reach:
        return f"nothing there: the conversation has positions 0 to {length - 1}"
    if not positions:
        return "the messages with these ids are at other positions"
    if query.text is None:
        return "what was at these positions was lost when the log was damaged"
    which = " at these positions" if len(reach) < length else ""
    which = " with these ids" if query.ids else which
    return (
        f"no message{which} has exactly this text, whatever its case; "
        f"{query.recall} searches by words"
    )
