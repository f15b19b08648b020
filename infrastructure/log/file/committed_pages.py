"""A database and its write-ahead log as one file: what SQLite would read of both, without any writing."""

import struct
from typing import NamedTuple

_HEADER, _FRAME = 32, 24
_MAGIC = 0x377F0682
_VERSIONS = slice(18, 20)
"""In the header of a database: 2 says that it has a write-ahead log, 1 that it has none."""


class _WriteAhead(NamedTuple):
    """The header of a write-ahead log."""

    order: str
    """Of the bytes in the words that checksums are made of."""
    page_size: int
    salts: bytes
    checksum: tuple[int, int]


def whole_database(database: bytes, ahead: bytes) -> bytes:
    """The bytes of the database with every page that is committed in its write-ahead log."""
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
    """The newest committed page by its number, and how many pages the database has then; 0: no commit.

    As SQLite recovers: up to the first frame of another round, or with a wrong checksum.
    """
    header = _header(ahead)
    if header is None:
        return {}, 0
    committed: dict[int, bytes] = {}
    pending: dict[int, bytes] = {}
    count, sums, size = 0, header.checksum, header.page_size
    for at in range(_HEADER, len(ahead) - _FRAME - size + 1, _FRAME + size):
        frame, page = ahead[at : at + _FRAME], ahead[at + _FRAME : at + _FRAME + size]
        sums = _checksum(frame[:8] + page, sums, header.order)
        number, pages, salts, *found = struct.unpack(">II8sII", frame)
        if salts != header.salts or tuple(found) != sums or not number:
            break
        pending[number] = page
        if pages:
            committed.update(pending)
            pending, count = {}, pages
    return committed, count


def _header(ahead: bytes) -> _WriteAhead | None:
    if len(ahead) < _HEADER:
        return None
    magic, _, size, _, salts, *found = struct.unpack(">IIII8sII", ahead[:_HEADER])
    if magic & ~1 != _MAGIC:
        return None
    order = ">" if magic & 1 else "<"
    sums = _checksum(ahead[: _HEADER - 8], (0, 0), order)
    return _WriteAhead(order, size, salts, sums) if tuple(found) == sums else None


def _checksum(data: bytes, before: tuple[int, int], order: str) -> tuple[int, int]:
    first, second = before
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for x, y in zip(words[::2], words[1::2], strict=True):
        first = (first + x + second) & 0xFFFFFFFF
        second = (second + y + first) & 0xFFFFFFFF
    return first, second
