"""Folding events into the recall index: passages are gathered in memory and written in one go."""

import json
from collections import Counter
from collections.abc import Iterator

from sqlite_utils import Database

from refold.application.event_log import LoggedEvent
from refold.application.recall.passages import BEGINNING, Before, passages_of
from refold.domain.events import MessageAppended
from refold.infrastructure.derived.cells import Sealed, opened, sealed, storable
from refold.infrastructure.derived.progress import Progress, Total, mark_of, write_progress

from .tables import PASSAGE_COLUMNS, PASSAGES, PROJECTIONS, TERMS, THREADS, WORDS, thread_token

BATCH = 5_000
"""Events that are gathered before they are written, and at most that many in a transaction."""
FULL = 10_000
"""Passages after which no more events are gathered: some 20 million characters."""


class Thread:
    """A conversation while events are folded in."""

    def __init__(self, token: str, before: Before, total: Total) -> None:
        self.token = token
        self.before = before
        self.total = total


def fold_into(
    db: Database, progress: Progress, events: Iterator[LoggedEvent]
) -> tuple[Progress, bool]:
    """See ``Content.fold``."""
    batch = Batch(db, progress.totals[PASSAGES])
    taken, last = 0, None
    while taken < BATCH and not batch.is_full and (logged := next(events, None)):
        taken += 1
        if logged.number > progress.number:
            batch.take(logged)
            last = logged
    if last is not None:
        progress = Progress(last.number, mark_of(last), {PASSAGES: batch.write()})
        write_progress(db, PROJECTIONS, progress)
    return progress, taken == BATCH or batch.is_full


class Batch:
    """The passages of many events."""

    def __init__(self, db: Database, total: Total) -> None:
        self._db = db
        self._total = total
        self._threads: dict[str, Thread] = {}
        self._rows: list[Sealed] = []
        self._words: list[tuple[int, str, str]] = []
        self._terms = Counter[str]()

    @property
    def is_full(self) -> bool:
        """Whether it is to be written before more is taken in."""
        return len(self._rows) >= FULL

    def take(self, logged: LoggedEvent) -> None:
        """Take one event in. Only messages say something; an erasure is not folded in, see ``outdating``."""
        event = logged.event
        if not isinstance(event, MessageAppended):
            return
        thread = self._threads.get(logged.thread_id)
        if thread is None:
            thread = self._threads[logged.thread_id] = stored_thread(self._db, logged.thread_id)
        first = self._total.rows + 1
        found, thread.before = passages_of(logged, event, thread.before, first)
        rows = [sealed((*p[:12], int(p.is_question), *p[13:], thread.token)) for p in found]
        grown = Total(len(rows), sum(row[-1] for row in rows))
        thread.total, self._total = thread.total.plus(grown), self._total.plus(grown)
        self._rows += rows
        for passage in found:
            self._words.append((passage.number, thread.token, passage.tokens))
            self._terms.update(set(passage.tokens.split()))

    def write(self) -> Total:
        """Write everything, in the transaction that is open; returns how much there is now."""
        marks = ",".join("?" * len(PASSAGE_COLUMNS))
        self._db.conn.executemany(f"INSERT INTO {PASSAGES} VALUES ({marks})", self._rows)
        self._db.conn.executemany(
            f"INSERT INTO {WORDS} (rowid, thread, tokens) VALUES (?,?,?)", self._words
        )
        self._db.conn.executemany(
            f"INSERT INTO {TERMS} VALUES (?, ?) ON CONFLICT DO UPDATE SET passages = passages + "
            "excluded.passages",
            self._terms.items(),
        )
        threads = [_row(thread_id, thread) for thread_id, thread in self._threads.items()]
        self._db.conn.executemany(
            f"INSERT OR REPLACE INTO {THREADS} VALUES (?,?,?,?,?,?,?,?)", threads
        )
        return self._total


def stored_thread(db: Database, thread_id: str) -> Thread:
    """What is stored of a conversation; of one that is new, what it begins with.

    Raises:
        FoldDamaged: it was changed since it was stored.
    """
    token = thread_token(thread_id)
    row = db.conn.execute(f"SELECT * FROM {THREADS} WHERE thread = ?", (token,)).fetchone()
    if row is None:
        return Thread(token, BEGINNING, Total())
    _, _, session, at, calls, rows, checksums = opened(THREADS, row)
    known = tuple((str(call), str(name)) for call, name in json.loads(str(calls)))
    total = Total(int(rows or 0), int(checksums or 0))
    return Thread(token, Before(int(session or 0), str(at), known), total)


def _row(thread_id: str, thread: Thread) -> Sealed:
    before, calls = thread.before, json.dumps(thread.before.calls)
    return sealed(
        (thread.token, storable(thread_id), before.session, before.at, calls, *thread.total)
    )
