"""The postings of all runs, which are kept because a run changes only by an erasure, and their sums of weights."""

import json
import math
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from itertools import groupby
from typing import NamedTuple

from refold.application.recall.passages import PARTS
from refold.infrastructure.projection_store.row_checksums import FoldDamaged
from refold.infrastructure.projection_store.tables import Tables

from .index_tables import (
    BUCKET_BITS,
    EVENTS,
    LOCAL_BITS,
    POSTINGS,
    RUNS,
    SEGMENT_BITS,
    Bucket,
    Run,
    key_of,
    local_of,
    open_bucket,
    open_record,
    segment_of,
    segment_of_run,
)

FEW_RUNS = 16
"""Number of runs up to which the places of rare tokens are read with their counts."""
FEW_BYTES = 2_000
"""Size of the places of a row up to which they are read with the counts of their tokens, if runs are few."""
BYTES_KEPT = 16_000_000
"""Number of bytes of postings above which they are read again."""
_PLACE = array("d").itemsize
_IN_SET = 70
"""Bytes of a place in a set."""

_WITH_FEW = f"""SELECT p.place, p.checksum, p.terms, CASE WHEN length(p.locals) <= ? THEN p.locals END
    FROM json_each(?) AS wanted CROSS JOIN {POSTINGS} AS p ON p.place = wanted.value"""
_LOCALS = f"""SELECT p.place, p.locals FROM json_each(?) AS wanted
    CROSS JOIN {POSTINGS} AS p ON p.place = wanted.value"""


def place_of(number: int) -> float:
    """Return the place of a passage in its segment, for sets: its event, with its part as a fraction.

    As whole numbers, the places of most passages end in as many zeros as a part has bits. A set looks for all of
    these in the same spot first, and takes five times as long to find one.
    """
    return local_of(number) / PARTS


def passage_at(segment: int, place: float) -> int:
    """Return the passage at a place in a segment."""
    return segment << LOCAL_BITS | int(place * PARTS)


Places = Mapping[int, set[float]]
"""Places of passages in each segment."""


def group_by_segment(numbers: Iterable[int], into: dict[int, set[float]]) -> None:
    """Add passages to their segments."""
    for number in numbers:
        into.setdefault(segment_of(number), set()).add(place_of(number))


class Posting(NamedTuple):
    """Passages of a segment with a token."""

    segment: int
    places: "array[float]"
    """Places in the segment, ascending."""

    def among(self, places: set[float]) -> set[float]:
        """Return which of these places have the token."""
        having, size = self.places, len(self.places)
        if len(places) * _FEW > size:
            return places.intersection(having)
        return {
            place
            for place in places
            if (at := bisect_left(having, place)) < size and having[at] == place
        }


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
        self._whole: dict[int, frozenset[float] | None] = {}
        """All passages with a rare term, by their places in the log, or None if the term was asked for only once.

        Most terms are asked for once, and the garbage collector visits every place that is kept.
        """
        self._bytes = 0

    def read(self, db: Tables) -> None:
        """Read the records of all runs.

        Raises:
            FoldDamaged: a record was changed after it was stored.
        """
        before = self._runs
        self._runs = dict(map(open_record, db.execute(f"SELECT * FROM {RUNS} ORDER BY run")))
        self._keys = [(segment_of_run(run), *key_of(run)) for run in self._runs]
        self._having, self._counts, self._postings, self._whole = {}, {}, {}, {}
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
            self._having, self._counts, self._postings, self._whole = {}, {}, {}, {}
            self._buckets, self._bytes = {}, 0

    def counts(self, db: Tables, terms: Collection[int]) -> dict[int, int]:
        """Return the number of passages with each of these terms.

        Raises:
            FoldDamaged: a row of postings was changed, or is missing.
        """
        if unknown := [term for term in terms if term not in self._counts]:
            wanted = {first | term >> low for _, first, low in self._keys for term in unknown}
            # A difference of sets would walk over all that is known.
            self._read_buckets(db, [place for place in wanted if place not in self._buckets])
            for term in unknown:
                self._find(term)
        return {term: self._counts[term] for term in terms}

    def postings(
        self, db: Tables, term: int, segments: Collection[int] | None
    ) -> Sequence[Posting]:
        """Return the passages with a term in these segments, or in all, oldest first."""
        self.counts(db, (term,))
        having = self._having[term]
        wanted = [one for one in having if segments is None or one in segments]
        if lacking := [one for one in wanted if (term, one) not in self._postings]:
            self._join(db, term, {segment: having[segment] for segment in lacking})
        return [self._postings[term, segment] for segment in wanted]

    def whole(self, db: Tables, term: int) -> frozenset[float]:
        """Return all passages with a term that few have, by their places in the log, as if that were one segment."""
        known = self._whole.get(term)
        if known is None:
            self.counts(db, (term,))
            having = self._having[term]
            self._read_places(db, [one for those in having.values() for one in those])
            found: list[float] = []
            for segment, those in having.items():
                base = segment << SEGMENT_BITS
                for one in those:
                    places = one.bucket.places_between(one.begin, one.end)
                    found += [base + place / PARTS for place in places]
            known, is_asked_again = frozenset(found), term in self._whole
            self._whole[term] = known if is_asked_again else None
            self._bytes += _IN_SET * len(known) if is_asked_again else 0
        return known

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
        self._read_places(db, every)
        for segment, those in having.items():
            places = b"".join([one.bucket.places_between(one.begin, one.end) for one in those])
            having_term = array("d", [place / PARTS for place in array("I", places)])
            self._postings[term, segment] = Posting(segment, having_term)
            self._bytes += _PLACE * len(having_term)

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

    def _read_places(self, db: Tables, having: Sequence[Having]) -> None:
        if buckets := {one.place: one.bucket for one in having if one.bucket.places is None}:
            for place, places in db.execute(_LOCALS, (json.dumps([*buckets]),)).fetchall():
                buckets[place].take(places)
                self._bytes += len(places)


Weighed = dict[int, dict[float, set[float]]]
"""Places in each segment by their weight, because many passages have the same tokens."""


class Postings:
    """Postings, and the passages that wait for theirs as if they had them."""

    knows_whole = True
    """True if ``whole`` returns the passages with a term."""

    def __init__(
        self, db: Tables, posted: PostedRuns, waiting: Mapping[int, Sequence[int]]
    ) -> None:
        self._db = db
        self._posted = posted
        self._waiting = waiting
        self._whole: dict[int, Set[float]] = {}

    def of(self, term: int, segments: Collection[int] | None) -> Iterable[Posting]:
        """Return the postings of a term in these segments, or in all."""
        posted = self._posted.postings(self._db, term, segments)
        if term not in self._waiting:
            return posted
        waiting = (
            Posting(segment, array("d", map(place_of, numbers)))
            for segment, numbers in groupby(self._waiting[term], segment_of)
            if segments is None or segment in segments
        )
        return [*posted, *waiting]

    def whole(self, term: int) -> Set[float]:
        """Return all passages with a term that few have, by their places in the log."""
        known = self._whole.get(term)
        if known is None:
            known = self._posted.whole(self._db, term)
            if term in self._waiting:
                known = known.union([number / PARTS for number in self._waiting[term]])
            self._whole[term] = known
        return known

    def having(self, term: int, whole: Iterable[float]) -> Set[float]:
        """Return which of these passages have a term. Many may have it."""
        ordered, found = sorted(whole), set[float]()
        for posting in self.of(term, {int(place) >> SEGMENT_BITS for place in ordered}):
            base = posting.segment << SEGMENT_BITS
            begin, end = bisect_left(ordered, base), bisect_left(ordered, base + EVENTS)
            places = {place - base for place in ordered[begin:end]}
            found.update([base + place for place in posting.among(places)])
        return found

    def among(self, term: int, known: Weighed) -> Iterable[Posting]:
        """Return the postings of a term in these segments, of which only the places that are known count."""
        return self.of(term, known)

    def segments(self) -> set[int]:
        """Return all segments."""
        waiting = {segment_of(number) for numbers in self._waiting.values() for number in numbers}
        return waiting | self._posted.segments()


_FEW = 8
"""Ratio of a posting's size to the number of known places. Above it, each place is looked up by itself."""
_MARGIN = 1e-9
"""Share by which sums of weights may differ because they were added in another order, and far more."""


class WeighedPassages:
    """Passages by the sum of the weights of their tokens, while the tokens are read, the rarest first."""

    def __init__(self, most: int | None, *, is_whole: bool = False) -> None:
        self._most = most
        """Number of passages that are wanted, or None for all."""
        self.is_whole = is_whole
        """True if the whole log is one segment, the first."""
        self.segments: Weighed = {}
        self._counted: Mapping[float, int] | None = None

    @property
    def count(self) -> int:
        """Number of passages."""
        return sum(self._counts().values())

    def add(self, posting: Posting, weight: float, limits: set[float] | None) -> None:
        """Add the weight of a token to all passages of a posting. ``limits`` has others, if not None."""
        having = set(posting.places) if limits is None else limits.intersection(posting.places)
        self._add(posting.segment, having, weight)

    def raise_known(self, posting: Posting, weight: float) -> None:
        """Add the weight of a token to the passages of a posting that other tokens have found."""
        self._raise(posting.segment, posting.among(self._known(posting.segment)), weight)

    def weigh_whole(self, whole: Set[float], weight: float, *, finds_more: bool) -> None:
        """Add the weight of a token to these passages, or else to those of them that other tokens have found."""
        if finds_more:
            self._add(0, whole, weight)
        else:
            self._raise(0, whole, weight)

    def having(self, postings: Postings, term: int) -> Set[float]:
        """Return the passages that tokens have found, and that have a term as well. Many others may have it."""
        return postings.having(term, self._known(0))

    def _known(self, segment: int) -> set[float]:
        return set[float]().union(*self.segments.get(segment, {}).values())

    def _add(self, segment: int, having: Set[float], weight: float) -> None:
        known = self.segments.setdefault(segment, {})
        self._counted = None
        raised = _raise(known, having, weight)
        if new := set(having).difference(*raised):
            known[weight] = known[weight] | new if weight in known else new

    def _raise(self, segment: int, having: Set[float], weight: float) -> None:
        self._counted = None
        if segment in self.segments:
            _raise(self.segments[segment], having, weight)

    def part(self) -> None:
        """Part the passages by their segments, if that was not done yet."""
        if not self.is_whole:
            return
        self.is_whole = False
        for weight, whole in self.segments.pop(0, {}).items():
            parts: dict[int, set[float]] = {}
            group_by_segment([passage_at(0, place) for place in whole], parts)
            for segment, places in parts.items():
                self.segments.setdefault(segment, {})[weight] = places

    def is_certain(self, left: float, passages: int) -> bool:
        """Return whether no passage without any of the tokens so far can be among the best.

        ``left`` is the sum of the weights of the other tokens. The next one has so many passages: if they are
        few, reading them is faster than counting.
        """
        return self._most is not None and passages > self._most and self._least() > left

    def are_best(self, segments: Collection[int], left: float) -> bool:
        """Return whether enough passages of these segments weigh at least ``left``."""
        lacking = math.inf if self._most is None else self._most
        for segment in segments:
            for weight, places in self.segments.get(segment, {}).items():
                lacking -= len(places) if weight >= left else 0
        return lacking <= 0

    def drop_hopeless(self, left: float) -> None:
        """Drop the passages that cannot be among the best any more, even with all other tokens."""
        if (least := self._least() - left) > 0:
            self._counted = None
            for segment, known in [*self.segments.items()]:
                kept = {weight: places for weight, places in known.items() if weight >= least}
                self.segments[segment] = kept
                if not kept:
                    del self.segments[segment]

    def _counts(self) -> Mapping[float, int]:
        """Return the number of passages with each weight."""
        if self._counted is None:
            self._counted = counts = dict[float, int]()
            for known in self.segments.values():
                sizes = zip(known, map(len, known.values()), strict=True)
                if not counts:
                    counts.update(sizes)
                    continue
                for weight, size in sizes:
                    counts[weight] = counts.get(weight, 0) + size
        return self._counted

    def _least(self) -> float:
        """Return a weight that the wanted number of passages reach, or 0 if there are not so many."""
        lacking = math.inf if self._most is None else self._most
        counts = self._counts()
        for weight in sorted(counts, reverse=True):
            lacking -= counts[weight]
            if lacking <= 0:
                return weight * (1 - _MARGIN)
        return 0.0

    def best_first(self) -> Iterator[int]:
        """Yield the numbers of the passages in their order."""
        newest_first = sorted(self.segments.items(), reverse=True)
        for weight in sorted(self._counts(), reverse=True):
            for segment, known in newest_first:
                for place in sorted(known.get(weight, ()), reverse=True):
                    yield passage_at(segment, place)


def _raise(
    known: dict[float, set[float]], having: Set[float], weight: float
) -> Sequence[set[float]]:
    """Add a weight to the places that are known, and return these."""
    raised: list[tuple[float, set[float]]] = []
    for before, places in known.items():
        if both := places & having:
            places -= both
            raised.append((before + weight, both))
    for after, places in raised:
        known[after] = known[after] | places if after in known else places
    return [places for _, places in raised]
