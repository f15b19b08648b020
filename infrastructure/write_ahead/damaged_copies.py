"""Refuse to open a log whose write-ahead log is damaged, and keep a copy next to it."""

from __future__ import annotations

import errno
import os
import re
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from refold.application.errors import TargetExists, WriteAheadDamaged
from refold.application.ports.conversation_log import Damage
from refold.application.runtime.plain_lines import plain_logger
from refold.infrastructure.files.private_files import new_file
from refold.infrastructure.sqlite.sqlite_connection import write_ahead_path

if TYPE_CHECKING:
    from .examination import WriteAheadDamage


_AT_ONCE = 1 << 20


def damaged_copies(log: Path) -> list[Path]:
    """Return the copies next to a log, oldest first."""
    name = write_ahead_path(log)
    try:
        neighbours = sorted(name.parent.iterdir())
    except OSError:
        return []
    return [path for path in neighbours if is_damaged_copy(path, log)]


def notices_of_copies(log: Path) -> tuple[str, ...]:
    """Return a sentence for each copy next to a log that says what it is for."""
    return tuple(
        f"{copy} is a copy of a write-ahead log that was damaged. `refold salvage NEW.db` reads it as well; "
        "delete it when nothing is missing. It can contain text that was erased since"
        for copy in damaged_copies(log)
    )


def is_damaged_copy(path: Path, log: Path) -> bool:
    """Return whether a path is the name of a copy of a damaged write-ahead log. The file need not exist."""
    if path.parent != write_ahead_path(log).parent:
        return False
    name = re.escape(write_ahead_path(log).name)
    return re.fullmatch(rf"{name}\.damaged-\d{{8}}T\d{{6}}Z(-\d+)?", path.name) is not None


def keep_copy(log: Path) -> Path:
    """Copy and sync the write-ahead log once, and return the path of the copy.

    Raises:
        OSError: the copy cannot be written.
    """
    from filecmp import cmp

    source = write_ahead_path(log)
    before = damaged_copies(log)
    for copy in before:
        if cmp(source, copy, shallow=False):
            return copy
    made = _make(source)
    for copy in before:
        # A program that has the log open keeps writing: the new copy contains everything in the old
        # one.
        if _begins_with(made, copy):
            copy.unlink(missing_ok=True)
    return made


def _make(source: Path) -> Path:
    # The time of the last write gives copies of the same damage the same name.
    import shutil
    from filecmp import cmp

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


logger = plain_logger(__name__)

_NO_SYNC = (errno.EROFS, errno.EINVAL, errno.ENOTSUP, errno.EBADF)
"""Errors of systems that cannot sync a file or need no sync."""


def refuse_damaged(log: Path) -> None:
    """Check the write-ahead log of ``log`` before the first connection is opened.

    An intact write-ahead log is synced on return. A process that died may have written a commit without
    syncing it, and SQLite would append after that commit.

    Raises:
        WriteAheadDamaged: the write-ahead log is damaged; a copy exists.
        OSError: the write-ahead log cannot be read, or the copy cannot be written.
    """
    path = write_ahead_path(log)
    try:
        if not path.stat().st_size:
            return
        from .examination import examine

        damage = examine(log)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return  # SQLite cannot read it without permission either, and reports that.
    if damage is None:
        _sync(path)
    else:
        raise refusal(log, damage)


def refusal(log: Path, damage: WriteAheadDamage) -> WriteAheadDamaged:
    """Return the error for a damaged write-ahead log, after copying it.

    Raises:
        OSError: the copy cannot be written although the folder is writable.
    """
    copy: Path | None = None
    reason = ""
    try:
        copy = keep_copy(log)
    except (PermissionError, TargetExists) as error:
        reason = str(error)
    except OSError as error:
        if error.errno != errno.EROFS:
            raise
        reason = str(error)
    problem = describe_damage(log, damage)
    logger.warning("%s; %s", problem, f"copied to {copy}" if copy else f"not copied ({reason})")
    return WriteAheadDamaged(log, problem, copy)


def finding(log: Path) -> Damage | None:
    """Return the damage of the write-ahead log of ``log`` for a verification, or None.

    Raises:
        OSError: the write-ahead log cannot be read.
    """
    from .examination import examine

    damage = examine(log)
    if damage is None:
        return None
    refused = refusal(log, damage)
    kept = f"a copy is {refused.copy}" if refused.copy else "no copy of it could be made"
    return Damage("log", "", 0, "write-ahead", f"{refused.problem}; {kept}")


def describe_damage(log: Path, damage: WriteAheadDamage) -> str:
    """Describe the damage of a write-ahead log."""
    path, found = write_ahead_path(log), damage.found
    if found is None:
        commits = sum(bool(frame.size) for frame in damage.chain.frames[: damage.frames])
        return (
            f"{log} is missing or empty, and its write-ahead log {path} has {commits:,} commits, "
            "which SQLite would delete"
        )
    if found.frame == len(damage.chain.frames):
        return f"the write-ahead log {path} was truncated: it ends in the middle of a commit that was stored"
    where = (
        "its header" if found.frame is None else f"frame {found.frame + 1:,} of {found.frames:,}"
    )
    return (
        f"the write-ahead log {path} is damaged: {where} differs from its checksum, and SQLite would drop "
        f"{found.commits:,} commits from there on"
    )


def _sync(path: Path) -> None:
    with suppress(FileNotFoundError, PermissionError):
        number = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        try:
            os.fsync(number)
        except OSError as error:
            if error.errno not in _NO_SYNC:
                raise
        finally:
            os.close(number)
