"""Reading every row of a log that may be damaged: what one page hides is no reason to stop."""

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from refold.infrastructure.event_store.envelope import is_place
from refold.infrastructure.sqlite.sqlite_failures import may_be_damage

BATCH = 500
DAMAGE = (sqlite3.Error, UnicodeDecodeError)
"""What reading a damaged file raises: of some, Python cannot even say what SQLite says."""
SMALLEST_ROW = 200
"""Bytes: no stored event is smaller, so that the size of a file bounds how many it can have."""


def refuse_trouble(error: Exception) -> None:
    """Raise what is no damage: a missing permission, a disk that fails, a file that is in use."""
    if not may_be_damage(error):
        raise error


class RawRow(NamedTuple):
    """The columns of a stored event; damaged ones may be anything."""

    number: int
    stream: str
    version: int
    name: str
    state: object


class RowReader:
    """Reads the rows of a log in their order, and remembers what could not be read."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.problems: list[str] = []
        """What SQLite refused to read."""

    def rows(self) -> Iterator[RawRow]:
        """Every row that can be read, in the order of the log; where a page is damaged, one by one."""
        after = 0
        # Nobody but who puts rows in by hand gives them such numbers; a load would find them.
        with suppress(*DAMAGE):
            yield from (
                row for row in self._some("rowid <= 0 ORDER BY rowid") if self._is_whole(row)
            )
        while True:
            try:
                found = self._some("rowid > ? ORDER BY rowid LIMIT ?", after, BATCH)
            except DAMAGE as error:
                refuse_trouble(error)
                self.problems.append(str(error))
                yield from self._one_by_one(after)
                return
            yield from (row for row in found if self._is_whole(row))
            if len(found) < BATCH:
                return
            after = found[-1].number

    def _one_by_one(self, after: int) -> Iterator[RawRow]:
        last = self._highest()
        missed = 0
        for number in range(after + 1, last + 1):
            try:
                found = self._some("rowid = ?", number)
            except DAMAGE as error:
                refuse_trouble(error)
                missed += 1
                continue
            yield from (row for row in found if self._is_whole(row))
        if missed:
            self.problems.append(f"{missed} places between {after + 1} and {last} cannot be read")

    def _highest(self) -> int:
        """No row has a higher number than this."""
        pages: list[int] = []
        for name in ("page_count", "page_size"):
            with suppress(*DAMAGE):
                pages.append(int(self._connection.execute(f"PRAGMA {name}").fetchone()[0]))
        bound = pages[0] * pages[1] // SMALLEST_ROW if len(pages) == 2 else 0
        with suppress(*DAMAGE, TypeError):
            query = "SELECT max(rowid) FROM stored_events"
            return min(int(self._connection.execute(query).fetchone()[0]), 4 * bound)
        return bound

    def _some(self, condition: str, *values: int) -> list[RawRow]:
        cursor = self._connection.cursor()
        cursor.row_factory = None
        # The table itself: an index may be damaged in another way than what it leads to.
        cursor.execute(
            "SELECT rowid, originator_id, originator_version, topic, state "
            f"FROM stored_events NOT INDEXED WHERE {condition}",
            values,
        )
        return [RawRow(*row) for row in cursor.fetchall()]

    def _is_whole(self, row: RawRow) -> bool:
        whole = is_place(*row[1:4])
        if not whole:
            self.problems.append(f"row {row.number} does not say which event it is")
        return whole


def lenient(connection: sqlite3.Connection) -> sqlite3.Connection:
    """The connection, taking bytes that are no text for text all the same."""
    connection.text_factory = _decoded
    return connection


def _decoded(raw: bytes) -> str:
    return raw.decode(errors="replace")
