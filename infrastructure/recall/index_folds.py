"""Fold messages into the recall index, and remove erased ones in place."""

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
from refold.infrastructure.projection_store.row_checksums import (
    FoldDamaged,
    Sealed,
    open_row,
    seal_row,
)

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
    """Remove erased messages from the index, in the open transaction, and return the new total.

    ``total`` is the old total. ``number`` is the log position of the erasure, which starts a new
    edition. ``remains`` has what the log keeps of the reduced events.

    Raises:
        FoldDamaged: a row of the messages differs from what was stored.
        FoldOutdated: the passages of later messages depend on the erased content.
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
    passages = [Passage._make(open_row(PASSAGES, row)[:16]) for row in rows]
    if len(passages) != len(numbers) or any(p.position != event.position for p in passages):
        raise FoldDamaged(f"the passages of message {event.position} are not where they should be")
    _expect_same_calls(passages, event)
    gone = Total(len(rows), sum(int(row[-1]) for row in rows))
    answered = frozenset(gist(event.message).results)
    # A result without words answers nothing, but its marker has words.
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
    # Not the number itself: an update of the key deletes the row, and SQLite would move others into
    # its place.
    columns = ", ".join(f"{column} = ?" for column in PASSAGE_COLUMNS if column != "number")
    db.conn.executemany(
        f"UPDATE {PASSAGES} SET {columns} WHERE number = ?",
        [(*_empty_row(passage.number)[1:], passage.number) for passage in passages],
    )


def _empty_row(number: int) -> tuple[str | int | None, ...]:
    """Return the row that replaces a passage. It is shorter than any other, so that SQLite moves nothing."""
    kinds = [*PASSAGE_COLUMNS.values()][:-1]
    values: list[str | int | None] = ["" if kind is str else 0 for kind in kinds]
    # Places are unique. For a placeholder, the number is unique enough.
    values[0] = values[2] = number
    return seal_row(tuple(values))


def _expect_same_calls(passages: Sequence[Passage], event: MessageAppended) -> None:
    """Check that no calls of a provider's own tools are removed, because later results refer to them."""
    left = gist(event.message)
    names = {str(block.get("name")) for block in event.message.blocks() if "name" in block}
    for passage in passages:
        if passage.kind == "call" and passage.tool not in names:
            raise FoldOutdated(f"the call of {passage.tool} was erased")
        if passage.kind == "result" and not left.results:
            raise FoldOutdated("the call of a result was erased")


BATCH = 5_000
"""Maximum number of events that are collected before a write and stored in one transaction."""
FULL = 10_000
"""Maximum number of passages that are collected before a write: some 20 million characters."""


def fold_into(
    db: Database, progress: Progress, events: Iterator[LoggedEvent], left: Left
) -> tuple[Progress, bool]:
    """Fold the next batch of events in, and store rows and checkpoint in the open transaction."""
    batch = Batch(db, progress.totals[PASSAGES])
    taken, last = 0, None
    while not _is_enough(batch, taken, last) and (logged := next(events, None)):
        taken += 1
        if logged.number <= progress.number:
            continue
        last = logged
        if isinstance(logged.event, MessageErased):
            if remains := left(logged):
                # The original must be in the tables before it can be removed from them.
                batch = Batch(db, erase(db, batch.write(), logged.number, remains))
        else:
            batch.take(logged)
    if last is not None:
        progress = Progress(last.number, mark_of(last), {PASSAGES: batch.write()})
        write_progress(db, PROJECTIONS, progress)
    return progress, _is_enough(batch, taken, last)


def _is_enough(batch: "Batch", taken: int, last: LoggedEvent | None) -> bool:
    """Return whether the batch must be written now. With many passages, whole segments are written."""
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
        """True if the batch must be written before more events are added."""
        return len(self._rows) >= FULL

    def take(self, logged: LoggedEvent) -> None:
        """Add an event. Only messages have passages."""
        event = logged.event
        if not isinstance(event, MessageAppended):
            return
        thread = self._threads.get(logged.thread_id)
        if thread is None:
            thread = self._threads[logged.thread_id] = stored_thread(self._db, logged.thread_id)
        first = first_number(logged)
        found, thread.before = passages_of(logged, event, thread.before, first)
        rows = [seal_row((*p[:12], int(p.is_question), *p[13:], thread.token)) for p in found]
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
        """Write all passages in the open transaction, and return the new total."""
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
