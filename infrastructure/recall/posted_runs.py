"""The postings of all runs, read when they are needed and kept, because a run changes only by an erasure."""

import json
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from refold.infrastructure.projection_store.row_checksums import FoldDamaged
from refold.infrastructure.projection_store.tables import Tables

from .index_tables import (
    BUCKET_BITS,
    POSTINGS,
    RUNS,
    Bucket,
    Run,
    key_of,
    open_bucket,
    open_record,
    segment_of_run,
)

FEW_RUNS = 16
"""Number of runs up to which the places of rare tokens are read with their counts."""
FEW_BYTES = 2_000
"""Size of the places of a row up to which they are read with the counts of their tokens, if runs are few."""
FEW_PLACES = 1_000
"""Number of places of a token in a segment up to which they are kept as a set."""
BYTES_KEPT = 16_000_000
"""Number of bytes of postings above which they are read again."""
_NUMBER = array("I").itemsize
_IN_SET = 70
"""Bytes of a place in a set."""

_WITH_FEW = f"""SELECT p.place, p.checksum, p.terms, CASE WHEN length(p.locals) <= ? THEN p.locals END
    FROM json_each(?) AS wanted CROSS JOIN {POSTINGS} AS p ON p.place = wanted.value"""
_LOCALS = f"""SELECT p.place, p.locals FROM json_each(?) AS wanted
    CROSS JOIN {POSTINGS} AS p ON p.place = wanted.value"""


class Posting:
    """Passages of a segment with a token."""

    __slots__ = ("_places", "locals", "segment")

    def __init__(self, segment: int, found: "array[int]") -> None:
        self.segment = segment
        self.locals = found
        """Places in the segment, ascending."""
        self._places: frozenset[int] | None = None

    @property
    def places(self) -> frozenset[int]:
        """The same as a set. It is made once, if they are few."""
        if self._places is not None:
            return self._places
        found = frozenset(self.locals)
        if self.are_few:
            self._places = found
        return found

    @property
    def are_few(self) -> bool:
        """True if they are few enough for a set."""
        return len(self.locals) <= FEW_PLACES

    def has(self, local: int) -> bool:
        """Return whether the passage at this place has the token."""
        at = bisect_left(self.locals, local)
        return at < len(self.locals) and self.locals[at] == local


class Having(NamedTuple):
    """Where the places of a term in a run are."""

    place: int
    bucket: Bucket
    begin: int
    end: int


class PostedRuns:
    """All runs of a database, and the postings that were read and verified."""

    def __init__(self) -> None:
        self._runs: dict[int, Run] = {}
        self._keys: list[tuple[int, int, int]] = []
        """For each run, its segment, the key of its first row, and how many low bits of a term the key lacks."""
        self._buckets: dict[int, Bucket] = {}
        self._having: dict[int, dict[int, list[Having]]] = {}
        """Where the postings of a term in each segment are, oldest first."""
        self._counts: dict[int, int] = {}
        """How many passages have a term."""
        self._postings: dict[tuple[int, int], Posting] = {}
        """Postings by term and segment."""
        self._bytes = 0

    def read(self, db: Tables) -> None:
        """Read the records of all runs.

        Raises:
            FoldDamaged: a record was changed after it was stored.
        """
        before = self._runs
        self._runs = dict(map(open_record, db.execute(f"SELECT * FROM {RUNS} ORDER BY run")))
        self._keys = [(segment_of_run(run), *key_of(run)) for run in self._runs]
        self._having, self._counts, self._postings = {}, {}, {}
        for place in [*self._buckets]:
            run = place >> BUCKET_BITS
            if run not in self._runs or self._runs[run] != before.get(run):
                del self._buckets[place]

    @property
    def rows(self) -> int:
        """Number of passages."""
        return sum(run.total.rows for run in self._runs.values())

    def segments(self) -> set[int]:
        """Return the segments of the runs."""
        return set(map(segment_of_run, self._runs))

    def limit(self) -> None:
        """Forget all postings if they are too many."""
        if self._bytes > BYTES_KEPT:
            self._having, self._counts, self._postings = {}, {}, {}
            self._buckets, self._bytes = {}, 0

    def counts(self, db: Tables, terms: Collection[int]) -> dict[int, int]:
        """Return the number of passages with each of these terms.

        Raises:
            FoldDamaged: a row of postings was changed, or is missing.
        """
        if unknown := [term for term in terms if term not in self._counts]:
            wanted = {first | term >> low for _, first, low in self._keys for term in unknown}
            self._read_buckets(db, wanted - self._buckets.keys())
            for term in unknown:
                self._find(term)
        return {term: self._counts[term] for term in terms}

    def postings(
        self, db: Tables, term: int, segments: Collection[int] | None
    ) -> Iterator[Posting]:
        """Yield the passages with a term in these segments, or in all, oldest first."""
        self.counts(db, (term,))
        having = self._having[term]
        wanted = [one for one in having if segments is None or one in segments]
        if lacking := [one for one in wanted if (term, one) not in self._postings]:
            self._join(db, term, {segment: having[segment] for segment in lacking})
        for segment in wanted:
            yield self._postings[term, segment]

    def _find(self, term: int) -> None:
        """Find a term in all runs, whose rows were read."""
        found: dict[int, list[Having]] = {}
        count = 0
        for segment, first, low in self._keys:
            place = first | term >> low
            bucket = self._buckets[place]
            begin, end = bucket.find(term)
            if begin < end:
                count += end - begin
                found.setdefault(segment, []).append(Having(place, bucket, begin, end))
        self._having[term], self._counts[term] = found, count

    def _join(self, db: Tables, term: int, having: Mapping[int, Sequence[Having]]) -> None:
        """Join the places of a term in the runs of each of these segments."""
        every = [one for those in having.values() for one in those]
        self._read_places(db, [one for one in every if one.bucket.places is None])
        for segment, those in having.items():
            places = b"".join([one.bucket.places_between(one.begin, one.end) for one in those])
            posting = self._postings[term, segment] = Posting(segment, array("I", places))
            size = _NUMBER + _IN_SET if posting.are_few else _NUMBER
            self._bytes += len(posting.locals) * size

    def _read_buckets(self, db: Tables, places: Iterable[int]) -> None:
        wanted = sorted(places)
        most = FEW_BYTES if len(self._runs) <= FEW_RUNS else 0
        rows = db.execute(_WITH_FEW, (most, json.dumps(wanted))).fetchall() if wanted else []
        if len(rows) != len(wanted):
            raise FoldDamaged("rows of postings are missing")
        for row in rows:
            place = int(row[0])
            check = self._runs[place >> BUCKET_BITS].checks[place & ((1 << BUCKET_BITS) - 1)]
            self._buckets[place] = open_bucket(row, check)
            self._bytes += len(row[2]) + len(row[3] or b"")

    def _read_places(self, db: Tables, lacking: Sequence[Having]) -> None:
        if lacking:
            buckets = {one.place: one.bucket for one in lacking}
            for place, places in db.execute(_LOCALS, (json.dumps([*buckets]),)).fetchall():
                buckets[place].take(places)
                self._bytes += len(places)
