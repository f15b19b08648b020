"""Taking a message out of the recall index in place: its passages, and the postings of one segment."""

import json
from collections import Counter, defaultdict
from collections.abc import Sequence

from sqlite_utils import Database

from refold.application.event_log import LoggedEvent
from refold.application.recall.passages import Passage
from refold.domain.events import MessageAppended
from refold.domain.messages import gist
from refold.infrastructure.derived.cells import opened, sealed
from refold.infrastructure.derived.damage import FoldDamaged
from refold.infrastructure.derived.outdating import FoldOutdated, write_reading_from
from refold.infrastructure.derived.progress import Total

from .postings import local_of, segment_of, terms_of
from .segments import shrink
from .tables import PASSAGE_COLUMNS, PASSAGES, TERMS
from .threads import numbers_at, put_thread, stored_thread

_NUMBERED = f"SELECT * FROM {PASSAGES} WHERE number IN (SELECT value FROM json_each(?))"


def erase(db: Database, total: Total, number: int, remains: Sequence[LoggedEvent]) -> Total:
    """Take out what is to be found of messages that were erased, in the transaction that is open.

    ``total``: how much there is; returns what is left. ``number``: of the event that says so; it begins a
    new edition. ``remains``: what is left in the log of the events that lost content.

    Raises:
        FoldDamaged: something of them is not as it was stored.
        FoldOutdated: what the messages behind them say follows from what was erased.
    """
    for logged in remains:
        if isinstance(logged.event, MessageAppended):
            gone = _erase_message(db, logged, logged.event)
            total = total.plus(Total(-gone.rows, -gone.checksums))
    write_reading_from(db, number)
    return total


def _erase_message(db: Database, logged: LoggedEvent, event: MessageAppended) -> Total:
    thread = stored_thread(db, logged.thread_id)
    numbers = numbers_at(db, logged.thread_id, thread, (event.position,))
    rows = db.conn.execute(_NUMBERED, (json.dumps(numbers),)).fetchall()
    passages = [Passage._make(opened(PASSAGES, row)[:16]) for row in rows]
    if len(passages) != len(numbers) or any(p.position != event.position for p in passages):
        raise FoldDamaged(f"the passages of message {event.position} are not where they should be")
    _expect_same_calls(passages, event)
    gone = Total(len(rows), sum(int(row[-1]) for row in rows))
    answered = frozenset(gist(event.message).results)
    # A result without words is none that answers; its marker has some.
    calls = tuple(call for call in thread.before.calls if call[0] not in answered)
    thread.before = thread.before._replace(calls=calls)
    thread.take_out(gone, passages)
    if thread.total.rows < 0:
        raise FoldDamaged(f"conversation {logged.thread_id!r} has passages that are not counted")
    put_thread(db, logged.thread_id, thread)
    if passages:
        _erase_passages(db, passages, gone)
    return gone


def _erase_passages(db: Database, passages: Sequence[Passage], gone: Total) -> None:
    lost: defaultdict[int, set[int]] = defaultdict(set)
    counts = Counter[int]()
    for passage in passages:
        terms = terms_of(passage.tokens)
        counts.update(terms)
        for term in terms:
            lost[term].add(local_of(passage.number))
    segment = segment_of(passages[0].number)
    shrink(db, segment, gone, lost)
    db.conn.executemany(
        f"UPDATE {TERMS} SET passages = passages - ? WHERE term = ?",
        [(count, term) for term, count in counts.items()],
    )
    db.conn.executemany(
        f"DELETE FROM {TERMS} WHERE term = ? AND passages <= 0", [(term,) for term in counts]
    )
    # Not the number itself: a row whose key is set is deleted, and SQLite moves others into its place.
    columns = ", ".join(f"{column} = ?" for column in PASSAGE_COLUMNS if column != "number")
    db.conn.executemany(
        f"UPDATE {PASSAGES} SET {columns} WHERE number = ?",
        [(*_emptied(passage.number)[1:], passage.number) for passage in passages],
    )


def _emptied(number: int) -> tuple[str | int | None, ...]:
    """The row that stays in the place of a passage: shorter than any other, so that nothing is moved."""
    kinds = [*PASSAGE_COLUMNS.values()][:-1]
    values: list[str | int | None] = ["" if kind is str else 0 for kind in kinds]
    # Places are unique; of a row that stands for nothing the number is one.
    values[0] = values[2] = number
    return sealed(tuple(values))


def _expect_same_calls(passages: Sequence[Passage], event: MessageAppended) -> None:
    """Calls of a provider's own tools leave nothing of them: whose results follow would be another's."""
    left = gist(event.message)
    names = {str(block.get("name")) for block in event.message.blocks() if "name" in block}
    for passage in passages:
        if passage.kind == "call" and passage.tool not in names:
            raise FoldOutdated(f"what the call of {passage.tool} was is erased")
        if passage.kind == "result" and not left.results:
            raise FoldOutdated("which call the result was of is erased")
