"""The frames of a write-ahead log, as they lie in the file, and which of them follow the one before.

A file header of 32 bytes is followed by frames: 24 bytes that name the page and, at the end of a
commit, the size of the database; then the page. Each frame has a checksum that goes on from the one of
the frame before it. SQLite stops at the first frame where that does not hold. Here each frame is
judged by the *stored* checksum of the frame before, so what lies behind a bad frame can be recognised.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from .checksums import FRAME_HEAD, Sums, frame_sums, header_sums

FILE_HEAD = 32
PAGE_SIZES = (4096, 512, 1024, 2048, 8192, 16384, 32768, 65536)
AT_ONCE = 1024
"""Frames that are read and summed together."""

_MAGIC = 0x377F_0682
_FRAME = struct.Struct(">II8sII")
_LOOKED_AT = 8
"""Frames that tell page size and salts where the file header does not."""


class Header(NamedTuple):
    """The file header, or what the frames tell of it."""

    raw: bytes
    page_size: int
    salts: bytes
    big: bool
    """The order of bytes in the words that are summed."""
    stored: Sums
    computed: Sums
    is_whole: bool

    @property
    def frame_size(self) -> int:
        """Bytes from one frame to the next."""
        return self.page_size + FRAME_HEAD


class Frame(NamedTuple):
    """The head of one frame."""

    page: int
    size: int
    """Pages of the database, if this frame ends a commit; else 0."""
    salts: bytes
    stored: Sums
    computed: Sums
    """From the stored checksum of the frame before."""
    follows: bool
    """Whether its checksum goes on from the frame before, as that is stored or as it should be."""


@dataclass(frozen=True)
class Chain:
    """All frames of a file."""

    header: Header
    frames: Sequence[Frame]

    def place(self, index: int) -> int:
        """Return where a frame begins in the file."""
        return FILE_HEAD + index * self.header.frame_size

    def is_linked(self, index: int) -> bool:
        """Return whether a frame follows the one before, and is of this generation."""
        frame = self.frames[index]
        return frame.follows and frame.salts == self.header.salts

    def is_proved(self, index: int) -> bool:
        """Return whether the content of a frame is what its own checksum says, or the next one."""
        if self.frames[index].follows or index + 1 == len(self.frames):
            return self.frames[index].follows
        after = self.frames[index + 1]
        return after.follows and after.computed != after.stored

    def is_same_frame(self, index: int, data: bytes) -> bool:
        """Return whether these bytes of a frame are the ones that were read before."""
        frame, size = self.frames[index], self.header.frame_size
        if len(data) != size or _FRAME.unpack_from(data)[:3] != frame[:3]:
            return False
        seed = self.frames[index - 1].stored if index else self.header.stored
        sums = frame_sums(data, size, [seed], big=self.header.big)
        return sums == [frame.computed] and _FRAME.unpack_from(data)[3:] == frame.stored


def read_chain(file: BinaryIO) -> Chain | None:
    """Return the frames of a write-ahead log; None if it has none that could be told.

    Raises:
        OSError: the file cannot be read.
    """
    file.seek(0)
    raw = file.read(FILE_HEAD)
    header = _header(raw) or _recovered(raw, file)
    if header is None:
        return None
    file.seek(FILE_HEAD)
    return Chain(header, tuple(_frames(file, header)))


def read_frame(file: BinaryIO, chain: Chain, index: int) -> bytes:
    """Return the bytes of one frame, its head included."""
    file.seek(chain.place(index))
    return file.read(chain.header.frame_size)


def _header(raw: bytes) -> Header | None:
    """Return the header if it is whole."""
    if len(raw) < FILE_HEAD:
        return None
    magic, _, page_size, _, salts, *stored = struct.unpack(">IIII8sII", raw)
    big = bool(magic & 1)
    computed = header_sums(raw, big=big)
    if magic & ~1 != _MAGIC or page_size not in PAGE_SIZES or computed != tuple(stored):
        return None
    return Header(raw, page_size, salts, big, computed, computed, is_whole=True)


def _recovered(raw: bytes, file: BinaryIO) -> Header | None:
    """Return what two frames that follow each other tell of a damaged header."""
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
                # The checksum of the frame before may be what was damaged.
                part = data[index * size : (index + 1) * size]
                follows = frame_sums(part, size, [before.computed], big=header.big) == [stored]
            before = Frame(page, pages, salts, stored, sums, follows)
            yield before
