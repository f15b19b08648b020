"""Checking the read models: every table against a fresh fold of the log, row by row."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, NamedTuple

from sqlite_utils import Database

from refold.application.event_log import ConversationLog, Damage

from .file import ViewsFile
from .folding import fold_all
from .outdating import is_outdated
from .progress import nowhere, up_to, write_progress
from .tables import (
    LATE_INDEX,
    POSITION_COLUMNS,
    POSITIONS,
    TABLES,
    TALLIES,
    TALLY_COLUMNS,
    create_tables,
    expected_schema,
    schema_of,
    wrapped,
)

FILE = "views"
"""The place of damage that is of the file as a whole."""


class Comparable(NamedTuple):
    """What a comparison needs to know of a table."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]


COMPARED = (
    *(Comparable(table.name, tuple(table.types), table.key) for table in TABLES),
    Comparable(POSITIONS, tuple(POSITION_COLUMNS), ("projection",)),
    Comparable(TALLIES, tuple(TALLY_COLUMNS), ("thread_id", "projection")),
)

Row = Mapping[str, Any]


def check_file(file: ViewsFile, log: ConversationLog) -> Iterator[Damage]:
    """Everything in which the file differs from replay; a file that is not there differs in nothing.

    Both sides are compared at the position that the file has; what came since is no damage.
    """
    try:
        with file.unchanged() as db:
            if db is not None:
                db.conn.execute("BEGIN")
                try:
                    yield from _check_tables(db, log)
                finally:
                    db.conn.execute("ROLLBACK")
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        yield Damage(FILE, "", 0, "unreadable", str(error))


def _check_tables(db: Database, log: ConversationLog) -> Iterator[Damage]:
    yield from _damage_of_file(db)
    number = _position(db)
    if number is not None and is_outdated(db, log.scan(number)):
        return  # Another memory erased since; the next question has all folded anew.
    events = log.scan() if number is None else up_to(number, log.scan())
    # A database without a name lies on disk as soon as it outgrows its cache.
    with closing(wrapped(sqlite3.connect("", isolation_level=None))) as fresh:
        fresh.conn.execute("BEGIN")
        create_tables(fresh)
        write_progress(fresh, nowhere())
        fold_all(fresh, events)
        for table in COMPARED:
            try:
                yield from _differences(table, _rows(table, db), _rows(table, fresh))
            except sqlite3.Error as error:
                yield Damage(table.name, "", 0, "unreadable", str(error))


def _damage_of_file(db: Database) -> Iterator[Damage]:
    for (problem,) in db.conn.execute("PRAGMA integrity_check").fetchall():
        if problem != "ok":
            yield Damage(FILE, "", 0, "unreadable", str(problem))
    found, expected = schema_of(db), expected_schema()
    for name in sorted(found.keys() | expected.keys()):
        if found.get(name) == expected.get(name) or name == LATE_INDEX:
            continue
        kind = (
            "missing" if name not in found else "unexpected" if name not in expected else "differs"
        )
        yield Damage(name, "", 0, kind, f"the declaration of {name} in the database")


def _position(db: Database) -> int | None:
    """How far the tables claim to be; None where they claim nothing that makes sense."""
    if POSITIONS not in schema_of(db):
        return None
    numbers = {row[0] for row in db.conn.execute(f"SELECT number FROM {POSITIONS}").fetchall()}
    number = numbers.pop() if len(numbers) == 1 else None
    return number if isinstance(number, int) else None


def _differences(
    table: Comparable, stored: Iterator[Row], expected: Iterator[Row]
) -> Iterator[Damage]:
    left, right = next(stored, None), next(expected, None)
    while left is not None or right is not None:
        if right is None or (left is not None and _key(table, left) < _key(table, right)):
            assert left is not None
            yield _damage(table, left, "unexpected", "replay does not give this row")
            left = next(stored, None)
        elif left is None or _key(table, right) < _key(table, left):
            yield _damage(table, right, "missing", "replay gives this row")
            right = next(expected, None)
        else:
            if differing := [c for c in table.columns if left[c] != right[c]]:
                yield _damage(table, right, "differs", f"in {', '.join(differing)}")
            left, right = next(stored, None), next(expected, None)


def _rows(table: Comparable, db: Database) -> Iterator[Row]:
    query = f"SELECT {', '.join(table.columns)} FROM {table.name} ORDER BY {', '.join(table.key)}"
    for row in db.conn.execute(query):
        yield dict(zip(table.columns, row, strict=True))


def _key(table: Comparable, row: Row) -> tuple[tuple[int, Any], ...]:
    # SQLite's order of values of different types: a damaged table may hold anything.
    ranks = {type(None): 0, int: 1, float: 1, str: 2, bytes: 3}
    return tuple((ranks[type(row[c])], row[c]) for c in table.key)


def _damage(table: Comparable, row: Row, kind: str, detail: str) -> Damage:
    key = ", ".join(f"{column}={row[column]!r}" for column in table.key)
    thread_id, version = row.get("thread_id"), row.get("version")
    of_event = table.name in ("messages", "summaries")
    return Damage(
        table.name,
        thread_id if isinstance(thread_id, str) else "",
        version if of_event and isinstance(version, int) else 0,
        kind,
        f"{key}: {detail}",
    )
