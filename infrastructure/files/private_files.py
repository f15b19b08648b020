"""New files that only their owner can read, and that have their name only when they are whole."""

import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from refold.application.errors import LogNotFound, TargetExists

PRIVATE = 0o600
"""The mode of a new file: what agents were told is nobody else's business."""


def make_private(path: str | Path, *, like: str | Path | None = None) -> bool:
    """Make an empty file that only its owner can read and write; False if there is one already.

    An existing file keeps its mode: whoever set it had a reason. Call it before a library that opens
    by name (SQLite: the ``-wal`` and ``-shm`` files then get the mode of the file).

    ``like``: a file beside which it is of use; whoever may use that one may use both.
    """
    # Through a link that points to a file that is not there yet, as SQLite and ``open`` would go.
    real = os.path.realpath(path)
    try:
        number = os.open(real, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    except FileExistsError:
        return False
    try:
        # A umask may have taken the owner's own bits away as well.
        if os.chmod in os.supports_fd:  # By its name it may be gone again.
            os.chmod(number, _mode_beside(like))  # noqa: PTH101 (a descriptor)
    finally:
        os.close(number)
    return True


def _mode_beside(like: str | Path | None) -> int:
    if like is None:
        return PRIVATE
    try:
        return (Path(like).stat().st_mode & 0o666) | PRIVATE
    except OSError:
        return PRIVATE


def open_private(
    path: str | Path,
    mode: str = "wb",
    *,
    like: str | Path | None = None,
    buffering: int = -1,
) -> IO[bytes]:
    """Open a file for bytes; it is made by ``make_private`` if there is none.

    ``mode`` and ``buffering`` are those of ``open``; ``"xb"`` refuses a file that exists, with ``FileExistsError``.
    """
    made = make_private(path, like=like)
    if mode.startswith("x"):
        if not made:
            raise FileExistsError(f"{path} exists already")
        mode = f"w{mode[1:]}"
    return Path(path).open(mode, buffering=buffering)


if sys.platform == "win32":
    _one = threading.Lock()

    def read_at(descriptor: int, size: int, offset: int) -> bytes:
        """Return up to ``size`` bytes from ``offset`` on."""
        with _one:  # Nothing else moves the place of these descriptors.
            os.lseek(descriptor, offset, os.SEEK_SET)
            return os.read(descriptor, size)

else:

    def read_at(descriptor: int, size: int, offset: int) -> bytes:
        """Return up to ``size`` bytes from ``offset`` on."""
        return os.pread(descriptor, size, offset)


@contextmanager
def new_file(to: Path, *, replace: bool) -> Generator[Path]:
    """An empty private file to fill; afterwards it is ``to``, also after a loss of power.

    It lies in a folder of its own until then, with all that a library may put beside it. When what is
    done with it raises anything, nothing of it is left, and what was at ``to`` is as it was.

    Raises:
        TargetExists: there is something at ``to``; a file, and replacing it was not asked for.
        LogNotFound: the folder is not there.
    """
    to = Path(os.path.realpath(to))
    refuse(to, replace=replace)
    with TemporaryDirectory(prefix=f".{to.name}.", dir=to.parent) as folder:
        made = Path(folder) / to.name
        make_private(made)
        yield made
        sync(made)
        _name(made, to, replace=replace)
        sync_names(to.parent)


def refuse(to: Path, *, replace: bool) -> None:
    """Refuse a place where no file may be made; raises as ``new_file`` does."""
    if not to.parent.is_dir():
        raise LogNotFound(f"the folder {to.parent} does not exist; create it first")
    if to.exists() and not to.is_file():
        raise TargetExists(to, "is no file that could be replaced; give another path")
    if to.exists() and not replace:
        raise TargetExists(to)


def _name(made: Path, to: Path, *, replace: bool) -> None:
    if replace:
        made.replace(to)
        return
    try:
        os.link(made, to)
    except FileExistsError as error:
        raise TargetExists(to) from error
    except OSError as error:
        # A file system without links.
        if to.exists():
            raise TargetExists(to) from error
        made.replace(to)


def sync(path: Path) -> None:
    """Have the disk keep a file."""
    number = os.open(path, os.O_RDONLY)
    try:
        sync_descriptor(number)
    finally:
        os.close(number)


if sys.platform == "darwin":
    from fcntl import F_FULLFSYNC, fcntl

    def sync_descriptor(number: int) -> None:
        """Have the disk keep an open file; a plain sync ends in the cache of the drive here."""
        try:
            fcntl(number, F_FULLFSYNC)
        except OSError:  # A file system that has no such sync.
            os.fsync(number)

else:

    def sync_descriptor(number: int) -> None:
        """Have the disk keep an open file."""
        os.fsync(number)


def sync_names(folder: Path) -> None:
    """Have the disk keep the names in a folder."""
    # Not every system syncs folders; those keep the names by themselves.
    with suppress(OSError):
        sync(folder)
