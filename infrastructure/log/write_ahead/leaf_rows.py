"""The rows on a page of SQLite, read without SQLite: leaves of tables, their cells and their records."""

from collections.abc import Iterator
from typing import NamedTuple

LEAF = 13
"""The kind of page that holds the rows of a table."""
LARGEST = 64 * 1024 * 1024
"""Bytes that a row has at most; what claims more is no row."""

_MAGIC = b"SQLite format 3\0"
_FILE_HEAD = 100
_SIZES = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8, 8: 0, 9: 0}
"""Bytes of the values of each serial type below those of blobs and texts."""
_NUMBERS = {8: 0, 9: 1}

Value = int | bytes | str | None


class Cell(NamedTuple):
    """A row as it lies on its page; a long one goes on elsewhere."""

    number: int
    size: int
    local: bytes
    overflow: int
    """The page on which it goes on; 0 if it is whole."""


def is_leaf(page: bytes) -> bool:
    """Return whether a page holds rows of a table."""
    return page[_start(page)] == LEAF


def cells_of(page: bytes) -> Iterator[Cell]:
    """Return the cells that can be read; those of a damaged page may be anything."""
    start = _start(page)
    count = int.from_bytes(page[start + 3 : start + 5], "big")
    first = start + 8
    for place in range(first, min(first + 2 * count, len(page) - 1), 2):
        at = int.from_bytes(page[place : place + 2], "big")
        cell = _cell(page, at) if first < at < len(page) else None
        if cell is not None:
            yield cell


def record_of(payload: bytes) -> tuple[Value, ...] | None:
    """Return the columns of a record; None if it is none."""
    try:
        length, at = _varint(payload, 0)
        kinds: list[int] = []
        while at < length:
            kind, at = _varint(payload, at)
            kinds.append(kind)
        values: list[Value] = []
        for kind in kinds:
            size = _SIZES[kind] if kind < 12 else (kind - 12) // 2
            part = payload[at : at + size]
            if len(part) < size:
                return None
            values.append(_value(kind, part))
            at += size
    except (IndexError, KeyError):
        return None
    return tuple(values)


def _start(page: bytes) -> int:
    return _FILE_HEAD if page.startswith(_MAGIC) else 0


def _cell(page: bytes, at: int) -> Cell | None:
    try:
        size, at = _varint(page, at)
        number, at = _varint(page, at)
    except IndexError:
        return None
    local = _local_size(size, len(page))
    if size > LARGEST or at + local + (4 if local < size else 0) > len(page):
        return None
    end = at + local
    overflow = int.from_bytes(page[end : end + 4], "big") if local < size else 0
    return Cell(number, size, page[at:end], overflow)


def _local_size(size: int, usable: int) -> int:
    """Return how much of a row lies on its page (SQLite's file format)."""
    most = usable - 35
    if size <= most:
        return size
    least = (usable - 12) * 32 // 255 - 23
    local = least + (size - least) % (usable - 4)
    return local if local <= most else least


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for _ in range(8):
        byte = data[at]
        at += 1
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at
    value = value << 8 | data[at]
    return (value - (1 << 64) if value >> 63 else value), at + 1


def _value(kind: int, part: bytes) -> Value:
    if kind >= 12:
        return part.decode(errors="replace") if kind % 2 else part
    if kind == 0:
        return None
    if kind == 7:
        return part
    return _NUMBERS.get(kind, int.from_bytes(part, "big", signed=True))
