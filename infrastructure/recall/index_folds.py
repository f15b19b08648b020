"""Taking a message out of the recall index in place: its passages, and the postings of one segment."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from sqlite_utils import Database

from refold.application.ports.conversation_log import LoggedEvent
from refold.application.recall.passages import Passage, first_number, passages_of
from refold.domain.events import MessageAppended, MessageErased
from refold.domain.messages import gist
from refold.infrastructure.projection_store.checkpoint import (
    FoldOutdated,
    Left,
    Progress,
    Total,
    mark_of,
    write_progress,
    write_reading_from,
)
from refold.infrastructure.projection_store.row_checksums import FoldDamaged, Sealed, opened, sealed

from .index_tables import (
    EVENTS,
    PASSAGE_COLUMNS,
    PASSAGES,
    PROJECTIONS,
    TERMS,
    Thread,
    local_of,
    numbers_at,
    put_thread,
    segment_of,
    stored_thread,
    terms_of,
)
from .segments import Growth, shrink

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


BATCH = 5_000
"""Events that are gathered before they are written, and at most that many in a transaction."""
FULL = 10_000
"""Passages after which no more events are gathered: some 20 million characters."""


def fold_into(
    db: Database, progress: Progress, events: Iterator[LoggedEvent], left: Left
) -> tuple[Progress, bool]:
    """See ``Content.fold``."""
    batch = Batch(db, progress.totals[PASSAGES])
    taken, last = 0, None
    while not _is_enough(batch, taken, last) and (logged := next(events, None)):
        taken += 1
        if logged.number <= progress.number:
            continue
        last = logged
        if isinstance(logged.event, MessageErased):
            if remains := left(logged):
                # What it was is to be in the tables before it can be taken out of them.
                batch = Batch(db, erase(db, batch.write(), logged.number, remains))
        else:
            batch.take(logged)
    if last is not None:
        progress = Progress(last.number, mark_of(last), {PASSAGES: batch.write()})
        write_progress(db, PROJECTIONS, progress)
    return progress, _is_enough(batch, taken, last)


def _is_enough(batch: "Batch", taken: int, last: LoggedEvent | None) -> bool:
    """Whether what was gathered is written before more is taken in: whole segments where there are many."""
    if taken >= BATCH or batch.is_full:
        return True
    is_end = last is not None and (last.number + 1) % EVENTS == 0
    return is_end and taken > BATCH - EVENTS


class Batch:
    """The passages of many events."""

    def __init__(self, db: Database, total: Total) -> None:
        self._db = db
        self._total = total
        self._threads: dict[str, Thread] = {}
        self._rows: list[Sealed] = []
        self._growths: dict[int, Growth] = {}

    @property
    def is_full(self) -> bool:
        """Whether it is to be written before more is taken in."""
        return len(self._rows) >= FULL

    def take(self, logged: LoggedEvent) -> None:
        """Take one event in. Only messages say something."""
        event = logged.event
        if not isinstance(event, MessageAppended):
            return
        thread = self._threads.get(logged.thread_id)
        if thread is None:
            thread = self._threads[logged.thread_id] = stored_thread(self._db, logged.thread_id)
        first = first_number(logged)
        found, thread.before = passages_of(logged, event, thread.before, first)
        rows = [sealed((*p[:12], int(p.is_question), *p[13:], thread.token)) for p in found]
        grown = Total(len(rows), sum(row[-1] for row in rows))
        thread.add(grown, found)
        self._total = self._total.plus(grown)
        self._rows += rows
        if found:
            segment = segment_of(first)
            growth = self._growths.get(segment) or self._growths.setdefault(
                segment, Growth(segment)
            )
            for passage, row in zip(found, rows, strict=True):
                growth.take(passage.number, passage.tokens, row[-1])

    def write(self) -> Total:
        """Write everything, in the transaction that is open; returns how much there is now."""
        marks = ",".join("?" * len(PASSAGE_COLUMNS))
        self._db.conn.executemany(f"INSERT INTO {PASSAGES} VALUES ({marks})", self._rows)
        terms = Counter[int]()
        for segment in sorted(self._growths):
            terms.update(self._growths[segment].write(self._db))
        self._db.conn.executemany(
            f"INSERT INTO {TERMS} VALUES (?, ?) ON CONFLICT DO UPDATE SET passages = passages + "
            "excluded.passages",
            sorted(terms.items()),
        )
        for thread_id, thread in self._threads.items():
            put_thread(self._db, thread_id, thread)
        return self._total
