"""Closing a connection without the checkpoint that SQLite makes when the last one closes."""

import os
import sqlite3
import struct
import sys
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from refold.application.errors import BackupDamaged, LogDamaged, LogError
from refold.application.runtime.plain_lines import plain_logger
from refold.infrastructure.files.private_files import read_at

from .read_only import connected
from .sqlite_failures import STORE_ERRORS, is_damage, typed

_SHARED_FIRST, _SHARED_SIZE = 0x4000_0002, 510
"""The bytes of a database file whose locks say that somebody has it open (SQLite's file format)."""

if sys.platform == "win32":
    _FOR_READING = os.O_RDONLY | os.O_BINARY
else:
    _FOR_READING = os.O_RDONLY | os.O_CLOEXEC

_kept: list[int] = []
"""Descriptors that stay open: closing one would end all locks of this process on its file."""
_looking: dict[tuple[int, int], int] = {}
"""The same by file, for reading past SQLite."""


def kept_descriptor(path: str) -> int:
    """A descriptor of a database file to read with; it stays open.

    Raises:
        OSError: the file cannot be opened.
    """
    status = os.stat(path)  # noqa: PTH116 (as in ``connections``)
    file = status.st_dev, status.st_ino
    if file not in _looking:
        _looking[file] = os.open(path, _FOR_READING)
    return _looking[file]


@contextmanager
def left_as_it_is(connection: sqlite3.Connection, path: str) -> Generator[None]:
    """Close ``connection`` inside: neither the database nor its write-ahead log is touched by it.

    At the last closing, SQLite copies what this connection knows of the write-ahead log into the
    database and deletes the file, with all that others have written since.
    """
    setconfig = getattr(connection, "setconfig", None)  # Since Python 3.12.
    if setconfig is not None:
        setconfig(getattr(sqlite3, "SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE"), True)  # noqa: B009
        yield
    else:
        with _in_use(path):
            yield


if sys.platform == "linux":
    from fcntl import F_OFD_SETLK, F_RDLCK, F_UNLCK, fcntl

    def _flock(kind: int) -> bytes:
        """The system's ``struct flock``."""
        return struct.pack("@hhqqi0q", kind, os.SEEK_SET, _SHARED_FIRST, _SHARED_SIZE, 0)

    @contextmanager
    def _in_use(path: str) -> Generator[None]:
        """Be one more who has the database open: then the closing one is not the last."""
        descriptor = os.open(path, _FOR_READING)
        _kept.append(descriptor)
        fcntl(descriptor, F_OFD_SETLK, _flock(F_RDLCK))
        try:
            yield
        finally:
            fcntl(descriptor, F_OFD_SETLK, _flock(F_UNLCK))

else:

    @contextmanager
    def _in_use(path: str) -> Generator[None]:
        """There is no such lock: the anchor tells what is missing then."""
        del path
        yield


CHUNK = 1 << 20

logger = plain_logger(__name__)
Answer = TypeVar("Answer")


def looked_twice(look: Callable[[], Answer], forget: Callable[[], None]) -> Answer:
    """Return the answer; where content seems damaged, look once more.

    ``forget``: drops what was read and is remembered.

    Raises:
        LogDamaged, BackupDamaged: it is so at the second look as well.
    """
    try:
        return look()
    except (LogDamaged, BackupDamaged, *STORE_ERRORS) as error:
        if isinstance(error, STORE_ERRORS) and not is_damage(error):
            raise
        logger.info("the log seems damaged (%s); looking again", error)
    forget()
    return look()


@contextmanager
def translated(path: Path) -> Generator[None]:
    """Turn errors of SQLite, of the system and of the library below into errors of the log."""
    try:
        yield
    except STORE_ERRORS as error:
        raise judged(path, error) from error


def judged(path: Path, error: Exception) -> LogError:
    """The error of the log for one of the store below, after a look at the files where it speaks of damage."""
    if not is_damage(error) or not path.is_file() or isinstance(error, UnicodeDecodeError):
        return typed(path, error)
    try:
        _read_all(path)
        sound = _is_sound(path)
    except STORE_ERRORS as failure:
        return typed(path, failure)
    if not sound:
        return typed(path, error)
    return LogError(
        f"the log {path} could not be read for a moment ({error}), and reads well now; check the disk, "
        "then try again with the same key; what was acknowledged before is safe"
    )


def _read_all(path: Path) -> None:
    """Read every byte of the log past SQLite, which calls a read that fails damage; raises ``OSError``."""
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
    """Whether SQLite finds nothing wrong now; raises as it does where the reason is not the content."""
    try:
        with closing(connected(path)) as connection:
            return bool(connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok")
    except STORE_ERRORS as error:
        if is_damage(error):
            return False
        raise
