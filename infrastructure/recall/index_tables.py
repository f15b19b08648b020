"""The tables of the recall index: passages, conversations, and the postings of each token."""

import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

from sqlite_utils import Database

from refold.application.recall import passages, tokens
from refold.application.recall.passages import PARTS
from refold.infrastructure.projection_store.projection_damage import FoldDamaged
from refold.infrastructure.projection_store.row_checksums import CHECKSUM, storable

FORMAT = 3
"""Of the tables; an index of another one is folded anew."""

PASSAGES = "passages"
IS_THERE = "thread != ''"
"""Of a row of passages: that its message was not erased since."""
PASSAGE_COLUMNS: Mapping[str, type] = {
    "number": int,
    "thread_id": str,
    "position": int,
    "version": int,
    "part": int,
    "role": str,
    "kind": str,
    "tool": str,
    "at": str,
    "session": int,
    "start": int,
    "stop": int,
    "is_question": int,
    "tokens": str,
    "digest": str,
    "owner": str,
    "thread": str,
    CHECKSUM: int,
}
"""The fields of ``Passage``, and a hash of the conversation. Where a message was erased since it was folded, its
rows stay with a number and nothing else (``thread`` is empty): a row that is deleted would have SQLite
move others, and leave bytes of them behind."""

THREADS = "threads"
THREAD_COLUMNS: Mapping[str, type] = {
    "thread": str,
    "thread_id": str,
    "session": int,
    "at": str,
    "calls": str,
    "row_count": int,
    "checksums": int,
    "places": int,
    CHECKSUM: int,
}
"""Per conversation: what its next message is to know, how many passages there must be, their sum, and the
sum of their places (``PLACE``)."""

PLACE = "number * 31 + position * 7 + part"
"""What an entry of the index of places adds to its conversation's sum: any wrong number in it changes the sum."""

TERMS = "terms"
TERM_COLUMNS: Mapping[str, type] = {"term": int, "passages": int}
"""Per token, by its hash: in how many passages it stands. What postings hold is held against it."""

POSTINGS = "postings"
POSTING_COLUMNS: Mapping[str, type] = {
    "place": int,
    "passages": int,
    CHECKSUM: int,
    "locals": bytes,
}
"""Per segment and token: the passages of the segment that have it. See ``postings``."""

SEGMENTS = "segments"
SEGMENT_COLUMNS: Mapping[str, type] = {
    "segment": int,
    "row_count": int,
    "checksums": int,
    "terms": int,
    "posting_checksums": int,
    CHECKSUM: int,
}
"""Per segment: how many passages and how many postings there must be, with the sums of their checksums."""

PROJECTIONS: Mapping[str, int] = {
    PASSAGES: FORMAT * 1_000_000 + passages.VERSION * 1_000 + tokens.VERSION
}


def create_tables(db: Database) -> None:
    """Make every table, in the transaction that is open."""
    for name, columns in (
        (PASSAGES, PASSAGE_COLUMNS),
        (THREADS, THREAD_COLUMNS),
        (TERMS, TERM_COLUMNS),
        (POSTINGS, POSTING_COLUMNS),
        (SEGMENTS, SEGMENT_COLUMNS),
    ):
        key = next(iter(columns))
        db.table(name).create(dict(columns), pk=key, not_null=set(columns), strict=True)
    db.conn.execute(f"CREATE INDEX passages_of_owners ON {PASSAGES} (owner) WHERE owner != ''")
    db.conn.execute(f"CREATE UNIQUE INDEX passages_by_place ON {PASSAGES} (thread, position, part)")


@lru_cache(maxsize=1_000)
def thread_token(thread_id: str) -> str:
    """A hash of the conversation."""
    return blake2b(str(storable(thread_id)).encode(), digest_size=8).hexdigest()


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
