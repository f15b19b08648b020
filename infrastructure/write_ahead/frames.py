"""Frames of a write-ahead log with their checksums, and the pages of the main file."""

import os
import struct
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from refold.infrastructure.files.private_files import read_at

FRAME_HEAD = 24
"""Number of bytes before the page in a frame. The checksum covers the first 8, but not the salts and
itself.
"""

Sums = tuple[int, int]

_WORD = 0xFFFF_FFFF


def frame_sums(frames: bytes, size: int, seeds: list[Sums], *, big: bool) -> list[Sums]:
    """Return the checksum of each frame in ``frames``, which have ``size`` bytes each.

    ``seeds`` has the checksum before each frame. ``big`` is the byte order of the words.
    """
    pairs = size // 8
    summed = (0, *range(FRAME_HEAD // 8, pairs))
    return _lanes(_words(frames, big=big), pairs, summed, seeds)


def header_sums(header: bytes, *, big: bool) -> Sums:
    """Return the checksum of a file header, from its first 24 bytes."""
    [sums] = _lanes(_words(header[:24], big=big), 3, (0, 1, 2), [(0, 0)])
    return sums


def _words(data: bytes, *, big: bool) -> "array[int]":
    """Return the bytes as items of two words, in little-endian order."""
    if big:
        words = array("I", data)
        words.byteswap()
        data = words.tobytes()
    return array("Q", data)


def _lanes(
    items: "array[int]", stride: int, summed: tuple[int, ...], seeds: list[Sums]
) -> list[Sums]:
    count = len(seeds)
    low = int.from_bytes(struct.pack("<Q", _WORD) * count, "little")
    one = int.from_bytes(struct.pack(f"<{count}Q", *(s for s, _ in seeds)), "little")
    two = int.from_bytes(struct.pack(f"<{count}Q", *(s for _, s in seeds)), "little")
    for at in summed:
        pair = int.from_bytes(items[at::stride].tobytes(), "little")
        one = (one + two + (pair & low)) & low
        two = (two + one + (pair >> 32 & low)) & low
    shape = f"<{count}Q"
    return list(
        zip(
            struct.unpack(shape, one.to_bytes(8 * count, "little")),
            struct.unpack(shape, two.to_bytes(8 * count, "little")),
            strict=True,
        )
    )


FILE_HEAD = 32
PAGE_SIZES = (4096, 512, 1024, 2048, 8192, 16384, 32768, 65536)
AT_ONCE = 1024
"""Number of frames that are read and summed together."""

_MAGIC = 0x377F_0682
_FRAME = struct.Struct(">II8sII")
_LOOKED_AT = 8
"""Number of frames that are searched for page size and salts if the file header is damaged."""


class Header(NamedTuple):
    """The file header, or what the frames reveal of it."""

    raw: bytes
    page_size: int
    salts: bytes
    big: bool
    """True if the byte order of the summed words is big-endian."""
    stored: Sums
    computed: Sums
    is_whole: bool

    @property
    def frame_size(self) -> int:
        """Number of bytes from one frame to the next."""
        return self.page_size + FRAME_HEAD


class Frame(NamedTuple):
    """The head of one frame."""

    page: int
    size: int
    """Number of pages of the database if this frame ends a commit, or 0."""
    salts: bytes
    stored: Sums
    computed: Sums
    """Checksum computed from the stored checksum of the frame before."""
    follows: bool
    """True if the checksum continues that of the frame before, as stored or as computed."""


@dataclass(frozen=True)
class Chain:
    """All frames of a file."""

    header: Header
    frames: Sequence[Frame]

    def place(self, index: int) -> int:
        """Return the offset of a frame in the file."""
        return FILE_HEAD + index * self.header.frame_size

    def is_linked(self, index: int) -> bool:
        """Return whether a frame follows the one before and belongs to this generation."""
        frame = self.frames[index]
        return frame.follows and frame.salts == self.header.salts

    def is_proved(self, index: int) -> bool:
        """Return whether the content of a frame matches its own checksum or that of the next frame."""
        if self.frames[index].follows or index + 1 == len(self.frames):
            return self.frames[index].follows
        after = self.frames[index + 1]
        return after.follows and after.computed != after.stored

    def is_same_frame(self, index: int, data: bytes) -> bool:
        """Return whether these bytes of a frame equal those that were read before."""
        frame, size = self.frames[index], self.header.frame_size
        if len(data) != size or _FRAME.unpack_from(data)[:3] != frame[:3]:
            return False
        seed = self.frames[index - 1].stored if index else self.header.stored
        sums = frame_sums(data, size, [seed], big=self.header.big)
        return sums == [frame.computed] and _FRAME.unpack_from(data)[3:] == frame.stored


def read_chain(file: BinaryIO) -> Chain | None:
    """Return the frames of a write-ahead log, or None if none can be recognised.

    Raises:
        OSError: the file cannot be read.
    """
    file.seek(0)
    raw = file.read(FILE_HEAD)
    header = _header(raw) or _recover_header(raw, file)
    if header is None:
        return None
    file.seek(FILE_HEAD)
    return Chain(header, tuple(_frames(file, header)))


def read_frame(file: BinaryIO, chain: Chain, index: int) -> bytes:
    """Return the bytes of one frame, including its head."""
    file.seek(chain.place(index))
    return file.read(chain.header.frame_size)


def _header(raw: bytes) -> Header | None:
    """Return the header, or None if it is damaged."""
    if len(raw) < FILE_HEAD:
        return None
    magic, _, page_size, _, salts, *stored = struct.unpack(">IIII8sII", raw)
    big = bool(magic & 1)
    computed = header_sums(raw, big=big)
    if magic & ~1 != _MAGIC or page_size not in PAGE_SIZES or computed != tuple(stored):
        return None
    return Header(raw, page_size, salts, big, computed, computed, is_whole=True)


def _recover_header(raw: bytes, file: BinaryIO) -> Header | None:
    """Rebuild a damaged header from two consecutive frames, or return None."""
    if len(raw) < FILE_HEAD:
        return None
    for page_size in PAGE_SIZES:
        size = page_size + FRAME_HEAD
        file.seek(FILE_HEAD)
        data = file.read(size * _LOOKED_AT)
        heads = [_FRAME.unpack_from(data, at) for at in range(0, len(data) - size + 1, size)]
        for index in range(1, len(heads)):
            (_, _, salts, *seed), (page, _, others, *stored) = heads[index - 1 : index + 1]
            if salts != others or not page:
                continue
            frame = data[index * size : (index + 1) * size]
            for big in (False, True):
                if frame_sums(frame, size, [(seed[0], seed[1])], big=big) == [tuple(stored)]:
                    sums: Sums = struct.unpack_from(">II", raw, 24)
                    computed = header_sums(raw, big=big)
                    return Header(raw, page_size, salts, big, sums, computed, is_whole=False)
    return None


def _frames(file: BinaryIO, header: Header) -> Iterator[Frame]:
    size = header.frame_size
    before = Frame(0, 0, header.salts, header.stored, header.computed, follows=header.is_whole)
    while data := file.read(size * AT_ONCE):
        data = data[: len(data) // size * size]
        heads = [_FRAME.unpack_from(data, at) for at in range(0, len(data), size)]
        if not heads:
            return
        seeds = [before.stored, *((one, two) for *_, one, two in heads[:-1])]
        computed = frame_sums(data, size, seeds, big=header.big)
        for index, (page, pages, salts, one, two) in enumerate(heads):
            stored, sums = (one, two), computed[index]
            follows = sums == stored
            if not follows and before.computed != before.stored and salts == header.salts:
                # The stored checksum of the frame before may be damaged.
                part = data[index * size : (index + 1) * size]
                follows = frame_sums(part, size, [before.computed], big=header.big) == [stored]
            before = Frame(page, pages, salts, stored, sums, follows)
            yield before


SMALLEST_PAGE = 512
_HEADER = 100

_kept: dict[tuple[int, int], int] = {}
"""Open descriptors by file. Closing one would release all POSIX locks of this process on its file."""


def is_without_pages(log: Path) -> bool:
    """Return whether a file is missing or empty. If so, SQLite deletes its write-ahead log unread."""
    try:
        return log.stat().st_size < SMALLEST_PAGE
    except (FileNotFoundError, NotADirectoryError):
        return True


class Extent(NamedTuple):
    """The expected number of pages and page size of a database file, from its header."""

    pages: int
    page_size: int


def extent_if_cut(log: Path) -> Extent | None:
    """Return the expected extent of a file that lost pages at its end, or None.

    The result is None if the file is complete or if its header does not say.
    """
    try:
        descriptor = _open(log)
    except PermissionError:
        return None  # SQLite cannot read the file either, and reports that.
    header = b"" if descriptor is None else read_at(descriptor, _HEADER, 0)
    # The stored size is valid only if the same change of the file wrote it.
    if descriptor is None or len(header) < _HEADER or header[24:28] != header[92:96]:
        return None
    size = int.from_bytes(header[16:18])
    extent = Extent(int.from_bytes(header[28:32]), 1 << 16 if size == 1 else size)
    is_power = extent.page_size.bit_count() == 1
    if (
        not header.startswith(b"SQLite format 3\0")
        or extent.page_size < SMALLEST_PAGE
        or not is_power
    ):
        return None
    is_cut = os.fstat(descriptor).st_size < extent.pages * extent.page_size
    return extent if is_cut else None


class MainFile:
    """The pages of a database file. Only for damaged files: each file stays open until the process ends."""

    def __init__(self, path: Path, page_size: int) -> None:
        self._descriptor = _open(path)
        self.page_size = page_size

    @property
    def pages(self) -> int:
        """Number of complete pages."""
        if self._descriptor is None:
            return 0
        return os.fstat(self._descriptor).st_size // self.page_size

    def page(self, number: int) -> bytes:
        """Return a page, or empty bytes if it does not exist."""
        if self._descriptor is None or not 0 < number <= self.pages:
            return b""
        return read_at(self._descriptor, self.page_size, (number - 1) * self.page_size)


def has_every_page(log: Path, file: BinaryIO, chain: Chain, frames: int) -> bool:
    """Return whether a database file already has the newest image of every page in ``frames``."""
    newest = {chain.frames[index].page: index for index in range(frames) if chain.is_linked(index)}
    pages = next((f.size for f in reversed(chain.frames[:frames]) if f.size), 0)
    main = MainFile(log, chain.header.page_size)
    return all(
        main.page(page) == read_frame(file, chain, index)[FRAME_HEAD:]
        for page, index in newest.items()
        if page <= pages
    )


def _open(path: Path) -> int | None:
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    identity = (status.st_dev, status.st_ino)
    if identity not in _kept:
        _kept[identity] = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    return _kept[identity]


_VERSIONS = slice(18, 20)
"""Bytes of the database header that are 2 with a write-ahead log and 1 without."""


def merge_write_ahead(database: bytes, ahead: bytes) -> bytes:
    """Return the bytes of the database including all pages committed in its write-ahead log."""
    content = bytearray(database)
    pages, count = committed_pages(ahead)
    if count:
        size = len(next(iter(pages.values())))
        content.extend(bytes(max(0, count * size - len(content))))
        del content[count * size :]
        for number, page in pages.items():
            if number <= count:
                content[(number - 1) * size : number * size] = page
    content[_VERSIONS] = b"\1\1"
    return bytes(content)


def committed_pages(ahead: bytes) -> tuple[dict[int, bytes], int]:
    """Return the newest committed pages by number, and the page count of the database.

    The count is 0 without a commit. As in SQLite's recovery, reading stops at the first frame with another
    salt or a wrong checksum.
    """
    header = _header(ahead[:FILE_HEAD])
    if header is None:
        return {}, 0
    committed: dict[int, bytes] = {}
    pending: dict[int, bytes] = {}
    count, sums, size = 0, header.stored, header.page_size
    for at in range(FILE_HEAD, len(ahead) - FRAME_HEAD - size + 1, FRAME_HEAD + size):
        frame, page = ahead[at : at + FRAME_HEAD], ahead[at + FRAME_HEAD : at + FRAME_HEAD + size]
        sums = _page_sums(frame[:8] + page, sums, big=header.big)
        number, pages, salts, *found = _FRAME.unpack(frame)
        if salts != header.salts or tuple(found) != sums or not number:
            break
        pending[number] = page
        if pages:
            committed.update(pending)
            pending, count = {}, pages
    return committed, count


def _page_sums(data: bytes, before: Sums, *, big: bool) -> Sums:
    first, second = before
    words = struct.unpack(f"{'>' if big else '<'}{len(data) // 4}I", data)
    for x, y in zip(words[::2], words[1::2], strict=True):
        first = (first + x + second) & _WORD
        second = (second + y + first) & _WORD
    return first, second
