"""Emptying a write-ahead log, so that nothing of what was overwritten in the file is left beside it."""

import sqlite3

READERS = 1_000
"""Milliseconds that it waits for those who read from the write-ahead log."""
PATIENCE = 30_000
"""Milliseconds that a connection waits for another process otherwise."""


def has_emptied_ahead(connection: sqlite3.Connection) -> bool:
    """Move everything into the file and cut the write-ahead log to nothing; whether that could be done.

    False while another process reads from it.
    """
    connection.execute(f"PRAGMA busy_timeout={READERS}")
    try:
        (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        connection.execute(f"PRAGMA busy_timeout={PATIENCE}")
    return not busy
