"""Segments of the recall index: the postings of some thousand events, written and checked together."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sqlite_utils import Database

from refold.infrastructure.derived.cells import opened, sealed
from refold.infrastructure.derived.damage import FoldDamaged
from refold.infrastructure.derived.progress import Total

from .postings import (
    TERM_BITS,
    Posting,
    Stored,
    local_of,
    numbers_of,
    packed,
    place_of,
    postings_at,
    segment_of,
    terms_of,
    unpacked,
)
from .tables import IS_THERE, PASSAGE_COLUMNS, PASSAGES, POSTINGS, SEGMENTS

_TOKENS = tuple(PASSAGE_COLUMNS).index("tokens")


class Sums(NamedTuple):
    """What a segment must have."""

    passages: Total = Total()
    postings: Total = Total()

    def plus(self, more: "Sums") -> "Sums":
        """Both together."""
        return Sums(self.passages.plus(more.passages), self.postings.plus(more.postings))


class Grown(NamedTuple):
    """Passages of one segment that are to be added to it."""

    passages: Total
    locals: Mapping[int, list[int]]
    """By the hash of a token: the places of those that have it, ascending."""


class Growth:
    """Passages that are gathered, segment by segment."""

    def __init__(self) -> None:
        self._totals: defaultdict[int, Total] = defaultdict(Total)
        self._locals: defaultdict[int, defaultdict[int, list[int]]] = defaultdict(
            lambda: defaultdict(list)
        )

    def take(self, number: int, tokens: str, checksum: int) -> set[int]:
        """Take a passage in; returns the hashes of its tokens."""
        segment, local, terms = segment_of(number), local_of(number), terms_of(tokens)
        self._totals[segment] = self._totals[segment].plus(Total(1, checksum))
        places = self._locals[segment]
        for term in terms:
            places[term].append(local)
        return terms

    def rows_of(self, segment: int) -> list[Stored]:
        """The rows of postings of a segment that has nothing else."""
        found = sorted(self._locals[segment].items()) if segment in self._locals else ()
        return [packed(place_of(segment, term), places) for term, places in found]

    def write(self, db: Database) -> None:
        """Write everything, in the transaction that is open."""
        for segment in sorted(self._totals):
            _grow(db, segment, Grown(self._totals[segment], self._locals[segment]))


def stored_sums(db: Database, segment: int) -> Sums | None:
    """What a segment must have; None if there is none.

    Raises:
        FoldDamaged: the record was changed.
    """
    row = db.conn.execute(f"SELECT * FROM {SEGMENTS} WHERE segment = ?", (segment,)).fetchone()
    if row is None:
        return None
    _, rows, checksums, terms, posted = (int(str(cell)) for cell in opened(SEGMENTS, row))
    return Sums(Total(rows, checksums), Total(terms, posted))


def shrink(db: Database, segment: int, gone: Total, lost: Mapping[int, set[int]]) -> None:
    """Take passages out of a segment, in the transaction that is open.

    ``gone``: their total; ``lost``: by the hash of a token, the places of those that have it.

    Raises:
        FoldDamaged: they are not all there.
    """
    sums = stored_sums(db, segment)
    places = [place_of(segment, term) for term in sorted(lost)]
    found = [*postings_at(db, places)]
    if sums is None or len(found) != len(places):
        raise FoldDamaged(f"segment {segment} lacks postings of its passages")
    left = [(posting, _without(posting, lost[posting.term])) for posting in found]
    emptied = [posting.place for posting, rest in left if not rest]
    rows = [packed(posting.place, rest) for posting, rest in left if rest]
    db.conn.executemany(f"DELETE FROM {POSTINGS} WHERE place = ?", [(at,) for at in emptied])
    _put(db, rows)
    change = sum(row[2] for row in rows) - sum(posting.checksum for posting in found)
    less = Sums(Total(-gone.rows, -gone.checksums), Total(-len(emptied), change))
    _record(db, segment, sums.plus(less))


def problem_of(db: Database, segment: int) -> str:
    """What is wrong with a segment, its passages held against its postings; empty: nothing."""
    try:
        return _problem(db, segment)
    except FoldDamaged as error:
        return str(error)


def segments_in(db: Database) -> list[int]:
    """Every segment, oldest first."""
    rows = db.conn.execute(f"SELECT segment FROM {SEGMENTS} ORDER BY segment")
    return [segment for (segment,) in rows]


def copy_segment(source: Database, into: Database, segment: int) -> None:
    """Put a segment as it is now into empty tables."""
    numbers, places = numbers_of(segment), (segment << TERM_BITS, (segment + 1) << TERM_BITS)
    source.conn.execute("BEGIN")
    try:
        for table, column, (first, stop) in (
            (SEGMENTS, "segment", (segment, segment + 1)),
            (PASSAGES, "number", numbers),
            (POSTINGS, "place", places),
        ):
            query = f"SELECT * FROM {table} WHERE {column} >= ? AND {column} < ?"
            rows = source.conn.execute(query, (first, stop))
            marks = ",".join("?" * len(rows.description))
            into.conn.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
    finally:
        source.conn.execute("ROLLBACK")


def _grow(db: Database, segment: int, grown: Grown) -> None:
    sums = stored_sums(db, segment)
    before: dict[int, Posting] = {}
    if sums is not None:
        places = [place_of(segment, term) for term in grown.locals]
        before = {posting.term: posting for posting in postings_at(db, places)}
    rows = [
        packed(
            place_of(segment, term), (*before[term].locals, *more) if term in before else more
        )
        for term, more in sorted(grown.locals.items())
    ]
    _put(db, rows)
    checksums = sum(row[2] for row in rows) - sum(p.checksum for p in before.values())
    more = Sums(grown.passages, Total(len(rows) - len(before), checksums))
    _record(db, segment, (sums or Sums()).plus(more))


def _put(db: Database, rows: Iterable[Stored]) -> None:
    db.conn.executemany(f"INSERT OR REPLACE INTO {POSTINGS} VALUES (?,?,?,?)", rows)


def _record(db: Database, segment: int, sums: Sums) -> None:
    row = sealed((segment, *sums.passages, *sums.postings))
    db.conn.execute(f"INSERT OR REPLACE INTO {SEGMENTS} VALUES (?,?,?,?,?,?)", row)


def _without(posting: Posting, lost: set[int]) -> list[int]:
    left = [local for local in posting.locals if local not in lost]
    if len(left) + len(lost) != len(posting.locals):
        raise FoldDamaged(f"posting {posting.place} lacks passages that have its token")
    return left


def _problem(db: Database, segment: int) -> str:
    sums, growth, total = stored_sums(db, segment), Growth(), Total()
    first, stop = numbers_of(segment)
    query = f"SELECT * FROM {PASSAGES} WHERE number >= ? AND number < ? AND {IS_THERE} ORDER BY number"
    for row in db.conn.execute(query, (first, stop)):
        values = opened(PASSAGES, row)
        growth.take(int(str(values[0])), str(values[_TOKENS]), int(row[-1]))
        total = total.plus(Total(1, int(row[-1])))
    expected = growth.rows_of(segment)
    query = f"SELECT * FROM {POSTINGS} WHERE place >= ? AND place < ? ORDER BY place"
    bounds = (segment << TERM_BITS, (segment + 1) << TERM_BITS)
    found = [tuple(row) for row in db.conn.execute(query, bounds)]
    for row in found:
        unpacked(row)
    if found != expected:
        return f"the postings of segment {segment} are not those of its passages"
    if sums != Sums(total, Total(len(found), sum(row[2] for row in found))):
        return f"segment {segment} has not what is recorded of it"
    return ""
