"""Runs of postings: the passages of successive events by term, in rows for many terms each."""

import sys
import zlib
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate, islice, pairwise
from typing import Any, NamedTuple

from refold.application.recall.tokens import Vocabulary
from refold.infrastructure.projection_store.checkpoint import Total
from refold.infrastructure.projection_store.row_checksums import FoldDamaged, seal_row
from refold.infrastructure.projection_store.tables import Tables

from .index_tables import (
    BUCKET_BITS,
    POSTINGS,
    RUNS,
    buckets_of,
    places_of,
    term_of,
)

_TERM, _NUMBER = array("Q").itemsize, array("I").itemsize
_ODD = 0x9E37_79B9_7F4A_7C15

Stored = tuple[int, int, bytes, bytes]
"""A row of postings."""


class Grouped(NamedTuple):
    """The places of passages in their segment, by the hashes of their tokens."""

    terms: bytes
    """Hashes, ascending, of 8 bytes each."""
    counts: bytes
    """How many passages have each, 4 bytes each."""
    places: bytes
    """Their places, ascending for each term, 4 bytes each."""


def grouped(found: Mapping[int, Sequence[int]]) -> Grouped:
    """Return places that are given by term."""
    terms = sorted(found)
    places = array("I")
    for term in terms:
        places.extend(found[term])
    counts = array("I", [len(found[term]) for term in terms])
    return Grouped(array("Q", terms).tobytes(), counts.tobytes(), places.tobytes())


def merged(parts: Sequence[Grouped]) -> Grouped:
    """Return the places of several parts. Those of each part are larger than those of the parts before."""
    if len(parts) == 1:
        return parts[0]
    found: dict[int, list[bytes]] = {}
    for part in parts:
        at = 0
        for term, count in zip(_terms(part.terms), _numbers(part.counts), strict=True):
            end = at + count * _NUMBER
            found.setdefault(term, []).append(part.places[at:end])
            at = end
    terms = sorted(found)
    places = [b"".join(found[term]) for term in terms]
    counts = array("I", [len(those) // _NUMBER for those in places])
    return Grouped(array("Q", terms).tobytes(), counts.tobytes(), b"".join(places))


def _terms(content: bytes) -> memoryview:
    return memoryview(content).cast("Q")


def _numbers(content: bytes) -> memoryview:
    return memoryview(content).cast("I")


def rows_of(run: int, content: Grouped) -> list[Stored]:
    """Return the rows of a run: one for each bucket, even if it is empty."""
    terms, ends = _terms(content.terms), [0, *accumulate(_numbers(content.counts))]
    edges = [bisect_left(terms, first) for first in buckets_of(run)]
    return [
        pack_bucket(
            run << BUCKET_BITS | bucket,
            content.terms[start * _TERM : stop * _TERM],
            content.counts[start * _NUMBER : stop * _NUMBER],
            content.places[ends[start] * _NUMBER : ends[stop] * _NUMBER],
        )
        for bucket, (start, stop) in enumerate(pairwise((*edges, len(terms))))
    ]


def pack_bucket(place: int, terms: bytes, counts: bytes, places: bytes) -> Stored:
    """Return the row of a bucket."""
    return place, zlib.crc32(places), terms + counts, places


def check_of(row: Sequence[Any]) -> int:
    """Return the checksum of a row of postings that its run keeps. It depends on every column."""
    # A checksum can start from any 32 bits: an odd factor spreads the place over them.
    return zlib.crc32(row[2], (row[0] * _ODD + row[1]) & 0xFFFF_FFFF)


class Run(NamedTuple):
    """What is known of a run without its postings."""

    total: Total
    """Number of its passages and the sum of their checksums."""
    checks: "array[int]"
    """Checksums of its rows of postings."""


def record_of(run: int, known: Run) -> tuple[int | bytes, ...]:
    """Return the row of a run."""
    content = known.checks.tobytes()
    return (run, *known.total, content, seal_row((run, *known.total, zlib.crc32(content)))[-1])


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


def stored_run(db: Tables, run: int) -> Run | None:
    """Return what is known of a run, or None if it has no passages.

    Raises:
        FoldDamaged: the record was changed.
    """
    row = db.execute(f"SELECT * FROM {RUNS} WHERE run = ?", (run,)).fetchone()
    return None if row is None else open_record(row)[1]


def put_run(db: Tables, run: int, total: Total, content: Grouped) -> None:
    """Write a run, in the open transaction."""
    rows = rows_of(run, content)
    db.insert(POSTINGS, rows)
    db.replace(RUNS, [record_of(run, Run(total, array("I", map(check_of, rows))))])


def delete_run(db: Tables, run: int) -> None:
    """Delete a run, in the open transaction."""
    db.execute(f"DELETE FROM {RUNS} WHERE run = ?", (run,))
    db.execute(f"DELETE FROM {POSTINGS} WHERE place >= ? AND place < ?", places_of(run))


def content_of(db: Tables, run: int, known: Run) -> Grouped:
    """Return the content of a run.

    Raises:
        FoldDamaged: a row was changed, or is missing.
    """
    query = f"SELECT * FROM {POSTINGS} WHERE place >= ? AND place < ? ORDER BY place"
    rows = db.execute(query, places_of(run)).fetchall()
    if len(rows) != len(known.checks):
        raise FoldDamaged(f"rows of run {run} are missing")
    buckets = [open_bucket(row, check) for row, check in zip(rows, known.checks, strict=True)]
    return Grouped(
        b"".join([bucket.terms for bucket in buckets]),
        b"".join([bucket.counts for bucket in buckets]),
        b"".join([row[3] for row in rows]),
    )


class Bucket:
    """The terms of a row of postings, with their places if those were read."""

    def __init__(self, checksum: int, content: bytes) -> None:
        half = len(content) // (_TERM + _NUMBER) * _TERM
        self.terms, self.counts = content[:half], content[half:]
        self._terms, self._counts = _terms(self.terms), _numbers(self.counts)
        self.checksum = checksum
        """Checksum of the places."""
        self.places: bytes | None = None

    def find(self, term: int) -> tuple[int, int]:
        """Return where the places of a term begin and end."""
        at = bisect_left(self._terms, term)
        if at == len(self._terms) or self._terms[at] != term:
            return 0, 0
        begin = sum(self._counts[:at])
        return begin, begin + self._counts[at]

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


class Posting(NamedTuple):
    """Passages of a segment with a token."""

    segment: int
    locals: "array[int]"
    """Places in the segment, ascending."""

    def has(self, local: int) -> bool:
        """Return whether the passage at this place has the token."""
        at = bisect_left(self.locals, local)
        return at < len(self.locals) and self.locals[at] == local


class Having(NamedTuple):
    """Where the places of a term in a run are."""

    place: int
    segment: int
    bucket: Bucket
    begin: int
    end: int


MANY = 300
"""Number of passages from which on their tokens are grouped with numpy, if it is loaded."""


class TermVocabulary(Vocabulary):
    """A vocabulary with the terms of each text."""

    def __init__(self) -> None:
        super().__init__()
        self.terms = array("Q")
        self.ends = array("I", [0])
        """End of the terms of each text in ``terms``, after a first 0."""
        self.ranked: tuple[Any, Any] | None = None
        """All terms, ascending, and the place among them of each in ``terms``: two arrays of numpy."""

    def add_terms(self) -> None:
        """Add the terms of texts that are new."""
        for found in islice(self.tokens, len(self.ends) - 1, None):
            self.terms.extend(set(map(term_of, found)))
            self.ends.append(len(self.terms))
            self.ranked = None


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

    def grouped(self, first: int, places: Sequence[int]) -> Grouped:
        """Return the terms of the passages from ``first`` on, which are in these places."""
        vocabulary = self._vocabulary
        if vocabulary is None:
            return grouped({})
        vocabulary.add_terms()
        begin, stop = sum(vocabulary.counts[:first]), first + len(places)
        if len(places) >= MANY and "numpy" in sys.modules:
            return _grouped_at_once(vocabulary, begin, vocabulary.counts[first:stop], places)
        by_text = defaultdict[int, list[int]](list)
        for place, count in zip(places, vocabulary.counts[first:stop], strict=True):
            for text in set(vocabulary.read[begin : begin + count]):
                by_text[text].append(place)
            begin += count
        having = defaultdict[int, list[list[int]]](list)
        for text, found in by_text.items():
            for term in vocabulary.terms[vocabulary.ends[text] : vocabulary.ends[text + 1]]:
                having[term].append(found)
        return grouped(
            {
                term: found[0] if len(found) == 1 else sorted(set().union(*found))
                for term, found in having.items()
            }
        )


def _grouped_at_once(
    vocabulary: TermVocabulary, begin: int, of_passages: "array[int]", places: Sequence[int]
) -> Grouped:
    """Group passages by one sort. Their texts are read from ``begin`` on, so many for each."""
    import numpy as np

    if vocabulary.ranked is None:
        vocabulary.ranked = np.unique(
            np.frombuffer(vocabulary.terms, np.uint64), return_inverse=True
        )
    known, ranks = vocabulary.ranked
    counts = np.frombuffer(of_passages, np.uint32)
    texts = np.frombuffer(vocabulary.read, np.uint32)[begin : begin + int(counts.sum())]
    ends = np.frombuffer(vocabulary.ends, np.uint32).astype(np.int32)
    sizes = np.diff(ends)[texts]
    # The place of each term of each text: those before it in the whole list, moved to where its text's begin.
    moved = np.repeat(ends[texts] - (np.cumsum(sizes, dtype=np.int32) - sizes), sizes)
    moved += np.arange(len(moved), dtype=np.int32)
    bits = len(places).bit_length()
    kind: Any = np.uint32 if len(known) < 1 << (32 - bits) else np.uint64
    keys = ranks.astype(kind)[moved]
    keys <<= kind(bits)
    keys |= np.repeat(np.repeat(np.arange(len(places), dtype=kind), counts), sizes)
    # The function of numpy for this takes ten times as long.
    keys.sort()
    keys = keys[np.diff(keys, prepend=~keys[:1]) != 0]
    found = keys >> kind(bits)
    starts = np.flatnonzero(np.diff(found, prepend=~found[:1]))
    own = np.array(places, np.uint32)[keys & kind((1 << bits) - 1)]
    return Grouped(
        known[found[starts]].tobytes(),
        np.diff(starts, append=len(keys)).astype(np.uint32).tobytes(),
        own.tobytes(),
    )
