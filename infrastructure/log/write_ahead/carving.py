"""Events found in page images: every version of a row that a write-ahead log still holds."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import cast

from refold.infrastructure.log.checks.rows import RawRow
from refold.infrastructure.log.stored.codec import NAMES
from refold.infrastructure.log.stored.envelope import ERASED, MAGIC

from .images import PageImages
from .leaf_rows import Cell, cells_of, is_leaf, record_of
from .main_file import MainFile

Carved = Mapping[int, list[RawRow]]
"""By the numbers of the rows, what was stored there, the newest first."""

_COLUMNS = 4


def carve(images: PageImages, main: MainFile) -> Carved:
    """Return every row of an event that a page image holds; nothing is proved yet."""
    found: dict[int, list[RawRow]] = defaultdict(list)
    for _, row in carved_rows(images, main):
        if row not in found[row.number]:
            found[row.number].append(row)
    return found


def carved_rows(images: PageImages, main: MainFile, first: int = 0) -> Iterator[tuple[int, RawRow]]:
    """Return the rows of events in the frames from ``first`` on, the newest frame first."""
    seen: set[Cell] = set()
    for index in range(images.frames - 1, first - 1, -1):
        pages = [p for p in images.images(index) if is_leaf(p) or index in images.unproved]
        for cell in (cell for page in pages for cell in cells_of(page)):
            if cell in seen:
                continue
            seen.add(cell)
            for payload in _payloads(cell, index, images, main):
                row = _event(cell.number, payload)
                if row is not None:
                    yield index, row


def _payloads(cell: Cell, index: int, images: PageImages, main: MainFile) -> Iterator[bytes]:
    """Return what a row can have been: with the pages of its own commit, or else the newest ones."""
    if not cell.overflow:
        yield cell.local
        return
    for until in dict.fromkeys((images.commits[index], images.frames - 1)):
        payload = _whole(cell, until, images, main)
        if payload is not None:
            yield payload


def _whole(cell: Cell, until: int, images: PageImages, main: MainFile) -> bytes | None:
    parts, left, page = [cell.local], cell.size - len(cell.local), cell.overflow
    while left > 0:
        newest = images.newest(page, until)
        data = main.page(page) if newest is None else images.image(newest)
        if not page or not data:
            return None
        part = data[4 : 4 + left]
        parts.append(part)
        left -= len(part)
        page = int.from_bytes(data[:4], "big")
    return b"".join(parts)


def _event(number: int, payload: bytes) -> RawRow | None:
    values = record_of(payload)
    if values is None or len(values) != _COLUMNS:
        return None
    stream, version, name, state = values
    is_event = (
        isinstance(stream, str)
        and isinstance(version, int)
        and name in NAMES
        and isinstance(state, bytes)
        and state.startswith((MAGIC, ERASED))
    )
    return RawRow(number, *cast("tuple[str, int, str, bytes]", values)) if is_event else None
