"""The tables of the recall index: passages, conversations, and the postings of each token."""

import json
import sys
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import islice, pairwise
from typing import Any, NamedTuple

from refold.application.recall import passages, tokens
from refold.application.recall.passages import BEGINNING, PARTS, Before, Passage
from refold.application.recall.tokens import Vocabulary
from refold.infrastructure.projection_store.checkpoint import Total
from refold.infrastructure.projection_store.row_checksums import (
    CHECKSUM,
    FoldDamaged,
    open_row,
    seal_row,
    storable,
)
from refold.infrastructure.projection_store.tables import Tables

FORMAT = 4
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

TERMS = "terms"
TERM_COLUMNS: Mapping[str, type] = {"term": int, "passages": int}
"""Number of passages of each token, by its hash. The postings are compared with it."""

POSTINGS = "postings"
POSTING_COLUMNS: Mapping[str, type] = {
    "place": int,
    "passages": int,
    CHECKSUM: int,
    "locals": bytes,
}
"""Passages of a segment that have a token, for each segment and token. See ``postings``."""

SEGMENTS = "segments"
SEGMENT_COLUMNS: Mapping[str, type] = {
    "segment": int,
    "row_count": int,
    "checksums": int,
    "terms": int,
    "posting_checksums": int,
    CHECKSUM: int,
}
"""Expected numbers of passages and postings of each segment, with the sums of their checksums."""

PROJECTIONS: Mapping[str, int] = {
    PASSAGES: FORMAT * 1_000_000 + passages.VERSION * 1_000 + tokens.VERSION
}


def create_tables(db: Tables) -> None:
    """Create every table, in the open transaction."""
    for name, columns in (
        (PASSAGES, PASSAGE_COLUMNS),
        (THREADS, THREAD_COLUMNS),
        (TERMS, TERM_COLUMNS),
        (POSTINGS, POSTING_COLUMNS),
        (SEGMENTS, SEGMENT_COLUMNS),
    ):
        key = next(iter(columns))
        db.create_table(name, columns, key, columns)
    db.create_index("passages_of_owners", PASSAGES, "owner", where="owner != ''")
    db.create_index("passages_by_place", PASSAGES, "thread, position, part", unique=True)


@lru_cache(maxsize=1_000)
def thread_token(thread_id: str) -> str:
    """Return a hash of the thread id."""
    return blake2b(str(storable(thread_id)).encode(), digest_size=8).hexdigest()


SEGMENT_BITS = 11
EVENTS = 1 << SEGMENT_BITS
"""Number of log events of any kind in a segment, so that every fold produces the same segments."""
LOCAL_BITS = SEGMENT_BITS + PARTS.bit_length() - 1
"""Number of low bits of a passage number that are its place in its segment."""
_LOCALS = (1 << LOCAL_BITS) - 1
TERM_BITS = 44
"""Number of bits of the token hash in a posting's place. The bits above are the segment."""
TERM = (1 << TERM_BITS) - 1

# As one value, because passing the places row by row would take longer.
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
        """Segment of the posting."""
        return self.place >> TERM_BITS

    @property
    def term(self) -> int:
        """Hash of the token."""
        return self.place & TERM

    def has(self, local: int) -> bool:
        """Return whether the passage at this place has the token."""
        at = bisect_left(self.locals, local)
        return at < len(self.locals) and self.locals[at] == local


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
"""Number of log events whose postings are written together. Most rows change once for all of them."""


def posted_before(number: int) -> int:
    """Return the first passage without postings when the log is folded in up to an event."""
    return (number + 1) // WAITING * WAITING * PARTS


def local_of(number: int) -> int:
    """Return the place of a passage in its segment."""
    return number & _LOCALS


def numbers_of(segment: int) -> tuple[int, int]:
    """Return the range of passage numbers of a segment: first, and exclusive last."""
    return segment << LOCAL_BITS, (segment + 1) << LOCAL_BITS


def place_of(segment: int, term: int) -> int:
    """Return the storage key of the posting of a token in a segment."""
    return segment << TERM_BITS | term


def pack_posting(place: int, found: Iterable[int]) -> Stored:
    """Return the row of a posting."""
    places = found if isinstance(found, memoryview) else array("I", found)
    content = places.tobytes()
    return place, len(places), _checksum(place, len(places), content), content


def unpack_posting(row: Sequence[Any]) -> Posting:
    """Return the posting of a row.

    Raises:
        FoldDamaged: the row was changed after it was stored.
    """
    place, count, check, content = row
    if not (isinstance(place, int) and isinstance(count, int) and isinstance(content, bytes)):
        raise FoldDamaged("a posting is not valid")
    if _checksum(place, count, content) != check or len(content) != _BYTES * count:
        raise FoldDamaged(f"posting {place} was changed")
    return Posting(place, check, array("I", content))


def postings_at(db: Tables, places: Sequence[int]) -> Iterator[Posting]:
    """Yield the postings with these storage keys."""
    asked = f"[{','.join(map(str, places))}]"
    return map(unpack_posting, db.execute(_AT, (asked,)))


def postings_of(db: Tables, term: int) -> Iterator[Posting]:
    """Yield the postings of a token in all segments, oldest first."""
    return map(unpack_posting, db.execute(_IN_SEGMENTS, (term,)))


def _checksum(place: int, count: int, content: bytes) -> int:
    # A checksum can start from any 32 bits: an odd factor spreads the place and the count over
    # them.
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
        """Sum of the places of its passages."""

    def add(self, total: Total, passages: Iterable[Passage]) -> None:
        """Add passages to the counts."""
        self.total = self.total.plus(total)
        self.places += sum(map(_place, passages))

    def take_out(self, total: Total, passages: Iterable[Passage]) -> None:
        """Remove passages from the counts."""
        self.total = self.total.plus(Total(-total.rows, -total.checksums))
        self.places -= sum(map(_place, passages))


def _place(passage: Passage) -> int:
    """Return ``PLACE`` of a passage."""
    return passage.number * 31 + passage.position * 7 + passage.part


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


MANY = 300
"""Number of passages from which on their tokens are grouped with numpy, if it is loaded."""
_PASSAGE_BITS = 20
"""Number of low bits of a key for grouping that are a passage of the batch. The bits above are a term."""


class TermVocabulary(Vocabulary):
    """A vocabulary with the terms of each text."""

    def __init__(self) -> None:
        super().__init__()
        self.terms = array("Q")
        self.ends = array("I", [0])
        """End of the terms of each text in ``terms``, after a first 0."""

    def add_terms(self) -> None:
        """Add the terms of texts that are new."""
        for found in islice(self.tokens, len(self.ends) - 1, None):
            self.terms.extend(set(map(term_of, found)))
            self.ends.append(len(self.terms))


_spare: list[TermVocabulary] = []
"""Vocabularies that no batch uses now. Filling one takes longer than using it."""


class BatchTexts:
    """The texts of the passages of a batch, in their order."""

    def __init__(self) -> None:
        self._vocabulary: TermVocabulary | None = None

    def line_of(self, words: str, date: str) -> str:
        """Return the tokens of the next passage."""
        vocabulary = self._vocabulary
        if vocabulary is None:
            try:
                vocabulary = _spare.pop()
            except IndexError:
                vocabulary = TermVocabulary()
            self._vocabulary = vocabulary
        return vocabulary.line_of(words, date)

    def done(self) -> None:
        """Forget the texts, and leave the vocabulary to another batch."""
        vocabulary, self._vocabulary = self._vocabulary, None
        if vocabulary is not None and not vocabulary.is_full:
            vocabulary.forget_read()
            _spare.append(vocabulary)

    def places_by_term(self, first: int, places: Sequence[int]) -> dict[int, Sequence[int]] | None:
        """Return what ``Growth.places_by_term`` does for the passages from ``first`` on, or None if it is as fast.

        ``places`` are theirs.
        """
        vocabulary = self._vocabulary
        if vocabulary is None or len(places) < MANY or "numpy" not in sys.modules:
            return None
        import numpy as np

        vocabulary.add_terms()
        counts = np.frombuffer(vocabulary.counts, np.uint32).astype(np.int64)
        begin = int(counts[:first].sum())
        counts = counts[first : first + len(places)]
        texts = np.frombuffer(vocabulary.read, np.uint32)[begin : begin + int(counts.sum())]
        ends = np.frombuffer(vocabulary.ends, np.uint32).astype(np.int64)
        sizes = np.diff(ends)[texts]
        # The place of each term of each text: those before it in the whole list, moved to where its text's begin.
        moved = np.repeat(ends[texts] - (np.cumsum(sizes) - sizes), sizes)
        terms = np.frombuffer(vocabulary.terms, np.uint64)[moved + np.arange(len(moved))]
        passages = np.repeat(np.repeat(np.arange(len(places), dtype=np.uint64), counts), sizes)
        # The function of numpy for this takes ten times as long.
        keys = np.sort(terms << np.uint64(_PASSAGE_BITS) | passages)
        keys = keys[np.diff(keys, prepend=~keys[:1]) != 0]
        found = keys >> np.uint64(_PASSAGE_BITS)
        starts = np.flatnonzero(np.diff(found, prepend=~found[:1]))
        own = np.array(places, np.uint32)[keys & np.uint64((1 << _PASSAGE_BITS) - 1)]
        view, edges = memoryview(own.tobytes()).cast("I"), [*starts.tolist(), len(keys)]
        return {
            term: view[start:stop]
            for term, (start, stop) in zip(found[starts].tolist(), pairwise(edges), strict=True)
        }


def empty_row(number: int) -> tuple[str | int | None, ...]:
    """Return the row that replaces a passage. It is shorter than any other, so that SQLite moves nothing."""
    kinds = [*PASSAGE_COLUMNS.values()][:-1]
    values: list[str | int | None] = ["" if kind is str else 0 for kind in kinds]
    # Places are unique. For a placeholder, the number is unique enough.
    values[0] = values[2] = number
    return seal_row(tuple(values))
