"""Queries of the read models. Every row that is read is checked."""

from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from typing import Any

from refold.application.ports.read_models import (
    Beginning,
    CompactionRow,
    ConversationOrder,
    ConversationRow,
    ConversationsPage,
    ListedConversation,
    MessageRow,
    NoteRow,
    RequestSizesRow,
    SummaryRow,
    TopicRow,
    TopicSeen,
)
from refold.application.projections.request_sizes import COARSE, FINE
from refold.application.projections.row_changes import Cell
from refold.domain.value import from_stored, replace

from .checkpoint import Total, read_progress
from .row_checksums import FoldDamaged, open_row, storable
from .tables import Tables
from .view_folds import tallies, tally
from .view_tables import PROJECTIONS, TABLES, Table

(
    CONVERSATIONS,
    MESSAGES,
    SUMMARIES,
    COMPACTIONS,
    TOPICS,
    SIZES,
    NOTES,
) = TABLES


PAGE = 500
"""Number of conversations that are read at once."""
BLOCK = 32
"""Number of conversations in a block. A conversation stays in its block, unless an erasure writes all again."""
_LAST = "\U0010ffff"
"""Character that sorts after all others, and is in no id."""
MOST_SIZES = 1_200
"""Maximum number of short rows of sizes that are read; of more events, the long rows are read."""


def all_conversations(db: Tables) -> Sequence[ConversationRow]:
    """Return all conversations, the latest activity first."""
    rows = _rows(db, CONVERSATIONS, "true ORDER BY last_activity DESC, thread_id")
    _compare(CONVERSATIONS.name, rows, read_progress(db, PROJECTIONS).totals[CONVERSATIONS.name])
    return [row for row in map(_conversation_row, _fields(CONVERSATIONS, rows)) if not row.erased]


def conversations_after(db: Tables, prefix: str, after: str | None) -> Sequence[ConversationRow]:
    """Return the next conversations after an id whose ids begin with a text, in the order of their ids.

    Erased ones are included. Without an id, the first ones are returned.
    """
    _expect_count(db, CONVERSATIONS)
    begin = "thread_id >= ?" if after is None else "thread_id > ?"
    condition = f"{begin} AND thread_id < ? ORDER BY thread_id LIMIT ?"
    first = storable(prefix if after is None else after)
    rows = _rows(db, CONVERSATIONS, condition, first, f"{storable(prefix)}{_LAST}", PAGE)
    return list(map(_conversation_row, _fields(CONVERSATIONS, rows)))


_ACTIVE = "last_activity DESC, thread_id"
_SIZE = "CASE WHEN messages > 0 AND messages <= erased_messages THEN 0 ELSE tokens END"
_FAILURES = (
    "(SELECT count(*) FROM {compactions} AS tried "
    "WHERE tried.thread_id = {conversations}.thread_id AND tried.outcome = 'failed')"
)
_ATTEMPTED = (
    "coalesce((SELECT max(coalesce(tried.ended_at, tried.requested_at)) FROM {compactions} AS tried "
    "WHERE tried.thread_id = {conversations}.thread_id), '')"
)
_ORDERS: Mapping[ConversationOrder, str] = {
    "activity": _ACTIVE,
    "messages": f"messages DESC, {_ACTIVE}",
    "size": f"{_SIZE} DESC, {_ACTIVE}",
    "age": f"created_at, {_ACTIVE}",
    "compactions": f"compactions DESC, {_ACTIVE}",
    "failures": f"{_FAILURES} DESC, {_ACTIVE}",
    "compacted": f"{_ATTEMPTED} DESC, {_ACTIVE}",
}


def conversations_page(
    db: Tables, start: int, count: int, owner: str | None, order: ConversationOrder
) -> ConversationsPage:
    """Return a part of a sorted list, and how long the list is. Only its rows are read and checked.

    The database sorts without an index: one would cost more with every append than the sorting of a page.
    """
    where = "erased = 0" if owner is None else "erased = 0 AND owner = ?"
    values = () if owner is None else (storable(owner),)
    _expect_count(db, CONVERSATIONS)
    query = f"SELECT count(*) FROM {{conversations}} WHERE {where}"
    length = db.execute(query, values).fetchone()[0]
    condition = f"{where} ORDER BY {_ORDERS[order]} LIMIT ? OFFSET ?"
    rows = _rows(db, CONVERSATIONS, condition, *values, count, start)
    found = list(map(_conversation_row, _fields(CONVERSATIONS, rows)))
    tried = _attempts(db, [row.thread_id for row in found])
    return ConversationsPage(
        rows=tuple(
            ListedConversation(**dict(row), **tried.get(row.thread_id, {})) for row in found
        ),
        count=length,
    )


def conversations_before(
    db: Tables, before: Beginning | None, count: int, owner: str | None
) -> Sequence[ConversationRow]:
    """Return the next conversations, the latest beginning first."""
    _expect_count(db, CONVERSATIONS)
    where, values = "erased = 0", list[Cell]()
    if owner is not None:
        where += " AND owner = ?"
        values.append(storable(owner))
    if before is not None:
        where += " AND (created_at < ? OR (created_at = ? AND thread_id > ?))"
        values += [before.at, before.at, storable(before.thread_id)]
    condition = f"{where} ORDER BY created_at DESC, thread_id LIMIT ?"
    rows = _rows(db, CONVERSATIONS, condition, *values, count)
    return list(map(_conversation_row, _fields(CONVERSATIONS, rows)))


def _attempts(db: Tables, threads: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    """Return the failures and the newest attempt of conversations that have attempts."""
    where = f"thread_id IN ({','.join('?' * len(threads)) or 'NULL'})"
    query = (
        "SELECT thread_id, count(*), sum(checksum), max({in_order}), "
        "sum(CASE WHEN outcome = 'failed' THEN 1 ELSE 0 END) "
        f"FROM {{compactions}} WHERE {where} GROUP BY thread_id"
    )
    found = {row[0]: [*map(int, row[1:])] for row in db.execute(query, threads)}
    expected = tallies(db, COMPACTIONS.name, threads)
    totals = {thread: Total(rows, checksums) for thread, (rows, checksums, *_) in found.items()}
    if totals != {thread: total for thread, total in expected.items() if total.rows}:
        raise FoldDamaged("the compactions of a conversation are not those recorded")
    _expect_count(db, COMPACTIONS)
    last = [newest for _, _, newest, _ in found.values()]
    newest = f"{{in_order}} IN ({','.join('?' * len(last)) or 'NULL'})"
    rows = _fields(COMPACTIONS, _rows(db, COMPACTIONS, newest, *last))
    return {
        fields["thread_id"]: {
            "failures": found[fields["thread_id"]][-1],
            "attempted_at": fields["ended_at"] or fields["requested_at"],
            "outcome": fields["outcome"],
            "reason": fields["reason"],
        }
        for fields in rows
    }


def one_conversation(db: Tables, thread_id: str) -> ConversationRow | None:
    """Return one conversation, or None."""
    for fields in _rows_of_thread(db, CONVERSATIONS, thread_id):
        return _conversation_row(fields)
    return None


def conversations_of(db: Tables, owner: str) -> Sequence[ConversationRow]:
    """Return the conversations of an owner, the latest activity first."""
    order = "owner = ? AND erased = 0 ORDER BY last_activity DESC, thread_id"
    rows = _rows(db, CONVERSATIONS, order, storable(owner))
    return list(map(_conversation_row, _fields(CONVERSATIONS, rows)))


def owners_in_block(db: Tables, block: int) -> tuple[Total, tuple[tuple[str, str], ...]]:
    """Return the total of a block of conversations, and owner and id of those that have an owner."""
    condition = "{in_order} >= ? AND {in_order} < ?"
    rows = _rows(db, CONVERSATIONS, condition, block * BLOCK, (block + 1) * BLOCK)
    columns = itemgetter(*map(CONVERSATIONS.columns.index, ("owner", "thread_id", "erased")))
    found = [columns(open_row(CONVERSATIONS.name, row)) for row in rows]
    owned = tuple((str(o), str(t)) for o, t, erased in found if o is not None and not erased)
    return Total(len(rows), sum(row[-1] for row in rows)), owned


def block_of(db: Tables, thread_id: str) -> int | None:
    """Return the block that a conversation is in, or None if it is in none."""
    query = "SELECT {in_order} FROM {conversations} WHERE thread_id = ?"
    found = db.execute(query, (storable(thread_id),)).fetchone()
    return None if found is None else int(found[0]) // BLOCK


def blocks_of_conversations(db: Tables) -> Mapping[int, Total]:
    """Return the totals of all blocks of conversations, which the database adds up."""
    query = (
        "SELECT block, count(*), sum(checksum) FROM "
        "(SELECT {in_order} / ? AS block, checksum FROM {conversations}) AS b GROUP BY block"
    )
    found = db.execute(query, (BLOCK,)).fetchall()
    return {int(block): Total(int(rows), int(sums)) for block, rows, sums in found}


def _conversation_row(fields: dict[str, Any]) -> ConversationRow:
    row = from_stored(ConversationRow, fields)
    # An erased message has no size any more. The fold cannot know that, because it does not look up
    # messages.
    return replace(row, tokens=0) if 0 < row.messages <= row.erased_messages else row


def has_others(db: Tables, thread_id: str, owner: str, start: int, stop: int) -> bool:
    """Return whether a message in a range of positions belongs to another owner."""
    return any(
        start <= position < stop and whose != owner
        for position, whose in owners_of(db, thread_id).items()
    )


def messages_of(db: Tables, owner: str) -> Mapping[str, frozenset[int]]:
    """Return the positions of the messages that name this owner, by conversation."""
    _expect_count(db, MESSAGES)
    found: dict[str, set[int]] = {}
    # Without an index, because a message that it misses would not be erased.
    query = f"SELECT {MESSAGES.selected} FROM {{messages}} {{unindexed}} WHERE owner = ?"
    for fields in _fields(MESSAGES, db.execute(query, (storable(owner),)).fetchall()):
        row = from_stored(MessageRow, fields)
        found.setdefault(row.thread_id, set()).add(row.position)
    return {thread_id: frozenset(positions) for thread_id, positions in found.items()}


def owners_of(db: Tables, thread_id: str) -> Mapping[int, str]:
    """Return the owners of the messages that name one, by position."""
    rows = _rows(db, MESSAGES, "thread_id = ? AND owner IS NOT NULL", storable(thread_id))
    found = (from_stored(MessageRow, fields) for fields in _fields(MESSAGES, rows))
    return {row.position: row.owner for row in found if row.owner is not None}


def guests_of(db: Tables, owner: str) -> Mapping[str, Mapping[int, str]]:
    """Return the other owners of messages in an owner's conversations, by conversation and position."""
    found: dict[str, dict[int, str]] = {}
    rows = _rows(db, MESSAGES, f"owner IS NOT NULL AND {_OF_OWNER}", storable(owner))
    for row in (from_stored(MessageRow, fields) for fields in _fields(MESSAGES, rows)):
        if row.owner is not None:
            found.setdefault(row.thread_id, {})[row.position] = row.owner
    return found


def some_messages(db: Tables, thread_id: str, start: int, stop: int) -> Sequence[MessageRow]:
    """Return the messages in a range of positions."""
    first = max(start, 0)
    # Positions have no gaps, so the number of rows is known.
    expected = max(0, min(stop, _expected_total(db, MESSAGES, thread_id).rows) - first)
    condition = "thread_id = ? AND position >= ? AND position < ? ORDER BY position"
    rows = _rows(db, MESSAGES, condition, storable(thread_id), first, stop)
    if len(rows) != expected:
        raise FoldDamaged(
            f"conversation {thread_id!r} has {len(rows)} messages from {first} to {stop}, "
            f"and not {expected}"
        )
    return [from_stored(MessageRow, fields) for fields in _fields(MESSAGES, rows)]


def messages_by_id(db: Tables, thread_id: str, ids: Collection[str]) -> Sequence[MessageRow]:
    """Return the messages of a conversation that have one of these ids, in order."""
    found: list[MessageRow] = []
    wanted = [storable(one) for one in sorted(ids)]
    for begin in range(0, len(wanted), PAGE):
        some = wanted[begin : begin + PAGE]
        # As an expression, the conversation leaves the index of ids as the only one to use.
        condition = f"message_id IN ({','.join('?' * len(some))}) AND thread_id || '' = ?"
        rows = _rows(db, MESSAGES, condition, *some, storable(thread_id))
        found += [from_stored(MessageRow, fields) for fields in _fields(MESSAGES, rows)]
    return sorted(found, key=lambda row: row.position)


def newest_message_by(db: Tables, thread_id: str, at: str) -> MessageRow | None:
    """Return the newest message that was written, or else logged, at or before this time."""
    condition = "thread_id = ? AND at <= ? ORDER BY position DESC LIMIT 1"
    for fields in _fields(MESSAGES, _rows(db, MESSAGES, condition, storable(thread_id), at)):
        return from_stored(MessageRow, fields)
    return None


def all_summaries(db: Tables, thread_id: str) -> Sequence[SummaryRow]:
    """Return all summaries of a conversation, oldest first."""
    found = [
        from_stored(SummaryRow, fields) for fields in _rows_of_thread(db, SUMMARIES, thread_id)
    ]
    return sorted(found, key=lambda row: row.version)


def one_summary(db: Tables, thread_id: str, summary_id: str) -> SummaryRow | None:
    """Return one summary of a conversation, or None. If it is not there, all are read to prove that none is lost."""
    condition = "thread_id = ? AND summary_id = ?"
    rows = _rows(db, SUMMARIES, condition, storable(thread_id), storable(summary_id))
    found = [from_stored(SummaryRow, fields) for fields in _fields(SUMMARIES, rows)]
    known = found or all_summaries(db, thread_id)
    return next((row for row in known if row.summary_id == summary_id), None)


def conversations_with_summary(db: Tables, summary_id: str) -> Sequence[str]:
    """Return the conversations that have a summary with this id, in the order of their ids."""
    query = "SELECT thread_id FROM {summaries} WHERE summary_id = ? ORDER BY thread_id"
    return [str(row[0]) for row in db.execute(query, (storable(summary_id),)).fetchall()]


def all_compactions(db: Tables, thread_id: str) -> Sequence[CompactionRow]:
    """Return all compaction attempts of a conversation, in the order of the log."""
    return [
        from_stored(CompactionRow, fields) for fields in _rows_of_thread(db, COMPACTIONS, thread_id)
    ]


def seen_topics(db: Tables, thread_id: str) -> Sequence[TopicSeen]:
    """Return the topics of the active summary with the last position of each."""
    rows = [from_stored(TopicRow, fields) for fields in _topics_of_active(db, thread_id)]
    active = sorted((row for row in rows if row.is_active), key=lambda row: row.rank)
    return [
        TopicSeen(
            thread_id=row.thread_id,
            topic=row.topic,
            count=row.count,
            last_position=row.last_position,
            last_seen=_written_at(db, thread_id, row.last_position),
            is_shown=row.is_shown,
        )
        for row in active
    ]


def _topics_of_active(db: Tables, thread_id: str) -> Sequence[dict[str, Any]]:
    """Return the topics of the active summary. The sum over all topics proves that none is lost."""
    key = storable(thread_id)
    sums = "SELECT count(*), coalesce(sum(checksum), 0) FROM {topics} WHERE thread_id = ?"
    found = Total(*map(int, db.execute(sums, (key,)).fetchone()))
    if found != _expected_total(db, TOPICS, thread_id):
        raise FoldDamaged(f"conversation {thread_id!r} has {found.rows} topics, not those recorded")
    query = "SELECT summary_id FROM {summaries} WHERE thread_id = ? AND is_active = 1"
    active = db.execute(query, (key,)).fetchone()
    if active is None:
        return _rows_of_thread(db, TOPICS, thread_id)
    return _fields(TOPICS, _rows(db, TOPICS, "thread_id = ? AND summary_id = ?", key, active[0]))


def _written_at(db: Tables, thread_id: str, position: int) -> str:
    found = some_messages(db, thread_id, position, position + 1)
    return found[0].at if found else ""


def some_notes(db: Tables, thread_id: str) -> Sequence[NoteRow]:
    """Return the notes of a conversation, oldest first."""
    return [from_stored(NoteRow, fields) for fields in _rows_of_thread(db, NOTES, thread_id)]


def request_sizes(db: Tables, thread_id: str) -> Sequence[RequestSizesRow]:
    """Return the sizes of a conversation in rows of equal length."""
    known = one_conversation(db, thread_id)
    newest = 0 if known is None else known.version
    events = FINE if newest <= MOST_SIZES * FINE else COARSE
    condition = "thread_id = ? AND events = ? ORDER BY number"
    rows = _rows(db, SIZES, condition, storable(thread_id), events)
    found = [from_stored(RequestSizesRow, fields) for fields in _fields(SIZES, rows)]
    # Versions have no gaps, so the numbers of the rows are known.
    if [row.number for row in found] != list(range(-(-newest // events))):
        raise FoldDamaged(f"conversation {thread_id!r} lacks rows of sizes for {newest} events")
    return found


def notes_of(db: Tables, owner: str) -> Sequence[NoteRow]:
    """Return the notes of all conversations of an owner, in the order of the log."""
    _expect_count(db, NOTES)
    rows = _rows(db, NOTES, f"{_OF_OWNER} ORDER BY {{in_order}}", storable(owner))
    return [from_stored(NoteRow, fields) for fields in _fields(NOTES, rows)]


def active_summaries_of(db: Tables, owner: str) -> Sequence[SummaryRow]:
    """Return the active summaries of all conversations of an owner."""
    rows = _rows(db, SUMMARIES, f"is_active = 1 AND {_OF_OWNER}", storable(owner))
    return [from_stored(SummaryRow, fields) for fields in _fields(SUMMARIES, rows)]


_OF_OWNER = "thread_id IN (SELECT thread_id FROM {conversations} WHERE owner = ? AND erased = 0)"


def all_notes(db: Tables) -> Sequence[NoteRow]:
    """Return the notes of all conversations, in the order of the log."""
    rows = _rows(db, NOTES, "true ORDER BY {in_order}")
    _compare(NOTES.name, rows, read_progress(db, PROJECTIONS).totals[NOTES.name])
    return [from_stored(NoteRow, fields) for fields in _fields(NOTES, rows)]


def count_events(db: Tables) -> int:
    """Return the number of events that the tables were folded from. Versions have no gaps."""
    query = "SELECT coalesce(sum(version), 0) FROM {conversations}"
    return int(db.execute(query).fetchone()[0])


def _rows_of_thread(db: Tables, table: Table, thread_id: str) -> Sequence[dict[str, Any]]:
    # Rows are inserted in the order of the log.
    rows = _rows(db, table, "thread_id = ? ORDER BY {in_order}", storable(thread_id))
    _compare(f"{table.name} of {thread_id!r}", rows, _expected_total(db, table, thread_id))
    return _fields(table, rows)


def _expected_total(db: Tables, table: Table, thread_id: str) -> Total:
    recorded = tally(db, table.name, str(storable(thread_id)))
    if recorded is not None:
        return recorded
    # There is no record if nothing happened, or if it was deleted together with its rows.
    _expect_count(db, table)
    return Total()


def _expect_count(db: Tables, table: Table) -> None:
    """Raise if a table has lost rows, or has too many.

    Raises:
        FoldDamaged: the number of rows is not the one recorded.
    """
    count = db.execute(f"SELECT count(*) FROM {{{table.name}}} WHERE {table.where}").fetchone()[0]
    if count != read_progress(db, PROJECTIONS).totals[table.name].rows:
        raise FoldDamaged(f"{table.name} has {count} rows, which is not the number recorded")


def _rows(db: Tables, table: Table, condition: str, *values: Cell) -> list[tuple[Any, ...]]:
    return db.execute(
        f"SELECT {table.selected} FROM {{{table.name}}} WHERE {condition}", values
    ).fetchall()


def _compare(what: str, rows: Sequence[tuple[Any, ...]], expected: Total) -> None:
    found = Total(len(rows), sum(row[-1] for row in rows))
    if found != expected:
        raise FoldDamaged(
            f"{what}: there are {found.rows} rows, and not the {expected.rows} stored"
        )


def _fields(table: Table, rows: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
    return [table.read(open_row(table.name, row)) for row in rows]
