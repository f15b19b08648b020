"""The tables of the recall index: passages, conversations, and the postings of each token."""

import json
import zlib
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

from sqlite_utils import Database

from refold.application.recall import passages, tokens
from refold.application.recall.passages import BEGINNING, PARTS, Before, Passage
from refold.infrastructure.projection_store.checkpoint import Total, read_progress
from refold.infrastructure.projection_store.row_checksums import (
    CHECKSUM,
    FoldDamaged,
    opened,
    sealed,
    storable,
)

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


_NUMBERS_AT = f"""SELECT count(*), coalesce(sum({PLACE}), 0),
    json_group_array(number) FILTER (WHERE +position IN (SELECT value FROM json_each(?)))
    FROM {PASSAGES} INDEXED BY passages_by_place WHERE thread = ?"""


class Thread:
    """A conversation while events are folded in."""

    def __init__(self, token: str, before: Before, total: Total, places: int = 0) -> None:
        self.token = token
        self.before = before
        self.total = total
        self.places = places
        """The sum of the places of its passages."""

    def add(self, total: Total, passages: Iterable[Passage]) -> None:
        """Count passages in."""
        self.total = self.total.plus(total)
        self.places += sum(map(_place, passages))

    def take_out(self, total: Total, passages: Iterable[Passage]) -> None:
        """Count passages out."""
        self.total = self.total.plus(Total(-total.rows, -total.checksums))
        self.places -= sum(map(_place, passages))


def _place(passage: Passage) -> int:
    """``PLACE`` of a passage."""
    return passage.number * 31 + passage.position * 7 + passage.part


def numbers_at(
    db: Database, thread_id: str, thread: Thread, positions: Collection[int]
) -> list[int]:
    """The numbers of the passages at these positions, by all entries that the index has of a conversation.

    Raises:
        FoldDamaged: the index of places lacks an entry, or has one that is wrong.
    """
    asked = (json.dumps([*positions]), thread.token)
    count, places, numbers = db.conn.execute(_NUMBERS_AT, asked).fetchone()
    if (count, places) != (thread.total.rows, thread.places):
        raise FoldDamaged(
            f"conversation {thread_id!r} has {count} passages, and not {thread.total.rows}, or other places"
        )
    return [int(number) for number in json.loads(numbers)]


def stored_thread(db: Database, thread_id: str) -> Thread:
    """What is stored of a conversation; of one that is new, what it begins with.

    Raises:
        FoldDamaged: it was changed since it was stored.
    """
    token = thread_token(thread_id)
    row = db.conn.execute(f"SELECT * FROM {THREADS} WHERE thread = ?", (token,)).fetchone()
    if row is None:
        return Thread(token, BEGINNING, Total())
    _, _, session, at, calls, rows, checksums, places = opened(THREADS, row)
    known = tuple((str(call), str(name)) for call, name in json.loads(str(calls)))
    total = Total(int(rows or 0), int(checksums or 0))
    before = Before(int(session or 0), str(at), known)
    return Thread(token, before, total, int(places or 0))


def put_thread(db: Database, thread_id: str, thread: Thread) -> None:
    """Store what is known of a conversation, in the transaction that is open."""
    before, calls = thread.before, json.dumps(thread.before.calls)
    row = sealed(
        (
            *(thread.token, storable(thread_id), before.session, before.at, calls),
            *thread.total,
            thread.places,
        )
    )
    db.conn.execute(f"INSERT OR REPLACE INTO {THREADS} VALUES (?,?,?,?,?,?,?,?,?)", row)


_FREQUENCIES = f"""SELECT t.term, t.passages FROM json_each(?) AS wanted
    CROSS JOIN {TERMS} AS t ON t.term = wanted.value"""
_POSTED = f"""SELECT total(p.passages) FROM {SEGMENTS} AS s
    CROSS JOIN {POSTINGS} AS p ON p.place = (s.segment << {TERM_BITS}) | ?"""
_OF_THREAD = f"SELECT json_group_array(number) FROM {PASSAGES} WHERE thread = ?"


class Proved:
    """What was counted in this very state of a database; counting what stands everywhere takes a while."""

    def __init__(self) -> None:
        self._state: tuple[object, ...] = ()
        self._tokens: set[str] = set()
        self._shares: dict[str | None, float] = {}
        self._numbers: dict[str, frozenset[int]] = {}
        self._placed: set[str] = set()

    def total(self, db: Database, thread_id: str | None) -> int:
        """How many passages there are, where those of this conversation, or of all, are all there.

        Raises:
            FoldDamaged: some are missing.
        """
        progress = read_progress(db, PROJECTIONS)
        total = progress.totals[PASSAGES].rows
        # Another connection, or anything written since, is another state.
        state = (db, progress, db.conn.execute("PRAGMA data_version").fetchone()[0])
        if state != self._state:
            self._state, self._tokens, self._shares, self._numbers = state, set(), {}, {}
            self._placed = set()
        if thread_id not in self._shares:
            count = _expect_passages(db, thread_id, total)
            self._shares[thread_id] = count / total if total else 1.0
        return total

    def share(self, thread_id: str | None) -> float:
        """Which share of all passages is of this conversation. Asked after ``total``."""
        return self._shares[thread_id]

    def places(self, db: Database, thread_ids: Iterable[str]) -> None:
        """Hold the index of places against what must be there of these conversations.

        Asked after ``total``. Raises:
            FoldDamaged: an entry is missing or wrong.
        """
        for thread_id in {*thread_ids} - self._placed - self._shares.keys():
            numbers_at(db, thread_id, stored_thread(db, thread_id), ())
            self._placed.add(thread_id)

    def numbers(self, db: Database, thread_id: str) -> frozenset[int]:
        """The passages of a conversation. Asked after ``total``."""
        known = self._numbers.get(thread_id)
        if known is None:
            (found,) = db.conn.execute(_OF_THREAD, (thread_token(thread_id),)).fetchone()
            known = self._numbers[thread_id] = frozenset(json.loads(found))
        return known

    def frequencies(self, db: Database, tokens: Sequence[str]) -> dict[str, int]:
        """By token that is there: in how many passages it stands. Asked after ``total``.

        Raises:
            FoldDamaged: the postings lead to more or fewer.
        """
        terms = {token: term_of(token) for token in tokens}
        found = dict(db.conn.execute(_FREQUENCIES, (json.dumps([*terms.values()]),)).fetchall())
        for token in terms.keys() - self._tokens:
            (posted,) = db.conn.execute(_POSTED, (terms[token],)).fetchone()
            if posted != found.get(terms[token], 0):
                raise FoldDamaged(f"{token!r} leads to other passages than those that have it")
            self._tokens.add(token)
        return {token: found[term] for token, term in terms.items() if term in found}


def _expect_passages(db: Database, thread_id: str | None, total: int) -> int:
    """How many a conversation, or all, must have and has."""
    if thread_id is None:
        query = f"SELECT count(*) FROM {PASSAGES} WHERE {IS_THERE}"
        count = db.conn.execute(query).fetchone()[0]
        if count != total:
            raise FoldDamaged(f"there are {count} passages, and not {total}")
        return total
    thread = stored_thread(db, thread_id)
    numbers_at(db, thread_id, thread, ())
    return thread.total.rows
