"""Translate SQLite errors, and retry what may have a temporary cause."""

from __future__ import annotations

import errno
import os
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from functools import cache, wraps
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from eventsourcing.domain import EventSourcingError
from eventsourcing.persistence import (
    ConnectionPoolClosedError,
    ConnectionUnavailableError,
    RecordConflictError,
)

from refold.application.errors import (
    BackupDamaged,
    LogBusy,
    LogDamaged,
    LogError,
    LogFull,
    LogGone,
    LogNotWritable,
    NotARefoldLog,
)
from refold.application.runtime.opening_process import (
    LOCK_WAIT,
    OPEN_FEWER,
    find_limit,
    has_size_limit,
)
from refold.application.runtime.plain_lines import plain_logger
from refold.infrastructure.files.private_files import read_at

from .read_only import connect_read_only, find_refusal

if TYPE_CHECKING:
    from tenacity import RetryCallState, Retrying

# Python fails to decode SQLite's message for some damaged files.
STORE_ERRORS = (sqlite3.Error, EventSourcingError, OSError, UnicodeDecodeError)
"""Errors that the storage libraries raise on purpose."""

# SQLite creates the index of the write-ahead log with its full size, so a full disk has another name there.
_FULL = ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE", "ENOSPC", "EDQUOT")
_TOO_LARGE = ("EFBIG",)
_GROWS = (
    "SQLITE_IOERR_WRITE",
    "SQLITE_IOERR_SHMOPEN",
    "SQLITE_IOERR_SHMSIZE",
    "SQLITE_IOERR_TRUNCATE",
)
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
_IN_THE_WAY = ("EISDIR", "ELOOP")
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_FORMAT")
_DEVICE = ("SQLITE_IOERR", "EIO", "ENXIO", "ENODEV")
_LIMITED = ("EMFILE", "ENFILE")
_SCARCE = ("SQLITE_NOMEM", "ENOMEM", *_LIMITED)
# SQLite reports some failed page reads as damage.
_PASSING = (*_BUSY, *_DEVICE, *_SCARCE, *_DAMAGED)


def may_be_damage(error: BaseException) -> bool:
    """Return whether content may be damaged.

    A missing permission, a full disk and a failing disk do not count as damage.
    """
    troubles = (*_FULL, *_TOO_LARGE, *_GONE, *_NOT_WRITABLE, *_BUSY, *_DEVICE, *_SCARCE)
    return not kind_of(error).startswith(troubles)


def is_damage(error: BaseException) -> bool:
    """Return whether the store reports damaged content. It does so for some failed reads as well."""
    return isinstance(error, STORE_ERRORS) and kind_of(error).startswith(_DAMAGED)


def is_forbidden(error: BaseException) -> bool:
    """Return whether a permission is missing."""
    return kind_of(error).startswith(_NOT_WRITABLE)


def as_shortage(what: str, error: BaseException) -> LogError | None:
    """Return the error to raise if files or memory are short, or None if the cause is another.

    ``what`` names what could not be read.
    """
    kind = kind_of(error)
    if not kind.startswith(_SCARCE):
        return None
    return LogError(f"{what} cannot be read: {_message_of(error)}; {_advice(kind)}")


def is_passing(error: BaseException) -> bool:
    """Return whether a retry may succeed: the file is in use, the device failed, or resources are scarce."""
    kind = kind_of(error) if isinstance(error, STORE_ERRORS) else ""
    return kind.startswith(_PASSING) and not kind.startswith(_FULL)


def as_log_error(path: Path, error: Exception) -> LogError:
    """Convert a storage error into an error of the log.

    The message never quotes stored content.
    """
    kind = kind_of(error)
    if kind.startswith("SQLITE_CANTOPEN"):
        kind = find_refusal(path, _first_cause(error)) or kind
    if kind.startswith(_FULL):
        return LogFull(
            f"the disk with {path} is full; free some space and try again, nothing is lost"
        )
    if kind.startswith(_TOO_LARGE):
        return LogFull(
            f"a file of {path} would be larger than this process or the file system allows; raise the limit "
            "(ulimit -f) and try again, nothing is lost"
        )
    other = _other_file(path, error)
    is_gone = kind.startswith(_GONE)
    if other and (kind.startswith(_NOT_WRITABLE) or (is_gone and path.exists())):
        return LogNotWritable(
            f"{path} cannot be used, because {other} cannot be opened ({_message_of(error)}); check its "
            f"permissions, and those of the folder {Path(other).parent}"
        )
    if is_gone:
        return LogGone(
            f"{path} was moved or deleted while it was open; put the file back, or open it at its new path"
        )
    if kind.startswith(_NOT_WRITABLE):
        what = "written" if _is_readable(path) else "read"
        return LogNotWritable(
            f"{path} cannot be {what} ({_message_of(error)}); check its permissions, and those of the -wal and "
            "-shm files next to it"
        )
    if kind.startswith(_BUSY):
        return LogBusy(f"{path} is in use by another program and stayed so; try again")
    if kind == "SQLITE_NOTADB":
        return NotARefoldLog(f"{path} is not a log of refold; give another path")
    if kind.startswith(_DAMAGED):
        return LogDamaged("", 0, f"the file {path} is damaged ({_message_of(error)})")
    if kind == "CLOSED":
        return LogError(f"{path} was closed meanwhile; open it again to continue")
    what = f"{other}: {_message_of(error)}" if other else _message_of(error)
    return LogError(f"the log {path} failed: {what}; {_advice(kind)}")


def _is_readable(path: Path) -> bool:
    return not path.is_absolute() or os.access(
        path, os.R_OK, effective_ids=os.access in os.supports_effective_ids
    )


def _other_file(path: Path, error: BaseException) -> str:
    """Return the name of the file that the system refused, or an empty text if it is the log or unknown."""
    error = _first_cause(error)
    name: object = error.filename if isinstance(error, OSError) else None
    found = os.fsdecode(name) if isinstance(name, str | bytes) else ""
    return "" if found == str(path) else found


def _first_cause(error: BaseException) -> BaseException:
    """Return the original error, from which this one was raised."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def kind_of(error: BaseException) -> str:
    """Return the error code name of the system or of SQLite, from the original error."""
    error = _first_cause(error)
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
        case MemoryError():
            return "ENOMEM"
        case _:
            name = str(getattr(error, "sqlite_errorname", ""))
            # SQLite does not say why it cannot open or write a file.
            if name in _GROWS and has_size_limit():
                return "EFBIG"
            limit = find_limit() if name.startswith("SQLITE_CANTOPEN") else None
            return name if limit is None else kind_of(limit)


def _message_of(error: BaseException) -> str:
    """Return the message of the system or of SQLite.

    Of the event sourcing library, return only the error name, because its message may quote content.
    """
    error = _first_cause(error)
    match error:
        case OSError():
            return error.strerror or type(error).__name__
        case MemoryError():
            return "there is not enough memory"
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
    if kind.startswith(_LIMITED):
        return f"{OPEN_FEWER}; what was acknowledged before is safe"
    if kind.startswith(_SCARCE):
        return "close files or free memory, then try again; what was acknowledged before is safe"
    if kind == "ENAMETOOLONG":
        return "give a shorter name or path"
    if kind in _IN_THE_WAY:
        return "move it away, then try again; what was acknowledged before is safe"
    if kind.startswith("SQLITE_CONSTRAINT"):
        return "another writer was faster; try again"
    return "try again, or open it again; what was acknowledged before is safe"


TRIES = 3
"""Total number of attempts."""
FIRST_WAIT = 0.02
LONGEST_WAIT = 0.5
PATIENCE = 30.0
"""Seconds after which a failed wait for a lock is not repeated."""

logger = plain_logger(__name__)
P = ParamSpec("P")
Answer = TypeVar("Answer")


def retry(act: Callable[[], Answer]) -> Answer:
    """Return the result of ``act``, after at most three attempts.

    Raise the last error if no attempt succeeds. ``act`` must be safe to repeat.
    """
    began = monotonic()
    try:
        # Almost every call succeeds at once, so this path must be cheap.
        return act()
    except STORE_ERRORS as error:
        if not is_passing(error) or monotonic() - began > min(PATIENCE, _most()):
            raise
        first: Exception | None = error

    def again() -> Answer:
        nonlocal first
        if first is not None:
            failed, first = first, None
            raise failed
        return act()

    return _policy()(again)


def _most() -> float:
    """Return the number of seconds after which a retry would take too long for the current work."""
    most = LOCK_WAIT.get()
    return PATIENCE if most is None else most / 2


def retrying(read: Callable[P, Answer]) -> Callable[P, Answer]:
    """Decorate a reading function with retries."""

    @wraps(read)
    def reading(*args: P.args, **kwargs: P.kwargs) -> Answer:
        return retry(lambda: read(*args, **kwargs))

    return reading


def _log_retry(state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    assert error is not None
    logger.warning(
        "the store failed (%s); trying again, %d of %d",
        kind_of(error) or type(error).__name__,
        state.attempt_number + 1,
        TRIES,
    )


@cache
def _policy() -> Retrying:
    # Imported on first use: almost every call succeeds at once.
    from tenacity import (
        Retrying,
        retry_if_exception,
        stop_after_attempt,
        stop_after_delay,
        wait_exponential,
        wait_random,
    )

    return Retrying(
        stop=stop_after_attempt(TRIES) | stop_after_delay(PATIENCE),
        wait=wait_exponential(multiplier=FIRST_WAIT, max=LONGEST_WAIT) + wait_random(0, FIRST_WAIT),
        retry=retry_if_exception(is_passing),
        before_sleep=_log_retry,
        reraise=True,
    )


if sys.platform == "win32":
    _FOR_READING = os.O_RDONLY | os.O_BINARY
else:
    _FOR_READING = os.O_RDONLY | os.O_CLOEXEC

_looking: dict[tuple[int, int], int] = {}
"""Open descriptors by file identity, for reads that bypass SQLite."""


def kept_descriptor(path: str) -> int:
    """Return a descriptor for reading a database file. It stays open.

    Raises:
        OSError: the file cannot be opened.
    """
    status = os.stat(path)  # noqa: PTH116 (as in ``connections``)
    file = status.st_dev, status.st_ino
    if file not in _looking:
        _looking[file] = os.open(path, _FOR_READING)
    return _looking[file]


CHUNK = 1 << 20


def look_twice(look: Callable[[], Answer], forget: Callable[[], None]) -> Answer:
    """Return the result of ``look``, and call it again if content seems damaged.

    ``forget`` drops cached reads.

    Raises:
        LogDamaged, BackupDamaged: the second result is damaged as well.
    """
    try:
        return look()
    except (LogDamaged, BackupDamaged, *STORE_ERRORS) as error:
        if isinstance(error, STORE_ERRORS) and not is_damage(error):
            raise
        logger.info("the log seems damaged (%s); looking again", error)
    forget()
    return look()


class translate_errors:  # noqa: N801 (used like a function; a generator would cost every append)
    """Convert errors of SQLite, of the system and of the event sourcing library into errors of the log."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        """``path``: log that the errors name."""
        self._path = path

    def __enter__(self) -> None:
        """Begin to convert."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, STORE_ERRORS):
            raise diagnose(self._path, error) from error


def diagnose(path: Path, error: Exception) -> LogError:
    """Convert a storage error into an error of the log.

    If it reports damage, check the files first.
    """
    if not is_damage(error) or not path.is_file() or isinstance(error, UnicodeDecodeError):
        return as_log_error(path, error)
    try:
        _read_all(path)
        sound = _is_sound(path)
    except STORE_ERRORS as failure:
        return as_log_error(path, failure)
    if not sound:
        return as_log_error(path, error)
    return LogError(
        f"the log {path} could not be read for a moment ({error}), and reads well now; check the disk, "
        "then try again with the same key; what was acknowledged before is safe"
    )


def _read_all(path: Path) -> None:
    """Read every byte of the log without SQLite, which reports a failed read as damage.

    Raises:
        OSError: a read fails.
    """
    _read_to_end(kept_descriptor(str(path)))
    with suppress(FileNotFoundError):
        ahead = os.open(f"{path}-wal", os.O_RDONLY)
        try:
            _read_to_end(ahead)
        finally:
            os.close(ahead)


def _read_to_end(descriptor: int) -> None:
    at = 0
    while read := read_at(descriptor, CHUNK, at):
        at += len(read)


def _is_sound(path: Path) -> bool:
    """Return whether SQLite's quick check passes now.

    Other failures raise as they do in SQLite.
    """
    try:
        with closing(connect_read_only(path)) as connection:
            return bool(connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok")
    except STORE_ERRORS as error:
        if is_damage(error):
            return False
        raise
