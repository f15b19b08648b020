"""Read the rows of a log that may be damaged one by one, and prove that each is unchanged."""

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import suppress
from time import sleep
from typing import NamedTuple

from refold.infrastructure.event_store.envelope import (
    GENESIS,
    LONGEST_FRAME,
    Envelope,
    EnvelopeError,
    EventMapper,
    Place,
    is_place,
    parse_frame,
)
from refold.infrastructure.event_store.recorder import DurableDatastore
from refold.infrastructure.sqlite.sqlite_failures import STORE_ERRORS, is_damage, may_be_damage

BATCH = 500
DAMAGE = (sqlite3.Error, UnicodeDecodeError)
"""Errors of reading a damaged file. Python cannot decode some messages of SQLite."""
SMALLEST_ROW = 200
"""Minimum number of bytes of a stored event. With it, the file size limits the number of events."""


def refuse_trouble(error: Exception) -> None:
    """Raise errors that are not damage: a missing permission, a failing disk, a file in use."""
    if not may_be_damage(error):
        raise error


class RawRow(NamedTuple):
    """The columns of a stored event. Damaged columns may have any value."""

    number: int
    stream: str
    version: int
    name: str
    state: object


class RowReader:
    """A reader that yields the rows of a log in order and records what it could not read."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.problems: list[str] = []
        """Problems that SQLite reported while reading."""

    def rows(self) -> Iterator[RawRow]:
        """Yield every readable row in the order of the log. On a damaged page, read rows one by one."""
        after = 0
        # Only a row that was inserted manually has such a number, and a load would read it.
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
        """Return an upper bound of the row numbers."""
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
        # Without the index, which may be damaged in another way than the table.
        cursor.execute(
            "SELECT rowid, originator_id, originator_version, topic, state "
            f"FROM stored_events NOT INDEXED WHERE {condition}",
            values,
        )
        return [RawRow(*row) for row in cursor.fetchall()]

    def _is_whole(self, row: RawRow) -> bool:
        whole = is_place(*row[1:4])
        if not whole:
            self.problems.append(f"row {row.number} does not identify its event")
        return whole


def lenient(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Configure the connection to decode invalid text without errors."""
    connection.text_factory = _decode
    return connection


def _decode(raw: bytes) -> str:
    return raw.decode(errors="replace")


# The columns of the table itself, as bytes, because damaged ones may not be text. The index is
# queried separately.
_ROWS = f"""
SELECT e.rowid, CAST(e.originator_id AS BLOB), e.originator_version, CAST(e.topic AS BLOB), e.state,
    (SELECT i.rowid FROM stored_events AS i WHERE i.originator_id = e.originator_id
        AND i.originator_version = e.originator_version),
    (SELECT substr(p.state, 1, {LONGEST_FRAME}) FROM stored_events AS p
        WHERE p.originator_id = e.originator_id
        AND p.originator_version = e.originator_version - 1)
FROM stored_events AS e NOT INDEXED
"""
_INDEXED = """
SELECT rowid, CAST(originator_id AS BLOB), originator_version
FROM stored_events INDEXED BY sqlite_autoindex_stored_events_1
"""
UNINTERRUPTED = 16
"""Number of rows that are proved before other threads may run, in less than a millisecond."""
AT_ONCE = 200
"""Number of rows that are read one by one after a place that cannot be read."""


class ProvedRow(NamedTuple):
    """A row of the log and its problem."""

    number: int
    thread_id: str
    """Thread id of the row, or empty if it is not known."""
    version: int
    size: int
    problem: str
    """Description of the problem, or empty if none exists."""


class _Row(NamedTuple):
    """The columns of a row. Damaged columns may have any value."""

    number: int
    stream: object
    version: object
    name: object
    state: object
    indexed: object
    """Row that the index has for this stream and version."""
    before: object
    """First bytes of the previous event."""


class RowProver:
    """A reader that proves rows in the order of the log. Each call is a short transaction of its own."""

    def __init__(self, datastore: DurableDatastore, mapper: EventMapper) -> None:
        self._datastore = datastore
        self._mapper = mapper

    def after(self, number: int, size: int) -> list[ProvedRow]:
        """Prove the rows after a row number, about ``size`` bytes in total.

        Raises:
            STORE_ERRORS: the rows cannot be read for a reason other than damage.
        """
        try:
            rows = self._rows("WHERE e.rowid > ? ORDER BY e.rowid", number, size)
        except STORE_ERRORS as error:
            if not is_damage(error):
                raise
            return [self.at(found) for found in self._numbers_after(number)]
        proved: list[ProvedRow] = []
        for count, row in enumerate(rows):
            if count % UNINTERRUPTED == 0:
                sleep(0)  # Threads that wait for Python's lock run first, above all appends.
            proved.append(self._prove_settled(row))
        return proved

    def at(self, number: int) -> ProvedRow:
        """Prove one row. A missing row is not a problem. Raises like ``after``."""
        try:
            rows = self._rows("WHERE e.rowid = ?", number, 1)
        except STORE_ERRORS as error:
            if not is_damage(error):
                raise
            return ProvedRow(
                number, *self._look_up_index(number), 0, f"it cannot be read ({error})"
            )
        return self._prove(rows[0]) if rows else ProvedRow(number, "", 0, 0, "")

    def first(self) -> str:
        """Return an identifier of this log: its first event, or empty if none exists."""
        try:
            rows = self._rows("WHERE e.rowid > ? ORDER BY e.rowid", 0, 1)
        except STORE_ERRORS as error:
            if not is_damage(error):
                raise
            return "unreadable"
        return f"{rows[0].number} {_link(rows[0].state)}" if rows else ""

    def newest(self) -> int:
        """Return the number of the newest row, or a larger one if it cannot be read. An empty log gives 0."""
        try:
            with self._datastore.transaction(commit=False) as c:
                row = c.sqlite_cursor.execute("SELECT MAX(rowid) FROM stored_events").fetchone()
        except STORE_ERRORS as error:
            if not is_damage(error):
                raise
            return sys.maxsize
        return int(row[0] or 0)

    def number_of(self, thread_id: str, version: int) -> int | None:
        """Return the row number of an event according to the index, or None."""
        query = f"{_INDEXED} WHERE originator_id = ? AND originator_version = ?"
        with self._datastore.transaction(commit=False) as c:
            row = c.sqlite_cursor.execute(query, (thread_id, version)).fetchone()
        return None if row is None else int(row[0])

    def _prove_settled(self, row: _Row) -> ProvedRow:
        """Return the row, read again if something seems to be wrong with it."""
        proved = self._prove(row)
        if not proved.problem:
            return proved
        self._datastore.forget_pages()
        return self.at(row.number)

    def _prove(self, row: _Row) -> ProvedRow:
        stream = _text(row.stream)
        version = row.version if isinstance(row.version, int) else 0
        size = len(row.state) if isinstance(row.state, bytes) else 0
        place = Place(stream, version, _text(row.name))
        try:
            envelope = self._mapper.unsealed_columns(place, row.state)
        except EnvelopeError as error:
            # The place in a damaged row is unreliable, but the index has it as well.
            known, at = self._look_up_index(row.number)
            return ProvedRow(row.number, known or stream, at or version, size, str(error))
        return ProvedRow(row.number, stream, version, size, _problem(row, version, envelope))

    def _rows(self, where: str, value: int, size: int) -> list[_Row]:
        found: list[_Row] = []
        with self._datastore.transaction(commit=False) as c:
            cursor = c.sqlite_cursor
            cursor.row_factory = None
            for columns in cursor.execute(f"{_ROWS} {where}", (value,)):
                row = _Row(*columns)
                found.append(row)
                size -= len(row.state) if isinstance(row.state, bytes) else 1
                if size <= 0:
                    break
            cursor.close()
        return found

    def _numbers_after(self, number: int) -> list[int]:
        query = f"{_INDEXED} WHERE rowid > ? ORDER BY rowid LIMIT {AT_ONCE}"
        try:
            return [found for found, _, _ in self._read_index(query, number)]
        except STORE_ERRORS as error:
            if not is_damage(error):
                raise
            return [number + 1]  # The place of the next row is unknown.

    def _look_up_index(self, number: int) -> tuple[str, int]:
        """Return the stream and version of a row according to the index."""
        try:
            for _, stream, version in self._read_index(f"{_INDEXED} WHERE rowid = ?", number):
                return _text(stream), version if isinstance(version, int) else 0
        except STORE_ERRORS as error:
            if not is_damage(error):
                raise
        return "", 0

    def _read_index(self, query: str, value: int) -> Iterator[tuple[int, object, object]]:
        with self._datastore.transaction(commit=False) as c:
            c.sqlite_cursor.row_factory = None
            yield from c.sqlite_cursor.execute(query, (value,)).fetchall()


def _problem(row: _Row, version: int, envelope: Envelope) -> str:
    if row.indexed != row.number:
        return "the index of the log does not lead to it"
    if version > 1 and row.before is None:
        return f"the event before it, {version - 1}, is missing"
    before = GENESIS if version == 1 else _link(row.before)
    # A damaged frame is reported for its own row.
    return "it does not follow the event before" if before not in ("", envelope.previous) else ""


def _link(state: object) -> str:
    try:
        return parse_frame(state).link()
    except EnvelopeError:
        return ""


def _text(raw: object) -> str:
    return raw.decode(errors="surrogateescape") if isinstance(raw, bytes) else ""
