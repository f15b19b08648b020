"""Use case: read original messages back, whatever was compacted since."""

from datetime import datetime

from refold.domain.errors import UnknownMessage
from refold.domain.events import MessageAppended

from .addresses import position_in
from .core import Core
from .projections.row_changes import utc
from .read_models import SummaryRow
from .results import CompactionMark, StoredMessage


def stored_messages(
    core: Core, thread_id: str, start: int = 0, stop: int | None = None
) -> list[StoredMessage]:
    """The messages at positions ``start`` up to but not including ``stop``, from the log.

    Negative numbers count from the end, as in a slice.
    """
    length = core.log.load(thread_id).state.length
    first, last, _ = slice(start, stop).indices(length)
    if first >= last:
        return []
    rows = core.views.messages(thread_id, first, last)
    if not rows:
        return []
    logged = core.log.read(thread_id, rows[0].version, rows[-1].version)
    summary = _active(core, thread_id)
    mark = None if summary is None else _mark(summary)
    first_kept = mark.first_kept_index if mark else None
    found: list[StoredMessage] = []
    for item in logged:
        event = item.event
        if isinstance(event, MessageAppended):
            at = utc(event.written_at) if event.written_at else item.at
            found.append(
                StoredMessage(
                    position=event.position,
                    message_id=event.message_id,
                    version=item.version,
                    message=event.message,
                    at=at,
                    tokens=event.tokens,
                    mark=mark if event.position == first_kept else None,
                    summary_id=summary.summary_id
                    if summary and summary.covers(event.position)
                    else None,
                    erased=item.erased,
                )
            )
    return found


def _active(core: Core, thread_id: str) -> SummaryRow | None:
    return next((row for row in core.views.summaries(thread_id) if row.is_active), None)


def _mark(row: SummaryRow) -> CompactionMark:
    return CompactionMark(
        summary_id=row.summary_id,
        compact_up_to_index=row.compact_up_to_index,
        first_kept_index=row.first_kept_index,
        compacted_at=row.compacted_at,
        message_count=row.message_count,
        compacted_time=datetime.fromisoformat(row.compacted_at).timestamp(),
        is_split_turn=row.is_split_turn,
    )


def read_back(core: Core, thread_id: str, where: str | int) -> StoredMessage:
    """The message at an address of this conversation, or at a position, word for word.

    Raises:
        InvalidAddress, ForeignAddress: it is no address, or one of another conversation.
        UnknownMessage: there is no message at this position, or it was lost by damage.
        ConversationGone: the conversation was erased.
    """
    position = position_in(thread_id, where)
    length = core.log.load(thread_id).present().state.length
    if not 0 <= position < length:
        raise UnknownMessage(position, length)
    found = stored_messages(core, thread_id, position, position + 1)
    if not found:
        raise UnknownMessage(position, length, lost=True)
    return found[0]
