"""Copying a log while others write to it: one moment of it, checked before it gets its name."""

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from eventsourcing.sqlite import SQLiteDatastore

from refold.application.errors import BackupDamaged, LogBusy, TargetExists
from refold.application.housekeeping import BackedUp
from refold.infrastructure.new_files import new_file, sync

from .checking import check_rows
from .mapper import EventMapper
from .sqlite import DurableDatastore, LogRecorder, translated

PAGES = 512
"""Of a step of a copy, 2 MB: so soon Ctrl-C is heard."""


def back_up(
    source: SQLiteDatastore, mapper: EventMapper, to: Path, *, path: Path, replace: bool
) -> BackedUp:
    """Copy the log ``source``, which lies at ``path``, into the file ``to``.

    Raises:
        TargetExists: there is a file already, and replacing it was not asked for.
        BackupDamaged: the log is damaged; no file was made.
        LogError: the copy cannot be written; no file was made.
    """
    if to.exists() and path.exists() and to.samefile(path):
        raise TargetExists(to, "is the log itself; give another path")
    with translated(to), new_file(to, replace=replace) as made:
        copy_pages(source, made)
        size = check_copy(made, mapper, of=path)
        settle(Path(os.path.realpath(to)))
    return size.replaced(path=to)


def copy_pages(source: SQLiteDatastore, made: Path) -> None:
    """Copy every page of the log as it is now into an empty file."""
    with source.transaction(commit=False) as c:
        # This reading transaction lasts for all steps: they see one moment, nobody's writing makes
        # them begin again, and in WAL mode it keeps no writer waiting.
        c.execute("SELECT count(*) FROM stored_events")
        c.fetchall()
        copy_connection(c.sqlite_cursor.connection, made)


def copy_connection(source: sqlite3.Connection, made: Path) -> None:
    """Copy the database of a connection in steps; it is on the disk when this returns."""
    with closing(sqlite3.connect(made, isolation_level=None)) as copy:
        source.backup(copy, pages=PAGES, progress=_between_steps)
    sync(made)


def _between_steps(status: int, remaining: int, total: int) -> None:
    """Python hears Ctrl-C where it runs code: nothing else has to happen here."""
    del status, remaining, total


def check_copy(made: Path, mapper: EventMapper, *, of: Path) -> BackedUp:
    """Check every event, link and key of a copy; what it holds.

    Raises:
        BackupDamaged: with everything that was found.
    """
    with closing(DurableDatastore(str(made))) as datastore:
        recorder = LogRecorder(datastore)
        damage = tuple(check_rows(recorder, mapper))
        if damage:
            raise BackupDamaged(of, damage)
        with datastore.transaction(commit=False) as c:
            c.execute("SELECT count(*), count(DISTINCT originator_id) FROM stored_events")
            events, conversations = c.fetchone()
    return BackedUp(
        path=made, bytes=made.stat().st_size, events=events, conversations=conversations
    )


def settle(to: Path) -> None:
    """See to it that no write-ahead log of an earlier file is taken for a part of a new one.

    Raises:
        LogBusy: another program has the file open.
    """
    beside = [Path(f"{to}{suffix}") for suffix in ("-wal", "-shm")]
    if not any(path.exists() for path in beside):
        return
    with suppress(sqlite3.DatabaseError), closing(sqlite3.connect(to, timeout=1)) as connection:
        # The last connection that closes takes the files beside it away.
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    if any(path.exists() for path in beside):
        raise LogBusy(f"{to} is in use by another program; close it, or give another path")
