"""Check which program owns a file. A file of another program is never deleted or replaced."""

import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from refold.infrastructure.event_store.anchor import anchor_path
from refold.infrastructure.event_store.file_format import APPLICATION_ID
from refold.infrastructure.sqlite.sqlite_connection import declared_in, open_sqlite

MARKS: Mapping[str, int] = MappingProxyType(
    {"views": 0x5246_5657, "recall": 0x5246_5243, "vectors": 0x5246_5643}
)
"""``PRAGMA application_id`` of each kind: "RFVW", "RFRC", "RFVC". Files of earlier versions have 0."""

_TABLE_OF_LOGS = "stored_events"
_LOOKED_AT = 1 << 20
"""Number of bytes at the start of a file that contain the schema of a new log."""
_MARK_AT = 68
"""Offset of the ``application_id`` in an SQLite file."""


Declared = Callable[[], Mapping[str, str]]


class PlaceTaken(OSError):
    """Another program's file is at this path. This error never leaves the infrastructure layer."""


class _Found(NamedTuple):
    mark: int
    declared: Mapping[str, str] | None
    """SQL of every object by name, or None if SQLite cannot read it."""


def write_mark(db: sqlite3.Connection, mark: int) -> None:
    """Mark a new file as one of refold, in the open transaction."""
    db.execute(f"PRAGMA application_id={mark}")


def refuse_foreign(path: Path | None, mark: int, declared: Declared) -> None:
    """Reject a path with a file that clearly belongs to another program. Damaged files of refold are
    accepted.

    An unrecognisable file belongs to refold if its lock file is next to it. So call this function
    before the lock file is created. ``declared`` returns the SQL of every object in a file of refold, by
    name; it is called for files without the mark only.

    Raises:
        PlaceTaken: the file is a log, another database, or not a database of refold.
    """
    if path is not None and path.is_file() and path.stat().st_size:
        what = _foreign(path, mark, declared)
        if what is not None:
            raise PlaceTaken(
                f"{path} is {what} and was not changed: give one of the two files another name"
            )


def is_foreign(path: Path | None, mark: int, declared: Declared) -> bool:
    """Return whether ``refuse_foreign`` rejects the file."""
    try:
        refuse_foreign(path, mark, declared)
    except PlaceTaken:
        return True
    return False


def name_new(made: Path, path: Path) -> None:
    """Rename a file that was built elsewhere to a path that must be free.

    Raises:
        FileExistsError: a file exists at the path.
    """
    try:
        os.link(made, path)
    except FileExistsError:
        raise
    except OSError:
        made.replace(path)  # The file system has no links.
        return
    made.unlink()


def _foreign(path: Path, mark: int, declared: Declared) -> str | None:
    """Return a description of the file if another program owns it, or None."""
    found = _find(path)
    tables = found.declared or {}
    if found.mark == APPLICATION_ID or _TABLE_OF_LOGS in tables:
        return "a log of refold"
    if found.mark == mark:
        return None
    expected = declared()
    if any(expected.get(name) == sql for name, sql in tables.items()):
        return None
    was_ours = Path(f"{path}.lock").exists()
    if tables:
        return (
            None
            if was_ours and expected.keys() & tables
            else "an SQLite database of another program"
        )
    if anchor_path(path).exists() or _tells_of_log(path, found):
        return "a log of refold"
    return None if was_ours else "not a file of refold"


def _find(path: Path) -> _Found:
    mark = 0
    try:
        # Immutable: the check writes no files and does not affect locks of other processes.
        with closing(
            open_sqlite(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        ) as db:
            db.text_factory = lenient
            mark = int(db.execute("PRAGMA application_id").fetchone()[0])
            return _Found(mark, declared_in(db))
    except Exception:
        # Damaged bytes raise many kinds of errors; Python cannot even decode some messages of
        # SQLite.
        return _Found(mark or _mark_in_header(path), None)


def _mark_in_header(path: Path) -> int:
    """Return the mark in the bytes of a file that SQLite cannot read, or 0 if none exists."""
    try:
        with path.open("rb") as file:
            file.seek(_MARK_AT)
            return int.from_bytes(file.read(4), "big")
    except OSError:
        return 0


def lenient(raw: bytes) -> str:
    """Decode text of SQLite that may be damaged."""
    return raw.decode(errors="replace")


def _tells_of_log(path: Path, found: _Found) -> bool:
    """Return whether a log was created here. It may exist only in its write-ahead log so far."""
    # A readable database may be open in this process, and closing it once would release its locks.
    places = [Path(f"{path}-wal"), *([path] if found.declared is None else [])]
    for place in places:
        try:
            with place.open("rb") as file:
                if _TABLE_OF_LOGS.encode() in file.read(_LOOKED_AT):
                    return True
        except OSError:
            continue
    return False
