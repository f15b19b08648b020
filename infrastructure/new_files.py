"""New files that have their name only when they are whole, whatever stops their making."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from refold.application.errors import LogNotFound, TargetExists

from .private_files import make_private


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
