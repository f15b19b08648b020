"""Use case: say what a summary stands for: its text, its leaves, and the original messages page by page."""

from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from refold.application.ports.conversation_log import LoggedEvent
from refold.application.ports.read_models import SummaryRow
from refold.application.recall.recall_query import whole_number
from refold.application.runtime.core import Core
from refold.application.summaries.leaves import stored_leaves
from refold.domain.erasing import WITHDRAWN
from refold.domain.errors import UnknownSummary
from refold.domain.events import CompactionPerformed
from refold.domain.value import Value

from .query import MOST_RECORDS, HistoryPage, Wanted, page_of, record_page, room_of

SummaryState = Literal["active", "superseded", "undone"]
NEWEST = 5
"""Summaries that an error names."""


class LeafText(Value, frozen=True):
    """What code extracted from the messages at positions ``start`` up to but not including ``stop``."""

    start: int
    stop: int
    text: str


class ExpandedSummary(Value, frozen=True):
    """A summary and what it stands for."""

    thread_id: str
    summary_id: str
    state: SummaryState
    superseded_by: str | None
    """The summary that took over, where one did."""
    made_at: str
    """ISO 8601, UTC."""
    model: str
    """That wrote it, or the name of the built-in algorithm."""
    text: str
    withdrawn: bool
    """Whether its text is gone, since something that it was made from was erased."""
    tokens: int
    """Of text and ledger, as rendered."""
    start: int
    stop: int
    """It covers the positions from ``start`` up to but not including ``stop`` …"""
    exclusions: tuple[int, ...]
    """… without these, which stayed in the context word for word."""
    count: int
    """How many messages it covers."""
    leaves: tuple[LeafText, ...]
    """Together they stand for the same messages, oldest first."""
    page: HistoryPage
    """Original messages that it covers."""


def expand(
    core: Core,
    thread_id: str,
    summary_id: str,
    start: int = 0,
    max_tokens: int | None = None,
    limit: int = 20,
) -> ExpandedSummary:
    """What the summary with an id that begins so stands for; of its messages those from ``start`` on.

    Raises:
        UnknownSummary: names the newest ones that there are, or those that begin so.
        InvalidSetting: ``limit`` or ``max_tokens`` cannot be.
        ConversationGone: the conversation was erased as a whole.
        LogError: the log cannot be read.
    """
    whole_number("limit", limit, 1, MOST_RECORDS)
    room = room_of(core, max_tokens)
    loaded = core.log.load(thread_id).present()
    row, made, event = _made(core, thread_id, summary_id)
    covers = event.coverage.covers
    covered = [p for p in range(max(event.coverage.start, start), event.coverage.stop) if covers(p)]
    page = record_page(core, loaded, Wanted(covered, None, limit, room))
    return ExpandedSummary(
        thread_id=thread_id,
        summary_id=row.summary_id,
        state=_state(row),
        superseded_by=row.superseded_by,
        made_at=row.compacted_at,
        model=event.model,
        text=event.text,
        withdrawn=event.text == WITHDRAWN,
        tokens=event.tokens,
        start=event.coverage.start,
        stop=event.coverage.stop,
        exclusions=event.coverage.exclusions,
        count=event.coverage.count,
        leaves=_leaves(core, thread_id, made.version),
        page=page_of(loaded, page),
    )


def expand_anywhere(
    core: Core,
    summary_id: str,
    start: int = 0,
    max_tokens: int | None = None,
    limit: int = 20,
    *,
    within: Collection[str] | None = None,
) -> ExpandedSummary:
    """The same, of whichever conversation made it: a fork has the summaries of its source as well.
    ``within``: only of these.

    Raises:
        UnknownSummary: names the newest ones that there are, or those that begin so.
        InvalidSetting: ``limit`` or ``max_tokens`` cannot be.
        LogError: the log cannot be read.
    """
    rows_of_all: list[SummaryRow] = []
    places: dict[str, str] = {}
    conversations = [
        c
        for c in core.views.conversations()
        if (c.compactions or c.erased_messages) and (within is None or c.thread_id in within)
    ]
    for conversation in sorted(
        conversations, key=lambda c: (c.forked_from is not None, c.created_at)
    ):
        rows = core.views.summaries(conversation.thread_id)
        if any(row.summary_id == summary_id for row in rows):
            return expand(core, conversation.thread_id, summary_id, start, max_tokens, limit)
        rows_of_all += rows
        for row in rows:
            places.setdefault(row.summary_id, conversation.thread_id)
    rows_of_all.sort(key=lambda row: row.compacted_at)
    found = _meant(rows_of_all, summary_id, None)
    return expand(core, places[found], found, start, max_tokens, limit)


def _meant(rows: Iterable[SummaryRow], given: str, thread_id: str | None) -> str:
    """The id that is meant by one or the beginning of one; the rows are there oldest first.

    Raises:
        UnknownSummary: there is none, or more than one.
    """
    known = list(dict.fromkeys(row.summary_id for row in rows))[::-1]
    if given in known:
        return given
    begin_so = [one for one in known if one.startswith(given)]
    if not given or not begin_so:
        raise UnknownSummary(given, thread_id, known[:NEWEST])
    if len(begin_so) > 1:
        raise _ambiguous(given, thread_id, begin_so)
    return begin_so[0]


def _ambiguous(given: str, thread_id: str | None, could_be: Sequence[str]) -> UnknownSummary:
    error = UnknownSummary(given, thread_id, could_be[:NEWEST])
    more = " …" if len(could_be) > NEWEST else ""
    said = f"{given[:200]!r} may be any of the summaries {', '.join(error.newest)}{more}"
    error.args = (f"{said}: say more of it",)
    return error


def _made(
    core: Core, thread_id: str, summary_id: str
) -> tuple[SummaryRow, LoggedEvent, CompactionPerformed]:
    """The row of a summary, and the event that it was made by."""
    rows = core.views.summaries(thread_id)
    meant = _meant(rows, summary_id, thread_id)
    for row in rows:
        if row.summary_id == meant:
            for logged in core.log.read(thread_id, row.version, row.version):
                if isinstance(logged.event, CompactionPerformed):
                    return row, logged, logged.event
    raise UnknownSummary(summary_id, thread_id, [r.summary_id for r in rows[: -NEWEST - 1 : -1]])


def _state(row: SummaryRow) -> SummaryState:
    if row.is_active:
        return "active"
    return "undone" if row.is_reverted else "superseded"


def _leaves(core: Core, thread_id: str, version: int) -> tuple[LeafText, ...]:
    """The leaves as they were when it was made, with the texts that the log has now."""
    then = core.log.load(thread_id, at=version)
    return tuple(
        LeafText(start=leaf.start, stop=leaf.stop, text=leaf.text)
        for leaf in stored_leaves(core, then)
    )
