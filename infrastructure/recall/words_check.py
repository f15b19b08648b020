"""Checking an index of words by FTS5 itself, on a copy in memory: the file is only read, and soon free again."""

import sqlite3
from typing import NamedTuple

from sqlite_utils import Database

from refold.infrastructure.derived.content import expected_schema
from refold.infrastructure.sqlite_connection import open_sqlite

from .content import RECALL
from .tables import PASSAGES, WORDS


class WordTable(NamedTuple):
    """A table of FTS5 over passages."""

    name: str
    columns: tuple[str, ...]
    """What it is an index of."""


WORD_TABLES = (WordTable(WORDS, ("thread", "tokens")),)
"""Every index of words in the file, in the order in which they are checked."""


def copied(db: Database, table: WordTable) -> sqlite3.Connection:
    """The index and the text that it is of, as they are now, in memory.

    Raises:
        sqlite3.Error: they cannot be read.
    """
    copy = open_sqlite(":memory:", isolation_level=None, check_same_thread=False)
    try:
        _fill(copy, db.conn, table)
    except BaseException:
        copy.close()
        raise
    return copy


def _fill(copy: sqlite3.Connection, source: sqlite3.Connection, table: WordTable) -> None:
    copy.execute(
        f"CREATE TABLE {PASSAGES} (number INTEGER PRIMARY KEY, {', '.join(table.columns)})"
    )
    copy.execute(expected_schema(RECALL)[table.name])
    copy.execute("BEGIN")
    rows = source.execute(f"SELECT number, {', '.join(table.columns)} FROM {PASSAGES}")
    marks = ",".join("?" * len(rows.description))
    copy.executemany(f"INSERT INTO {PASSAGES} VALUES ({marks})", rows)
    # What FTS5 keeps for a table of its own.
    for kept in ("data", "idx", "config"):
        copy.execute(f"DELETE FROM {table.name}_{kept}")
        rows = source.execute(f"SELECT * FROM {table.name}_{kept}")
        marks = ",".join("?" * len(rows.description))
        copy.executemany(f"INSERT INTO {table.name}_{kept} VALUES ({marks})", rows)
    copy.execute("COMMIT")


def problem_of(copy: sqlite3.Connection, table: WordTable) -> str:
    """What FTS5 finds wrong with the copy; empty: nothing."""
    try:
        copy.execute(f"INSERT INTO {table.name} ({table.name}, rank) VALUES ('integrity-check', 1)")
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorname", "") == "SQLITE_INTERRUPT":
            return ""
        return f"the index of FTS5 {table.name}: {error}"
    return ""
