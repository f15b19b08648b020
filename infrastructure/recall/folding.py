"""Folding events into the recall index: passages are gathered in memory and written in one go."""

from collections import Counter
from collections.abc import Iterator

from sqlite_utils import Database

from refold.application.event_log import LoggedEvent
from refold.application.recall.passages import first_number, passages_of
from refold.domain.events import MessageAppended, MessageErased
from refold.infrastructure.derived.cells import Sealed, sealed
from refold.infrastructure.derived.outdating import Left
from refold.infrastructure.derived.progress import Progress, Total, mark_of, write_progress

from .erasing import erase
from .postings import EVENTS, segment_of
from .segments import Growth
from .tables import PASSAGE_COLUMNS, PASSAGES, PROJECTIONS, TERMS
from .threads import Thread, put_thread, stored_thread

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
