"""Reading the pages of the database file itself, without ending the locks that this process has on it."""

import os
from pathlib import Path
from typing import BinaryIO, NamedTuple

from refold.infrastructure.files.private_files import read_at

from .frames import FRAME_HEAD, Chain, read_frame

SMALLEST_PAGE = 512
_HEADER = 100

_kept: dict[tuple[int, int], int] = {}
"""Open descriptors by file: closing one would end all POSIX locks of this process on its file."""


def is_without_pages(log: Path) -> bool:
    """Return whether a file is missing or empty: then SQLite deletes its write-ahead log unread."""
    try:
        return log.stat().st_size < SMALLEST_PAGE
    except (FileNotFoundError, NotADirectoryError):
        return True


class Extent(NamedTuple):
    """How many pages a database file should have, and of how many bytes, by its header."""

    pages: int
    page_size: int


def extent_if_cut(log: Path) -> Extent | None:
    """Return what a file should be that lost pages at its end; None of a whole one, and where nothing tells."""
    try:
        descriptor = _opened(log)
    except PermissionError:
        return None  # SQLite cannot read it either, and says so.
    header = b"" if descriptor is None else read_at(descriptor, _HEADER, 0)
    # The size holds only where the same change of the file wrote it.
    if descriptor is None or len(header) < _HEADER or header[24:28] != header[92:96]:
        return None
    size = int.from_bytes(header[16:18])
    extent = Extent(int.from_bytes(header[28:32]), 1 << 16 if size == 1 else size)
    if not header.startswith(b"SQLite format 3\0") or extent.page_size < SMALLEST_PAGE:
        return None
    is_cut = os.fstat(descriptor).st_size < extent.pages * extent.page_size
    return extent if is_cut else None


class MainFile:
    """The pages of a database file. Only for files with damage: each stays open for good."""

    def __init__(self, path: Path, page_size: int) -> None:
        self._descriptor = _opened(path)
        self.page_size = page_size

    @property
    def pages(self) -> int:
        """How many whole pages there are."""
        if self._descriptor is None:
            return 0
        return os.fstat(self._descriptor).st_size // self.page_size

    def page(self, number: int) -> bytes:
        """Return a page; empty where there is none."""
        if self._descriptor is None or not 0 < number <= self.pages:
            return b""
        return read_at(self._descriptor, self.page_size, (number - 1) * self.page_size)


def has_every_page(log: Path, file: BinaryIO, chain: Chain, frames: int) -> bool:
    """Return whether a database file has the newest image of every page in ``frames`` already."""
    newest = {chain.frames[index].page: index for index in range(frames) if chain.is_linked(index)}
    pages = next((f.size for f in reversed(chain.frames[:frames]) if f.size), 0)
    main = MainFile(log, chain.header.page_size)
    return all(
        main.page(page) == read_frame(file, chain, index)[FRAME_HEAD:]
        for page, index in newest.items()
        if page <= pages
    )


def _opened(path: Path) -> int | None:
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    identity = (status.st_dev, status.st_ino)
    if identity not in _kept:
        _kept[identity] = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    return _kept[identity]
