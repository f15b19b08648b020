"""Compare a table with a replay, row by row, and report each row that differs."""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from typing import Any

from refold.application.ports.conversation_log import ConversationLog, Damage, LoggedEvent
from refold.application.runtime.plain_lines import plain_logger
from refold.infrastructure.sqlite.sqlite_connection import declared_in, open_sqlite
from refold.infrastructure.sqlite.sqlite_failures import as_shortage, is_forbidden

from .checkpoint import (
    POSITION_COLUMNS,
    POSITIONS,
    FoldOutdated,
    Left,
    has_earlier_fold,
    is_outdated,
    nothing_left,
    nowhere,
    up_to,
    was_made_before,
)
from .database_file import DatabaseFile
from .ownership import PlaceTaken
from .projection import Comparable, Content, begin, expected_schema
from .row_checksums import BROKEN, MemoryShort, blamed_on_file
from .tables import SQLiteTables, Tables

Row = Mapping[str, Any]

_AT_ONCE = 500
"""Number of rows that are looked up together, and of events that are folded together."""
_TRIES = 3
"""Number of checks of a file, if others erase content while it is compared."""


def differences(
    table: Comparable, stored: Iterator[Row], expected: Iterator[Row]
) -> Iterator[Damage]:
    """Compare all rows of a table. Both sides are in the order of its key."""
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


def rows_of(table: Comparable, db: Tables) -> Iterator[Row]:
    """Read all rows in the order of the key."""
    query = (
        f"SELECT {', '.join(table.columns)} FROM {{{table.name}}} "
        f"WHERE {table.where} ORDER BY {', '.join(table.key)}"
    )
    for row in db.stream(query):
        yield dict(zip(table.columns, row, strict=True))


class FinalRows:
    """A table whose rows never change. It is compared during the fold, so that no copy is needed."""

    def __init__(self, table: Comparable, stored: Tables) -> None:
        self.table = table
        self._stored = stored
        self._seen = _Numbers()

    def compare(self, fresh: Tables) -> Iterator[Damage]:
        """Compare the rows that were folded since the last call."""
        rows = rows_of(self.table, fresh)
        while part := list(islice(rows, _AT_ONCE)):
            found = self._find(part)
            for expected in part:
                number, row = found.get(_values(self.table, expected), (0, None))
                if row is None:
                    yield _missing(self.table, expected)
                    continue
                self._seen.add(number)
                yield from _differs(self.table, row, expected)

    def _find(self, wanted: Sequence[Row]) -> Mapping[tuple[Any, ...], tuple[int, Row]]:
        """Return the stored rows with the keys of these rows, each with its row number."""
        table, columns = self.table, ", ".join(self.table.columns)
        keys = [_values(table, row) for row in wanted]
        rows: dict[tuple[Any, ...], tuple[int, Row]] = {}
        selected = f"{{row_number}}, {columns}"
        for number, *values in self._stored.find(table.name, selected, table.key, keys):
            row = dict(zip(table.columns, values, strict=True))
            rows[_values(table, row)] = number, row
        return rows

    def unexpected(self) -> Iterator[Damage]:
        """Report the rows that the replay did not produce."""
        columns = ", ".join(self.table.columns)
        where = "{row_number} = ?"
        query = f"SELECT {columns} FROM {{{self.table.name}}} WHERE {where}"
        every = f"SELECT {{row_number}} FROM {{{self.table.name}}} WHERE {self.table.where}"
        for (number,) in self._stored.stream(every):
            if number not in self._seen:
                found = self._stored.execute(query, (number,)).fetchone()
                if found is not None:
                    yield _unexpected(self.table, dict(zip(self.table.columns, found, strict=True)))


class _Numbers:
    """Row numbers as ranges. A whole table in the order of the log is one range."""

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


def _values(table: Comparable, row: Row) -> tuple[Any, ...]:
    return tuple(row[column] for column in table.key)


def _key(table: Comparable, row: Row) -> tuple[tuple[int, Any], ...]:
    # SQLite's order of values of different types: a damaged table may have any values.
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


COMPARED_POSITIONS = Comparable(POSITIONS, tuple(POSITION_COLUMNS), ("projection",))

logger = plain_logger(__name__)


def check_file(file: DatabaseFile, content: Content, log: ConversationLog) -> Iterator[Damage]:
    """Yield all differences between the file and a replay. A missing file has none.

    Both sides are compared at the checkpoint of the file; later events are not damage. A file of an
    earlier version is not damaged either, because the next query folds it again. If content is erased
    during the comparison, it is repeated.
    """

    def found() -> Iterator[Damage]:
        damage: list[Damage] = []
        for _ in range(_TRIES):
            damage.clear()
            try:
                if _is_compared(file, content, log, damage):
                    break
            except BROKEN:
                yield from damage
                raise
        yield from damage

    return look_over(file, found)


def _is_compared(
    file: DatabaseFile, content: Content, log: ConversationLog, damage: list[Damage]
) -> bool:
    """Add the damage of a file. Return False if its rows could not be compared, because others erase content."""
    with file.unchanged() as connection:
        db = None if connection is None else SQLiteTables(connection)
        if db is None or _is_of_before(db, content):
            return True
        damage += _damage_of_file(db, content)
        with _as_at_one_moment(db):
            damage += content.damage(db)
            compared = compare_tables(db, content, log, _position(db))
    damage += compared or ()
    return compared is not None


def look_over(file: DatabaseFile, find: Callable[[], Iterator[Damage]]) -> Iterator[Damage]:
    """Yield what ``find`` finds in a file, and report a file that cannot be read.

    Raises:
        LogError: files or memory are short, so nothing is known about the file.
    """
    if taken := tuple(check_place(file)):
        yield from taken
        return
    is_damaged = False
    try:
        with blamed_on_file():
            for damage in find():
                is_damaged = True
                yield damage
    except BROKEN as error:
        if is_forbidden(error):
            logger.warning("%s %s cannot be checked: %s", file.kind.title, file.path, error)
            return
        if is_damaged and isinstance(error, MemoryShort):
            # A damaged size asks for more memory than there is.
            yield Damage(file.kind.name, "", 0, "unreadable", str(error))
            return
        yield unreadable(file.kind.name, f"{file.kind.title} {file.path or 'in memory'}", error)


def unreadable(name: str, title: str, error: Exception) -> Damage:
    """Return the damage of content that cannot be read.

    Raises:
        LogError: files or memory are short, so nothing is known about the content.
    """
    if short := as_shortage(title, error):
        raise short from error
    return Damage(name, "", 0, "unreadable", str(error))


def check_place(file: DatabaseFile) -> Iterator[Damage]:
    """Yield damage if a file of another program is in this place."""
    try:
        file.refuse_foreign()
    except PlaceTaken as taken:
        yield Damage(file.kind.name, "", 0, "foreign", str(taken))


def _is_of_before(db: SQLiteTables, content: Content) -> bool:
    return was_made_before(db) or has_earlier_fold(db, content.projections)


@contextmanager
def _as_at_one_moment(db: Tables) -> Generator[None]:
    db.execute("BEGIN")
    try:
        yield
    finally:
        db.execute("ROLLBACK")


def compare_tables(
    db: Tables, content: Content, log: ConversationLog, number: int | None
) -> Sequence[Damage] | None:
    """Compare all rows with a fresh fold in memory. ``number`` is the log position that the tables claim.

    Return None if another process has erased content since that position; the next query removes it.
    """

    def has_erased() -> bool:
        return number is not None and is_outdated(db, log.scan(number))

    if has_erased():
        return None
    try:
        found = tuple(_compare(db, content, log, number))
    except FoldOutdated:
        if has_erased():
            return None
        raise
    # The log may have been read after an erasure, and the tables before it.
    return None if found and has_erased() else found


def _compare(
    db: Tables, content: Content, log: ConversationLog, number: int | None
) -> Iterator[Damage]:
    events = log.scan() if number is None else up_to(number, log.scan())
    final = [FinalRows(table, db) for table in content.compared if table.is_final]
    others = [table for table in content.compared if not table.is_final]
    with closing(SQLiteTables(open_sqlite(":memory:", isolation_level=None))) as fresh:
        fresh.execute("BEGIN")
        begin(content, fresh)
        progress, rest = nowhere(content.projections), iter(events)
        # Few events at a time, because a fold collects the rows of a batch before it writes them.
        while part := list(islice(rest, _AT_ONCE)):
            more, some = True, iter(part)
            while more:
                # Everything is read after its erasure.
                progress, more = content.fold(fresh, progress, some, nothing_left)
                for rows in final:
                    yield from _guard(rows.table, rows.compare(fresh))
                content.forget(fresh)
        for rows in final:
            yield from _guard(rows.table, rows.unexpected())
        for table in (*others, COMPARED_POSITIONS):
            yield from _guard(table, differences(table, rows_of(table, db), rows_of(table, fresh)))


def _guard(table: Comparable, found: Iterator[Damage]) -> Iterator[Damage]:
    """Yield the findings of a table, and report a table that cannot be read.

    Raises:
        LogError: too many files are open.
        MemoryShort: memory is short, or the file is damaged.
    """
    try:
        with blamed_on_file():
            yield from found
    except MemoryShort:
        raise
    except BROKEN as error:
        yield unreadable(table.name, f"the table {table.name}", error)


def fold_all(content: Content, db: Tables, events: Iterable[LoggedEvent], left: Left) -> None:
    """Fold all events into empty tables, in the open transaction."""
    progress, rest, more = nowhere(content.projections), iter(events), True
    while more:
        progress, more = content.fold(db, progress, rest, left)


def _damage_of_file(db: SQLiteTables, content: Content) -> Iterator[Damage]:
    for (problem,) in db.execute("PRAGMA integrity_check").fetchall():
        if problem != "ok":
            yield Damage(content.name, "", 0, "unreadable", str(problem))
    found, expected = declared_in(db.connection), expected_schema(content)
    for name in sorted(found.keys() | expected.keys()):
        if found.get(name) == expected.get(name) or name in content.late:
            continue
        kind = (
            "missing" if name not in found else "unexpected" if name not in expected else "differs"
        )
        yield Damage(name, "", 0, kind, f"the declaration of {name} in the database")


def _position(db: SQLiteTables) -> int | None:
    return claimed_position(db) if POSITIONS in declared_in(db.connection) else None


def claimed_position(db: Tables) -> int | None:
    """Return the log position that the tables claim, or None if they claim no valid one."""
    numbers = {row[0] for row in db.execute(f"SELECT number FROM {{{POSITIONS}}}").fetchall()}
    number = numbers.pop() if len(numbers) == 1 else None
    return number if isinstance(number, int) else None
