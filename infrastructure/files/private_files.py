"""Create files that only their owner can read and that appear only when complete."""

import os
import sys
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from refold.application.errors import LogNotFound, TargetExists

PRIVATE = 0o600
"""Mode of a new file. Conversations are private."""


def make_private(path: str | Path, *, like: str | Path | None = None) -> bool:
    """Create an empty file that only its owner can read and write. Return False if the file exists.

    An existing file keeps its mode. Call this before a library opens the file by name: SQLite gives the
    ``-wal`` and ``-shm`` files the mode of the database.

    ``like`` is a file that the new one belongs to; whoever may use that file may use both.
    """
    number = _create(path, os.O_WRONLY, like)
    if number is None:
        return False
    os.close(number)
    return True


def _create(path: str | Path, flags: int, like: str | Path | None) -> int | None:
    """Create an empty private file, and return its descriptor, or None if the file exists."""
    flags |= os.O_CREAT | os.O_EXCL
    try:
        try:
            number = os.open(path, flags, PRIVATE)
        except FileExistsError:
            # A link to a pipe, such as /dev/stdout, has a target without a path.
            if not os.path.islink(path) or os.path.exists(path):  # noqa: PTH110, PTH114 (paths are slower)
                return None
            # Follow a dangling link to its target, as SQLite and ``open`` do.
            number = os.open(os.path.realpath(path), flags, PRIVATE)
    except FileExistsError:
        return None
    try:
        # A umask may have removed the owner's own permissions as well.
        if os.chmod in os.supports_fd:  # The file may no longer exist under its name.
            os.chmod(number, _mode_like(like))  # noqa: PTH101 (a descriptor)
    except BaseException:
        os.close(number)
        raise
    return number


def _mode_like(like: str | Path | None) -> int:
    if like is None:
        return PRIVATE
    try:
        return (os.stat(like).st_mode & 0o666) | PRIVATE  # noqa: PTH116 (a path object is twice as slow)
    except OSError:
        return PRIVATE


def open_private(
    path: str | Path,
    mode: str = "wb",
    *,
    like: str | Path | None = None,
    buffering: int = -1,
) -> IO[bytes]:
    """Open a file for bytes, and create it with ``make_private`` if it is missing.

    ``mode`` and ``buffering`` are those of ``open``. ``"xb"`` raises ``FileExistsError`` if the file
    exists.
    """

    def opener(name: str, flags: int) -> int:
        number = _create(name, flags, like)
        if number is None and mode.startswith("x"):
            raise FileExistsError(f"{path} exists already")
        return os.open(name, flags, PRIVATE) if number is None else number

    return open(path, mode, buffering=buffering, opener=opener)


if sys.platform == "win32":
    _one = threading.Lock()

    def read_at(descriptor: int, size: int, offset: int) -> bytes:
        """Return up to ``size`` bytes starting at ``offset``."""
        with _one:  # Nothing else moves the position of these descriptors.
            os.lseek(descriptor, offset, os.SEEK_SET)
            return os.read(descriptor, size)

else:

    def read_at(descriptor: int, size: int, offset: int) -> bytes:
        """Return up to ``size`` bytes starting at ``offset``."""
        return os.pread(descriptor, size, offset)


@contextmanager
def private_folder(within: Path, name: str) -> Generator[Path]:
    """Yield a new hidden folder that only its owner can use, and remove it at the end of the block.

    Reading a folder needs a descriptor. One is reserved for that, so the folder is also removed if the
    block failed because the process may not open more files.
    """
    from tempfile import mkdtemp

    reserved = os.pipe()
    try:
        folder = mkdtemp(prefix=f".{name}.", dir=within)
    except BaseException:
        _close(reserved)
        raise
    try:
        yield Path(folder)
    finally:
        _close(reserved)
        _remove(folder)


def _close(descriptors: Iterable[int]) -> None:
    for number in descriptors:
        os.close(number)


def _remove(folder: str) -> None:
    """Remove a folder that has no links. Other than ``shutil.rmtree``, this opens one folder at a time.

    Raises:
        OSError: something cannot be read or removed.
    """

    def fail(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    for place, folders, files in os.walk(folder, topdown=False, onerror=fail):
        for names, remove in ((files, os.unlink), (folders, os.rmdir)):
            for name in names:
                with suppress(FileNotFoundError):
                    remove(f"{place}/{name}")
    with suppress(FileNotFoundError):
        os.rmdir(folder)  # noqa: PTH106 (a text)


@contextmanager
def new_file(to: Path, *, replace: bool) -> Generator[Path]:
    """Yield an empty private file, and move it to ``to`` at the end of the block.

    The move survives a loss of power. Until then the file is in a folder of its own, together with any
    files that a library creates next to it. If the block raises an error, the folder is removed and ``to``
    is unchanged.

    Raises:
        TargetExists: ``to`` exists, and it is not a file or ``replace`` is false.
        LogNotFound: the folder of ``to`` does not exist.
    """
    _refuse_kind(to)  # Before the link is followed: the target of /dev/stdout may have no path.
    to = Path(os.path.realpath(to))
    refuse(to, replace=replace)
    with private_folder(to.parent, to.name) as folder:
        made = folder / to.name
        make_private(made)
        yield made
        sync(made)
        _name(made, to, replace=replace)
        sync_names(to.parent)


def refuse(to: Path, *, replace: bool) -> None:
    """Raise if no file may be created at ``to``. The errors are those of ``new_file``."""
    if not to.parent.is_dir():
        raise LogNotFound(f"the folder {to.parent} does not exist; create it first")
    _refuse_kind(to)
    if to.exists() and not replace:
        raise TargetExists(to)


def _refuse_kind(to: Path) -> None:
    if to.exists() and not to.is_file():
        raise TargetExists(to, "is not a regular file; give another path")


@contextmanager
def output_file(to: Path, *, replace: bool) -> Generator[Path]:
    """Yield a path to write to: that of a new file as in ``new_file``, or of the pipe or device at ``to``.

    Raises:
        TargetExists, LogNotFound: as in ``new_file``.
    """
    if is_stream(to):
        yield to
        return
    with new_file(to, replace=replace) as made:
        yield made


def is_stream(path: Path) -> bool:
    """Return whether a pipe or device is at this path, such as /dev/stdout. It keeps nothing."""
    return path.is_fifo() or path.is_char_device()


def _name(made: Path, to: Path, *, replace: bool) -> None:
    if replace:
        made.replace(to)
        return
    try:
        os.link(made, to)
    except FileExistsError as error:
        raise TargetExists(to) from error
    except OSError as error:
        # This file system has no hard links.
        if to.exists():
            raise TargetExists(to) from error
        made.replace(to)


def sync(path: Path) -> None:
    """Flush a file to the disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        sync_descriptor(number)
    finally:
        os.close(number)


if sys.platform == "darwin":
    from fcntl import F_FULLFSYNC, fcntl

    def sync_descriptor(number: int) -> None:
        """Flush an open file to the disk. A plain sync stops at the cache of the drive on this system."""
        try:
            fcntl(number, F_FULLFSYNC)
        except OSError:  # This file system does not support the full sync.
            os.fsync(number)

else:

    def sync_descriptor(number: int) -> None:
        """Flush an open file to the disk."""
        os.fsync(number)


def sync_names(folder: Path) -> None:
    """Flush the names in a folder to the disk."""
    # Not every system can sync folders; the others persist names by themselves.
    with suppress(OSError):
        sync(folder)
