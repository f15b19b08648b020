"""The tables of a fold in one database, an SQLite file or a server: the seam that folds and queries share.

Statements are written once for both databases:

- ``{messages}`` is the table ``messages`` of this fold. A server gives it another name, in a schema.
- ``?`` is a value. Values are None, int, str and bytes; truth values are 0 and 1.
- ``{in_order}`` is a number that grows with every inserted row. Only tables that are created with
  ``in_order=True`` have it on a server. Rows keep it when they change.
- ``{row_number}`` is a number of the row within the open transaction.
- ``{unindexed}`` follows a table that must be read without its indexes.
- ``SELECT *`` returns the columns as declared, but on a server also ``{in_order}`` at the end. So it is for tables
  without it.

Texts come back as they were stored, and their order is that of their bytes.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple, Protocol

from refold.application.projections.row_changes import Cell
from refold.domain.lazy_pattern import lazy_pattern

Key = str | tuple[str, ...]
"""Primary key of a table: a column, or several."""
Values = Sequence[Cell | bytes] | Mapping[str, Any]
"""Values of a statement. A mapping gives those of ``:name``, which SQLite alone understands."""
Row = Sequence[Cell | bytes]


class Found(Protocol):
    """The rows that a statement returns."""

    def __iter__(self) -> Iterator[Any]: ...

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        ...

    def fetchall(self) -> list[Any]:
        """Return the other rows."""
        ...


class Tables(Protocol):
    """The tables of one fold. The module's docstring says how statements are written."""

    @property
    def leaves_bytes(self) -> bool:
        """True if a row that grows or is deleted leaves bytes of other rows in the file.

        An erasure then writes placeholders of the same size and rewrites small tables. A server writes all
        tables again after an erasure, so a fold deletes rows there.
        """
        ...

    def execute(self, statement: str, values: Values = ()) -> Found:
        """Run one statement."""
        ...

    def executemany(self, statement: str, rows: Iterable[Row]) -> object:
        """Run one statement for each of these values, in their order."""
        ...

    def stream(self, statement: str) -> Iterator[Any]:
        """Yield the rows of a query that do not fit into memory."""
        ...

    def find(
        self, table: str, selected: str, key: tuple[str, ...], keys: Iterable[Row]
    ) -> Iterator[Any]:
        """Yield ``selected`` of the rows with one of these keys. ``key`` names their columns."""
        ...

    def insert(self, table: str, rows: Sequence[Row], utf8: int | None = None) -> None:
        """Insert new rows with a value for each declared column.

        ``utf8`` is the index of a column of texts that may be given as UTF-8.
        """
        ...

    def replace(self, table: str, rows: Sequence[Row]) -> None:
        """Insert rows, and replace stored rows with the same primary key. No key occurs twice in ``rows``."""
        ...

    def create_table(
        self,
        name: str,
        columns: Mapping[str, type],
        key: Key,
        required: Iterable[str],
        *,
        in_order: bool = False,
    ) -> None:
        """Create a table, in the open transaction. ``required`` columns are never None."""
        ...

    def create_index(
        self, name: str, table: str, columns: str, *, where: str = "", unique: bool = False
    ) -> None:
        """Create an index, in the open transaction, unless this name is taken."""
        ...

    def create_view(self, statement: str) -> None:
        """Create a view for users who query a file. A server has none, so that tables can be swapped."""
        ...


AT_ONCE = 16
"""Number of rows that one statement inserts, in a third less time for each than one by one."""


@lru_cache(maxsize=64)
def _marks(columns: int, utf8: int | None, rows: int) -> str:
    """Return the question marks of so many rows."""
    row = ["?" if column != utf8 else "CAST(? AS TEXT)" for column in range(columns)]
    return ",".join([f"({','.join(row)})"] * rows)


@lru_cache(maxsize=64)
def _declaration(
    name: str, columns: tuple[tuple[str, type], ...], key: Key, required: frozenset[str]
) -> str:
    """Return the statement that creates a table."""
    # Loaded when tables are created, because it loads numpy where that is installed.
    from sqlite_utils import Database

    # Without the plugins that a user may have installed.
    with closing(Database(memory=True, recursive_triggers=False, execute_plugins=False)) as db:
        return db.create_table_sql(name, dict(columns), pk=key, not_null=required, strict=True)


_IN_SQLITE = {"in_order": "rowid", "row_number": "rowid", "unindexed": "NOT INDEXED"}
_NAME = lazy_pattern(r"\{(\w+)\}")


@lru_cache(maxsize=1_000)
def _named(statement: str) -> str:
    """Return a statement with the names of SQLite."""
    return _NAME.sub(lambda found: _IN_SQLITE.get(found[1], found[1]), statement)


class SQLiteTables:
    """The ``Tables`` in an SQLite database."""

    leaves_bytes = True

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def __eq__(self, other: object) -> bool:
        """Return whether both use the same connection."""
        return isinstance(other, SQLiteTables) and self.connection is other.connection

    def __hash__(self) -> int:
        """Return the hash of the connection."""
        return hash(self.connection)

    def execute(self, statement: str, values: Values = ()) -> sqlite3.Cursor:
        """Run one statement."""
        return self.connection.execute(_named(statement), values)

    def executemany(self, statement: str, rows: Iterable[Row]) -> sqlite3.Cursor:
        """Run one statement for each of these values."""
        return self.connection.executemany(_named(statement), rows)

    def stream(self, statement: str) -> Iterator[Any]:
        """Yield the rows of a query."""
        return iter(self.execute(statement))

    def find(
        self, table: str, selected: str, key: tuple[str, ...], keys: Iterable[Row]
    ) -> Iterator[Any]:
        """Yield ``selected`` of the rows with one of these keys."""
        where = " AND ".join(f"{column} = ?" for column in key)
        statement = f"SELECT {selected} FROM {table} WHERE {where}"
        for one in keys:
            yield from self.execute(statement, one)

    def insert(self, table: str, rows: Sequence[Row], utf8: int | None = None) -> None:
        """Insert new rows."""
        if rows:
            whole = len(rows) - len(rows) % AT_ONCE
            if whole:
                marks, step = _marks(len(rows[0]), utf8, AT_ONCE), AT_ONCE * len(rows[0])
                values = [*chain.from_iterable(rows[:whole])]
                parts = [values[start : start + step] for start in range(0, len(values), step)]
                self.executemany(f"INSERT INTO {table} VALUES {marks}", parts)
            marks = _marks(len(rows[0]), utf8, 1)
            self.executemany(f"INSERT INTO {table} VALUES {marks}", rows[whole:])

    def replace(self, table: str, rows: Sequence[Row]) -> None:
        """Insert rows, and replace stored rows with the same primary key."""
        if rows:
            marks = ",".join("?" * len(rows[0]))
            self.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", rows)

    def create_table(
        self,
        name: str,
        columns: Mapping[str, type],
        key: Key,
        required: Iterable[str],
        *,
        in_order: bool = False,
    ) -> None:
        """Create a table. Every row has a row number, so ``in_order`` changes nothing."""
        del in_order
        self._create(_declaration(name, tuple(columns.items()), key, frozenset(required)))

    def create_index(
        self, name: str, table: str, columns: str, *, where: str = "", unique: bool = False
    ) -> None:
        """Create an index."""
        condition = where and f" WHERE {where}"
        kind = "UNIQUE INDEX" if unique else "INDEX"
        self.execute(f"CREATE {kind} IF NOT EXISTS {name} ON {table} ({columns}){condition}")

    def create_view(self, statement: str) -> None:
        """Create a view."""
        self._create(statement)

    def _create(self, statement: str) -> None:
        """Run a statement of the library or of our own."""
        self.execute(statement)

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


class Declared(NamedTuple):
    """A table as its fold declares it."""

    name: str
    columns: Mapping[str, type]
    key: tuple[str, ...]
    required: frozenset[str]
    in_order: bool
