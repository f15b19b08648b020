"""What lies in the files of a store, read without refold: texts in bytes, and rows by SQLite from a copy."""

import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from .sample_store import DERIVED, LOG

Rows = Mapping[str, Mapping[tuple[object, ...], tuple[object, ...]]]
"""Of each table its rows, by what names them."""
NAMES = {
    "stored_events": ("originator_id", "originator_version"),
    "stored_snapshots": ("originator_id", "originator_version"),
    "message_keys": ("originator_id", "key"),
}


def marks_in_bytes(folder: Path, marks: Iterable[str], *, derived: bool = False) -> frozenset[str]:
    """Which of these words stand in the bytes of any file of the folder."""
    contents = [
        path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and (derived or not path.name.startswith(DERIVED))
    ]
    return frozenset(m for m in marks if any(m.encode() in content for content in contents))


def rows_of(folder: Path, table: str) -> list[dict[str, Any]]:
    """The rows of a table of the log, read from a copy: looking changes nothing.

    Raises:
        sqlite3.DatabaseError: SQLite cannot read them.
    """
    with tempfile.TemporaryDirectory(prefix="raw-") as place:
        for end in ("", "-wal"):
            if (folder / f"{LOG}{end}").exists():
                shutil.copyfile(folder / f"{LOG}{end}", Path(place, f"{LOG}{end}"))
        with closing(sqlite3.connect(Path(place, LOG))) as connection:
            connection.row_factory = sqlite3.Row
            try:
                return [dict(row) for row in connection.execute(f"SELECT * FROM {table}")]
            except MemoryError as error:  # A damaged page says that a value is of any length.
                raise sqlite3.DatabaseError("a value is too large") from error


def all_rows(folder: Path) -> Rows | None:
    """All rows that mean something; None where SQLite cannot read them all."""
    try:
        return {
            table: {
                tuple(row[name] for name in names): tuple(row.values())
                for row in rows_of(folder, table)
            }
            for table, names in NAMES.items()
        }
    except (sqlite3.DatabaseError, UnicodeDecodeError, OverflowError):
        return None
