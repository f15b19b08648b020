"""Page images in a write-ahead log, and every version of a row in them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import BinaryIO, NamedTuple, cast

from refold.infrastructure.event_store.codec import NAMES
from refold.infrastructure.event_store.envelope import ERASED, MAGIC
from refold.infrastructure.maintenance.row_proof import RawRow

from .frames import FRAME_HEAD, Chain, MainFile, Sums, frame_sums, read_frame

_WORD = 0xFFFF_FFFF


def corrections(frame: bytes, seed: Sums, stored: Sums, *, big: bool) -> list[bytes]:
    """Return the possible contents of a frame before one bit was flipped, or an empty list."""
    [computed] = frame_sums(frame, len(frame), [seed], big=big)
    wanted = (stored[0] - computed[0] & _WORD, stored[1] - computed[1] & _WORD)
    variants: list[bytes] = []
    for at, bit in _find_flips(len(frame), wanted):
        place = at + (3 - bit // 8 if big else bit // 8)
        made = bytearray(frame)
        made[place] ^= 1 << bit % 8
        variants.append(bytes(made))
    seeds = [seed] * len(variants)
    sums = frame_sums(b"".join(variants), len(frame), seeds, big=big) if variants else []
    return [made for made, found in zip(variants, sums, strict=True) if found == stored]


def _find_flips(size: int, wanted: Sums) -> list[tuple[int, int]]:
    """Return the word indexes and bits whose flip would cause this difference."""
    found: list[tuple[int, int]] = []
    # Weights of the first and second word of a pair in the two sums.
    one, two = (1, 1), (0, 1)
    for place in (*range(size - 8, FRAME_HEAD - 8, -8), 0):
        for at, weight in ((place, one), (place + 4, two)):
            for bit in range(32):
                change = (weight[0] << bit & _WORD, weight[1] << bit & _WORD)
                if wanted in (change, (-change[0] & _WORD, -change[1] & _WORD)):
                    found.append((at, bit))
        one, two = _earlier(one), _earlier(two)
    return found


def _earlier(weight: Sums) -> Sums:
    first = weight[0] + weight[1] & _WORD
    return first, weight[1] + first & _WORD


class PageImages:
    """The page images in the frames that were certainly stored, by frame index."""

    def __init__(self, file: BinaryIO, chain: Chain, frames: int) -> None:
        self._file = file
        self._chain = chain
        self._mended: dict[int, bytes] = {}
        """Frames whose damaged bit is known, with their repaired content."""
        self._proved: dict[int, list[int]] = defaultdict(list)
        """Frames whose content matches their checksum, by page."""
        self.page_size = chain.header.page_size
        self.frames = frames
        self.unproved: dict[int, list[bytes]] = {}
        """Frames whose damage is not known for certain, with the pages that they may have contained."""
        self.pages = 0
        """Number of pages of the database after the last commit."""
        for index in range(frames):
            self._prove(index)
        self.commits = self._commits()

    def image(self, index: int) -> bytes:
        """Return the page in a frame."""
        return self._frame(index)[FRAME_HEAD:]

    def images(self, index: int) -> list[bytes]:
        """Return the page in a frame, and the alternatives if it is damaged."""
        return [self.image(index), *self.unproved.get(index, ())]

    def newest(self, page: int, until: int) -> int | None:
        """Return the newest proved frame of a page up to ``until``, or None."""
        frames = self._proved.get(page, ())
        return next((index for index in reversed(frames) if index <= until), None)

    def _frame(self, index: int) -> bytes:
        return self._mended.get(index) or read_frame(self._file, self._chain, index)

    def _prove(self, index: int) -> None:
        frame = self._chain.frames[index]
        page, size = frame.page, frame.size
        if not self._chain.is_proved(index):
            variants = self._corrections(index)
            if len(variants) != 1:
                self.unproved[index] = [variant[FRAME_HEAD:] for variant in variants]
                return
            [mended] = variants
            self._mended[index] = mended
            page, size = (int.from_bytes(mended[at : at + 4], "big") for at in (0, 4))
        self._proved[page].append(index)
        self.pages = size or self.pages

    def _corrections(self, index: int) -> list[bytes]:
        frames, header = self._chain.frames, self._chain.header
        seed = frames[index - 1].stored if index else header.stored
        data = read_frame(self._file, self._chain, index)
        return corrections(data, seed, frames[index].stored, big=header.big)

    def _commits(self) -> list[int]:
        """Return for each frame the index of the last frame of its commit."""
        commits, last = [0] * self.frames, self.frames - 1
        for index in range(self.frames - 1, -1, -1):
            if self._chain.frames[index].size:
                last = index
            commits[index] = last
        return commits


LEAF = 13
"""Type of a page that contains rows of a table."""
LARGEST = 64 * 1024 * 1024
"""Maximum number of bytes of a row. A cell that claims more is not a row."""

_MAGIC = b"SQLite format 3\0"
_FILE_HEAD = 100
_SIZES = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8, 8: 0, 9: 0}
"""Number of bytes of each serial type except those of blobs and texts."""
_NUMBERS = {8: 0, 9: 1}

Value = int | bytes | str | None


class Cell(NamedTuple):
    """A row as stored on its page. A long row continues on other pages."""

    number: int
    size: int
    local: bytes
    overflow: int
    """Page on which the row continues, or 0 if it is complete."""


def is_leaf(page: bytes) -> bool:
    """Return whether a page contains rows of a table."""
    return page[_start(page)] == LEAF


def cells_of(page: bytes) -> Iterator[Cell]:
    """Yield the cells that can be read. Cells of a damaged page may have any content."""
    start = _start(page)
    count = int.from_bytes(page[start + 3 : start + 5], "big")
    first = start + 8
    for place in range(first, min(first + 2 * count, len(page) - 1), 2):
        at = int.from_bytes(page[place : place + 2], "big")
        cell = _cell(page, at) if first < at < len(page) else None
        if cell is not None:
            yield cell


def record_of(payload: bytes) -> tuple[Value, ...] | None:
    """Return the columns of a record, or None if the payload is not a record."""
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
    """Return the number of bytes of a row on its own page, according to SQLite's file format."""
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


Carved = Mapping[int, list[RawRow]]
"""Stored rows by row number, newest first."""

_COLUMNS = 4


def carve(images: PageImages, main: MainFile) -> Carved:
    """Return every event row in the page images. The rows are not proved yet."""
    found: dict[int, list[RawRow]] = defaultdict(list)
    for _, row in carved_rows(images, main):
        if row not in found[row.number]:
            found[row.number].append(row)
    return found


def carved_rows(images: PageImages, main: MainFile, first: int = 0) -> Iterator[tuple[int, RawRow]]:
    """Yield the event rows in the frames from ``first`` on, the newest frame first."""
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
    """Yield the possible payloads of a row: with the pages of its own commit, or else the newest ones."""
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
