"""The postings of all runs, which are kept because a run changes only by an erasure, and their sums of weights."""

import json
import math
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from refold.application.recall.passages import PARTS
from refold.infrastructure.projection_store.row_checksums import FoldDamaged
from refold.infrastructure.projection_store.tables import Tables

from .index_tables import (
    BUCKET_BITS,
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
_FEW = 8
"""Ratio of a posting's size to the number of known places. Above it, each place is looked up by itself."""

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


_MARGIN = 1e-9
"""Share by which sums of weights may differ because they were added in another order, and far more."""
MOST_WEIGHTS = 256
"""Number of weights in a segment above which each of its places is weighed by itself.

The tokens of a long text give nearly each passage a weight of its own, and each token looks at all weights.
"""


class WeighedPlaces:
    """Places of a segment, grouped by the sum of the weights of their tokens as long as these sums are few."""

    def __init__(self) -> None:
        self._groups: dict[float, set[float]] = {}
        """Places by their weight, because many passages have the same tokens."""
        self._each: dict[float, float] = {}
        """The weight of each place, if the weights are many. Then there are no groups."""

    def __iter__(self) -> Iterator[float]:
        return iter(self.known())

    def known(self) -> set[float]:
        """Return all places."""
        return set(self._each) or set[float]().union(*self._groups.values())

    def groups(self) -> Mapping[float, set[float]]:
        """Return the places by their weight."""
        groups = dict[float, set[float]]() if self._each else self._groups
        for place, weight in self._each.items():
            groups.setdefault(weight, set()).add(place)
        return groups

    def counts(self) -> Mapping[float, int]:
        """Return the number of places with each weight."""
        return Counter(self._each.values()) or {w: len(its) for w, its in self._groups.items()}

    def put(self, places: set[float], weight: float) -> None:
        """Put places that are not known into the group of this weight."""
        groups = self._groups
        groups[weight] = groups[weight] | places if weight in groups else places

    def add(self, having: Set[float], weight: float) -> None:
        """Add a weight to these places."""
        if each := self._each_if_many():
            for place in having:
                each[place] = each.get(place, 0.0) + weight
        elif new := set(having).difference(*self._raise(having, weight)):
            self.put(new, weight)

    def raise_known(self, having: Set[float], weight: float) -> None:
        """Add a weight to those of these places that are known."""
        if each := self._each_if_many():
            for place in each.keys() & having:
                each[place] += weight
        else:
            self._raise(having, weight)

    def keep(self, least: float) -> bool:
        """Keep the places with at least this weight. Return whether there are any."""
        self._each = {place: weight for place, weight in self._each.items() if weight >= least}
        self._groups = {w: places for w, places in self._groups.items() if w >= least}
        return bool(self._each or self._groups)

    def _each_if_many(self) -> dict[float, float]:
        if len(self._groups) > MOST_WEIGHTS:
            self._each = {place: w for w, places in self._groups.items() for place in places}
            self._groups = {}
        return self._each

    def _raise(self, having: Set[float], weight: float) -> Sequence[set[float]]:
        """Add a weight to the places that are in groups, and return these."""
        groups = self._groups
        raised = [(w, both) for w, places in groups.items() if (both := places & having)]
        for before, both in raised:
            groups[before] -= both
            if not groups[before]:
                del groups[before]
        for before, both in raised:
            self.put(both, before + weight)
        return [places for _, places in raised]


class WeighedPassages:
    """Passages by the sum of the weights of their tokens, while the tokens are read, the rarest first."""

    def __init__(self, most: int | None, *, is_whole: bool = False) -> None:
        self._most = most
        """Number of passages that are wanted, or None for all."""
        self.is_whole = is_whole
        """True if the whole log is one segment, the first."""
        self.segments: dict[int, WeighedPlaces] = {}
        self._counted: Mapping[float, int] | None = None
        self._uncertain = math.inf
        """Weight of the other tokens from which down the best passages may be certain."""

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
        self._raise(posting.segment, posting.among(self.known(posting.segment)), weight)

    def weigh_whole(self, whole: Set[float], weight: float, *, finds_more: bool) -> None:
        """Add the weight of a token to these passages, or else to those of them that other tokens have found."""
        if finds_more:
            self._add(0, whole, weight)
        else:
            self._raise(0, whole, weight)

    def known(self, segment: int) -> set[float]:
        """Return the places of a segment that tokens have found."""
        return self.segments[segment].known() if segment in self.segments else set()

    def _add(self, segment: int, having: Set[float], weight: float) -> None:
        self._counted = None
        if segment not in self.segments:
            self.segments[segment] = WeighedPlaces()
        self.segments[segment].add(having, weight)

    def _raise(self, segment: int, having: Set[float], weight: float) -> None:
        self._counted = None
        if segment in self.segments:
            self.segments[segment].raise_known(having, weight)

    def part(self) -> None:
        """Part the passages by their segments, if that was not done yet."""
        if not self.is_whole:
            return
        self.is_whole = False
        whole = self.segments.pop(0, WeighedPlaces())
        for weight, places in whole.groups().items():
            parts: dict[int, set[float]] = {}
            group_by_segment([passage_at(0, place) for place in places], parts)
            for segment, some in parts.items():
                self.segments.setdefault(segment, WeighedPlaces()).put(some, weight)

    def is_certain(self, left: float, passages: int) -> bool:
        """Return whether no passage without any of the tokens so far can be among the best.

        ``left`` is the sum of the weights of the other tokens. The next one has so many passages: if they are
        few, reading them is faster than counting.
        """
        if self._most is None or passages <= self._most or left >= self._uncertain:
            return False
        least = self._least()
        # What the best passages gain by a token, the others can gain no more.
        self._uncertain = (left + least) / 2
        return least > left

    def are_best(self, segments: Collection[int], left: float) -> bool:
        """Return whether enough passages of these segments weigh at least ``left``."""
        lacking = math.inf if self._most is None else self._most
        for segment in segments:
            if segment in self.segments:
                known = self.segments[segment].counts()
                lacking -= sum(count for weight, count in known.items() if weight >= left)
        return lacking <= 0

    def drop_hopeless(self, left: float) -> None:
        """Drop the passages that cannot be among the best any more, even with all other tokens."""
        if (least := self._least() - left) > 0:
            self._counted = None
            for segment, known in [*self.segments.items()]:
                if not known.keep(least):
                    del self.segments[segment]

    def _counts(self) -> Mapping[float, int]:
        """Return the number of passages with each weight."""
        if self._counted is None:
            self._counted = counts = dict[float, int]()
            for known in self.segments.values():
                sizes = known.counts()
                if not counts:
                    counts.update(sizes)
                    continue
                for weight, size in sizes.items():
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
        newest_first = [
            (segment, known.groups())
            for segment, known in sorted(self.segments.items(), reverse=True)
        ]
        for weight in sorted(self._counts(), reverse=True):
            for segment, known in newest_first:
                for place in sorted(known.get(weight, ()), reverse=True):
                    yield passage_at(segment, place)
