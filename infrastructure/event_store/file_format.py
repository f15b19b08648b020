"""The format of a log file: how it is recognised, and how older formats are upgraded.

Format 1 has events, snapshots and the index of keys. In format 2, frames may name an encoding or an
erasure, and tables for dictionaries and key fingerprints are added. Every row of format 1 is valid in
format 2.
"""

import errno
import os
import sqlite3
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from eventsourcing.sqlite import SQLiteDatastore, SQLiteRecorder

from refold.application.errors import LogNotFound, NewerLog, NotARefoldLog
from refold.infrastructure.files.private_files import make_private

APPLICATION_ID = 0x5246_4C44  # "RFLD"
FORMAT_VERSION = 2


_SHORT = 60
"""Characters of a name that is short enough in every file system and encoding."""
_LONGEST_SUFFIX = "-journal"
_LONGEST_PATH = 512
"""Bytes of the longest path that SQLite opens, also those of the files next to a database."""


def is_too_long(path: Path) -> bool:
    """Return whether SQLite refuses a path for its length, without saying so."""
    longest = f"{os.path.realpath(path)}{_LONGEST_SUFFIX}"
    return sys.platform != "win32" and len(os.fsencode(longest)) > _LONGEST_PATH


def check_place(path: Path, *, create: bool) -> None:
    """Check that a log can be stored at ``path``.

    Raises:
        OSError: the name or path is too long for the files that SQLite makes next to the log.
        LogNotFound: no log exists and ``create`` is false.
        NotARefoldLog: the path is not a log.
    """
    if path.is_dir():
        raise NotARefoldLog(f"{path} is a folder; give the path of a file")
    if path.exists() and not path.is_file():  # Opening a pipe would wait for its other end.
        raise NotARefoldLog(f"{path} is not a regular file; give another path")
    if not path.parent.is_dir():
        raise LogNotFound(f"the folder {path.parent} does not exist; create it first")
    if len(path.name) > _SHORT:  # SQLite would not say why it cannot open the log.
        with suppress(FileNotFoundError):
            Path(f"{path}{_LONGEST_SUFFIX}").stat()
    if is_too_long(path):
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), str(path))
    if not create and (not path.exists() or not path.stat().st_size):
        raise LogNotFound(f"there is no log at {path}; check the path, or import something first")


def identify(connection: sqlite3.Connection, name: str) -> bool:
    """Return whether the file is a log of this format. Return False if it is new and empty.

    Raises:
        NotARefoldLog: the file belongs to another program; it was not changed.
        NewerLog: a newer version of refold wrote the file; it was not changed.
    """
    # One statement, because another process may be creating the log at the same time.
    application_id, version, tables = connection.execute(
        "SELECT (SELECT application_id FROM pragma_application_id), "
        "(SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)"
    ).fetchone()
    if application_id == APPLICATION_ID:
        if version > FORMAT_VERSION:
            raise NewerLog(
                f"{name} has log format {version}, but this refold reads up to "
                f"{FORMAT_VERSION}; install a newer refold"
            )
        return True
    if application_id or tables:
        raise NotARefoldLog(f"{name} is an SQLite file of another program; give another path")
    return False


def make_log(path: Path | None, recorders: Sequence[SQLiteRecorder]) -> bool:
    """Create the file of a new log, readable by its owner only, and its tables. Return whether it is new.

    ``path`` is None for a log in memory.
    """
    is_new = path is not None and make_private(path)
    create_tables(recorders[0].datastore, recorders)
    return is_new


@contextmanager
def closed_on_error(datastore: SQLiteDatastore) -> Generator[None]:
    """Close all files if opening the log fails."""
    try:
        yield
    except BaseException:
        datastore.close()
        raise


def create_tables(datastore: SQLiteDatastore, recorders: Sequence[SQLiteRecorder]) -> None:
    """Create the tables once, whichever process is first, and upgrade a log of an older format."""
    with datastore.get_connection(commit=True) as pooled:
        connection = pooled.cursor().sqlite_cursor.connection
        name = datastore.pool.db_name
        is_log = identify(connection, name)
        if is_log and _format_of(connection) == FORMAT_VERSION:
            return
        try:
            # SQLite begins to read where the file cannot be written, and refuses the first statement that writes.
            connection.execute("BEGIN IMMEDIATE")
            with connection:
                _write_tables(connection, name, recorders)
        except sqlite3.OperationalError as error:
            if not is_log or not error.sqlite_errorname.startswith("SQLITE_READONLY"):
                raise
            # An older log can still be read.


def _write_tables(
    connection: sqlite3.Connection, name: str, recorders: Sequence[SQLiteRecorder]
) -> None:
    # Another process may have upgraded it in the meantime, even to a newer format.
    identify(connection, name)
    for recorder in recorders:
        for statement in recorder.create_table_statements:
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version={FORMAT_VERSION}")
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")


def _format_of(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
