"""The queues for turns of conversations, kept by the server: they hold on all machines."""

from contextlib import suppress

import psycopg
from psycopg.pq import ExecStatus, TransactionStatus

from refold.application.runtime.opening_process import OpeningProcess

from .connections import Address, lift_time_limits, to_text
from .failures import as_library_errors, as_log_errors

_BEGIN = """
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL lock_timeout = 0;
"""
"""Begin a transaction without time limits, because a turn lasts as long as the calls of a model.

Of the other isolation levels, its snapshot would keep deleted rows of others from being removed.
"""


class PostgresTurns:
    """The ``Turns`` of a log on a server."""

    def __init__(self, address: Address) -> None:
        self._address = address

    def place(self, thread_id: str) -> "PostgresPlace":
        """Return a place in the queue of a conversation."""
        return PostgresPlace(self._address, thread_id)


class PostgresPlace:
    """A place in a queue: a connection of its own that waits for an advisory lock, in the order of arrival.

    The lock belongs to an open transaction, so it works through a pooler, and the server releases it when the
    connection ends. The transaction reads and writes nothing, and has no snapshot while the turn is ours, so it
    holds nothing else back.
    """

    def __init__(self, address: Address, thread_id: str) -> None:
        self._address = address
        self._lock = address.lock("turn", to_text(thread_id))
        self._process = OpeningProcess(address.shown)
        self._connection: psycopg.Connection | None = None
        self._is_ours = False

    def take(self) -> bool:
        """Advance in the queue and return whether the turn is ours. Never waits for the turn."""
        self._process.check()
        with as_log_errors(self._address.shown), as_library_errors():
            if self._connection is None:
                self._begin()
            assert self._connection is not None
            if not self._is_ours and self._is_answered():
                self._hold(self._connection)
        return self._is_ours

    def _begin(self) -> None:
        connection = psycopg.connect(
            self._address.conninfo, autocommit=True, application_name="refold turn"
        )
        self._connection = connection
        connection.execute(_BEGIN)
        lift_time_limits(connection)
        # A free turn is ours at once, also for those who do not wait. The server refuses this while
        # others wait, so they are not passed.
        row = connection.execute("SELECT pg_try_advisory_xact_lock(%s)", (self._lock,)).fetchone()
        if row is not None and row[0]:
            self._hold(connection)
            return
        number = str(self._lock).encode()
        connection.pgconn.send_query_params(b"SELECT pg_advisory_xact_lock($1)", [number])
        connection.pgconn.flush()

    def _hold(self, connection: psycopg.Connection) -> None:
        # The server keeps the snapshot of a statement with values until the next statement.
        connection.execute("SELECT")
        self._is_ours = True

    def _is_answered(self) -> bool:
        assert self._connection is not None
        server = self._connection.pgconn
        server.consume_input()
        if server.is_busy():
            return False
        while (result := server.get_result()) is not None:
            if result.status != ExecStatus.TUPLES_OK:
                raise psycopg.OperationalError("the server ended the wait for a turn")
        return True

    def leave(self) -> None:
        """Leave the queue and release the turn."""
        connection, self._connection, self._is_ours = self._connection, None, False
        if connection is None or not self._process.is_this:
            return
        with suppress(psycopg.Error):
            if connection.info.transaction_status == TransactionStatus.ACTIVE:
                connection.cancel_safe(timeout=2.0)
        with suppress(psycopg.Error):
            connection.close()
