"""Closing a connection without the checkpoint that SQLite makes when the last one closes."""

import os
import sqlite3
import struct
import sys
from collections.abc import Generator
from contextlib import contextmanager

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
