"""Refusing to open a log whose write-ahead log is damaged: SQLite would drop what lies behind the damage."""

import errno
import os
from contextlib import suppress
from pathlib import Path

from refold.application.errors import TargetExists, WriteAheadDamaged
from refold.application.event_log import Damage
from refold.application.plain_lines import plain_logger

from .copies import keep_copy
from .examining import WriteAheadDamage, examine, write_ahead_path

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
