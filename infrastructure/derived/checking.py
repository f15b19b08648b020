"""Checking a file that is derived from the log: every table against a fresh fold, row by row."""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any

from sqlite_utils import Database

from refold.application.event_log import ConversationLog, Damage, LoggedEvent

from .content import Comparable, Content, expected_schema, schema_of, wrapped
from .file import DerivedFile, begin
from .outdating import is_outdated
from .progress import POSITION_COLUMNS, POSITIONS, nowhere, up_to
from .whose import PlaceTaken

COMPARED_POSITIONS = Comparable(POSITIONS, tuple(POSITION_COLUMNS), ("projection",))

Row = Mapping[str, Any]


def check_file(file: DerivedFile, content: Content, log: ConversationLog) -> Iterator[Damage]:
    """Everything in which the file differs from replay; a file that is not there differs in nothing.

    Both sides are compared at the position that the file has; what came since is no damage.
    """
    if taken := tuple(check_place(file, content)):
        yield from taken
        return
    try:
        with file.unchanged() as db:
            if db is not None:
                db.conn.execute("BEGIN")
                try:
                    yield from _check_tables(db, content, log)
                finally:
                    db.conn.execute("ROLLBACK")
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        yield Damage(content.name, "", 0, "unreadable", str(error))


def check_place(file: DerivedFile, content: Content) -> Iterator[Damage]:
    """Whether a file of somebody else lies in the place of ours."""
    try:
        file.refuse_foreign()
    except PlaceTaken as taken:
        yield Damage(content.name, "", 0, "foreign", str(taken))


def _check_tables(db: Database, content: Content, log: ConversationLog) -> Iterator[Damage]:
    yield from _damage_of_file(db, content)
    yield from content.damage(db)
    number = _position(db)
    if number is not None and is_outdated(db, log.scan(number)):
        return  # Another memory erased since; the next question has all folded anew.
    events = log.scan() if number is None else up_to(number, log.scan())
    # A database without a name lies on disk as soon as it outgrows its cache.
    with closing(wrapped(sqlite3.connect("", isolation_level=None))) as fresh:
        fresh.conn.execute("BEGIN")
        begin(fresh, content)
        fold_all(content, fresh, events)
        for table in (*content.compared, COMPARED_POSITIONS):
            try:
                yield from _differences(table, _rows(table, db), _rows(table, fresh))
            except sqlite3.Error as error:
                yield Damage(table.name, "", 0, "unreadable", str(error))


def fold_all(content: Content, db: Database, events: Iterable[LoggedEvent]) -> None:
    """Fold all events into empty tables, in the transaction that is open."""
    progress, left, more = nowhere(content.projections), iter(events), True
    while more:
        progress, more = content.fold(db, progress, left)


def _damage_of_file(db: Database, content: Content) -> Iterator[Damage]:
    for (problem,) in db.conn.execute("PRAGMA integrity_check").fetchall():
        if problem != "ok":
            yield Damage(content.name, "", 0, "unreadable", str(problem))
    found, expected = schema_of(db), expected_schema(content)
    for name in sorted(found.keys() | expected.keys()):
        if found.get(name) == expected.get(name) or name in content.late:
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
    return Damage(
        table.name,
        thread_id if isinstance(thread_id, str) else "",
        version if table.of_event and isinstance(version, int) else 0,
        kind,
        f"{key}: {detail}",
    )
