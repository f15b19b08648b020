"""Connections to a PostgreSQL server: address, pool, and transactions that may be nested."""

import re
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from string import Formatter
from typing import Any, LiteralString, NamedTuple, cast

import psycopg
from psycopg import Connection, Cursor, IsolationLevel, conninfo, sql
from psycopg.errors import Diagnostic
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool, PoolTimeout

from refold.application.errors import no_thread
from refold.application.runtime.opening_process import OpeningProcess
from refold.domain.errors import InvalidSetting
from refold.infrastructure.files.log_place import hide_password

from .failures import as_library_errors, wait_for_start

SCHEMA = "refold"
"""Name of the schema by default."""
POOL = 8
"""Number of connections by default."""
WAIT = 30.0
"""Seconds to wait for a connection."""
PATIENCE = 5
"""Seconds to wait for readers and writers of a table that is rewritten."""
_WITH_TRANSACTION_TIMEOUT = 170_000
"""First version of the server with ``transaction_timeout``."""
_BETWEEN = 1.0
"""Seconds between two attempts to connect to a server that cannot be reached."""
_APPLICATION = "refold"
_NO_ORDER = "refold_no_order"
"""Name of an index of a constant. It exists only within a transaction."""


class Address(NamedTuple):
    """The address of a log on a server."""

    conninfo: str
    schema: str = SCHEMA
    pool: int = POOL

    @classmethod
    def of(cls, place: str, *, schema: str = SCHEMA, pool: int = POOL) -> "Address":
        """Parse an address such as ``postgresql://me@db/agents?sslmode=require``.

        Raises:
            InvalidSetting: it is not an address.
        """
        try:
            conninfo.conninfo_to_dict(place)
        except Exception as error:
            # The message of libpq quotes the address, which may have a password.
            raise InvalidSetting(
                "path: not a PostgreSQL address; write postgresql://USER@HOST:PORT/DATABASE, with "
                "percent-encoding for special characters",
                setting="path",
            ) from error.__class__(type(error).__name__)
        return cls(place, schema, pool)

    @property
    def shown(self) -> str:
        """Address for people, without its password."""
        return hide_password(self.conninfo)

    def lock(self, purpose: str, name: str = "") -> int:
        """Return the number of an advisory lock."""
        said = f"{self.schema}\0{purpose}\0{name}".encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(said, digest_size=8).digest(), signed=True)


class _Pool(ConnectionPool[Connection[TupleRow]]):
    """A pool that looks for other lost connections when one is lost. Most often the server has restarted."""

    def getconn(self, timeout: float | None = None) -> Connection[TupleRow]:
        """Return a connection, and connect if none is idle. Wait while the server cannot be reached.

        Raises:
            PoolTimeout: no connection was idle in time. If the server refuses connections, that is the cause.
        """
        try:
            return super().getconn(timeout)
        except PoolTimeout as error:
            try:
                psycopg.connect(str(self.conninfo), connect_timeout=PATIENCE).close()
            except psycopg.OperationalError as refused:
                raise error from refused
            raise

    def putconn(self, conn: Connection[TupleRow]) -> None:
        """Take a connection back. If it is lost, replace the idle ones that are lost as well."""
        is_lost = conn.broken
        super().putconn(conn)
        if is_lost and not self.closed:
            self.check()


def _configure(connection: Connection[TupleRow]) -> None:
    """Let transactions see what was committed before each of their statements, and backslashes be plain characters.

    Whoever waits for a lock reads what its holder stored, also where the database has another isolation level by
    default. Where backslashes are not plain, psycopg doubles those in the text form of bytes.
    """
    connection.isolation_level = IsolationLevel.READ_COMMITTED
    if connection.info.parameter_status("standard_conforming_strings") == "off":
        connection.execute("SET standard_conforming_strings = on")


def _connect_again(pool: ConnectionPool[Connection[TupleRow]]) -> None:
    """Try to connect again, as long as anything waits for a connection."""
    if pool.get_stats()["requests_waiting"]:
        pool.check()


def _make_pool(address: Address) -> _Pool:
    return _Pool(
        address.conninfo,
        min_size=0,
        max_size=address.pool,
        timeout=WAIT,
        configure=_configure,
        # The pool would wait twice as long after each attempt, up to minutes after the server is back.
        reconnect_timeout=_BETWEEN,
        reconnect_failed=_connect_again,
        open=False,
        name=_APPLICATION,
        kwargs={
            "autocommit": True,
            "prepare_threshold": None,
            "application_name": _APPLICATION,
            # Neither that of the role nor PGCLIENTENCODING: they may lack characters.
            "client_encoding": "UTF8",
        },
    )


class Store:
    """The pool of one log. Statements name tables as ``{table}``: see ``sql``."""

    def __init__(self, address: Address) -> None:
        """Create a pool. No connection is made before the first transaction."""
        self.address = address
        self._process = OpeningProcess(address.shown)
        self._own = threading.local()
        self._texts: dict[str, bytes] = {}
        self._pool = _make_pool(address)
        self._opening = threading.Lock()
        self.rebuilding = threading.Lock()
        """Lock of threads that fold the log in one transaction and read it in others: one at a time."""
        self._prepares_after: int | None = None
        """Times that a statement runs before it is prepared, or None if statements are not prepared."""

    def sql(self, statement: str) -> bytes:
        """Return a statement in which each ``{name}`` is that table of the schema."""
        known = self._texts.get(statement)
        if known is None:
            template = sql.SQL(cast("LiteralString", statement))  # type: ignore[redundant-cast]
            names = {name for _, name, _, _ in Formatter().parse(statement) if name is not None}
            schema = self.address.schema
            tables = {name: sql.Identifier(schema, name) for name in names}
            # The library caches what it finds in bytes, and would join the parts again at each call.
            known = template.format(**tables).as_bytes(None)
            self._texts[statement] = known
        return known

    @contextmanager
    def connection(self) -> Generator[Connection[TupleRow]]:
        """Yield the connection of the open transaction, or one of the pool."""
        self._process.check()
        current = getattr(self._own, "connection", None)
        if current is not None:
            yield current
            return
        with as_library_errors():
            self._open()
            with self._pool.connection() as connection:
                connection.prepare_threshold = self._prepares_after
                yield connection

    @contextmanager
    def transaction(self) -> Generator[Connection[TupleRow]]:
        """Run the block in one transaction. Statements of this thread join it.

        Inside another transaction, a failed block undoes its own changes only.
        """
        with self.connection() as connection:
            if self.is_inside:
                with as_library_errors(), connection.transaction():
                    yield connection
                return
            with connection.transaction():
                self._own.connection = connection
                try:
                    yield connection
                finally:
                    self._own.connection = None

    @contextmanager
    def transaction_apart(self) -> Generator[Connection[TupleRow]]:
        """Run the block in a transaction that other statements of this thread do not join."""
        self._process.check()
        with as_library_errors():
            self._open()
            with self._pool.connection() as connection:
                connection.prepare_threshold = self._prepares_after
                with connection.transaction():
                    yield connection

    def look_for_pooler(self) -> None:
        """Prepare statements from now on, unless a pooler is between client and server.

        It may give each transaction another connection, on which nothing is prepared.
        """
        with self.connection() as connection, as_library_errors():
            found = connection.execute("SELECT pg_backend_pid()").fetchone()
            if found is not None and found[0] == connection.info.backend_pid:
                self._prepares_after = 1

    @property
    def is_replica(self) -> bool:
        """True if the server is a replica now: nothing can be written there. A failover changes it.

        From version 14 on, a server reports each change. A pooler may pass on an old report, so the server is asked.
        """
        if self._prepares_after is not None:
            with self.connection() as connection:
                said = connection.info.parameter_status("in_hot_standby")
            if said is not None:
                return said == "on"
        return self.ask_if_replica()

    def ask_if_replica(self) -> bool:
        """Ask the server whether it is a replica."""
        ((found,),) = self.rows("SELECT pg_is_in_recovery()")
        return bool(found)

    @property
    def is_inside(self) -> bool:
        """True if this thread has a transaction open."""
        return getattr(self._own, "connection", None) is not None

    def run(self, statement: str, values: Any = None) -> Cursor[TupleRow]:
        """Run one statement, alone or in the open transaction, and return its cursor with all rows."""
        with self.connection() as connection, as_library_errors():
            return connection.execute(self.sql(statement), values, binary=True)

    def rows(self, statement: str, values: Any = None) -> list[TupleRow]:
        """Return the rows of one statement."""
        return self.run(statement, values).fetchall()

    def run_script(self, statements: str) -> None:
        """Run several statements without values, alone or in the open transaction."""
        with self.connection() as connection, as_library_errors():
            connection.execute(self.sql(statements))

    def create_schema(self) -> None:
        """Create the schema if it is missing."""
        name = sql.Identifier(self.address.schema)
        with self.connection() as connection, as_library_errors():
            connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(name))

    def use_schema(self) -> None:
        """Let the statements of the open transaction find and create tables in the schema first."""
        name = sql.Identifier(self.address.schema)
        with self.connection() as connection, as_library_errors():
            connection.execute(sql.SQL("SET LOCAL search_path TO {}, public").format(name))

    def drop_schema(self) -> None:
        """Drop the schema with all that is in it."""
        name = sql.Identifier(self.address.schema)
        with self.connection() as connection, as_library_errors():
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(name))

    def wait_for_older_writers(self) -> None:
        """Wait up to five seconds until every transaction that writes now has ended, in any database of the server.

        A table that is rewritten keeps rows that were deleted after the oldest of them began, even if that transaction
        cannot see this database.
        """
        ((now,),) = self.rows("SELECT pg_snapshot_xmax(pg_current_snapshot())::text")
        ended = "SELECT pg_snapshot_xmin(pg_current_snapshot()) >= %s::xid8"
        until = time.monotonic() + PATIENCE
        while self.rows(ended, (now,)) == [(False,)] and time.monotonic() < until:
            time.sleep(0.02)

    def rewrite(self, table: str, *, has_key: bool = True) -> int:
        """Write a table again without its deleted rows, in the order of its primary key, if it has one.

        Its readers are awaited for five seconds. Return the number of deleted rows that stay, because a transaction
        elsewhere can still see them. Unlike VACUUM FULL, CLUSTER runs in a transaction, so the timeout for its lock
        does not outlive it behind a pooler.
        """
        schema, name = self.address.schema, sql.Identifier(self.address.schema, table)
        index = f"{table}_pkey" if has_key else _NO_ORDER
        with (
            self.transaction() as connection,
            as_library_errors(),
            _counting_kept_rows(connection) as kept,
        ):
            connection.execute(sql.SQL("SET LOCAL lock_timeout = {}").format(f"{PATIENCE}s"))
            if not has_key:
                connection.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(name))
                create = sql.SQL("CREATE INDEX {} ON {} ((0))")
                connection.execute(create.format(sql.Identifier(index), name))
            cluster = sql.SQL("CLUSTER (VERBOSE) {} USING {}")
            connection.execute(cluster.format(name, sql.Identifier(index)))
            if not has_key:
                connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(schema, index)))
        return sum(kept)

    def stream(self, statement: str, values: Any, size: int) -> Iterator[TupleRow]:
        """Yield the rows of a query in the open transaction, ``size`` at a time in memory."""
        assert self.is_inside, "the rows are read within the transaction of the caller"
        with (
            self.connection() as connection,
            as_library_errors(),
            connection.cursor(name="refold", binary=True) as cursor,
        ):
            cursor.itersize = size
            cursor.execute(self.sql(statement), values)
            yield from cursor

    def lock(self, purpose: str, name: str = "", *, shared: bool = False) -> None:
        """Wait for an advisory lock, and keep it until the open transaction ends."""
        how = "_shared" if shared else ""
        self.run(f"SELECT pg_advisory_xact_lock{how}(%s)", (self.address.lock(purpose, name),))

    def close(self) -> None:
        """Close all connections; closing twice is safe."""
        if self._process.is_this:
            self._pool.close()

    def _connect(self) -> Connection[TupleRow]:
        return psycopg.connect(self.address.conninfo, application_name=_APPLICATION)

    def _open(self) -> None:
        if self._pool.closed:
            with self._opening:
                if self._pool.closed:
                    # The pool would try until its time is up, and not say what is wrong.
                    wait_for_start(self._connect).close()
                    self._open_pool()

    def _open_pool(self) -> None:
        try:
            self._pool.open()
        except RuntimeError as error:
            # It counts as open, without the threads that connect.
            self._pool.close()
            self._pool = _make_pool(self.address)
            raise no_thread(error) from error


def lift_time_limits(connection: Connection[TupleRow]) -> None:
    """Let the open transaction take as long as it needs."""
    connection.execute(
        "SELECT set_config(name, '0', true) FROM unnest("
        "ARRAY['idle_in_transaction_session_timeout', 'statement_timeout']) AS limits(name)"
    )
    if connection.info.server_version >= _WITH_TRANSACTION_TIMEOUT:
        connection.execute("SET LOCAL transaction_timeout = 0")


@contextmanager
def _counting_kept_rows(connection: Connection[TupleRow]) -> Generator[list[int]]:
    """Yield a list that gets the number of deleted rows that each rewritten table keeps."""
    kept: list[int] = []

    def note(said: Diagnostic) -> None:
        # "N dead row versions cannot be removed yet", in any language.
        if found := re.match(r"\D*(\d+)", said.message_detail or ""):
            kept.append(int(found[1]))

    connection.add_notice_handler(note)
    try:
        yield kept
    finally:
        connection.remove_notice_handler(note)


ESCAPE = "\x01"
"""Character that begins the replacement of NUL and of itself. It comes next after NUL, so the order stays."""


def to_text(value: str) -> str:
    """Return a text without NUL, which PostgreSQL refuses. ``from_text`` reverses it.

    Texts have the same order before and after, byte by byte.
    """
    if "\0" in value or ESCAPE in value:
        return value.replace(ESCAPE, f"{ESCAPE}\x02").replace("\0", f"{ESCAPE}{ESCAPE}")
    return value


def from_text(stored: str) -> str:
    """Return the text that ``to_text`` was given."""
    if ESCAPE in stored:
        return stored.replace(f"{ESCAPE}{ESCAPE}", "\0").replace(f"{ESCAPE}\x02", ESCAPE)
    return stored
