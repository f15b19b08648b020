"""Postings: which passages of a segment have a token, packed into one value."""

import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

from sqlite_utils import Database

from refold.application.recall.passages import PARTS
from refold.infrastructure.derived.damage import FoldDamaged

from .tables import POSTINGS, SEGMENTS

SEGMENT_BITS = 11
EVENTS = 1 << SEGMENT_BITS
"""Events of the log in a segment, whatever they are: so segments are the same however often it is folded."""
LOCAL_BITS = SEGMENT_BITS + PARTS.bit_length() - 1
"""Of the number of a passage: its place in its segment."""
_LOCALS = (1 << LOCAL_BITS) - 1
TERM_BITS = 44
"""Of the place of a posting: the hash of its token. Above them stands the segment."""
TERM = (1 << TERM_BITS) - 1

# As one value: handing over the places row by row would take longer.
_IN_SEGMENTS = f"""SELECT p.place, p.passages, p.checksum, p.locals FROM {SEGMENTS} AS s
    CROSS JOIN {POSTINGS} AS p ON p.place = (s.segment << {TERM_BITS}) | ?"""
_AT = f"""SELECT p.place, p.passages, p.checksum, p.locals FROM json_each(?) AS wanted
    CROSS JOIN {POSTINGS} AS p ON p.place = wanted.value"""

_BYTES = 4
_ODD = 0x9E37_79B9_7F4A_7C15

Stored = tuple[int, int, int, bytes]
"""A row of postings."""


class Posting(NamedTuple):
    """The passages of a segment with a token."""

    place: int
    checksum: int
    locals: "array[int]"
    """Places in the segment, ascending."""

    @property
    def segment(self) -> int:
        """The segment that it is of."""
        return self.place >> TERM_BITS

    @property
    def term(self) -> int:
        """The hash of its token."""
        return self.place & TERM


@lru_cache(maxsize=200_000)
def term_of(token: str) -> int:
    """The hash that stands for a token: two that share one are found together, and told apart when read.

    So no words lie in the pages of an index that SQLite keeps in order by moving rows about.
    """
    digest = blake2b(token.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) & TERM


def terms_of(tokens: str) -> set[int]:
    """The hashes of the tokens of a passage."""
    return set(map(term_of, tokens.split()))


def segment_of(number: int) -> int:
    """The segment of a passage."""
    return number >> LOCAL_BITS


def local_of(number: int) -> int:
    """The place of a passage in its segment."""
    return number & _LOCALS


def numbers_of(segment: int) -> tuple[int, int]:
    """The numbers that passages of a segment can have: from the first up to but not including the second."""
    return segment << LOCAL_BITS, (segment + 1) << LOCAL_BITS


def place_of(segment: int, term: int) -> int:
    """Where the posting of a token in a segment is stored."""
    return segment << TERM_BITS | term


def packed(place: int, found: Iterable[int]) -> Stored:
    """The row of a posting."""
    places = array("I", found)
    content = places.tobytes()
    return place, len(places), _checksum(place, len(places), content), content


def unpacked(row: Sequence[Any]) -> Posting:
    """The posting that a row holds.

    Raises:
        FoldDamaged: it was changed since it was stored.
    """
    place, count, check, content = row
    if not (isinstance(place, int) and isinstance(count, int) and isinstance(content, bytes)):
        raise FoldDamaged("a posting is none")
    if _checksum(place, count, content) != check or len(content) != _BYTES * count:
        raise FoldDamaged(f"posting {place} was changed")
    return Posting(place, check, array("I", content))


def postings_at(db: Database, places: Sequence[int]) -> Iterator[Posting]:
    """The postings that are stored at these places."""
    asked = f"[{','.join(map(str, places))}]"
    return map(unpacked, db.conn.execute(_AT, (asked,)))


def postings_of(db: Database, term: int) -> Iterator[Posting]:
    """The postings of a token in all segments, oldest first."""
    return map(unpacked, db.conn.execute(_IN_SEGMENTS, (term,)))


def _checksum(place: int, count: int, content: bytes) -> int:
    # A checksum goes on from any 32 bits: an odd factor spreads the place and the count over them.
    return zlib.crc32(content, (place * _ODD + count) & 0xFFFF_FFFF)
