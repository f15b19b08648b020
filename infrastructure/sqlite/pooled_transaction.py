"""A transaction on a connection of a pool."""

from collections.abc import Generator
from threading import get_ident
from types import TracebackType

from eventsourcing.sqlite import SQLiteConnection, SQLiteCursor, SQLiteTransaction

from refold.infrastructure.files.fork_gate import GATE

from .connection_pool import SteadyPool
from .sqlite_connection import CheckedConnection


class Transaction:
    """A transaction on a connection of a pool, which is returned at its end.

    One object does the work of the library's six nested generators, because every append pays for them.
    """

    __slots__ = ("_commit", "_connection", "_cursor", "_is_single", "_loan", "_pool")

    def __init__(self, pool: SteadyPool, *, commit: bool, is_single: bool = False) -> None:
        """Create a transaction; entering it begins it. ``commit`` says whether it writes.

        ``is_single`` says that it is one query, which SQLite begins and ends by itself.
        """
        self._pool, self._commit = pool, commit
        self._is_single = is_single

    def __enter__(self) -> SQLiteCursor:
        self._loan = loan = _loan(self._pool, is_writer=self._commit)
        self._connection = connection = next(loan)
        try:
            if isinstance(connection, CheckedConnection):
                connection.prepare(commit=self._commit)
            self._cursor = cursor = connection.cursor()
            if not self._is_single:
                cursor.execute("BEGIN")
        except BaseException:
            loan.close()
            raise
        return cursor

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            try:
                self._cursor.__exit__()
            except BaseException as failure:
                kind, error, trace = type(failure), failure, failure.__traceback__
            if error is not None or not self._is_single:
                whole = SQLiteTransaction(self._connection, commit=self._commit)
                whole.__exit__(kind, error, trace)
        finally:
            self._loan.close()


def _loan(pool: SteadyPool, *, is_writer: bool) -> Generator[SQLiteConnection]:
    """Yield a connection, and return it when the generator is closed.

    The exception of a signal can arrive before the first step of ``__exit__``. Python closes a generator
    that nobody has any more.
    """
    with GATE.used():
        thread = get_ident()
        connection = pool.get_connection(is_writer=is_writer)
        try:
            yield connection
        finally:
            try:
                if isinstance(connection, CheckedConnection):
                    connection.finish()
                pool.put_connection(connection)
            except BaseException:
                pool.abandon(connection, thread)
                raise
