"""Connections of one process: closing while they are in use."""

import sqlite3
import threading
import time
from contextlib import suppress
from pathlib import Path

from refold.infrastructure.sqlite_connection import open_sqlite


def test_a_connection_is_closed_while_another_thread_runs_a_statement(tmp_path: Path) -> None:
    connection = open_sqlite(tmp_path / "a.db", check_same_thread=False, isolation_level=None)
    running = threading.Event()

    def wait() -> int:
        running.set()
        time.sleep(0.2)  # SQLite lets the connection go when the statement has ended.
        return 1

    connection.create_function("wait", 0, wait)

    def use() -> None:
        with suppress(sqlite3.ProgrammingError):  # Its connection was closed meanwhile.
            connection.execute("SELECT wait()").fetchall()

    thread = threading.Thread(target=use)
    thread.start()
    running.wait(10)
    connection.close()
    thread.join(10)
    assert not thread.is_alive()
