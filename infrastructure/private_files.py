"""Files that only their owner can read: new ones are made so, whatever the umask."""

import os
from pathlib import Path
from typing import IO

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
