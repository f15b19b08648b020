"""Comparing a table with what replay gives, row by row, and naming each row that differs."""

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any

from sqlite_utils import Database

from refold.application.event_log import Damage

from .content import Comparable

Row = Mapping[str, Any]


def differences(
    table: Comparable, stored: Iterator[Row], expected: Iterator[Row]
) -> Iterator[Damage]:
    """Compare all rows of a table, both sides in the order of its key."""
    left, right = next(stored, None), next(expected, None)
    while left is not None or right is not None:
        if right is None or (left is not None and _key(table, left) < _key(table, right)):
            assert left is not None
            yield _unexpected(table, left)
            left = next(stored, None)
        elif left is None or _key(table, right) < _key(table, left):
            yield _missing(table, right)
            right = next(expected, None)
        else:
            yield from _differs(table, left, right)
            left, right = next(stored, None), next(expected, None)


def rows_of(table: Comparable, db: Database) -> Iterator[Row]:
    """Read all rows in the order of the key."""
    query = (
        f"SELECT {', '.join(table.columns)} FROM {table.name} "
        f"WHERE {table.where} ORDER BY {', '.join(table.key)}"
    )
    for row in db.conn.execute(query):
        yield dict(zip(table.columns, row, strict=True))


class FinalRows:
    """A table whose rows never change: compared while the log is folded, so that no copy is needed."""

    def __init__(self, table: Comparable, stored: Database) -> None:
        self.table = table
        self._stored = stored
        self._seen = _Numbers()

    def compare(self, fresh: Database) -> Iterator[Damage]:
        """Compare the rows that were folded since the last time."""
        columns = ", ".join(self.table.columns)
        condition = " AND ".join(f"{column} = ?" for column in self.table.key)
        query = f"SELECT rowid, {columns} FROM {self.table.name} WHERE {condition}"
        for expected in rows_of(self.table, fresh):
            key = [expected[column] for column in self.table.key]
            found = self._stored.conn.execute(query, key).fetchone()
            if found is None:
                yield _missing(self.table, expected)
                continue
            self._seen.add(found[0])
            row = dict(zip(self.table.columns, found[1:], strict=True))
            yield from _differs(self.table, row, expected)

    def unexpected(self) -> Iterator[Damage]:
        """Name the rows that replay did not give."""
        columns = ", ".join(self.table.columns)
        query = f"SELECT {columns} FROM {self.table.name} WHERE rowid = ?"
        every = f"SELECT rowid FROM {self.table.name} WHERE {self.table.where}"
        for (number,) in self._stored.conn.execute(every):
            if number not in self._seen:
                found = self._stored.conn.execute(query, (number,)).fetchone()
                if found is not None:
                    yield _unexpected(self.table, dict(zip(self.table.columns, found, strict=True)))


class _Numbers:
    """Row numbers as ranges: those of a whole table in the order of the log are one range."""

    def __init__(self) -> None:
        self._starts = array("q")
        self._stops = array("q")
        self._is_sorted = True

    def add(self, number: int) -> None:
        if self._stops and number == self._stops[-1]:
            self._stops[-1] += 1
            return
        self._is_sorted = self._is_sorted and (not self._stops or number > self._stops[-1])
        self._starts.append(number)
        self._stops.append(number + 1)

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, int):
            return False
        if not self._is_sorted:
            ranges = sorted(zip(self._starts, self._stops, strict=True))
            self._starts = array("q", [start for start, _ in ranges])
            self._stops = array("q", [stop for _, stop in ranges])
            self._is_sorted = True
        at = bisect_right(self._starts, number) - 1
        return at >= 0 and number < self._stops[at]


def _differs(table: Comparable, stored: Row, expected: Row) -> Iterator[Damage]:
    if differing := [column for column in table.columns if stored[column] != expected[column]]:
        yield _damage(table, expected, "differs", f"in {', '.join(differing)}")


def _missing(table: Comparable, row: Row) -> Damage:
    return _damage(table, row, "missing", "replay gives this row")


def _unexpected(table: Comparable, row: Row) -> Damage:
    return _damage(table, row, "unexpected", "replay does not give this row")


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
