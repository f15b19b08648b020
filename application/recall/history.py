"""Use case: the original records of a conversation by id, by range or by what they say (requirement E5)."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, cast

from refold.application.addresses import SCHEME, position_in
from refold.application.core import Core
from refold.application.loaded import LoadedConversation
from refold.domain.errors import InvalidSetting
from refold.domain.value import Value

from .inquiry import LEAST_TOKENS, MOST_TOKENS, whole_number
from .records import HistoryRecord, RecordPage, Wanted, message_rows, record_page

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
        return nothing.replaced(notice=f"there is no message in conversation {thread_id!r}")
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
        notices += _cut(page.records)
    elif positions or not missing:
        notices.append(_nothing(query, positions, reach, length))
    return page_of(loaded, page).replaced(missing=missing, notice="; ".join(notices) or None)


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


def _cut(records: Sequence[HistoryRecord]) -> Iterator[str]:
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
