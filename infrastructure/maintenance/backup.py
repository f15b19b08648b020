"""Copying a log while others write to it: one moment of it, checked before it gets its name."""

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from eventsourcing.sqlite import SQLiteDatastore

from refold.application.errors import BackupDamaged, LogBusy
from refold.application.maintenance.maintenance_results import BackedUp
from refold.application.runtime.plain_lines import plain_logger
from refold.domain.value import replace as copy_with
from refold.infrastructure.event_store.anchor import Anchor, Mark, anchor_path
from refold.infrastructure.event_store.held_log import HeldLog
from refold.infrastructure.event_store.mapper import EventMapper
from refold.infrastructure.event_store.recorder import DurableDatastore, LogRecorder
from refold.infrastructure.event_store.shelf import SQLiteShelf
from refold.infrastructure.files.private_files import new_file, sync
from refold.infrastructure.sqlite.second_look import judged, looked_twice, translated
from refold.infrastructure.sqlite.sqlite_connection import open_sqlite
from refold.infrastructure.sqlite.sqlite_failures import STORE_ERRORS, is_damage

from .check import check_log
from .own_files import refuse_own
from .stream_checks import LOG

logger = plain_logger(__name__)

PAGES = 512
"""Of a step of a copy, 2 MB: so soon Ctrl-C is heard."""
STEPS = 10_000
"""The same for a copy row by row, in steps of SQLite's virtual machine."""


def back_up(
    source: SQLiteDatastore, mapper: EventMapper, to: Path, *, path: Path, replace: bool
) -> BackedUp:
    """Copy the log ``source``, which lies at ``path``, into the file ``to``.

    Raises:
        TargetExists: there is a file already, and replacing it was not asked for.
        BackupDamaged: the log is damaged; no file was made.
        LogError: the copy cannot be written; no file was made.
    """
    real = Path(os.path.realpath(to))
    refuse_own(to, path)
    with translated(to), new_file(real, replace=replace) as made:
        size, marks = _copied(source, mapper, made, path)
        settle(real)
        anchor_path(real).unlink(missing_ok=True)
    _keep_anchor(anchor_path(real), marks)
    return copy_with(size, path=to)


def _copied(
    source: SQLiteDatastore, mapper: EventMapper, made: Path, path: Path
) -> tuple[BackedUp, Sequence[Mark]]:
    """Copy and check; where the copy seems damaged, do both once more."""

    def copied() -> tuple[BackedUp, Sequence[Mark]]:
        copy_log(source, made)
        return check_copy(made, mapper, of=path)

    def forget() -> None:
        os.truncate(made, 0)
        if isinstance(source, DurableDatastore):
            source.forget_pages()

    try:
        return looked_twice(copied, forget)
    except STORE_ERRORS as error:
        if is_damage(error):
            raise judged(path, error) from error
        raise


def _keep_anchor(path: Path, marks: Sequence[Mark]) -> None:
    """Write what the copy holds beside it: so it is noticed when a part of it is cut off one day."""
    try:
        Anchor(path).renew(marks)
    except OSError as error:
        logger.warning("the backup is whole; its anchor %s cannot be written (%s)", path, error)


def copy_log(source: SQLiteDatastore, made: Path) -> None:
    """Copy the log as it is now into an empty file, without its free pages."""
    try:
        copy_tight(source, made)
        if _has_same_numbers(source, made):
            return
    except sqlite3.DatabaseError as error:
        # The check of a copy with all pages tells what is damaged, and where.
        if not error.sqlite_errorname.startswith(("SQLITE_CORRUPT", "SQLITE_CONSTRAINT")):
            raise
    os.truncate(made, 0)
    copy_pages(source, made)


def copy_tight(source: SQLiteDatastore, made: Path) -> None:
    """Write everything that the log holds now into an empty file, row by row.

    One moment of it, as ``copy_pages`` has, and nobody's writing has to wait.
    """
    with source.get_connection(commit=False) as pooled:
        connection = pooled.cursor().sqlite_cursor.connection
        connection.set_progress_handler(_go_on, STEPS)
        try:
            connection.execute("VACUUM INTO ?", (str(made),))
        except sqlite3.OperationalError as error:
            # What Ctrl-C raises inside of a statement, ends that with an error of its own.
            if error.sqlite_errorname == "SQLITE_INTERRUPT":
                raise KeyboardInterrupt from error
            raise
        finally:
            connection.set_progress_handler(None, 0)
    sync(made)


def _has_same_numbers(source: SQLiteDatastore, made: Path) -> bool:
    # They are positions that followers remember. SQLite keeps them here, and does not promise it.
    numbers = (
        "SELECT rowid, originator_id, originator_version FROM stored_events WHERE rowid<=? "
        "ORDER BY originator_id, originator_version"
    )
    with (
        closing(open_sqlite(made)) as copy,
        source.transaction(commit=False) as c,
        suppress(ValueError),
    ):
        (last,) = copy.execute("SELECT max(rowid) FROM stored_events").fetchone()
        log = c.sqlite_cursor.connection.cursor()
        log.row_factory = None
        pairs = zip(log.execute(numbers, (last,)), copy.execute(numbers, (last,)), strict=True)
        return all(there == here for there, here in pairs)
    return False


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
    with closing(open_sqlite(made, isolation_level=None)) as copy:
        source.backup(copy, pages=PAGES, progress=_between_steps)
    sync(made)


def _go_on() -> int:
    """See ``_between_steps``."""
    return 0


def _between_steps(status: int, remaining: int, total: int) -> None:
    """Python hears Ctrl-C where it runs code: nothing else has to happen here."""
    del status, remaining, total


def check_copy(made: Path, mapper: EventMapper, *, of: Path) -> tuple[BackedUp, Sequence[Mark]]:
    """Check every event, link and key of a copy; what it holds, and the newest of each conversation.

    Raises:
        BackupDamaged: with everything that was found.
    """
    with closing(DurableDatastore(str(made))) as datastore:
        recorder = LogRecorder(datastore)
        # What is beside the events must be whole in the copy as well.
        found = check_log(recorder, mapper.reading(SQLiteShelf(datastore)))
        # A damaged snapshot is thrown away where it is noticed: nothing depends on it.
        damage = tuple(one for one in found.damage if one.place == LOG)
        if damage:
            raise BackupDamaged(of, damage)
        marks = tuple(HeldLog(made, Anchor(None), recorder).marks())
    size = made.stat().st_size
    made_of = BackedUp(
        path=made, bytes=size, events=found.events, conversations=found.conversations
    )
    return made_of, marks


def settle(to: Path) -> None:
    """See to it that no write-ahead log of an earlier file is taken for a part of a new one.

    Raises:
        LogBusy: another program has the file open.
    """
    beside = [Path(f"{to}{suffix}") for suffix in ("-wal", "-shm")]
    if not any(path.exists() for path in beside):
        return
    with suppress(sqlite3.DatabaseError), closing(open_sqlite(to, timeout=1)) as connection:
        # The last connection that closes takes the files beside it away.
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    if any(path.exists() for path in beside):
        raise LogBusy(f"{to} is in use by another program; close it, or give another path")
