"""Fold events into the tables. Changes are collected in memory and written at once."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import groupby, islice
from operator import attrgetter
from typing import assert_never, cast

from refold.application.ports.conversation_log import LoggedEvent
from refold.application.projections.row_changes import (
    Added,
    Appended,
    Cell,
    Change,
    Changed,
    Removed,
    Replaced,
)
from refold.domain.events import ConversationLabelled, MessageErased

from .checkpoint import Left, Progress, Total, mark_of, write_progress, write_reading_from
from .row_checksums import (
    FoldDamaged,
    Sealed,
    SealedUtf8,
    open_row,
    seal_row,
    seal_utf8,
    show_values,
    storable,
)
from .tables import Tables
from .view_tables import PROJECTIONS, TABLES, TALLIES, TALLY_KEY, Table

BATCH = 5_000
"""Maximum number of events that are collected before a write and stored in one transaction."""

CHUNK = 128
"""Number of events that are folded at once. More are faster, but messages with large pictures fill the memory."""

CONVERSATIONS, MESSAGES = "conversations", "messages"

_THREAD = attrgetter("thread_id")

Key = tuple[Cell, ...]
Cells = Mapping[str, Cell]


def fold_into(
    db: Tables, progress: Progress, events: Iterator[LoggedEvent], left: Left
) -> tuple[Progress, bool]:
    """Fold up to ``BATCH`` events in, and store rows and checkpoint in the open transaction.

    Events up to the checkpoint change nothing. Return the new checkpoint and whether more events may
    follow.

    Raises:
        FoldDamaged: a row to change differs from what was stored.
        sqlite3.DatabaseError: SQLite itself detects damage.
    """
    batches = tuple(Batch(db, table) for table in TABLES)
    taken, last = 0, None
    while chunk := list(islice(events, min(CHUNK, BATCH - taken))):
        taken += len(chunk)
        new = [logged for logged in chunk if logged.number > progress.number]
        for _, run in groupby(new, _THREAD):
            successive = tuple(run)
            others = [logged for logged in successive if not logged.is_unread]
            for batch in batches:
                if others or batch.table.reads_messages:
                    batch.apply(batch.table.changes(successive))
            for logged in others:
                if logged.kind is MessageErased:
                    _erase(db, batches, logged.number, left(logged))
            last = successive[-1]
        for batch in batches:
            batch.insert_appended()
    if last is not None:
        totals = {b.table.name: b.write(progress.totals[b.table.name]) for b in batches}
        progress = Progress(last.number, mark_of(last), totals)
        write_progress(db, PROJECTIONS, progress)
    return progress, taken == BATCH


def _erase(
    db: Tables, batches: Sequence["Batch"], number: int, remains: Sequence[LoggedEvent]
) -> None:
    """Remove what was folded from events before they were reduced.

    The order of an erasure and the other changes of a batch does not matter: a row has either the
    original content, which is replaced, or what is left.
    """
    if remains:
        for batch in batches:
            for logged in remains:
                batch.erase(logged)
        write_reading_from(db, number)


class Batch:
    """The changes of many events to one table."""

    def __init__(self, db: Tables, table: Table) -> None:
        self.table = table
        self._db = db
        self._rows: dict[Key, dict[str, Cell]] = {}
        """Rows that may still change."""
        self._groups: dict[tuple[str, ...], defaultdict[Key, dict[Key, None]]] = {}
        """Keys of the same rows by the values of some columns, for each choice of columns that was asked for."""
        self._looked_for: set[tuple[tuple[str, ...], Key]] = set()
        """Columns and values of which all stored rows were loaded."""
        self._stored: dict[Key, int] = {}
        """Checksums of those of ``_rows`` that are already stored."""
        self._utf8: int | None = None
        """Index of the column of ``_appended`` whose texts may be UTF-8."""
        self._appended: list[SealedUtf8] = []
        """New rows that do not change any more. Only an erasure replaces them, after they were inserted."""
        self._counts: defaultdict[Cell, int] = defaultdict(int)
        self._checksums: defaultdict[Cell, int] = defaultdict(int)
        self._is_erased = False
        self._is_erasing = False

    def erase(self, left: LoggedEvent) -> None:
        """Remove what was folded from an event before an erasure reduced it to ``left``."""
        changes = self.table.erased(left) if self.table.erased else ()
        self._is_erasing = True
        for change in changes:
            self._apply(change)
        self._is_erasing = False
        label = isinstance(left.event, ConversationLabelled) and self.table.name == CONVERSATIONS
        self._is_erased = self._is_erased or bool(changes) or label

    def apply(self, changes: Iterable[Change]) -> None:
        """Add changes."""
        for change in changes:
            self._apply(change)

    def _apply(self, change: Change) -> None:
        match change:
            case Appended(rows, at):
                assert at is not None
                sealed = seal_utf8(rows, at)
                self._count(cast("Cell", rows[0][self.table.thread]), sealed)
                self._appended += sealed
                self._utf8 = at
            case Added(row):
                cells = self.table.cells(row)
                self._put(self._key(cells), cells)
            case Changed(where):
                for key in self._matching(where):
                    self._change(key, change)
            case Removed(where):
                self._remove(where)
            case Replaced(row):
                self._replace(row)
            case _:
                assert_never(change)

    def write(self, total: Total) -> Total:
        """Write all changes in the open transaction, and return the new total of the table."""
        self.insert_appended()
        new: list[Sealed] = []
        changed: list[Key] = []
        for key, cells in self._rows.items():
            row = seal_row(self.table.values(cells))
            if key in self._stored:
                changed.append((*row, *key))
                self._checksums[cells["thread_id"]] += row[-1] - self._stored[key]
            else:
                new.append(row)
        # Changed rows first: the old active summary must be deactivated before the new one is
        # inserted.
        self._update(changed)
        self._insert(new)
        if self._is_erased and self.table.name != MESSAGES:
            rewrite(self._db, self.table)
        threads = {t: Total(self._counts[t], grown) for t, grown in self._checksums.items()}
        add_to_tallies(self._db, self.table.name, threads)
        return reduce(Total.plus, threads.values(), total)

    def insert_appended(self) -> None:
        """Insert the appended rows in the open transaction, while the processor's cache has them."""
        rows, self._appended = self._appended, []
        if rows:
            self._looked_for.clear()
        self._db.insert(self.table.name, rows, self._utf8)

    def _insert(self, rows: Sequence[Sealed]) -> None:
        self._looked_for.clear()
        for row in rows:
            self._count(row[self.table.thread], (row,))
        self._db.insert(self.table.name, rows)

    def _count(self, thread_id: Cell, rows: Sequence[Sealed | SealedUtf8]) -> None:
        """Count new rows of one conversation."""
        self._counts[thread_id] += len(rows)
        self._checksums[thread_id] += sum([row[-1] for row in rows])

    def _update(self, rows: Sequence[tuple[Cell, ...]]) -> None:
        to = ", ".join(f"{column} = ?" for column in self.table.types)
        where = " AND ".join(f"{column} = ?" for column in self.table.key)
        self._db.executemany(f"UPDATE {{{self.table.name}}} SET {to} WHERE {where}", rows)

    def _remove(self, where: Cells) -> None:
        self._load(where)
        for key in self._keys_of(where):
            cells = self._rows.pop(key)
            thread_id = cells["thread_id"]
            self._leave_groups(key, cells)
            if key in self._stored:
                self._counts[thread_id] -= 1
                self._checksums[thread_id] -= self._stored.pop(key)
                condition = " AND ".join(f"{column} = ?" for column in self.table.key)
                self._db.execute(f"DELETE FROM {{{self.table.name}}} WHERE {condition}", key)

    def _replace(self, row: tuple[Cell, ...]) -> None:
        """Replace an appended row by a new row at the end. In a file, the old row number is kept."""
        self.insert_appended()
        cells = dict(zip(self.table.columns, row, strict=True))
        key = tuple(storable(cells[column]) for column in self.table.key)
        condition = " AND ".join(f"{column} = ?" for column in self.table.key)
        columns = f"{{row_number}}, {self.table.selected}"
        query = f"SELECT {columns} FROM {{{self.table.name}}} WHERE {condition}"
        found = self._db.execute(query, key).fetchone()
        new = seal_row(row)
        if found is None:
            raise FoldDamaged(f"a row of {self.table.name} is missing: {show_values(key)}")
        if found[1:] == new:
            return
        stored = open_row(self.table.name, found[1:])
        if self._key(dict(zip(self.table.columns, stored, strict=True))) != key:
            raise FoldDamaged(
                f"a row of {self.table.name} is not where it should be: {show_values(key)}"
            )
        self._counts[row[self.table.thread]] -= 1
        self._checksums[row[self.table.thread]] -= int(found[-1])
        if self._db.leaves_bytes:
            to = ", ".join(f"{column} = ?" for column in self.table.types)
            values = (*placeholder_for(self.table, found[0]), found[0])
            where = "{row_number} = ?"
            self._db.execute(f"UPDATE {{{self.table.name}}} SET {to} WHERE {where}", values)
        else:
            self._db.execute(f"DELETE FROM {{{self.table.name}}} WHERE {condition}", key)
        self._insert([new])

    def _matching(self, where: Cells) -> Iterable[Key]:
        if tuple(where) == self.table.key:
            key = tuple(where.values())
            if key not in self._rows:
                key = self._load(where)
                if key not in self._rows and self._is_there(where):
                    raise FoldDamaged(f"an index of {self.table.name} lacks {show_values(key)}")
            return (key,) if key in self._rows else ()
        self._load(where)
        return self._keys_of(where)

    def _keys_of(self, where: Cells) -> list[Key]:
        """Return the keys of the loaded rows with these values."""
        columns = tuple(where)
        if columns not in self._groups:
            self._groups[columns] = groups = defaultdict[Key, dict[Key, None]](dict)
            for key, cells in self._rows.items():
                groups[_values(cells, columns)][key] = None
        return [*self._groups[columns].get(tuple(where.values()), ())]

    def _put(self, key: Key, cells: dict[str, Cell]) -> None:
        if key in self._rows:
            self._leave_groups(key, self._rows[key])
        self._rows[key] = cells
        self._join_groups(key, cells)

    def _change(self, key: Key, change: Changed) -> None:
        cells = self._rows[key]
        self._leave_groups(key, cells)
        _change(cells, change)
        self._join_groups(key, cells)

    def _join_groups(self, key: Key, cells: Cells) -> None:
        for columns, groups in self._groups.items():
            groups[_values(cells, columns)][key] = None

    def _leave_groups(self, key: Key, cells: Cells) -> None:
        for columns, groups in self._groups.items():
            del groups[_values(cells, columns)][key]

    def _is_there(self, where: Cells) -> bool:
        """Return whether a row is in the table although its index may not have it, as after a loss of power."""
        condition = " AND ".join(f"{column} = ?" for column in where)
        values = tuple(storable(value) for value in where.values())
        query = f"SELECT 1 FROM {{{self.table.name}}} {{unindexed}} WHERE {condition}"
        return self._db.execute(query, values).fetchone() is not None

    def _load(self, where: Cells) -> Key:
        """Load the stored rows if they are not loaded yet, and return the values as stored."""
        self.insert_appended()
        condition = " AND ".join(f"{column} = ?" for column in where)
        values = tuple(storable(value) for value in where.values())
        look_for = tuple(where), values
        if look_for in self._looked_for and not self._is_erasing:
            return values
        self._looked_for.add(look_for)
        kind, given = "", values
        if self._is_erasing:  # It trusts no index, because a row that the index misses would stay.
            kind = " {unindexed}"
        elif self.table.active and "is_active" in where:
            condition = f"{condition} AND {self.table.active}"
            given = (*values, storable(where["thread_id"]))
        query = f"SELECT {self.table.selected} FROM {{{self.table.name}}}{kind} WHERE {condition}"
        for row in self._db.execute(query, given).fetchall():
            cells = dict(zip(self.table.columns, open_row(self.table.name, row), strict=True))
            key = self._key(cells)
            if key not in self._rows:
                self._put(key, cells)
                self._stored[key] = int(row[-1])
        return values

    def _key(self, cells: Cells) -> Key:
        return _values(cells, self.table.key)


def _values(cells: Cells, columns: tuple[str, ...]) -> Key:
    return tuple(map(cells.__getitem__, columns))


def _change(cells: dict[str, Cell], change: Changed) -> None:
    cells.update(change.to)
    for column, growth in change.more.items():
        cells[column] = int(cells[column] or 0) + growth
    for column, text in change.joined.items():
        cells[column] = f"{cells[column]}{text}"
    if all(cells[column] is None for column in change.once):
        cells.update(change.once)
    if "created_at" in change.spans:
        cells["created_at"] = min(str(cells["created_at"]), change.spans["created_at"])
    if "last_activity" in change.spans:
        cells["last_activity"] = max(str(cells["last_activity"]), change.spans["last_activity"])


def placeholder_for(table: Table, number: int) -> Sealed:
    """Return the row that replaces another. It is not longer, so that SQLite moves nothing."""
    numbers = [number if column in table.key else 0 for column in table.columns]
    cells = zip(table.columns, numbers, strict=True)
    return seal_row(tuple("" if table.types[column] is str else cell for column, cell in cells))


def rewrite(db: Tables, table: Table) -> None:
    """Rewrite a table unchanged, to overwrite its pages and bytes that were left when rows moved.

    Such a table has a row for each conversation, compaction or note, but not for each message.
    """
    if not db.leaves_bytes:
        return
    query = f"SELECT {table.selected} FROM {{{table.name}}} {{unindexed}} ORDER BY {{in_order}}"
    rows = db.execute(query).fetchall()
    for row in rows:
        open_row(table.name, row)  # The text of a changed row could be the erased content.
    db.execute(f"DELETE FROM {{{table.name}}}")
    db.insert(table.name, rows)


def add_to_tallies(db: Tables, projection: str, threads: Mapping[Cell, Total]) -> None:
    """Add to the expected totals of each conversation, in the open transaction."""
    keys = [(thread_id, projection) for thread_id in threads]
    known = dict(map(_open_tally, db.find(TALLIES, "*", TALLY_KEY, keys)))
    totals = {t: known.get(t, Total()).plus(grown) for t, grown in threads.items()}
    db.replace(TALLIES, [seal_row((t, projection, *total)) for t, total in totals.items()])
    # A conversation without rows looks like one that never had any.
    db.executemany(
        f"DELETE FROM {{{TALLIES}}} WHERE thread_id = ? AND projection = ?",
        [(thread_id, projection) for thread_id, total in totals.items() if not total.rows],
    )


def tally(db: Tables, projection: str, thread_id: str) -> Total | None:
    """Return the expected total of a conversation in a table, or None without a record.

    Raises:
        FoldDamaged: the record was changed.
    """
    query = f"SELECT * FROM {{{TALLIES}}} WHERE thread_id = ? AND projection = ?"
    row = db.execute(query, (thread_id, projection)).fetchone()
    return None if row is None else _open_tally(row)[1]


def tallies(db: Tables, projection: str, threads: Sequence[str]) -> Mapping[str, Total]:
    """Return the expected totals of conversations in a table, of those that have a record.

    Raises:
        FoldDamaged: a record was changed.
    """
    marks = ",".join("?" * len(threads)) or "NULL"
    query = f"SELECT * FROM {{{TALLIES}}} WHERE projection = ? AND thread_id IN ({marks})"
    found = db.execute(query, (projection, *threads))
    return {str(thread_id): total for thread_id, total in map(_open_tally, found)}


def _open_tally(row: tuple[Cell, ...]) -> tuple[Cell, Total]:
    thread_id, _, rows, checksums = open_row(TALLIES, row)
    return thread_id, Total(int(rows or 0), int(checksums or 0))
