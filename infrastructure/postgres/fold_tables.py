"""The tables of a fold on a server: the statements of the fold in PostgreSQL's words, and bulk loads by COPY."""

import random
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from itertools import islice
from typing import Any, NoReturn

from psycopg import Connection, sql
from psycopg.rows import TupleRow

from refold.application.errors import LogBusy
from refold.domain.lazy_pattern import lazy_pattern
from refold.infrastructure.projection_store.checkpoint import POSITIONS
from refold.infrastructure.projection_store.projection import Content, create_tables
from refold.infrastructure.projection_store.tables import Declared, Found, Key, Row, Values

from .connections import from_text, lift_time_limits, to_text
from .failures import as_fold_errors

IN_ORDER = "row_order"
"""Column of tables whose rows have an order. The server fills it."""
COPIED = 16
"""Number of new rows from which on they are copied."""
_AT_ONCE = 2_000
"""Number of rows in one statement, and of a stream in memory."""
_TYPES: Mapping[type, str] = {int: "bigint", str: "text", bytes: "bytea"}
_WORDS: Mapping[str, str] = {
    "in_order": IN_ORDER,
    # The page and the place on it: stable within a transaction.
    "row_number": "((ctid::text::point)[0]::bigint << 16 | (ctid::text::point)[1]::bigint)",
    "unindexed": "",
}
_NAME = lazy_pattern(r"\{(\w+)\}")
_PLAIN_STATISTICS = frozenset({"thread_id"})
"""Text columns with statistics: the log names conversations as well, and keeps their names after an erasure."""


class FoldNames:
    """The names of a fold's tables in a schema: ``views_messages``, and ``views_new_messages`` during a rebuild."""

    def __init__(self, schema: str, prefix: str) -> None:
        self.schema = schema
        self.prefix = prefix
        self._texts: dict[str, str] = {}

    def table(self, name: str) -> str:
        """Return the quoted name of a table."""
        return sql.Identifier(self.schema, f"{self.prefix}_{name}").as_string(None)

    def statement(self, written: str) -> str:
        """Return a statement in the words of the server."""
        known = self._texts.get(written)
        if known is None:
            known = written.replace("%", "%%").replace("?", "%s")
            known = _NAME.sub(lambda found: self._word(found[1]), known)
            self._texts[written] = known
        return known

    def _word(self, name: str) -> str:
        return _WORDS[name] if name in _WORDS else self.table(name)


class _Rows(list[Any]):
    """The ``Found`` of a statement: all its rows."""

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        return self.pop(0) if self else None

    def fetchall(self) -> list[Any]:
        """Return the other rows."""
        return self


class PostgresTables:
    """The ``Tables`` on one connection, within its transaction.

    All errors are those of ``as_fold_errors``: ``FoldDamaged`` and its kinds, or a ``LogError``.
    """

    leaves_bytes = False

    def __init__(
        self,
        connection: Connection[TupleRow],
        names: FoldNames,
        declared: Mapping[str, Declared],
        shown: str,
    ) -> None:
        self.connection = connection
        self._names = names
        self._declared = declared
        self.shown = shown
        self._goes_on = False
        """True if the transaction must stay usable after a query that fails."""
        self._streams = 0

    def execute(self, statement: str, values: Values = ()) -> Found:
        """Run one statement."""
        return self._run(self._names.statement(statement), _written(values))

    def plain_name(self, name: str) -> str:
        """Return the quoted name of a table without its schema."""
        return sql.Identifier(f"{self._names.prefix}_{name}").as_string(None)

    def command(self, statement: str) -> None:
        """Run statements that return nothing and have no values, separated by semicolons."""
        statement = self._names.statement(statement)
        with as_fold_errors(self.shown):
            # Several statements cannot be prepared.
            self.connection.execute(statement.encode(), prepare=False)

    def configure(self, **settings: str) -> None:
        """Set parameters of the server until the transaction ends."""
        for name, value in settings.items():
            self.execute("SELECT set_config(?, ?, true)", (name, value))

    def lift_time_limits(self) -> None:
        """Let the open transaction take as long as it needs."""
        with as_fold_errors(self.shown):
            lift_time_limits(self.connection)

    def begin_check(self) -> None:
        """Let the open transaction take as long as it needs, and stay usable after a query that fails."""
        self.lift_time_limits()
        self._goes_on = True

    def lock(self, number: int, *, relaxed: bool = False) -> None:
        """Wait for an advisory lock and keep it until the transaction ends.

        With ``relaxed``, a crash of the server may take the transaction back after its commit.
        """
        also = "set_config('synchronous_commit', 'off', true), " if relaxed else ""
        self.execute(f"SELECT {also}pg_advisory_xact_lock(?)", (number,))

    def identity(self) -> int:
        """Return the number of the table of checkpoints, or 0 without tables. A rebuild makes another."""
        name = self._names.table(POSITIONS)
        found = self.execute("SELECT to_regclass(?)::oid::bigint", (name,)).fetchone()[0]
        return int(found or 0)

    def stored_names(self, except_for: FoldNames) -> list[str]:
        """Return the names of all tables of this fold, also those that another version of refold made."""
        prefix = f"{self._names.prefix}_"
        rows = self.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = ? AND starts_with(tablename, ?) "
            "AND NOT starts_with(tablename, ?)",
            (self._names.schema, prefix, f"{except_for.prefix}_"),
        )
        return [str(name).removeprefix(prefix) for (name,) in rows]

    def columns(self) -> Mapping[str, frozenset[str]]:
        """Return the columns of all tables of the schema, by the name of the table without its prefix."""
        rows = self.execute(
            "SELECT c.relname, array_agg(a.attname::text) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid "
            "WHERE c.relnamespace = ?::regnamespace AND a.attnum > 0 AND NOT a.attisdropped GROUP BY 1",
            (sql.Identifier(self._names.schema).as_string(None),),
        )
        prefix = f"{self._names.prefix}_"
        return {str(name).removeprefix(prefix): frozenset(found) for name, found in rows}

    def _run(self, text: str, values: Sequence[Any]) -> _Rows:
        with as_fold_errors(self.shown), self._undoing():
            cursor = self.connection.execute(text.encode(), values, binary=True)
            return _Rows(map(_read, cursor.fetchall())) if cursor.description else _Rows()

    def _undoing(self) -> AbstractContextManager[object]:
        return self.connection.transaction() if self._goes_on else nullcontext()

    def executemany(self, statement: str, rows: Iterable[Values]) -> None:
        """Run one statement for each of these values, in their order."""
        values = [_written(row) for row in rows]
        if values:
            with as_fold_errors(self.shown), self.connection.cursor() as cursor:
                cursor.executemany(self._names.statement(statement).encode(), values)

    def stream(self, statement: str) -> Iterator[Any]:
        """Yield the rows of a query, some at a time in memory."""
        self._streams += 1
        with as_fold_errors(self.shown), self._undoing():
            cursor = self.connection.cursor(name=f"fold_{self._streams}", binary=True)
            with cursor:
                cursor.itersize = _AT_ONCE
                cursor.execute(self._names.statement(statement).encode())
                for row in cursor:
                    yield _read(row)

    def find(
        self, table: str, selected: str, key: tuple[str, ...], keys: Iterable[Row]
    ) -> Iterator[Any]:
        """Yield ``selected`` of the rows with one of these keys."""
        columns, rest = ", ".join(key), iter(keys)
        lists = self._lists(table, key)
        statement = f"SELECT {selected} FROM {{{table}}} WHERE ({columns}) IN (SELECT * FROM unnest({lists}))"
        while part := list(islice(rest, _AT_ONCE)):
            yield from self._run(self._names.statement(statement), _turned(part))

    def insert(self, table: str, rows: Sequence[Row], utf8: int | None = None) -> None:
        """Insert new rows."""
        if utf8 is not None:
            rows = [_decoded(row, utf8) for row in rows]
        columns = ", ".join(self._declared[table].columns)
        if len(rows) < COPIED:
            marks = ", ".join("?" * len(self._declared[table].columns))
            self.executemany(f"INSERT INTO {{{table}}} ({columns}) VALUES ({marks})", rows)
            return
        text = self._names.statement(f"COPY {{{table}}} ({columns}) FROM STDIN")
        with (
            as_fold_errors(self.shown),
            self.connection.cursor() as cursor,
            cursor.copy(text.encode()) as copy,
        ):
            for row in rows:
                copy.write_row(_written(row))

    def replace(self, table: str, rows: Sequence[Row]) -> None:
        """Insert rows, and replace stored rows with the same primary key."""
        declared = self._declared[table]
        columns, key = ", ".join(declared.columns), ", ".join(declared.key)
        to = ", ".join(f"{c} = excluded.{c}" for c in declared.columns if c not in declared.key)
        lists = self._lists(table, tuple(declared.columns))
        statement = (
            f"INSERT INTO {{{table}}} ({columns}) SELECT * FROM unnest({lists}) "
            f"ON CONFLICT ({key}) DO UPDATE SET {to}"
        )
        for start in range(0, len(rows), _AT_ONCE):
            part = _turned(rows[start : start + _AT_ONCE])
            self._run(self._names.statement(statement), part)

    def _lists(self, table: str, columns: tuple[str, ...]) -> str:
        kinds = [_TYPES[self._declared[table].columns[column]] for column in columns]
        return ", ".join(f"?::{kind}[]" for kind in kinds)

    def create_table(
        self,
        name: str,
        columns: Mapping[str, type],
        key: Key,
        required: Iterable[str],
        *,
        in_order: bool = False,
    ) -> None:
        """Create a table that is not in the write-ahead log, without statistics of its texts."""
        needed = frozenset(required)
        lines = [
            f"{column} {_TYPES[kind]}{_COLLATED if kind is str else ''}"
            f"{' NOT NULL' if column in needed else ''}"
            for column, kind in columns.items()
        ]
        if in_order:
            lines.append(f"{IN_ORDER} bigint GENERATED BY DEFAULT AS IDENTITY")
        lines.append(f"PRIMARY KEY ({', '.join(_key_columns(key))})")
        body = ", ".join(lines)
        self.execute(f"CREATE UNLOGGED TABLE {{{name}}} ({body})")
        secret = [
            c for c, kind in columns.items() if kind is not int and c not in _PLAIN_STATISTICS
        ]
        if secret:
            body = ", ".join(f"ALTER COLUMN {column} SET STATISTICS 0" for column in secret)
            self.execute(f"ALTER TABLE {{{name}}} {body}")

    def create_index(
        self, name: str, table: str, columns: str, *, where: str = "", unique: bool = False
    ) -> None:
        """Create an index. The server gives it a name.

        An index of one text has hashes, because a tree refuses long texts and repeats them.
        """
        del name
        kind = "UNIQUE INDEX" if unique else "INDEX"
        condition = where and f" WHERE {where}"
        is_text = self._declared[table].columns.get(columns) is str and not unique
        how = " USING hash" if is_text else ""
        self.execute(f"CREATE {kind} ON {{{table}}}{how} ({columns}){condition}")

    def create_view(self, statement: str) -> None:
        """Do nothing: a view would keep its tables from being swapped."""


_COLLATED = ' COLLATE "C"'


def _key_columns(key: Key) -> tuple[str, ...]:
    return (key,) if isinstance(key, str) else key


def _written(row: Values) -> tuple[Any, ...]:
    return tuple(to_text(cell) if isinstance(cell, str) else cell for cell in row)


def _decoded(row: Row, at: int) -> Row:
    """Return a row with the text at an index, which may be UTF-8, as a text."""
    text = row[at]
    return (*row[:at], text.decode(), *row[at + 1 :]) if isinstance(text, bytes) else row


def _read(row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(from_text(cell) if isinstance(cell, str) else cell for cell in row)


def _turned(rows: Sequence[Row]) -> list[list[Any]]:
    """Return a list for each column."""
    return [list(column) for column in zip(*map(_written, rows), strict=True)]


class _Declarations:
    """Note the tables that a content creates, and nothing else."""

    leaves_bytes = False

    def __init__(self) -> None:
        self.found: dict[str, Declared] = {}

    def create_table(
        self,
        name: str,
        columns: Mapping[str, type],
        key: Key,
        required: Iterable[str],
        *,
        in_order: bool = False,
    ) -> None:
        """Note the table."""
        needed = frozenset(required)
        self.found[name] = Declared(name, dict(columns), _key_columns(key), needed, in_order)

    def create_index(
        self, name: str, table: str, columns: str, *, where: str = "", unique: bool = False
    ) -> None:
        """Ignore the index."""

    def create_view(self, statement: str) -> None:
        """Ignore the view."""

    def execute(self, statement: str, values: Values = ()) -> Found:
        """Ignore the statement."""
        del statement, values
        return _Rows()

    def executemany(self, statement: str, rows: Iterable[Values]) -> None:
        """Ignore the statement."""

    def insert(self, table: str, rows: Sequence[Row], utf8: int | None = None) -> None:
        """Ignore the rows."""

    def replace(self, table: str, rows: Sequence[Row]) -> None:
        """Ignore the rows."""

    def stream(self, statement: str) -> NoReturn:
        """Refuse: there are no rows."""
        raise NotImplementedError

    def find(
        self, table: str, selected: str, key: tuple[str, ...], keys: Iterable[Row]
    ) -> NoReturn:
        """Refuse: there are no rows."""
        raise NotImplementedError


@cache
def declared_by(content: Content) -> Mapping[str, Declared]:
    """Return the tables of a content by name, with those of checkpoints."""
    noted = _Declarations()
    create_tables(content, noted)
    return noted.found


SWAP_TIMEOUT_MS = 200
"""Milliseconds to wait for readers of a table before it is swapped. New readers wait as long, so it is short."""
SWAP_PATIENCE = 30.0
"""Seconds in which a swap is tried again."""


def swap_tables(live: PostgresTables, new: FoldNames, names: Collection[str]) -> None:
    """Drop all live tables and give the names of these to the new ones, when no reader uses them.

    Raises:
        LogBusy: they stayed in use.
    """
    until = time.monotonic() + SWAP_PATIENCE
    while True:
        try:
            with as_fold_errors(live.shown), live.connection.transaction():
                _swap_now(live, new, names)
            return
        except LogBusy:
            if time.monotonic() > until:
                raise
            time.sleep(random.uniform(0.02, 0.2))


def _swap_now(live: PostgresTables, new: FoldNames, names: Collection[str]) -> None:
    live.configure(lock_timeout=f"{SWAP_TIMEOUT_MS}ms")
    if live.identity():
        # Every reader locks it first, so no reader is half-way when it is ours.
        live.command(f"LOCK TABLE {{{POSITIONS}}} IN ACCESS EXCLUSIVE MODE")
    for name in live.stored_names(new):
        live.command(f"DROP TABLE {{{name}}}")
    for name in names:
        source, target = new.table(name), live.plain_name(name)
        live.command(f"ALTER TABLE {source} RENAME TO {target}")
