"""Files that only their owner can read: new ones are made so, whatever the umask."""

import os
from pathlib import Path
from typing import IO

PRIVATE = 0o600
"""The mode of a new file: what agents were told is nobody else's business."""


def make_private(path: str | Path) -> bool:
    """Make an empty file that only its owner can read and write; False if there is one already.

    An existing file keeps its mode: whoever set it had a reason. Call it before a library that opens
    by name (SQLite: the ``-wal`` and ``-shm`` files then get the mode of the file).
    """
    # Through a link that points to a file that is not there yet, as SQLite and ``open`` would go.
    real = os.path.realpath(path)
    try:
        number = os.open(real, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    except FileExistsError:
        return False
    os.close(number)
    # A umask may have taken the owner's own bits away as well.
    Path(real).chmod(PRIVATE)
    return True


def open_private(path: str | Path, mode: str = "wb") -> IO[bytes]:
    """Open a file for bytes; it is made by ``make_private`` if there is none.

    ``mode`` is one of ``open``; ``"xb"`` refuses a file that exists, with ``FileExistsError``.
    """
    made = make_private(path)
    if mode.startswith("x"):
        if not made:
            raise FileExistsError(f"{path} exists already")
        mode = f"w{mode[1:]}"
    return Path(path).open(mode)
