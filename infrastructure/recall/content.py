"""What the file of the recall index consists of."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing

from sqlite_utils import Database

from refold.application.event_log import Damage, LoggedEvent
from refold.infrastructure.derived.content import Comparable
from refold.infrastructure.derived.progress import Progress, read_progress
from refold.infrastructure.sqlite_connection import open_sqlite

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

_MAY_NOT_WRITE = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


class RecallContent:
    """``Content`` of the recall index."""

    name = "recall"
    title = "the recall index"
    projections = PROJECTIONS
    counts = "passages"
    late = frozenset[str]()
    compared: Sequence[Comparable] = (
        Comparable(PASSAGES, tuple(PASSAGE_COLUMNS), ("number",), of_event=True, is_final=True),
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

    def forget(self, db: Database) -> None:
        """See ``Content``."""
        db.conn.execute(f"DELETE FROM {PASSAGES}")
        db.conn.execute(f"INSERT INTO {WORDS} ({WORDS}) VALUES ('delete-all')")

    def damage(self, db: Database) -> Iterator[Damage]:
        """See ``Content``. FTS5 itself compares its index with the passages. It wants to be able to write
        for that; where it may not, it is given a copy.
        """
        try:
            _compare_words(db.conn)
        except sqlite3.Error as error:
            if (error.sqlite_errorcode & 0xFF) not in _MAY_NOT_WRITE:
                yield _damage_of_words(error)
                return
            with closing(open_sqlite(":memory:", isolation_level=None)) as copy:
                db.conn.backup(copy)
                try:
                    _compare_words(copy)
                except sqlite3.Error as found:
                    yield _damage_of_words(found)


def _compare_words(connection: sqlite3.Connection) -> None:
    """Raise ``sqlite3.Error`` where the index of FTS5 differs from the passages; nothing is written."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(f"INSERT INTO {WORDS} ({WORDS}, rank) VALUES ('integrity-check', 1)")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _damage_of_words(error: sqlite3.Error) -> Damage:
    return Damage(WORDS, "", 0, "differs", f"the index of FTS5: {error}")


RECALL = RecallContent()
