"""What a PDF costs: by its pages, which are found in its bytes without a parser of PDF."""

import binascii
import re
import zlib
from collections.abc import Iterator

PAGE = 3_000
"""A page is charged as text and as image: 1,500 to 3,000 tokens by the documentation."""
LEAST = 1_500
"""A page of a document whose pages cannot be counted."""
UNSEEN = 15_000
"""A document given by URL or file id, of which nothing is known here."""
PER_HUNDRED_CHARACTERS = 3
"""Tokens per hundred characters of base64, where the pages cannot be counted."""

MOST_PAGES = 10_000
"""No more are believed: no API takes as many."""

_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_OBJECT_STREAM = re.compile(rb"/Type\s*/ObjStm\b")
_COUNT = re.compile(rb"/Count\s+(\d{1,6})\b")
_BEGIN = re.compile(rb"stream\r?\n")
_DICTIONARY = 2_000
"""Bytes within which the dictionary of a stream ends."""
_INFLATED = 8_000_000
"""Bytes that one object stream may have; no more of it is looked at."""
_INFLATED_IN_ALL = 64_000_000

_counted: dict[tuple[int, int], int | None] = {}
_REMEMBERED = 256


def pdf_tokens(data: str) -> int:
    """Return what a base64-encoded PDF costs."""
    pages = pages_of(data)
    return (
        pages * PAGE
        if pages is not None
        else max(LEAST, -(-len(data) * PER_HUNDRED_CHARACTERS // 100))
    )


def pages_of(data: str) -> int | None:
    """Return the number of pages of a base64-encoded PDF; None where it cannot be found."""
    # A message is measured more than once, and a large file takes a while to look through.
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
        # The tree of pages says it as well, where the pages themselves lie somewhere unreadable.
        pages = max((_largest_count(text) for text in texts if b"/Pages" in text), default=0)
    return min(pages, MOST_PAGES) or None


def _largest_count(text: bytes) -> int:
    return max(map(int, _COUNT.findall(text)), default=0)


def _object_streams(raw: bytes) -> Iterator[bytes]:
    """Yield what the compressed object streams hold: there newer files have their pages."""
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
            continue  # Encrypted, or packed in another way.
        left -= len(text)
        yield text
