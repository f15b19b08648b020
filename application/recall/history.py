"""Use case: the original records of a conversation by id, by range or by what they say (requirement E5)."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from refold.application.addresses import SCHEME, position_in
from refold.application.core import Core
from refold.application.loaded import LoadedConversation
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


def query_history(core: Core, thread_id: str, query: HistoryQuery) -> HistoryPage:
    """One page of the records.

    Raises:
        InvalidSetting: ``limit`` or ``max_tokens`` cannot be.
        ForeignAddress, InvalidAddress: an id is an address of another conversation, or of none.
        ConversationGone: the conversation was erased as a whole.
        LogError: the log cannot be read.
    """
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
    if query.ids:
        found, missing = _positions(core, loaded, query.ids)
        positions = sorted(position for position in found if position in reach)
    text = query.text if query.text and query.text.strip() else None
    page = record_page(core, loaded, Wanted(positions, text, limit, room))
    notice = _notice(core, loaded, page.records, missing)
    return page_of(loaded, page).replaced(missing=missing, notice=notice)


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


def _notice(
    core: Core,
    loaded: LoadedConversation,
    records: Sequence[HistoryRecord],
    missing: Sequence[str],
) -> str | None:
    notices: list[str] = []
    if missing:
        summaries = {row.summary_id for row in core.views.summaries(loaded.thread_id)}
        notices += [f"{one} is a summary: expand it" for one in missing if one in summaries]
        if unknown := [one for one in missing if one not in summaries]:
            notices.append(f"no message has the id {', '.join(unknown)[:200]}")
    cut = next((r for r in records if r.stop - r.start < r.length), None)
    if cut is not None:
        notices.append(
            f"message {cut.position} is cut: characters {cut.start:,} to {cut.stop:,} of "
            f"{cut.length:,} are here, {cut.address} has all of them"
        )
    if not records and not missing:
        notices.append(
            f"nothing there: the conversation has positions 0 to {loaded.state.length - 1}"
        )
    return "; ".join(notices) or None
