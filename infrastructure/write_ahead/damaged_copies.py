"""Refuse to open a log whose write-ahead log is damaged, and keep a copy of that beside it."""

import errno
import os
import re
import shutil
from contextlib import suppress
from datetime import UTC, datetime
from filecmp import cmp
from pathlib import Path

from refold.application.errors import TargetExists, WriteAheadDamaged
from refold.application.ports.conversation_log import Damage
from refold.application.runtime.plain_lines import plain_logger
from refold.infrastructure.files.private_files import new_file

from .examination import WriteAheadDamage, examine, write_ahead_path

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


logger = plain_logger(__name__)

_NO_SYNC = (errno.EROFS, errno.EINVAL, errno.ENOTSUP, errno.EBADF)
"""What systems say of files that they cannot sync, or need not."""


def refuse_damaged(log: Path) -> None:
    """Check the write-ahead log of ``log`` before the first connection to it is made.

    Without damage, it is on the disk when this returns: a process that died may have written a commit
    and not synced it, and SQLite would go on behind that.

    Raises:
        WriteAheadDamaged: it is damaged; a copy of it was made, if there was none yet.
        OSError: it cannot be read, or the copy cannot be written.
    """
    path = write_ahead_path(log)
    try:
        if not path.stat().st_size:
            return
        damage = examine(log)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return  # Without permission SQLite cannot read it either, and says so.
    if damage is None:
        _sync(path)
    else:
        raise refusal(log, damage)


def refusal(log: Path, damage: WriteAheadDamage) -> WriteAheadDamaged:
    """Return the error for a damaged write-ahead log, after a copy of it was made.

    Raises:
        OSError: the copy cannot be written where it could be.
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
    problem = described(log, damage)
    logger.warning("%s; %s", problem, f"copied to {copy}" if copy else f"not copied ({reason})")
    return WriteAheadDamaged(log, problem, copy)


def finding(log: Path) -> Damage | None:
    """Return what a verification says of the write-ahead log of ``log``; None if it is not damaged.

    Raises:
        OSError: it cannot be read.
    """
    damage = examine(log)
    if damage is None:
        return None
    refused = refusal(log, damage)
    kept = f"a copy is {refused.copy}" if refused.copy else "no copy of it could be made"
    return Damage("log", "", 0, "write-ahead", f"{refused.problem}; {kept}")


def described(log: Path, damage: WriteAheadDamage) -> str:
    """Say what is wrong with a write-ahead log."""
    path, found = write_ahead_path(log), damage.found
    if found is None:
        commits = sum(bool(frame.size) for frame in damage.chain.frames[: damage.frames])
        return (
            f"{log} is missing or empty, and its write-ahead log {path} holds {commits:,} commits, "
            "which SQLite would delete"
        )
    if found.frame == len(damage.chain.frames):
        return (
            f"the write-ahead log {path} was cut: it ends in the middle of a commit that was stored"
        )
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
