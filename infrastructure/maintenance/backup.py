"""Back up a log, put a file in the place of another, and tell which files are its own."""

import os
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

from eventsourcing.sqlite import SQLiteDatastore

from refold.application.errors import BackupDamaged, LogBusy, TargetExists
from refold.application.maintenance.maintenance_results import BackedUp
from refold.application.runtime.plain_lines import plain_logger
from refold.domain.value import replace as copy_with
from refold.infrastructure.event_store.anchor import Anchor, Mark, anchor_path
from refold.infrastructure.event_store.anchor_check import HeldLog
from refold.infrastructure.event_store.envelope import EventMapper
from refold.infrastructure.event_store.recorder import DurableDatastore, LogRecorder, sync_fully
from refold.infrastructure.event_store.shelf import SQLiteShelf
from refold.infrastructure.files.private_files import new_file, sync
from refold.infrastructure.projection_store.projection_file import DERIVED, derived_path
from refold.infrastructure.sqlite.sqlite_connection import open_sqlite
from refold.infrastructure.sqlite.sqlite_failures import (
    STORE_ERRORS,
    diagnose,
    is_damage,
    look_twice,
    translate_errors,
)
from refold.infrastructure.write_ahead.damaged_copies import damaged_copies, is_damaged_copy
from refold.infrastructure.write_ahead.examination import examine, write_ahead_path

from .check import check_log
from .scrubber import checked_path
from .table_checks import LOG

_BESIDE = ("", "-wal", "-shm", "-journal", ".lock")


def refuse_own(to: Path, log: Path) -> None:
    """Refuse a place that the log at ``log`` uses, whether there is a file now or not.

    Raises:
        TargetExists: it is one.
    """
    own = files_of(log)
    linked = to.exists() and log.exists() and to.samefile(log)
    if linked or os.path.realpath(to) in own or is_damaged_copy(Path(os.path.realpath(to)), log):
        raise TargetExists(to, "is a file of the log itself; give another path")


def files_of(log: Path) -> set[str]:
    """The paths of all files that a log uses, whether there are such files now or not."""
    place = Path(os.path.realpath(log))
    files = (place, *(derived_path(place, name) for name in DERIVED))
    beside = (str(anchor_path(place)), str(checked_path(place)))
    return {*beside, *(f"{file}{suffix}" for file in files for suffix in _BESIDE)}


def real_place(path: str | Path) -> str | Path:
    """Return where a link to a log leads: locks and derived files lie beside the log itself."""
    return Path(path).resolve() if os.path.islink(path) else path  # noqa: PTH114


OF_SQLITE = ("", "-wal", "-shm")
"""The files in which SQLite keeps a database while programs have it open."""


def earlier_logs(log: Path) -> list[Path]:
    """Return the logs that were moved aside from this place, the newest last."""
    aside = re.compile(rf"{re.escape(log.stem)}\.replaced-[\dTZ-]+{re.escape(log.suffix)}")
    found = sorted(path for path in log.parent.iterdir() if aside.fullmatch(path.name))
    return [path for path in found if path.is_file()]


def put_in_place(made: Path, log: Path) -> Path | None:
    """Make ``made`` the log; where the one that was there has been moved to. Under its write lock."""
    # Without its file, a write-ahead log may hold everything.
    moved = _move_aside(log) if log.exists() or write_ahead_path(log).exists() else None
    # The write-ahead log of the old file must not be taken for one of the new. Programs that have the
    # old one open keep all of its files, and notice that they lie elsewhere now.
    for suffix in OF_SQLITE[1:]:
        Path(f"{log}{suffix}").unlink(missing_ok=True)
    # What was found in the old file is not said of the new one.
    checked_path(log).unlink(missing_ok=True)
    made.replace(log)
    # Not before: until there is the new log, the anchor tells of the old one.
    anchor_path(made).replace(anchor_path(log))
    return moved


def _move_aside(log: Path) -> Path:
    """Give the files of a log a second name, so that at every moment there is a log at the first."""
    if log.exists() and examine(log) is None:
        with suppress(sqlite3.Error), closing(open_sqlite(log, timeout=1)) as connection:
            # As far as nobody reads it just now, the file has everything by itself afterwards.
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
    # Before the suffix: read models are named after what stands before it.
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
        # A file system without links.
        path.replace(name)


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
    with translate_errors(to), new_file(real, replace=replace) as made:
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
        return look_twice(copied, forget)
    except STORE_ERRORS as error:
        if is_damage(error):
            raise diagnose(path, error) from error
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
