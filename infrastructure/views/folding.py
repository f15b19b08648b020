"""Folding events into the tables: changes are gathered in memory and written in one go."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import islice
from typing import assert_never

from sqlite_utils import Database

from refold.application.event_log import LoggedEvent
from refold.application.projections.row_changes import Added, Cell, Change, Changed

from .cells import opened, sealed, storable_row
from .progress import Progress, Total, mark_of, nowhere, write_progress
from .tables import TABLES, TALLIES, Table

BATCH = 5_000
"""Events that are gathered before they are written, and at most that many in a transaction."""

Key = tuple[Cell, ...]
Cells = Mapping[str, Cell]


def fold_into(
    db: Database, progress: Progress, events: Iterator[LoggedEvent]
) -> tuple[Progress, int]:
    """Fold the next events in, ``BATCH`` at most: rows and position in the transaction that is open.

    Events at or before the position change nothing. Returns the new position, and how many events
    were taken; less than ``BATCH`` means that there are no more.

    Raises:
        ViewsDamaged: a row that is to be changed is not as it was stored.
        sqlite3.DatabaseError: the same for what the database notices by itself.
    """
    batches = tuple(Batch(db, table) for table in TABLES)
    appliers = tuple((batch.table.changes, batch.apply) for batch in batches)
    taken, last = 0, None
    for logged in islice(events, BATCH):
        taken += 1
        if logged.number <= progress.number:
            continue
        last = logged
        for changes, apply in appliers:
            for change in changes(logged):
                apply(change)
    if last is not None:
        totals = {b.table.name: b.write(progress.totals[b.table.name]) for b in batches}
        progress = Progress(last.number, mark_of(last), totals)
        write_progress(db, progress)
    return progress, taken


def fold_all(db: Database, events: Iterable[LoggedEvent]) -> None:
    """Fold all events into empty tables, in the transaction that is open."""
    progress, events = nowhere(), iter(events)
    folded = BATCH
    while folded == BATCH:
        progress, folded = fold_into(db, progress, events)


class Batch:
    """The changes that many events make to one table."""

    def __init__(self, db: Database, table: Table) -> None:
        self.table = table
        self._db = db
        self._new: list[tuple[Cell, ...]] = []
        """Rows that nothing will change any more."""
        self._rows: dict[Key, dict[str, Cell]] = {}
        self._stored: dict[Key, int] = {}
        """The checksums of those of ``_rows`` that are stored already."""

    def apply(self, change: Change) -> None:
        """Take one change in."""
        match change:
            case Added(row):
                if self.table.append_only:
                    self._new.append(sealed(self.table.values(row.__dict__)))
                else:
                    cells = storable_row(row.__dict__)
                    self._rows[self._key(cells)] = cells
            case Changed(where, to, more):
                for cells in self._matching(storable_row(where)):
                    cells.update(storable_row(to))
                    for column, growth in more.items():
                        cells[column] = int(cells[column] or 0) + growth
            case _:
                assert_never(change)

    def write(self, total: Total) -> Total:
        """Write everything, in the transaction that is open; returns the new total of the table."""
        changed: list[tuple[Cell, ...]] = []
        threads: dict[Cell, Total] = {}
        for key, cells in self._rows.items():
            row = sealed(self.table.values(cells))
            if key in self._stored:
                changed.append((*row, *key))
                _grow(threads, cells["thread_id"], 0, row, self._stored[key])
            else:
                self._new.append(row)
        thread = self.table.columns.index("thread_id")
        for row in self._new:
            _grow(threads, row[thread], 1, row, 0)
        # Changed rows first: the active summary gives way before the new one comes.
        self._update(changed)
        self._insert(self._new)
        add_to_tallies(self._db, self.table.name, threads)
        return reduce(Total.plus, threads.values(), total)

    def _insert(self, rows: Sequence[tuple[Cell, ...]]) -> None:
        marks = ",".join("?" * len(self.table.types))
        self._db.conn.executemany(f"INSERT INTO {self.table.name} VALUES ({marks})", rows)

    def _update(self, rows: Sequence[tuple[Cell, ...]]) -> None:
        to = ", ".join(f"{column} = ?" for column in self.table.types)
        where = " AND ".join(f"{column} = ?" for column in self.table.key)
        self._db.conn.executemany(f"UPDATE {self.table.name} SET {to} WHERE {where}", rows)

    def _matching(self, where: Cells) -> Sequence[dict[str, Cell]]:
        if tuple(where) == self.table.key:
            key = tuple(where.values())
            if key not in self._rows:
                self._load(where)
            return (self._rows[key],) if key in self._rows else ()
        self._load(where)
        wanted = where.items()
        return [cells for cells in self._rows.values() if wanted <= cells.items()]

    def _load(self, where: Cells) -> None:
        condition = " AND ".join(f"{column} = ?" for column in where)
        query = f"SELECT * FROM {self.table.name} WHERE {condition}"
        for row in self._db.conn.execute(query, tuple(where.values())).fetchall():
            cells = dict(zip(self.table.columns, opened(self.table.name, row), strict=True))
            key = self._key(cells)
            if key not in self._rows:
                self._rows[key], self._stored[key] = cells, int(row[-1])

    def _key(self, cells: Cells) -> Key:
        return tuple(cells[column] for column in self.table.key)


def _grow(
    threads: dict[Cell, Total], thread_id: Cell, rows: int, row: tuple[Cell, ...], before: int
) -> None:
    total, checksum = threads.get(thread_id, Total()), int(row[-1] or 0)
    threads[thread_id] = Total(total.rows + rows, total.checksums + checksum - before)


def add_to_tallies(db: Database, projection: str, threads: Mapping[Cell, Total]) -> None:
    """Add to what each conversation must have of a table, in the transaction that is open."""
    rows: list[tuple[Cell, ...]] = []
    for thread_id, grown in threads.items():
        total = tally(db, projection, str(thread_id)) or Total()
        rows.append(sealed((thread_id, projection, *total.plus(grown))))
    db.conn.executemany(f"INSERT OR REPLACE INTO {TALLIES} VALUES (?,?,?,?,?)", rows)


def tally(db: Database, projection: str, thread_id: str) -> Total | None:
    """What a conversation must have of a table; None if nothing is recorded.

    Raises:
        ViewsDamaged: the record was changed.
    """
    query = f"SELECT * FROM {TALLIES} WHERE thread_id = ? AND projection = ?"
    row = db.execute(query, (thread_id, projection)).fetchone()
    if row is None:
        return None
    _, _, rows, checksums = opened(TALLIES, row)
    return Total(int(rows or 0), int(checksums or 0))
