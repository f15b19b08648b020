"""What can go wrong below the log, as errors of the log: what happened, and what to do next."""

import errno
import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from eventsourcing.domain import EventSourcingError
from eventsourcing.persistence import (
    ConnectionPoolClosedError,
    ConnectionUnavailableError,
    RecordConflictError,
)

from refold.application.errors import (
    LogBusy,
    LogDamaged,
    LogError,
    LogFull,
    LogGone,
    LogNotWritable,
    NotARefoldLog,
)

# Python cannot even say what SQLite says of some damaged files.
STORE_ERRORS = (sqlite3.Error, EventSourcingError, OSError, UnicodeDecodeError)
"""Everything that a store below raises on purpose."""

_FULL = ("SQLITE_FULL", "ENOSPC", "EDQUOT", "EFBIG")
_GONE = ("SQLITE_READONLY_DBMOVED", "ENOENT", "ENOTDIR", "ESTALE")
_NOT_WRITABLE = (
    "SQLITE_READONLY",
    "SQLITE_CANTOPEN",
    "SQLITE_PERM",
    "SQLITE_AUTH",
    "EACCES",
    "EPERM",
    "EROFS",
)
_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL", "NO_CONNECTION", "EAGAIN", "EINTR")
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_FORMAT")
_DEVICE = ("SQLITE_IOERR", "EIO", "ENXIO", "ENODEV")
_SCARCE = ("SQLITE_NOMEM", "ENOMEM", "EMFILE", "ENFILE")
# A page that could not be read is sometimes told as damage.
_PASSING = (*_BUSY, *_DEVICE, *_SCARCE, *_DAMAGED)


@contextmanager
def translated(path: Path) -> Generator[None]:
    """Turn errors of SQLite, of the system and of the library below into errors of the log."""
    try:
        yield
    except STORE_ERRORS as error:
        from .second_look import judged  # It needs more than this module, and only now.

        raise judged(path, error) from error


def may_be_damage(error: BaseException) -> bool:
    """Whether content may be wrong; not where a permission is missing, or the disk is full or fails."""
    troubles = (*_FULL, *_GONE, *_NOT_WRITABLE, *_BUSY, *_DEVICE, *_SCARCE)
    return not kind_of(error).startswith(troubles)


def is_damage(error: BaseException) -> bool:
    """Whether the store says that content is damaged; it says so of some reads that fail as well."""
    return isinstance(error, STORE_ERRORS) and kind_of(error).startswith(_DAMAGED)


def is_forbidden(error: BaseException) -> bool:
    """Whether a permission is missing."""
    return kind_of(error).startswith(_NOT_WRITABLE)


def is_passing(error: BaseException) -> bool:
    """Whether the same may succeed a moment later: in use, a fault of the device, scarce resources."""
    return isinstance(error, STORE_ERRORS) and kind_of(error).startswith(_PASSING)


def typed(path: Path, error: Exception) -> LogError:
    """The error of the log for one of the store below. Never says what was to be stored."""
    kind = kind_of(error)
    if kind.startswith(_FULL):
        return LogFull(
            f"the disk with {path} is full; free some space and try again, nothing is lost"
        )
    if kind.startswith(_GONE):
        return LogGone(
            f"{path} was moved or deleted while it was open; put it back, or open it at its new place"
        )
    if kind.startswith(_NOT_WRITABLE):
        what = "written" if _is_readable(path) else "read"
        return LogNotWritable(
            f"{path} cannot be {what} ({_said(error)}); check its permissions, and those of the -wal and "
            "-shm files beside it"
        )
    if kind.startswith(_BUSY):
        return LogBusy(f"{path} is in use by another program and stayed so; try again")
    if kind == "SQLITE_NOTADB":
        return NotARefoldLog(f"{path} is not a log of refold; give another path")
    if kind.startswith(_DAMAGED):
        return LogDamaged("", 0, f"the file {path} is damaged ({_said(error)})")
    if kind == "CLOSED":
        return LogError(f"{path} was closed meanwhile; open it again to go on")
    return LogError(f"the log {path} failed: {_said(error)}; {_advice(kind)}")


def _is_readable(path: Path) -> bool:
    return not path.is_absolute() or os.access(
        path, os.R_OK, effective_ids=os.access in os.supports_effective_ids
    )


def kind_of(error: BaseException) -> str:
    """The name of the system's or SQLite's own code, from the error that began it."""
    while error.__cause__ is not None:
        error = error.__cause__
    match error:
        case ConnectionUnavailableError():
            return "NO_CONNECTION"
        case ConnectionPoolClosedError():
            return "CLOSED"
        case RecordConflictError():
            return "SQLITE_CONSTRAINT"
        case UnicodeDecodeError():
            return "SQLITE_CORRUPT"
        case OSError():
            return errno.errorcode.get(error.errno or 0, "")
        case _:
            return str(getattr(error, "sqlite_errorname", ""))


def _said(error: BaseException) -> str:
    """What the system or SQLite says; of the library between, which may quote, only the name."""
    while error.__cause__ is not None:
        error = error.__cause__
    match error:
        case OSError():
            return error.strerror or type(error).__name__
        case sqlite3.Error():
            name = getattr(error, "sqlite_errorname", "")
            return f"{error}, {name}" if name else str(error)
        case _:
            return type(error).__name__


def _advice(kind: str) -> str:
    if kind.startswith(_DEVICE):
        return (
            "check the disk, then try again with the same key; what was acknowledged before is safe"
        )
    if kind.startswith(_SCARCE):
        return "close files or free memory, then try again; what was acknowledged before is safe"
    if kind.startswith("SQLITE_CONSTRAINT"):
        return "another writer was quicker; try again"
    return "try again, or open it again; what was acknowledged before is safe"
