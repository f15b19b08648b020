"""Find original records of a conversation by id, by range or by text."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from refold.application.conversation.addresses import SCHEME, address_of, position_in
from refold.application.conversation.loaded import LoadedConversation
from refold.application.conversation.stream_places import unlisted_version
from refold.application.ports.conversation_log import LoggedEvent
from refold.application.ports.read_models import MessageRow
from refold.application.projections.fates import Fate
from refold.application.projections.row_changes import utc
from refold.application.recall.hits import ContextVisibility
from refold.application.recall.ranking import messages_at
from refold.application.recall.recall_query import LEAST_TOKENS, MOST_TOKENS, whole_number
from refold.application.runtime.core import Core
from refold.domain.errors import UNLISTED, InvalidSetting
from refold.domain.events import MessageAppended
from refold.domain.messages import readable
from refold.domain.text_cuts import fitting_length
from refold.domain.value import Value, replace

AT_ONCE = 500
"""Number of messages that are read at a time."""
BEFORE_MATCH = 200
"""Characters to keep before the match when a record is cut."""


class HistoryRecord(Value, frozen=True):
    """An original message and its fate."""

    position: int
    version: int
    """Version of the conversation right after the message was appended."""
    message_id: str
    address: str
    """Address for reading the whole message, with its blocks, by ``conversation.read``."""
    role: str
    at: str
    """Time when the message was written or, if unknown, logged: ISO 8601, UTC."""
    tokens: int
    """Tokens of the whole message."""
    text: str
    """The text of the message, word for word: all of it, or the part that fits."""
    start: int
    stop: int
    """First character after ``text``, which begins at ``start`` in ``StoredMessage.text``."""
    length: int
    """Characters of the whole text; ``conversation.read_part`` returns it in parts."""
    fate: Fate
    erased: bool


class RecordPage(NamedTuple):
    """Some records and the position to continue from."""

    records: tuple[HistoryRecord, ...]
    next: int | None
    """Position of the first matching record that is not on this page, or None."""
    tokens: int
    """Tokens of all texts on this page."""


class RecordSelection(NamedTuple):
    """Selection of records, with limits."""

    positions: Sequence[int]
    """Candidate positions, in order."""
    text: str | None
    """Text that a record must contain, regardless of case."""
    limit: int
    room: int
    """Most tokens of all texts; the first record is always returned, shortened if necessary."""


def record_page(core: Core, loaded: LoadedConversation, wanted: RecordSelection) -> RecordPage:
    """Return the first matching records.

    Raises:
        LogError: the log cannot be read.
    """
    visibility, count = ContextVisibility(loaded), core.counter.count_text
    records: list[HistoryRecord] = []
    spent = 0
    for row, logged in _matching_rows(core, loaded.thread_id, wanted):
        if len(records) == wanted.limit:
            return RecordPage(tuple(records), row.position, spent)
        event = logged.event
        if not isinstance(event, MessageAppended):
            continue
        record = _record(logged, event, visibility)
        if wanted.text and wanted.text.casefold() not in record.text.casefold():
            continue  # The message was erased in the meantime.
        size = count(record.text)
        if spent + size > wanted.room:
            if records:
                return RecordPage(tuple(records), row.position, spent)
            record = _fit_record(record, wanted.text, wanted.room, count)
            size = count(record.text)
        records.append(record)
        spent += size
    return RecordPage(tuple(records), None, spent)


def message_rows(
    core: Core, thread_id: str, positions: Sequence[int], at_first: int = AT_ONCE
) -> Iterator[MessageRow]:
    """Yield the rows of the messages at these positions in order.

    They are read lazily: at first ``at_first`` of them, then twice as many each time, up to a limit.
    """
    begin, size = 0, min(at_first, AT_ONCE)
    while begin < len(positions):
        for first, last in _runs(positions[begin : begin + size]):
            yield from core.views.messages(thread_id, first, last + 1)
        begin, size = begin + size, min(2 * size, AT_ONCE)


def _matching_rows(
    core: Core, thread_id: str, wanted: RecordSelection
) -> Iterator[tuple[MessageRow, LoggedEvent]]:
    """Yield the matching rows, each with its current event in the log."""
    needle = wanted.text.casefold() if wanted.text else ""
    fitting: list[MessageRow] = []
    for row in message_rows(core, thread_id, wanted.positions, wanted.limit + 1):
        if needle in row.text.casefold():
            fitting.append(row)
        if len(fitting) > min(wanted.limit, AT_ONCE):
            yield from _with_events(core, fitting)
            fitting = []
    yield from _with_events(core, fitting)


def _with_events(
    core: Core, rows: Iterable[MessageRow]
) -> Iterator[tuple[MessageRow, LoggedEvent]]:
    some = list(rows)
    events = messages_at(core, ((row.thread_id, row.version) for row in some))
    for row in some:
        if (row.thread_id, row.version) in events:
            yield row, events[row.thread_id, row.version]


def _record(
    logged: LoggedEvent, event: MessageAppended, visibility: ContextVisibility
) -> HistoryRecord:
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
        fate=visibility.fate(event.position, erased=logged.erased),
        erased=logged.erased,
    )


def _fit_record(
    record: HistoryRecord, text: str | None, room: int, count: Callable[[str], int]
) -> HistoryRecord:
    """Return the part of a record that fits, beginning shortly before the match."""
    start = excerpt_start(record.text, text)

    def fits(length: int) -> bool:
        return count(record.text[start : start + length]) <= room

    length = fitting_length(count(record.text), len(record.text), room, fits)
    shown = record.text[start : start + length]
    return replace(record, text=shown, start=start, stop=start + len(shown))


def excerpt_start(text: str, wanted: str | None) -> int:
    """Return the character to begin at, shortly before the first match regardless of case."""
    found = re.search(re.escape(wanted), text, re.IGNORECASE) if wanted else None
    return max(0, found.start() - BEFORE_MATCH) if found else 0


def _runs(positions: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last position of each run of consecutive positions."""
    first = last = positions[0]
    for position in positions[1:]:
        if position != last + 1:
            yield first, last
            first = position
        last = position
    yield first, last


MOST_RECORDS = 200


class HistoryPage(Value, frozen=True):
    """A page of original records, in order."""

    thread_id: str
    records: tuple[HistoryRecord, ...]
    next: int | None
    """Value of ``start`` for the next page, or None on the last page."""
    length: int
    """Number of messages in the conversation."""
    missing: tuple[str, ...] = ()
    """Ids that no message has."""
    notice: str | None = None
    """A remark about this answer, in one sentence."""
    tokens: int = 0
    """Tokens of all texts on this page."""


class HistoryQuery(NamedTuple):
    """A query for records; a record must satisfy every condition."""

    ids: Sequence[str | int] = ()
    """Message ids, addresses or positions; empty for any message."""
    start: int | None = None
    """First position; negative ones count from the end."""
    stop: int | None = None
    """First position after the range; negative ones count from the end."""
    text: str | None = None
    """Text that a record must contain, regardless of case; a blank text matches any record."""
    limit: int = 20
    max_tokens: int | None = None
    """Most tokens of all texts together, at least 50, or None for the value in the settings."""
    recall: str = "recall"
    """Name of the tool or method for a search by words, which notices recommend."""
    hidden: frozenset[int] = frozenset()
    """Positions that the caller must not see."""


def query_history(core: Core, thread_id: str, query: HistoryQuery) -> HistoryPage:
    """Return one page of the records.

    Raises:
        InvalidSetting: a condition is invalid, such as a ``stop`` that is not after ``start``.
        ForeignAddress, InvalidAddress: an id is an invalid address or belongs to another conversation.
        ConversationGone: the whole conversation was erased.
        LogError: the log cannot be read.
    """
    query = _validate(query)
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
    page = record_page(core, loaded, RecordSelection(positions, query.text, limit, room))
    notices = [*_missing_notices(core, thread_id, missing)]
    if page.records:
        notices += _cut_notices(page.records)
    elif positions or not missing:
        notices.append(_explain_nothing(core, loaded, query, positions, reach))
    return replace(page_of(loaded, page), missing=missing, notice="; ".join(notices) or None)


def _validate(query: HistoryQuery) -> HistoryQuery:
    """Return the query with its ids as a list, and without a blank text.

    Raises:
        InvalidSetting: a condition is invalid.
    """
    ids = _list_ids(query.ids)
    for name, position in (("start", query.start), ("stop", query.stop)):
        whole = isinstance(cast("object", position), int) and not isinstance(position, bool)
        _require(whole or position is None, name, position, "a position, as a whole number")
    text, start, stop = query.text, query.start or 0, query.stop
    _require(text is None or isinstance(cast("object", text), str), "text", text, "a text")
    # Comparing a position from the end with one from the beginning needs the length.
    ordered = stop is None or (start < 0) != (stop < 0) or start < stop
    _require(ordered, "stop", stop, f"greater than start, which is {start}")
    return query._replace(ids=ids, text=text if text and text.strip() else None)


def _list_ids(given: object) -> Sequence[str | int]:
    """Return ids as a list; a single id becomes a list of one."""
    ids = [given] if isinstance(given, str) else given
    listed = list(cast("Iterable[object]", ids)) if isinstance(ids, Iterable) else [None]
    fine = all(isinstance(one, str | int) for one in listed)
    _require(fine, "ids", given, "a list of ids, addresses or positions")
    return cast("Sequence[str | int]", listed)


def _require(fine: bool, name: str, given: object, wanted: str) -> None:
    if not fine:
        message = f"{name}={str(given)[:80]!r} is invalid: {name} must be {wanted}"
        raise InvalidSetting(message, setting=name, value=given)


def page_of(loaded: LoadedConversation, page: RecordPage) -> HistoryPage:
    """Return a page of records as an answer."""
    return HistoryPage(
        thread_id=loaded.thread_id,
        records=page.records,
        next=page.next,
        length=loaded.state.length,
        tokens=page.tokens,
    )


def room_of(core: Core, max_tokens: int | None) -> int:
    """Return the number of tokens that a page may have.

    Raises:
        InvalidSetting: ``max_tokens`` is out of range.
    """
    if max_tokens is None:
        return core.settings.recall_tokens
    return whole_number("max_tokens", max_tokens, LEAST_TOKENS, MOST_TOKENS)


def _positions(
    core: Core, loaded: LoadedConversation, ids: Iterable[str | int]
) -> tuple[set[int], tuple[str, ...]]:
    """Return the positions of messages with these ids, and the ids that no message has."""
    given = [str(one).strip() for one in ids]
    length = loaded.state.length
    known = _known_ids(core, loaded, frozenset(given))
    found, missing = set[int](), list[str]()
    for one in given:
        position = known.get(one)
        if position is None and _is_place(one):
            position = position_in(loaded.thread_id, one)
        if position is not None and position < length:
            found.add(position)
        else:
            missing.append(one)
    return found, tuple(dict.fromkeys(missing))


def _is_place(given: str) -> bool:
    """Return whether a text is an address or a position, if no message has it as its id."""
    return given.startswith(SCHEME) or given.isdecimal()


def _known_ids(core: Core, loaded: LoadedConversation, ids: frozenset[str]) -> Mapping[str, int]:
    """Return the positions of messages with these ids. All messages are read to say that none has an id."""
    rows = core.views.messages_by_id(loaded.thread_id, ids)
    known = {row.message_id: row.position for row in rows}
    if all(one in known or _is_place(one) for one in ids):
        return known
    every = message_rows(core, loaded.thread_id, range(loaded.state.length))
    return {row.message_id: row.position for row in every if row.message_id in ids}


def _missing_notices(core: Core, thread_id: str, missing: Sequence[str]) -> Iterator[str]:
    """Yield notices about ids that no message has."""
    if not missing:
        return
    summaries = {row.summary_id for row in core.views.summaries(thread_id)}
    for one in missing:
        if one in summaries:
            yield f"{one} is a summary: expand it"
    if unknown := [one for one in missing if one not in summaries]:
        yield f"no message has the id {', '.join(unknown)[:200]}"


def _cut_notices(records: Sequence[HistoryRecord]) -> Iterator[str]:
    """Yield a notice about the first record that is cut, if any is."""
    cut = next((r for r in records if r.stop - r.start < r.length), None)
    if cut is not None:
        yield (
            f"message {cut.position} is cut: characters {cut.start:,} to {cut.stop:,} of "
            f"{cut.length:,} are here, {cut.address} has all of them"
        )


def _explain_nothing(
    core: Core,
    loaded: LoadedConversation,
    query: HistoryQuery,
    positions: Sequence[int],
    reach: Sequence[int],
) -> str:
    """Explain why there is no record."""
    length = loaded.state.length
    if not reach:
        return f"nothing there: the conversation has positions 0 to {length - 1}"
    if not positions:
        return "the messages with these ids are at other positions"
    if unlisted_version(core, loaded.thread_id, loaded.state, positions[-1]) is not None:
        return f"the message at position {positions[-1]} {UNLISTED}"
    if query.text is None:
        return "what was at these positions was lost when the log was damaged"
    which = " at these positions" if len(reach) < length else ""
    which = " with these ids" if query.ids else which
    return (
        f"no message{which} has exactly this text, whatever its case; "
        f"{query.recall} searches by words"
    )
