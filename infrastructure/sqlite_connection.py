"""The one way to a connection of SQLite: nothing that it works with reaches a temporary file."""

import sqlite3
from pathlib import Path
from typing import Literal

Isolation = Literal["DEFERRED", "EXCLUSIVE", "IMMEDIATE"] | None


def open_sqlite(
    place: str | Path,
    *,
    timeout: float = 5.0,
    isolation_level: Isolation = "DEFERRED",
    check_same_thread: bool = True,
    uri: bool = False,
) -> sqlite3.Connection:
    """Open a database as ``sqlite3.connect`` does, with everything temporary in memory.

    SQLite sorts, keeps the pages of a statement that it may undo, and makes tables for itself in files
    of the system's temporary folder. They are deleted at once, but their blocks are not overwritten:
    what an encrypted log says would lie there in plain text, and what was erased would stay. A database
    without a name lies there as well: one that is needed for a while is ``:memory:``.

    Raises:
        sqlite3.Error: it cannot be opened.
    """
    connection = sqlite3.connect(
        place,
        timeout=timeout,
        isolation_level=isolation_level,
        check_same_thread=check_same_thread,
        uri=uri,
    )
    connection.execute("PRAGMA temp_store=MEMORY")
    return connection
