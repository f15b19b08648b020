"""Measure images and documents: the size of PNG, JPEG, GIF and WebP images, and the pages of PDFs."""

import binascii
import re
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

PIXELS_PER_TOKEN = 750
"""An image costs width x height / 750 tokens, up to a limit of the model."""

STANDARD_IMAGE = 1_600
"""Maximum tokens of an image on models that scale it to 1.2 megapixels."""

_HEAD = 48
"""Number of bytes that contain the size in all formats except JPEG."""
_MOST_SEGMENTS = 1_000
"""Maximum number of segments of a JPEG that are searched."""
_NO_SIZE = frozenset((0xC4, 0xC8, 0xCC))
"""Markers in the range of JPEG frames with another meaning."""


class Pixels(NamedTuple):
    """The size of an image in pixels."""

    width: int
    height: int


def image_tokens(source: Any, most: int) -> int:
    """Return the tokens of an image by its pixels, or ``most`` if they are not known."""
    match source:
        case {"type": "base64", "data": str(data)}:
            pixels = pixels_of(data)
        case _:
            pixels = None
    if pixels is None:
        return most
    return min(most, max(1, -(-pixels.width * pixels.height // PIXELS_PER_TOKEN)))


def pixels_of(data: str) -> Pixels | None:
    """Return the size of a base64-encoded image, or None if it cannot be read."""
    head = _read(data, 0, _HEAD)
    try:
        found = _find_size(data, head)
    except (IndexError, ValueError):
        return None
    return found if found is not None and found.width > 0 and found.height > 0 else None


def _find_size(data: str, head: bytes) -> Pixels | None:
    if head[:8] == b"\x89PNG\r\n\x1a\n":
        return Pixels(_big(head[16:20]), _big(head[20:24])) if head[12:16] == b"IHDR" else None
    if head[:6] in (b"GIF87a", b"GIF89a"):
        return Pixels(_little(head[6:8]), _little(head[8:10]))
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return _webp(head)
    return _jpeg(data) if head[:2] == b"\xff\xd8" else None


def _webp(head: bytes) -> Pixels | None:
    kind = head[12:16]
    if kind == b"VP8X":
        return Pixels(_little(head[24:27]) + 1, _little(head[27:30]) + 1)
    if kind == b"VP8 " and head[23:26] == b"\x9d\x01\x2a":
        return Pixels(_little(head[26:28]) & 0x3FFF, _little(head[28:30]) & 0x3FFF)
    if kind == b"VP8L" and head[20] == 0x2F:
        bits = _little(head[21:25])
        return Pixels((bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1)
    return None


def _jpeg(data: str) -> Pixels | None:
    """Search the segments of a JPEG for one that describes a frame."""
    at = 2
    for _ in range(_MOST_SEGMENTS):
        segment = _read(data, at, 9)
        if len(segment) < 4 or segment[0] != 0xFF:
            return None
        marker = segment[1]
        if marker == 0xFF:  # A byte of padding.
            at += 1
        elif 0xC0 <= marker <= 0xCF and marker not in _NO_SIZE:
            return Pixels(_big(segment[7:9]), _big(segment[5:7])) if len(segment) == 9 else None
        elif marker in (0xD9, 0xDA):
            return None
        else:
            at += 2 + _big(segment[2:4])
    return None


def _read(data: str, start: int, count: int) -> bytes:
    """Return up to ``count`` decoded bytes from ``start``."""
    skipped = start % 3
    first = start // 3 * 4
    chunk = data[first : first + -(-(skipped + count) // 3) * 4]
    try:
        decoded = binascii.a2b_base64(chunk[: len(chunk) // 4 * 4])
    except ValueError:
        return b""
    return decoded[skipped : skipped + count]


def _big(some: bytes) -> int:
    return int.from_bytes(some, "big")


def _little(some: bytes) -> int:
    return int.from_bytes(some, "little")


PAGE = 3_000
"""Tokens of a page, which is charged as text and as image: 1,500 to 3,000 by the documentation."""
LEAST = 1_500
"""Minimum tokens of a document whose pages cannot be counted."""
PER_HUNDRED_CHARACTERS = 3
"""Tokens per hundred characters of base64, if the pages cannot be counted."""

MOST_PAGES = 10_000
"""Maximum plausible number of pages. No API accepts as many."""

_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_OBJECT_STREAM = re.compile(rb"/Type\s*/ObjStm\b")
_COUNT = re.compile(rb"/Count\s+(\d{1,6})\b")
_BEGIN = re.compile(rb"stream\r?\n")
_DICTIONARY = 2_000
"""Number of bytes that contain the dictionary of a stream."""
_INFLATED = 8_000_000
"""Maximum number of decompressed bytes of one object stream."""
_INFLATED_IN_ALL = 64_000_000

_counted: dict[tuple[int, int], int | None] = {}
_REMEMBERED = 256


def pdf_tokens(data: str) -> int:
    """Return the tokens of a base64-encoded PDF."""
    pages = pages_of(data)
    return (
        pages * PAGE
        if pages is not None
        else max(LEAST, -(-len(data) * PER_HUNDRED_CHARACTERS // 100))
    )


def pages_of(data: str) -> int | None:
    """Return the number of pages of a base64-encoded PDF, or None if it cannot be found."""
    # A message is measured more than once, and the search of a large file takes a while.
    key = (len(data), hash(data))
    if key not in _counted:
        if len(_counted) >= _REMEMBERED:
            _counted.clear()
        _counted[key] = _pages(data)
    return _counted[key]


def _pages(data: str) -> int | None:
    try:
        raw = binascii.a2b_base64(data)
    except ValueError:
        return None
    if b"%PDF-" not in raw[:1_024]:
        return None
    texts = [raw, *_object_streams(raw)]
    pages = sum(len(_PAGE.findall(text)) for text in texts)
    if not pages:
        # The page tree contains the number as well, even if the pages themselves are unreadable.
        pages = max((_largest_count(text) for text in texts if b"/Pages" in text), default=0)
    return min(pages, MOST_PAGES) or None


def _largest_count(text: bytes) -> int:
    return max(map(int, _COUNT.findall(text)), default=0)


def _object_streams(raw: bytes) -> Iterator[bytes]:
    """Yield the content of compressed object streams, in which newer files store their pages."""
    left = _INFLATED_IN_ALL
    for found in _OBJECT_STREAM.finditer(raw):
        begin = _BEGIN.search(raw, found.end(), found.end() + _DICTIONARY)
        if begin is None or left <= 0:
            continue
        end = raw.find(b"endstream", begin.end())
        packed = raw[begin.end() : end] if end >= 0 else raw[begin.end() :]
        try:
            text = zlib.decompressobj().decompress(packed, min(_INFLATED, left))
        except zlib.error:
            continue  # The stream is encrypted, or compressed with another method.
        left -= len(text)
        yield text
