"""Examining the write-ahead log of a file that SQLite has not opened yet, while others may write to it."""

import os
from itertools import repeat
from pathlib import Path
from typing import NamedTuple

from .breaks import Break, break_in, stored_frames
from .chain import FILE_HEAD, Chain, read_chain, read_frame
from .last_commit import anchored_break
from .main_file import has_every_page, is_without_pages

LOOKS = 5
"""How often a file is read that others write to meanwhile."""


class WriteAheadDamage(NamedTuple):
    """What is wrong with a write-ahead log."""

    chain: Chain
    found: Break | None
    """None: it is whole, and the file beside which it lies is missing or empty."""

    @property
    def frames(self) -> int:
        """How many frames were stored for certain."""
        return stored_frames(self.chain) if self.found is None else self.found.frames


def write_ahead_path(log: Path) -> Path:
    """Return where SQLite keeps the write-ahead log of a file."""
    return Path(f"{os.path.realpath(log)}-wal")


def examine(log: Path) -> WriteAheadDamage | None:
    """Return what is wrong with the write-ahead log of ``log``; None where nothing is.

    Of a file that is written to meanwhile, only a frame that stays bad counts: one that is followed by
    a commit and a further frame is never written again, until another file header is.

    Raises:
        OSError: it cannot be read.
    """
    path = write_ahead_path(log)
    for _ in range(LOOKS):
        damage = _read(path, log)
        if damage is None or _is_still_there(path, damage):
            break
    else:
        return None
    if damage is not None and _is_harmless(path, log, damage):
        return None
    return damage


def read_write_ahead(path: Path) -> Chain | None:
    """Return the frames in a file; None if there are none.

    Raises:
        OSError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return read_chain(file)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _read(path: Path, log: Path) -> WriteAheadDamage | None:
    chain = read_write_ahead(path)
    if chain is None:
        return None
    found = break_in(chain) or _anchored(path, log, chain)
    if found is None and not (stored_frames(chain) and is_without_pages(log)):
        return None
    return WriteAheadDamage(chain, found)


def _anchored(path: Path, log: Path, chain: Chain) -> Break | None:
    try:
        with path.open("rb") as file:
            return anchored_break(log, file, chain)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _is_still_there(path: Path, damage: WriteAheadDamage) -> bool:
    """Return whether another look shows the same bad bytes in the same generation.

    The frame before counts as well: that one may have been read before it was written again, and the bad one
    after that.
    """
    chain = damage.chain
    frame = damage.found.frame if damage.found else None
    frames = () if frame is None else range(max(frame - 1, 0), frame + 1)
    try:
        with path.open("rb") as file:
            again = [read_frame(file, chain, index) for index in frames]
            file.seek(0)
            raw = file.read(FILE_HEAD)
    except (FileNotFoundError, NotADirectoryError):
        return False
    if raw != chain.header.raw:
        return False
    return all(map(_is_same, repeat(chain), frames, again))


def _is_same(chain: Chain, index: int, data: bytes) -> bool:
    """Return whether a frame is what it was, or is missing as it was."""
    if index == len(chain.frames):
        return len(data) < chain.header.frame_size
    return chain.is_same_frame(index, data)


def _is_harmless(path: Path, log: Path, damage: WriteAheadDamage) -> bool:
    """Return whether only the file header is bad and the database has every page already.

    So it is where power was lost while SQLite began to write from the start of the file again.
    """
    if damage.found is None or damage.found.frame is not None:
        return False
    with path.open("rb") as file:
        return has_every_page(log, file, damage.chain, damage.frames)
