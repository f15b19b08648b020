"""Copies of damaged write-ahead logs, kept beside the log: nothing that lies in them is lost."""

import re
import shutil
from datetime import UTC, datetime
from filecmp import cmp
from pathlib import Path

from refold.application.errors import TargetExists
from refold.infrastructure.new_files import new_file

from .examining import write_ahead_path

_AT_ONCE = 1 << 20


def damaged_copies(log: Path) -> list[Path]:
    """Return the copies that lie beside a log, the oldest first."""
    name = write_ahead_path(log)
    try:
        beside = sorted(name.parent.iterdir())
    except OSError:
        return []
    return [path for path in beside if is_damaged_copy(path, log)]


def notices_of_copies(log: Path) -> tuple[str, ...]:
    """Say for each copy beside a log that is there, and what it is good for."""
    return tuple(
        f"{copy} is a copy of a write-ahead log that was damaged. `refold salvage NEW.db` reads it as well; "
        "delete it when nothing is missed. It can hold text that was erased since"
        for copy in damaged_copies(log)
    )


def is_damaged_copy(path: Path, log: Path) -> bool:
    """Return whether a path is the place of such a copy, whether there is a file or not."""
    if path.parent != write_ahead_path(log).parent:
        return False
    name = re.escape(write_ahead_path(log).name)
    return re.fullmatch(rf"{name}\.damaged-\d{{8}}T\d{{6}}Z(-\d+)?", path.name) is not None


def keep_copy(log: Path) -> Path:
    """Copy the write-ahead log aside, once; return where the copy is. It is on the disk then.

    Raises:
        OSError: the copy cannot be written.
    """
    source = write_ahead_path(log)
    before = damaged_copies(log)
    for copy in before:
        if cmp(source, copy, shallow=False):
            return copy
    made = _made(source)
    for copy in before:
        # A program that has the log open writes on: the copy of now has all that this one had.
        if _begins_with(made, copy):
            copy.unlink(missing_ok=True)
    return made


def _made(source: Path) -> Path:
    # The time of the last write: processes that see the same damage at once give it the same name.
    written = datetime.fromtimestamp(source.stat().st_mtime, UTC)
    name = f"{source.name}.damaged-{written:%Y%m%dT%H%M%SZ}"
    to, number = source.with_name(name), 1
    while True:
        try:
            with new_file(to, replace=False) as made:
                shutil.copyfile(source, made)
        except TargetExists:
            if cmp(source, to, shallow=False):
                return to
            number += 1
            to = source.with_name(f"{name}-{number}")
        else:
            return to


def _begins_with(path: Path, other: Path) -> bool:
    try:
        with path.open("rb") as long, other.open("rb") as short:
            while part := short.read(_AT_ONCE):
                if long.read(len(part)) != part:
                    return False
    except FileNotFoundError:
        return False
    return True
