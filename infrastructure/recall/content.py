"""What the file of the recall index consists of."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing

from sqlite_utils import Database

from refold.application.event_log import Damage, LoggedEvent
from refold.infrastructure.derived.content import Comparable
from refold.infrastructure.derived.progress import Progress, read_progress

from .folding import fold_into
from .tables import (
    PASSAGE_COLUMNS,
    PASSAGES,
    PROJECTIONS,
    TERM_COLUMNS,
    TERMS,
    THREAD_COLUMNS,
    THREADS,
    WORDS,
    create_tables,
)


class RecallContent:
    """``Content`` of the recall index."""

    name = "recall"
    title = "the recall index"
    projections = PROJECTIONS
    counts = "passages"
    late = frozenset[str]()
    compared: Sequence[Comparable] = (
        Comparable(PASSAGES, tuple(PASSAGE_COLUMNS), ("number",), of_event=True),
        Comparable(THREADS, tuple(THREAD_COLUMNS), ("thread",)),
        Comparable(TERMS, tuple(TERM_COLUMNS), ("token",)),
    )

    def create(self, db: Database) -> None:
        """See ``Content``."""
        create_tables(db)

    def fold(
        self, db: Database, progress: Progress, events: Iterator[LoggedEvent]
    ) -> tuple[Progress, bool]:
        """See ``Content``."""
        return fold_into(db, progress, events)

    def finish(self, db: Database) -> None:
        """See ``Content``. What many batches wrote is merged, and found a quarter faster."""
        db.conn.execute(f"INSERT INTO {WORDS} ({WORDS}) VALUES ('optimize')")

    def count(self, db: Database) -> int:
        """See ``Content``."""
        return read_progress(db, PROJECTIONS).totals[PASSAGES].rows

    def damage(self, db: Database) -> Iterator[Damage]:
        """See ``Content``. FTS5 itself compares its index with the passages; but it wants to write for
        that, so it is given a copy.
        """
        with closing(sqlite3.connect("")) as copy:
            db.conn.backup(copy)
            try:
                copy.execute(f"INSERT INTO {WORDS} ({WORDS}, rank) VALUES ('integrity-check', 1)")
            except sqlite3.Error as error:
                yield Damage(WORDS, "", 0, "differs", f"the index of FTS5: {error}")


RECALL = RecallContent()
