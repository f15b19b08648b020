"""Looking into a derived file that may be damaged, without changing it."""

import sqlite3
from pathlib import Path

from refold.infrastructure.log.file.read_only import connected, read_only_place
from refold.infrastructure.sqlite_connection import open_sqlite


def looking_into(path: Path, timeout: float) -> sqlite3.Connection:
    """A connection for reading only. It may write all the same: one that may not would leave the files
    beside it when it is closed.
    """
    if read_only_place(path) is not None:
        connection = connected(path)
    else:
        uri = f"{path.as_uri()}?mode=rw"
        connection = open_sqlite(uri, uri=True, timeout=timeout, isolation_level=None)
    # Bytes that are no text are a difference, not a reason to stop.
    connection.text_factory = _lenient
    return connection


def _lenient(raw: bytes) -> str:
    return raw.decode(errors="replace")
