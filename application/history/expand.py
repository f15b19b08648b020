"""Expand a summary: its text, its leaves and the original messages, page by page."""

from collections.abc import Collection, Iterable, Sequence
from math import inf
from typing import Literal

from refold.application.ports.conversation_log import LoggedEvent
from refold.application.ports.read_models import ConversationRow, SummaryRow
from refold.application.recall.recall_query import whole_number
from refold.application.runtime.core import Core
from refold.application.summaries.leaves import stored_leaves
from refold.domain.errors import UnknownSummary
from refold.domain.events import WITHDRAWN, CompactionPerformed
from refold.domain.value import Value

from .query import MOST_RECORDS, HistoryPage, RecordSelection, page_of, record_page, room_of

SummaryState = Literal["active", "superseded", "undone"]
NEWEST = 5
"""Number of newest summaries that an error names."""


class LeafText(Value, frozen=True):
    """Text that was extracted without a model from positions ``start`` up to but not including ``stop``."""

    start: int
    stop: int
    text: str


class ExpandedSummary(Value, frozen=True):
    """A summary and the messages that it covers."""

    thread_id: str
    summary_id: str
    state: SummaryState
    superseded_by: str | None
    """Id of the summary that replaced this one, or None."""
    made_at: str
    """Time of the summary in ISO 8601, UTC."""
    model: str
    """Name of the model or of the built-in algorithm that wrote the summary."""
    text: str
    withdrawn: bool
    """True if the text was removed because a message that it was made from was erased."""
    tokens: int
    """Tokens of the text and the ledger, as rendered."""
    start: int
    stop: int
    """First position after the covered range, which begins at ``start``."""
    exclusions: tuple[int, ...]
    """Positions in the range that the summary does not cover; their messages stayed in the context."""
    count: int
    """Number of covered messages."""
    leaves: tuple[LeafText, ...]
    """Leaf texts for the same messages, oldest first."""
    page: HistoryPage
    """Covered messages in their original form."""


def expand(
    core: Core,
    thread_id: str,
    summary_id: str,
    start: int = 0,
    max_tokens: int | None = None,
    limit: int = 20,
) -> ExpandedSummary:
    """Expand the summary whose id begins with ``summary_id``, with its messages from ``start`` on.

    Raises:
        UnknownSummary: no summary or several have such an id; the error lists candidates.
        InvalidSetting: ``limit`` or ``max_tokens`` is out of range.
        ConversationGone: the whole conversation was erased.
        LogError: the log cannot be read.
    """
    whole_number("limit", limit, 1, MOST_RECORDS)
    room = room_of(core, max_tokens)
    loaded = core.log.load(thread_id).present()
    row, made, event = find_summary(core, thread_id, summary_id)
    covered: Sequence[int] = range(max(event.coverage.start, start), event.coverage.stop)
    if kept := frozenset(event.coverage.exclusions):
        covered = [position for position in covered if position not in kept]
    page = record_page(core, loaded, RecordSelection(covered, None, limit, room))
    return ExpandedSummary(
        thread_id=thread_id,
        summary_id=row.summary_id,
        state=summary_state(row),
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
    """Expand a summary of any conversation.

    A fork shares the summaries of its source; the source is preferred. ``within`` limits the search
    to these conversations.

    Raises:
        UnknownSummary: no summary or several have such an id; the error lists candidates.
        InvalidSetting: ``limit`` or ``max_tokens`` is out of range.
        LogError: the log cannot be read.
    """
    having = map(core.views.conversation, core.views.conversations_with_summary(summary_id))
    if known := _sources_first((row for row in having if row is not None), within):
        return expand(core, known[0].thread_id, summary_id, start, max_tokens, limit)
    rows_of_all: list[SummaryRow] = []
    places: dict[str, str] = {}
    for conversation in _sources_first(core.views.conversations(), within):
        rows = core.views.summaries(conversation.thread_id)
        rows_of_all += rows
        for row in rows:
            places.setdefault(row.summary_id, conversation.thread_id)
    rows_of_all.sort(key=lambda row: row.compacted_at)
    found = _resolve_id(rows_of_all, summary_id, None)
    return expand(core, places[found], found, start, max_tokens, limit)


def _sources_first(
    rows: Iterable[ConversationRow], within: Collection[str] | None
) -> list[ConversationRow]:
    """Return the rows of conversations that may have a summary: forks last, then in the order of their beginning."""
    compacted = (row for row in rows if not row.erased and (row.compactions or row.erased_messages))
    reached = [row for row in compacted if within is None or row.thread_id in within]
    return sorted(
        reached, key=lambda row: (row.forked_from is not None, row.created_at, row.thread_id)
    )


def _resolve_id(rows: Iterable[SummaryRow], given: str, thread_id: str | None) -> str:
    """Return the full id for an id or its beginning; ``rows`` are ordered oldest first.

    Raises:
        UnknownSummary: no id or more than one id matches.
    """
    known = list(dict.fromkeys(row.summary_id for row in rows))[::-1]
    if given in known:
        return given
    begin_so = [one for one in known if one.startswith(given)]
    if not given or not begin_so:
        raise UnknownSummary(given, thread_id, known[:NEWEST])
    if len(begin_so) > 1:
        raise _ambiguous_error(given, thread_id, begin_so)
    return begin_so[0]


def _ambiguous_error(given: str, thread_id: str | None, could_be: Sequence[str]) -> UnknownSummary:
    error = UnknownSummary(given, thread_id, could_be[:NEWEST])
    more = " …" if len(could_be) > NEWEST else ""
    said = f"{given[:200]!r} matches several summaries: {', '.join(error.newest)}{more}"
    error.args = (f"{said}: give more characters",)
    return error


def find_summary(
    core: Core, thread_id: str, summary_id: str, newest: float = inf
) -> tuple[SummaryRow, LoggedEvent, CompactionPerformed]:
    """Return the row of a summary, its log entry and its event.

    ``newest``: highest version to search; by default all are searched.

    Raises:
        UnknownSummary: no id or more than one id matches.
    """
    known = core.views.summary(thread_id, summary_id)
    if known is not None and known.version <= newest:
        rows = [known]
    else:
        rows = [row for row in core.views.summaries(thread_id) if row.version <= newest]
    is_known = any(row.summary_id.startswith(summary_id) for row in rows)
    if not is_known and _is_unlisted(core, thread_id, summary_id):
        raise UnknownSummary(summary_id, thread_id, (), unlisted=True)
    meant = _resolve_id(rows, summary_id, thread_id)
    for row in rows:
        if row.summary_id == meant:
            for logged in core.log.read(thread_id, row.version, row.version):
                if isinstance(logged.event, CompactionPerformed):
                    return row, logged, logged.event
    raise UnknownSummary(summary_id, thread_id, [r.summary_id for r in rows[: -NEWEST - 1 : -1]])


def _is_unlisted(core: Core, thread_id: str, summary_id: str) -> bool:
    """Return whether the id of the active summary begins so, and the read models lack this summary."""
    active = core.log.load(thread_id).state.summary
    if not summary_id or active is None or not active.summary_id.startswith(summary_id):
        return False
    return active_summary(core, thread_id) is None


def active_summary(core: Core, thread_id: str) -> SummaryRow | None:
    """Return the row of the active summary of a conversation, or None. No other row is read."""
    active = core.log.load(thread_id).state.summary
    return None if active is None else core.views.summary(thread_id, active.summary_id)


def summary_state(row: SummaryRow) -> SummaryState:
    """Return the state of a summary now."""
    if row.is_active:
        return "active"
    return "undone" if row.is_reverted else "superseded"


def _leaves(core: Core, thread_id: str, version: int) -> tuple[LeafText, ...]:
    """Return the leaves at the version of the summary, with the texts that the log has now."""
    then = core.log.load(thread_id, at=version)
    return tuple(
        LeafText(start=leaf.start, stop=leaf.stop, text=leaf.text)
        for leaf in stored_leaves(core, then)
    )
