"""Runs of postings: the passages of successive events by term, in rows for many terms each."""

import zlib
from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from refold.infrastructure.projection_store.checkpoint import Total
from refold.infrastructure.projection_store.row_checksums import FoldDamaged, seal_row
from refold.infrastructure.projection_store.tables import Tables

from .index_tables import (
    BUCKET_BITS,
    POSTINGS,
    RUNS,
    Run,
    buckets_of,
    check_of,
    numbers_in,
    open_bucket,
    open_record,
    places_of,
    terms_in,
)

_TERM, _NUMBER = array("Q").itemsize, array("I").itemsize

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
        for term, count in zip(terms_in(part.terms), numbers_in(part.counts), strict=True):
            end = at + count * _NUMBER
            found.setdefault(term, []).append(part.places[at:end])
            at = end
    terms = sorted(found)
    places = [b"".join(found[term]) for term in terms]
    counts = array("I", [len(those) // _NUMBER for those in places])
    return Grouped(array("Q", terms).tobytes(), counts.tobytes(), b"".join(places))


def rows_of(run: int, content: Grouped) -> list[Stored]:
    """Return the rows of a run: one for each bucket, even if it is empty."""
    terms, ends = terms_in(content.terms), [0, *accumulate(numbers_in(content.counts))]
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


def record_of(run: int, known: Run) -> tuple[int | bytes, ...]:
    """Return the row of a run."""
    content = known.checks.tobytes()
    return (run, *known.total, content, seal_row((run, *known.total, zlib.crc32(content)))[-1])


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
