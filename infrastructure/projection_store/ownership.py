"""Whose a file is that has the name of one of ours: what is somebody else's is never deleted or replaced."""

import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from refold.infrastructure.event_store.anchor import anchor_path
from refold.infrastructure.event_store.file_format import APPLICATION_ID
from refold.infrastructure.sqlite.sqlite_connection import open_sqlite

MARKS: Mapping[str, int] = MappingProxyType(
    {"views": 0x5246_5657, "recall": 0x5246_5243, "vectors": 0x5246_5643}
)
"""``PRAGMA application_id`` of each kind: "RFVW", "RFRC", "RFVC". Files of before have 0."""

_TABLE_OF_LOGS = "stored_events"
_LOOKED_AT = 1 << 20
"""Bytes of a file in which the declarations of a new log stand."""
_MARK_AT = 68
"""Where SQLite's file format has the ``application_id``."""


class PlaceTaken(OSError):
    """A file of somebody else lies where one of ours would. Never leaves the infrastructure."""


class _Found(NamedTuple):
    mark: int
    declared: Mapping[str, str] | None
    """None: SQLite cannot tell."""


def write_mark(db: sqlite3.Connection, mark: int) -> None:
    """Mark a new file as ours, in the transaction that is open."""
    db.execute(f"PRAGMA application_id={mark}")


def declared_in(db: sqlite3.Connection) -> dict[str, str]:
    """Return the SQL of everything that the database declares, by name."""
    rows = db.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
    return {str(name): str(sql) for name, sql in rows}


def refuse_foreign(path: Path | None, mark: int, declared: Mapping[str, str]) -> None:
    """Refuse a place where a file lies that is recognisably not ours, however damaged ours may be.

    A file that tells nothing is ours where its lock lies beside it, which is made for no other: so ask
    before the lock is taken. ``declared``: what a file of ours declares, by name.

    Raises:
        PlaceTaken: it is a log, a database of something else, or no database and never was ours.
    """
    if path is not None and path.is_file() and path.stat().st_size:
        what = _foreign(path, mark, declared)
        if what is not None:
            raise PlaceTaken(
                f"{path} is {what}, and is left alone: give one of the two another name"
            )


def is_foreign(path: Path | None, mark: int, declared: Mapping[str, str]) -> bool:
    """Whether ``refuse_foreign`` refuses it."""
    try:
        refuse_foreign(path, mark, declared)
    except PlaceTaken:
        return True
    return False


def name_new(made: Path, path: Path) -> None:
    """Give a file that was made elsewhere its name, under which there is nothing.

    Raises:
        FileExistsError: there is something by now.
    """
    try:
        os.link(made, path)
    except FileExistsError:
        raise
    except OSError:
        made.replace(path)  # A file system without links.
        return
    made.unlink()


def _foreign(path: Path, mark: int, declared: Mapping[str, str]) -> str | None:
    """What it is, if it is not ours."""
    found = _found(path)
    tables = found.declared or {}
    if found.mark == APPLICATION_ID or _TABLE_OF_LOGS in tables:
        return "a log of refold"
    if found.mark == mark or any(declared.get(name) == sql for name, sql in tables.items()):
        return None
    was_ours = Path(f"{path}.lock").exists()
    if tables:
        return (
            None
            if was_ours and declared.keys() & tables
            else "an SQLite database of something else"
        )
    if anchor_path(path).exists() or _tells_of_log(path, found):
        return "a log of refold"
    return None if was_ours else "no file of refold"


def _found(path: Path) -> _Found:
    mark = 0
    try:
        # Immutable: nothing is written beside it, and nobody's locks are touched.
        with closing(
            open_sqlite(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        ) as db:
            db.text_factory = lenient
            mark = int(db.execute("PRAGMA application_id").fetchone()[0])
            return _Found(mark, declared_in(db))
    except Exception:
        # Whatever damaged bytes raise: Python cannot even say what SQLite says of some.
        return _Found(mark or _mark_in_header(path), None)


def _mark_in_header(path: Path) -> int:
    """The mark in the bytes of a file that SQLite cannot read as a database; 0 if there is none."""
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
    """Whether a log was begun there: all that there is of it may be in its write-ahead log."""
    # A database that can be read may be open here, and closing it once would end its locks.
    places = [Path(f"{path}-wal"), *([path] if found.declared is None else [])]
    for place in places:
        try:
            with place.open("rb") as file:
                if _TABLE_OF_LOGS.encode() in file.read(_LOOKED_AT):
                    return True
        except OSError:
            continue
    return False
