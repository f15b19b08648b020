"""Back up a log, replace a log file with another, and list the files of a log."""

import os
import re
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

from eventsourcing.sqlite import SQLiteDatastore

from refold.application.errors import BackupDamaged, LogBusy, NewerLog, TargetExists
from refold.application.maintenance.maintenance_results import BackedUp
from refold.application.ports.conversation_log import Damage
from refold.application.runtime.plain_lines import plain_logger
from refold.domain.value import replace as copy_with
from refold.infrastructure.event_store.anchor import Anchor, Mark, anchor_path
from refold.infrastructure.event_store.anchor_check import HeldLog
from refold.infrastructure.event_store.envelope import EventMapper
from refold.infrastructure.event_store.recorder import DurableDatastore, LogRecorder
from refold.infrastructure.event_store.shelf import SQLiteShelf
from refold.infrastructure.files.log_place import DERIVED, derived_path
from refold.infrastructure.files.private_files import new_file, sync
from refold.infrastructure.sqlite.sqlite_connection import open_sqlite, sync_fully, write_ahead_path
from refold.infrastructure.sqlite.sqlite_failures import (
    STORE_ERRORS,
    diagnose,
    is_damage,
    look_twice,
    translate_errors,
)
from refold.infrastructure.write_ahead.damaged_copies import damaged_copies, is_damaged_copy
from refold.infrastructure.write_ahead.examination import examine

from .check import check_log
from .scrubber import checked_path
from .table_checks import LOG

_BESIDE = ("", "-wal", "-shm", "-journal", ".lock")


def refuse_own(to: Path, log: Path) -> None:
    """Reject a target path that the log at ``log`` uses, even if no such file exists now.

    Raises:
        TargetExists: the log uses this path.
        LogNotWritable: the folder of the path cannot be read.
    """
    own = files_of(log)
    with translate_errors(to):
        linked = to.exists() and log.exists() and to.samefile(log)
    if linked or os.path.realpath(to) in own or is_damaged_copy(Path(os.path.realpath(to)), log):
        raise TargetExists(to, "is a file of the log itself; give another path")


def files_of(log: Path) -> set[str]:
    """Return the paths of all files that a log may use, including those that do not exist now."""
    place = Path(os.path.realpath(log))
    files = (place, *(derived_path(place, name) for name in DERIVED))
    neighbours = (str(anchor_path(place)), str(checked_path(place)))
    return {*neighbours, *(f"{file}{suffix}" for file in files for suffix in _BESIDE)}


OF_SQLITE = ("", "-wal", "-shm")
"""Suffixes of the files in which SQLite keeps a database while programs have it open."""


def earlier_logs(log: Path) -> list[Path]:
    """Return the logs that were moved away from this path, newest last."""
    aside = re.compile(rf"{re.escape(log.stem)}\.replaced-[\dTZ-]+{re.escape(log.suffix)}")
    found = sorted(path for path in log.parent.iterdir() if aside.fullmatch(path.name))
    return [path for path in found if path.is_file()]


def put_in_place(made: Path, log: Path) -> Path | None:
    """Make ``made`` the log, under its write lock. Return the new path of the old log, or None."""
    # If the log file is missing, its write-ahead log may contain everything.
    moved = _move_aside(log) if log.exists() or write_ahead_path(log).exists() else None
    # The write-ahead log of the old file must not be used with the new one. Programs that have the
    # old log open keep all of its files and notice that they were moved.
    for suffix in OF_SQLITE[1:]:
        Path(f"{log}{suffix}").unlink(missing_ok=True)
    # Findings about the old file do not apply to the new one.
    checked_path(log).unlink(missing_ok=True)
    made.replace(log)
    # Not earlier: until the new log is in place, the anchor describes the old one.
    anchor_path(made).replace(anchor_path(log))
    return moved


def _move_aside(log: Path) -> Path:
    """Give the files of a log a second name, so that a log exists under the first name at every moment."""
    if log.exists() and examine(log) is None:
        with suppress(sqlite3.Error), closing(open_sqlite(log, timeout=1)) as connection:
            # Unless another process is reading it, the file is complete without a write-ahead log
            # afterwards.
            sync_fully(connection)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    moved = _name_aside(log)
    for suffix in OF_SQLITE:
        _name_as_well(Path(f"{log}{suffix}"), Path(f"{moved}{suffix}"))
    _name_as_well(anchor_path(log), anchor_path(moved))
    for copy in damaged_copies(log):
        copy.rename(copy.with_name(copy.name.replace(log.name, moved.name, 1)))
    return moved


def _name_aside(log: Path) -> Path:
    # Before the suffix, because read models are named after the part before it.
    name = f"{log.stem}.replaced-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    moved = log.with_name(name + log.suffix)
    number = 1
    while moved.exists():
        number += 1
        moved = log.with_name(f"{name}-{number}{log.suffix}")
    return moved


def _name_as_well(path: Path, name: Path) -> None:
    try:
        os.link(path, name)
    except FileNotFoundError:
        pass
    except OSError:
        # The file system has no links.
        path.replace(name)


logger = plain_logger(__name__)

PAGES = 512
"""Number of pages in one step of a copy, 2 MB, so that Ctrl-C takes effect soon."""
STEPS = 10_000
"""Number of steps of SQLite's virtual machine between two checks for Ctrl-C, in a copy row by row."""


def back_up(
    source: SQLiteDatastore, mapper: EventMapper, to: Path, *, path: Path, replace: bool
) -> BackedUp:
    """Copy the log ``source`` at ``path`` into the file ``to``.

    Raises:
        TargetExists: the file exists, and ``replace`` is false.
        BackupDamaged: the log is damaged; no file was created.
        NewerLog: it has an event of a newer refold; no file was created.
        LogError: the copy cannot be written; no file was created.
    """
    real = Path(os.path.realpath(to))
    refuse_own(to, path)
    with translate_errors(to), new_file(to, replace=replace) as made:
        size, marks = _copy_checked(source, mapper, made, path)
        settle(real)
        anchor_path(real).unlink(missing_ok=True)
    keep_anchor(anchor_path(real), marks)
    return copy_with(size, path=to)


def _copy_checked(
    source: SQLiteDatastore, mapper: EventMapper, made: Path, path: Path
) -> tuple[BackedUp, Sequence[Mark]]:
    """Copy and check the log. If the copy seems damaged, do both once more."""

    def copied() -> tuple[BackedUp, Sequence[Mark]]:
        copy_log(source, made)
        return check_copy(made, mapper, of=path)

    def forget() -> None:
        os.truncate(made, 0)
        if isinstance(source, DurableDatastore):
            source.forget_pages()

    try:
        return look_twice(copied, forget)
    except STORE_ERRORS as error:
        if is_damage(error):
            raise diagnose(path, error) from error
        raise


def keep_anchor(path: Path, marks: Sequence[Mark]) -> None:
    """Write an anchor next to the copy, so that a later loss of its end is detected."""
    try:
        Anchor(path).renew(marks)
    except OSError as error:
        logger.warning(
            "the backup is complete, but its anchor %s cannot be written (%s)", path, error
        )


def copy_log(source: SQLiteDatastore, made: Path) -> None:
    """Copy the current log into an empty file, without its free pages."""
    try:
        copy_tight(source, made)
        if _has_same_numbers(source, made):
            return
    except sqlite3.DatabaseError as error:
        # The check of a copy with all pages reports the damage and its place.
        if not error.sqlite_errorname.startswith(("SQLITE_CORRUPT", "SQLITE_CONSTRAINT")):
            raise
    os.truncate(made, 0)
    copy_pages(source, made)


def copy_tight(source: SQLiteDatastore, made: Path) -> None:
    """Write the current content of the log into an empty file, row by row.

    The copy shows one moment, as in ``copy_pages``, and no writer has to wait.
    """
    with source.get_connection(commit=False) as pooled:
        connection = pooled.cursor().sqlite_cursor.connection
        connection.set_progress_handler(_go_on, STEPS)
        try:
            # As bytes, because a name need not be text.
            connection.execute("VACUUM INTO CAST(? AS TEXT)", (os.fsencode(made),))
        except sqlite3.OperationalError as error:
            # Inside a statement, the exception of Ctrl-C ends it with an SQLite error.
            if error.sqlite_errorname == "SQLITE_INTERRUPT":
                raise KeyboardInterrupt from error
            raise
        finally:
            connection.set_progress_handler(None, 0)
    sync(made)


def _has_same_numbers(source: SQLiteDatastore, made: Path) -> bool:
    # These are positions that followers store. SQLite keeps them here, but does not guarantee it.
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
    """Copy every page of the current log into an empty file."""
    with source.transaction(commit=False) as c:
        # This read transaction covers all steps: they see one moment and are not restarted by
        # writes. In WAL mode it blocks no writer.
        c.execute("SELECT count(*) FROM stored_events")
        c.fetchall()
        copy_connection(c.sqlite_cursor.connection, made)


def copy_connection(source: sqlite3.Connection, made: Path) -> None:
    """Copy and sync the database of a connection, in steps."""
    with closing(open_sqlite(made, isolation_level=None)) as copy:
        source.backup(copy, pages=PAGES, progress=_between_steps)
    sync(made)


def _go_on() -> int:
    """Return 0, which makes SQLite continue. Python handles Ctrl-C before the call."""
    return 0


def _between_steps(status: int, remaining: int, total: int) -> None:
    """Do nothing. Python handles Ctrl-C whenever it calls this function."""
    del status, remaining, total


def check_copy(made: Path, mapper: EventMapper, *, of: Path) -> tuple[BackedUp, Sequence[Mark]]:
    """Check every event, link and key of a copy. Return its content and its newest events.

    Raises:
        BackupDamaged, NewerLog: as in ``refuse_faulty``.
    """
    with closing(DurableDatastore(str(made))) as datastore:
        recorder = LogRecorder(datastore)
        # The tables next to the events must be intact in the copy as well.
        found = check_log(recorder, mapper.reading(SQLiteShelf(datastore)))
        refuse_faulty(of, found.damage)
        marks = tuple(HeldLog(made, Anchor(None), recorder).marks())
    size = made.stat().st_size
    made_of = BackedUp(
        path=made, bytes=size, events=found.events, conversations=found.conversations
    )
    return made_of, marks


def refuse_faulty(of: Path, damage: Iterable[Damage]) -> None:
    """Refuse a log or backup with damaged events. Snapshots do not count: nothing depends on them.

    Raises:
        BackupDamaged: the error lists everything that was found.
        NewerLog: nothing is damaged, but only a newer refold can check an event.
    """
    faulty = [one for one in damage if one.place == LOG]
    if any(one.kind != "newer" for one in faulty):
        raise BackupDamaged(of, faulty)
    for one in faulty:
        raise NewerLog(
            f"{of}: {one.detail}, so that it cannot be checked. Nothing was written or changed; install a newer refold"
        )


def settle(to: Path) -> None:
    """Make sure that SQLite does not use the write-ahead log of an earlier file with a new one.

    Raises:
        LogBusy: another program has the file open.
    """
    neighbours = [Path(f"{to}{suffix}") for suffix in ("-wal", "-shm")]
    if not any(path.exists() for path in neighbours):
        return
    with suppress(sqlite3.DatabaseError), closing(open_sqlite(to, timeout=1)) as connection:
        # The last connection to close removes the files next to it.
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    if any(path.exists() for path in neighbours):
        raise LogBusy(f"{to} is in use by another program; close it, or give another path")
