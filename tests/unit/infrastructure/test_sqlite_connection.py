"""Connections of one process: closing while they are in use."""

import gc
import sqlite3
import threading
import weakref
from pathlib import Path

from refold.infrastructure.sqlite.sqlite_connection import open_sqlite


def test_one_that_another_thread_uses_is_closed_when_that_thread_lets_go(tmp_path: Path) -> None:
    connection = open_sqlite(tmp_path / "a.db", check_same_thread=False, isolation_level=None)
    running, closed = threading.Event(), threading.Event()
    found: list[object] = []

    def wait() -> int:
        running.set()
        return int(closed.wait(10))

    connection.create_function("wait", 0, wait)

    def use(shared: sqlite3.Connection) -> None:
        found.extend(shared.execute("SELECT wait()"))

    thread = threading.Thread(target=use, args=[connection])
    thread.start()
    assert running.wait(10)
    connection.close()
    closed.set()
    thread.join(10)
    assert found == [(1,)]
    kept = weakref.ref(connection)
    del connection, thread
    gc.collect()
    assert kept() is None
