"""Putting a whole new log in the place of one that other programs may have open."""

import os
import re
import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

from refold.infrastructure.event_store.anchor import anchor_path
from refold.infrastructure.event_store.recorder import sync_fully
from refold.infrastructure.sqlite.sqlite_connection import open_sqlite
from refold.infrastructure.write_ahead.damaged_copies import damaged_copies
from refold.infrastructure.write_ahead.examination import examine, write_ahead_path

from .known_damage import checked_path

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
