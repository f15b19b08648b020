"""The tables of the recall index: passages, conversations, and the postings of each token."""

import json
import sys
import zlib
from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from hashlib import blake2b
from typing import Any, NamedTuple

from refold.application.recall import passages, tokens
from refold.application.recall.passages import BEGINNING, PARTS, Before, Passage
from refold.infrastructure.projection_store.checkpoint import Total
from refold.infrastructure.projection_store.row_checksums import (
    CHECKSUM,
    FoldDamaged,
    open_row,
    seal_row,
    storable,
)
from refold.infrastructure.projection_store.tables import Tables

FORMAT = 6
"""Format of the tables. An index of another format is folded again."""

PASSAGES = "passages"
IS_THERE = "thread != ''"
"""Condition of a passage row whose message was not erased."""
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
    "token_count": int,
    "digest": str,
    "owner": str,
    "thread": str,
    CHECKSUM: int,
}
"""The fields of ``Passage`` and a hash of the conversation. The rows of an erased message keep only their
number, and ``thread`` is empty. If rows were deleted, SQLite would move others and leave bytes of them
behind.
"""

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
"""Columns of a conversation: state for its next message, expected number of passages, their sum, and the
sum of their places (``PLACE``).
"""

PLACE = "number * 31 + position * 7 + part"
"""Contribution of an entry in the index of places to its conversation's sum. Any wrong number in the entry
changes the sum.
"""

RUNS = "runs"
RUN_COLUMNS: Mapping[str, type] = {
    "run": int,
    "row_count": int,
    "checksums": int,
    "checks": bytes,
    CHECKSUM: int,
}
"""Columns of a run, which has the postings of successive events: expected number of passages, the sum of their
checksums, and the checksums of its rows of postings.
"""

POSTINGS = "postings"
POSTING_COLUMNS: Mapping[str, type] = {"place": int, CHECKSUM: int, "terms": bytes, "locals": bytes}
"""Columns of the postings of a run and a range of terms: a checksum of the places, the terms with the number of
passages of each, and the places of these passages. See ``posting_runs``.
"""

PROJECTIONS: Mapping[str, int] = {
    PASSAGES: FORMAT * 1_000_000 + passages.VERSION * 1_000 + tokens.VERSION
}


def create_tables(db: Tables) -> None:
    """Create every table, in the open transaction."""
    for name, columns in (
        (PASSAGES, PASSAGE_COLUMNS),
        (THREADS, THREAD_COLUMNS),
        (POSTINGS, POSTING_COLUMNS),
        (RUNS, RUN_COLUMNS),
    ):
        key = next(iter(columns))
        db.create_table(name, columns, key, columns)
    db.create_index("passages_of_owners", PASSAGES, "owner", where="owner != ''")
    db.create_index("passages_by_place", PASSAGES, "thread, position, part", unique=True)


@lru_cache(maxsize=1_000)
def thread_token(thread_id: str) -> str:
    """Return a hash of the thread id."""
    return blake2b(str(storable(thread_id)).encode(), digest_size=8).hexdigest()


SEGMENT_BITS = 12
EVENTS = 1 << SEGMENT_BITS
"""Number of log events of any kind in a segment, so that every fold produces the same segments."""
LOCAL_BITS = SEGMENT_BITS + PARTS.bit_length() - 1
"""Number of low bits of a passage number that are its place in its segment."""
_LOCALS = (1 << LOCAL_BITS) - 1
TERM_BITS = 44
"""Number of bits of the hash of a token."""
TERM = (1 << TERM_BITS) - 1
BUCKET_BITS = SEGMENT_BITS
"""Number of low bits of the key of a row of postings that are the range of its terms. The bits above are its run."""
_WIDTH_BITS = SEGMENT_BITS + 1
"""Number of low bits of a run that are its number of events. The bits above are the first of them."""
RUN_BITS = SEGMENT_BITS + _WIDTH_BITS
"""Number of low bits of a run that are its place in its segment."""
SEGMENT_PLACE_BITS = RUN_BITS + BUCKET_BITS
"""Number of low bits of the key of a row of postings below its segment."""
_TERMS_BITS = 2
"""A run has one row of postings for as many events as these bits count."""


@lru_cache(maxsize=200_000)
def term_of(token: str) -> int:
    """Return the hash of a token. Tokens with the same hash are found together and separated when read.

    Hashes keep words out of the pages of an index whose rows SQLite moves to keep them in order.
    """
    digest = blake2b(token.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) & TERM


def terms_of(tokens: str) -> set[int]:
    """Return the hashes of the tokens of a passage."""
    return set(map(term_of, tokens.split()))


def segment_of(number: int) -> int:
    """Return the segment of a passage."""
    return number >> LOCAL_BITS


WAITING = 64
"""Number of log events whose postings are written together, as a run."""
MERGED = 512
"""Number of log events from which on runs are merged, and merged again when the segment is full."""


def posted_before(number: int) -> int:
    """Return the first passage without postings when the log is folded in up to an event."""
    return (number + 1) // WAITING * WAITING * PARTS


def local_of(number: int) -> int:
    """Return the place of a passage in its segment."""
    return number & _LOCALS


def numbers_of(segment: int) -> tuple[int, int]:
    """Return the range of passage numbers of a segment: first, and exclusive last."""
    return segment << LOCAL_BITS, (segment + 1) << LOCAL_BITS


def runs_of(segment: int, stop: int) -> list[int]:
    """Return the runs of a segment when the passages numbered up to ``stop`` have postings, oldest first.

    They depend on nothing else, so that every fold makes the same runs.
    """
    at = segment << SEGMENT_BITS
    end = min(at + EVENTS, stop // PARTS)
    found: list[int] = []
    while at < end:
        width = next(w for w in (EVENTS, MERGED, WAITING) if at % w == 0 and at + w <= end)
        found.append(at << _WIDTH_BITS | width)
        at += width
    return found


def numbers_of_run(run: int) -> tuple[int, int]:
    """Return the range of passage numbers of a run."""
    first, width = run >> _WIDTH_BITS, run & ((1 << _WIDTH_BITS) - 1)
    return first * PARTS, (first + width) * PARTS


def segment_of_run(run: int) -> int:
    """Return the segment of a run."""
    return run >> RUN_BITS


def places_of(run: int) -> tuple[int, int]:
    """Return the range of keys of the postings of a run."""
    return run << BUCKET_BITS, (run + 1) << BUCKET_BITS


def bounds_of(segment: int) -> tuple[int, int]:
    """Return the range of the runs that a segment can have."""
    return segment << RUN_BITS, (segment + 1) << RUN_BITS


def _bits_of(run: int) -> int:
    return max(0, (run & ((1 << _WIDTH_BITS) - 1)).bit_length() - 1 - _TERMS_BITS)


def buckets_of(run: int) -> range:
    """Return the smallest term of each row of postings of a run."""
    return range(0, 1 << TERM_BITS, 1 << (TERM_BITS - _bits_of(run)))


def key_of(run: int) -> tuple[int, int]:
    """Return the key of the first row of postings of a run, and how many low bits of a term no key has."""
    return run << BUCKET_BITS, TERM_BITS - _bits_of(run)


def bucket_of(run: int, term: int) -> int:
    """Return the key of the row of postings with a term."""
    first, low = key_of(run)
    return first | term >> low


_TERM, _NUMBER = array("Q").itemsize, array("I").itemsize
_ODD = 0x9E37_79B9_7F4A_7C15


def terms_in(content: bytes) -> memoryview:
    """Return the terms in bytes."""
    return memoryview(content).cast("Q")


def numbers_in(content: bytes) -> memoryview:
    """Return the numbers in bytes."""
    return memoryview(content).cast("I")


def check_of(row: Sequence[Any]) -> int:
    """Return the checksum of a row of postings that its run keeps. It depends on every column."""
    # A checksum can start from any 32 bits: an odd factor spreads the place over them.
    return zlib.crc32(row[2], (row[0] * _ODD + row[1]) & 0xFFFF_FFFF)


class Run(NamedTuple):
    """The record of a run."""

    total: Total
    """Number of its passages and the sum of their checksums."""
    checks: "array[int]"
    """Checksums of its rows of postings."""


def open_record(row: Sequence[Any]) -> tuple[int, Run]:
    """Return the run of a row.

    Raises:
        FoldDamaged: the row was changed after it was stored.
    """
    number, rows, checksums, content, check = row
    sealed = seal_row((number, rows, checksums, zlib.crc32(content)))
    if sealed[-1] != check or len(content) != _NUMBER * len(buckets_of(number)):
        raise FoldDamaged(f"the record of run {number} was changed")
    return number, Run(Total(rows, checksums), array("I", content))


class Bucket:
    """The terms of a row of postings, with their places if those were read."""

    __slots__ = ("_content", "_half", "checksum", "places")

    def __init__(self, checksum: int, content: bytes) -> None:
        self._content = content
        self._half = len(content) // (_TERM + _NUMBER) * _TERM
        """Where the terms end and their counts begin."""
        self.checksum = checksum
        """Checksum of the places."""
        self.places: bytes | None = None

    @property
    def terms(self) -> bytes:
        """The terms, ascending."""
        return self._content[: self._half]

    @property
    def counts(self) -> bytes:
        """How many passages have each term."""
        return self._content[self._half :]

    def find(self, term: int) -> tuple[int, int]:
        """Return where the places of a term begin and end."""
        content, half, sought = self._content, self._half, term.to_bytes(_TERM, sys.byteorder)
        # A row has few terms, so that a search of its bytes is faster than making numbers of them.
        start = content.find(sought, 0, half)
        while start > 0 and start % _TERM:
            start = content.find(sought, start + 1, half)
        if start < 0:
            return 0, 0
        at, counts = start // _TERM, numbers_in(content[half:])
        begin = sum(counts[:at])
        return begin, begin + counts[at]

    def has(self, term: int) -> bool:
        """Return whether a passage has the term."""
        return self.find(term) != (0, 0)

    def take(self, places: bytes) -> None:
        """Take the places, after checking them.

        Raises:
            FoldDamaged: they were changed after they were stored.
        """
        if zlib.crc32(places) != self.checksum:
            raise FoldDamaged("places of postings were changed")
        self.places = places

    def places_between(self, begin: int, end: int) -> "array[int]":
        """Return some of the places, which were read."""
        return array("I", (self.places or b"")[begin * _NUMBER : end * _NUMBER])


def open_bucket(row: Sequence[Any], check: int) -> Bucket:
    """Return the bucket of a row. ``check`` is its checksum in the record of the run.

    Raises:
        FoldDamaged: the row was changed after it was stored.
    """
    place, checksum, content, places = row
    if not (isinstance(checksum, int) and isinstance(content, bytes)) or check_of(row) != check:
        raise FoldDamaged(f"row {place} of postings was changed")
    bucket = Bucket(checksum, content)
    if places is not None:
        bucket.take(places)
    return bucket


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
        """Sum of the places of its passages."""

    def add(self, total: Total, passages: Iterable[Sequence[Any]]) -> None:
        """Add passages to the counts."""
        self.total = self.total.plus(total)
        self.places += _places(passages)

    def take_out(self, total: Total, passages: Iterable[Sequence[Any]]) -> None:
        """Remove passages from the counts."""
        self.total = self.total.plus(Total(-total.rows, -total.checksums))
        self.places -= _places(passages)


def _places(passages: Iterable[Sequence[Any]]) -> int:
    """Return the sum of ``PLACE`` of passages, whose fields come first in these rows."""
    return sum([row[0] * 31 + row[2] * 7 + row[4] for row in passages])


def numbers_at(db: Tables, thread_id: str, thread: Thread, positions: Collection[int]) -> list[int]:
    """Return the numbers of the passages at these positions, from all index entries of a conversation.

    Raises:
        FoldDamaged: the index of places lacks an entry or has a wrong one.
    """
    asked = (json.dumps([*positions]), thread.token)
    count, places, numbers = db.execute(_NUMBERS_AT, asked).fetchone()
    if (count, places) != (thread.total.rows, thread.places):
        raise FoldDamaged(
            f"conversation {thread_id!r} has {count} passages, and not {thread.total.rows}, or other places"
        )
    return [int(number) for number in json.loads(numbers)]


def stored_thread(db: Tables, thread_id: str) -> Thread:
    """Return the stored state of a conversation, or the initial state of a new one.

    Raises:
        FoldDamaged: the state was changed after it was stored.
    """
    token = thread_token(thread_id)
    row = db.execute(f"SELECT * FROM {{{THREADS}}} WHERE thread = ?", (token,)).fetchone()
    if row is None:
        return Thread(token, BEGINNING, Total())
    _, _, session, at, calls, rows, checksums, places = open_row(THREADS, row)
    known = tuple((str(call), str(name)) for call, name in json.loads(str(calls)))
    total = Total(int(rows or 0), int(checksums or 0))
    before = Before(int(session or 0), str(at), known)
    return Thread(token, before, total, int(places or 0))


def put_thread(db: Tables, thread_id: str, thread: Thread) -> None:
    """Store the state of a conversation, in the open transaction."""
    before, calls = thread.before, json.dumps(thread.before.calls)
    row = seal_row(
        (
            *(thread.token, storable(thread_id), before.session, before.at, calls),
            *thread.total,
            thread.places,
        )
    )
    db.replace(THREADS, [row])


_WHOLE = "\x1f".join(["%s"] * (len(PASSAGE_COLUMNS) - 1))
_as_passage: Callable[[tuple[Any, ...]], Passage] = partial(tuple.__dict__["__new__"], Passage)


def passage_of(row: tuple[Any, ...]) -> Passage:
    """Return the passage of a row.

    Raises:
        FoldDamaged: the row was changed after it was stored.
    """
    # The checksum of ``open_row`` in one step, because hundreds are read for a question. No value is missing.
    if zlib.crc32((_WHOLE % row[:-1]).encode()) != row[-1]:
        open_row(PASSAGES, row)
    return _as_passage((*row[:12], row[12] != 0, *row[13:17]))
