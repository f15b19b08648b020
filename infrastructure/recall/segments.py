"""Segments of the recall index: postings of several thousand events that are written and checked together."""

import json
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from refold.application.recall.passages import Passage
from refold.application.runtime.plain_lines import plain_logger
from refold.infrastructure.projection_store.catch_up import FollowedLog
from refold.infrastructure.projection_store.checkpoint import Total, read_progress
from refold.infrastructure.projection_store.row_checksums import (
    BROKEN,
    FoldDamaged,
    blamed_on_file,
    is_unusable,
    open_row,
    seal_row,
)
from refold.infrastructure.projection_store.tables import SQLiteTables, Tables
from refold.infrastructure.sqlite.sqlite_connection import open_sqlite

from .index_tables import (
    IS_THERE,
    PASSAGE_COLUMNS,
    PASSAGES,
    POSTINGS,
    PROJECTIONS,
    SEGMENTS,
    TERM_BITS,
    BatchTexts,
    Posting,
    Stored,
    Thread,
    create_tables,
    empty_row,
    local_of,
    numbers_at,
    numbers_of,
    pack_posting,
    place_of,
    posted_before,
    postings_at,
    segment_of,
    term_of,
    terms_of,
)

_COPIED = (
    (
        f"SELECT * FROM {SEGMENTS} WHERE segment >= ? AND segment < ?",
        f"INSERT INTO {SEGMENTS} VALUES (?,?,?,?,?,?)",
    ),
    (
        f"SELECT * FROM {PASSAGES} WHERE number >= ? AND number < ?",
        f"INSERT INTO {PASSAGES} VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    ),
    (
        f"SELECT * FROM {POSTINGS} WHERE place >= ? AND place < ?",
        f"INSERT INTO {POSTINGS} VALUES (?,?,?,?)",
    ),
)
_NUMBERED = f"SELECT * FROM {PASSAGES} WHERE number IN (SELECT value FROM json_each(?))"
_TOKENS = tuple(PASSAGE_COLUMNS).index("tokens")


class Sums(NamedTuple):
    """The expected totals of a segment."""

    passages: Total = Total()
    postings: Total = Total()

    def plus(self, more: "Sums") -> "Sums":
        """Return the sum of both."""
        return Sums(self.passages.plus(more.passages), self.postings.plus(more.postings))


class Growth:
    """New passages of one segment."""

    def __init__(self, segment: int) -> None:
        self.segment = segment
        self._passages: list[tuple[int, str, int]] = []

    def take(self, number: int, tokens: str, checksum: int) -> None:
        """Add a passage. Numbers must ascend."""
        self._passages.append((local_of(number), tokens, checksum))

    @property
    def places(self) -> list[int]:
        """Places of the passages."""
        return [place for place, _, _ in self._passages]

    def cut(self, stop: int) -> list[str]:
        """Remove the passages numbered from ``stop`` on, and return their tokens."""
        begin, end = numbers_of(self.segment)
        at = bisect_left(self.places, max(0, stop - begin)) if stop < end else len(self._passages)
        cut, self._passages = self._passages[at:], self._passages[:at]
        return [tokens for _, tokens, _ in cut]

    @property
    def total(self) -> Total:
        """Number of passages and sum of their checksums."""
        return Total(len(self._passages), sum(checksum for _, _, checksum in self._passages))

    def places_by_term(self) -> dict[int, Sequence[int]]:
        """Map the hash of each token, in ascending order, to the places of the passages that have the token."""
        # Arrays take a tenth of the memory of lists, and the garbage collector does not visit them.
        by_token: defaultdict[str, array[int]] = defaultdict(partial(array, "I"))
        for local, tokens, _ in self._passages:
            for token in set(tokens.split()):
                by_token[token].append(local)
        found: dict[int, Sequence[int]] = {}
        for token, places in by_token.items():
            term = term_of(token)
            shared = found.get(term)
            found[term] = places if shared is None else sorted({*shared, *places})
        return {term: found[term] for term in sorted(found)}

    def write(
        self, db: Tables, texts: BatchTexts | None = None, first: int = 0
    ) -> Mapping[int, int]:
        """Write all postings in the open transaction. Return the number of passages by token hash.

        The texts of its passages are those of the batch from ``first`` on.
        """
        if not self._passages:
            return {}
        found = None if texts is None else texts.places_by_term(first, self.places)
        if found is None:
            found = self.places_by_term()
        _grow(db, self.segment, self.total, found)
        return {term: len(places) for term, places in found.items()}


class SegmentPostings:
    """The ``Postings`` in a file: segments."""

    def __init__(self) -> None:
        self._growths: dict[int, Growth] = {}
        self._texts = BatchTexts()

    def line_of(self, words: str, date: str) -> str:
        """Return the tokens of the next passage."""
        return self._texts.line_of(words, date)

    def take(self, passage: Passage, checksum: int) -> None:
        """Collect a new passage."""
        segment = segment_of(passage.number)
        growth = self._growths.get(segment) or self._growths.setdefault(segment, Growth(segment))
        growth.take(passage.number, passage.tokens, checksum)

    def write(self, db: Tables, first: int, stop: int) -> Mapping[int, int]:
        """Write the postings of all segments."""
        terms, waiting = Counter[int](), dict[int, Growth]()
        for number, tokens, checksum in passages_between(db, first, stop) if first < stop else ():
            segment = segment_of(number)
            waiting.setdefault(segment, Growth(segment)).take(number, tokens, checksum)
        for _, growth in sorted(waiting.items()):
            growth.write(db)
        before = 0
        for _, growth in sorted(self._growths.items()):
            count = len(growth.places)
            late = growth.cut(stop)
            terms.update(growth.write(db, self._texts, before))
            terms.update(chain.from_iterable(map(terms_of, late)))
            before += count
        self._texts.done()
        return terms

    def rows_at(
        self, db: Tables, thread_id: str, thread: Thread, position: int
    ) -> Sequence[tuple[Any, ...]]:
        """Return the rows of the passages of a message, from all index entries of its conversation."""
        numbers = numbers_at(db, thread_id, thread, (position,))
        rows = db.execute(_NUMBERED, (json.dumps(numbers),)).fetchall()
        if len(rows) != len(numbers):
            raise FoldDamaged(f"passages of message {position} are missing")
        return rows

    def remove(self, db: Tables, passages: Sequence[Passage], gone: Total, stop: int) -> None:
        """Replace the rows of passages by empty ones, and remove them from their segment."""
        is_written = passages[0].number < stop
        lost: defaultdict[int, set[int]] = defaultdict(set)
        for passage in passages if is_written else ():
            for term in terms_of(passage.tokens):
                lost[term].add(local_of(passage.number))
        if is_written:
            shrink(db, segment_of(passages[0].number), gone, lost)
        # Not the number itself: an update of the key deletes the row, and SQLite would move others into
        # its place.
        columns = ", ".join(f"{column} = ?" for column in PASSAGE_COLUMNS if column != "number")
        db.executemany(
            f"UPDATE {PASSAGES} SET {columns} WHERE number = ?",
            [(*empty_row(passage.number)[1:], passage.number) for passage in passages],
        )


def stored_sums(db: Tables, segment: int) -> Sums | None:
    """Return the expected totals of a segment, or None if it does not exist.

    Raises:
        FoldDamaged: the record was changed.
    """
    row = db.execute(f"SELECT * FROM {SEGMENTS} WHERE segment = ?", (segment,)).fetchone()
    if row is None:
        return None
    _, rows, checksums, terms, posted = (int(str(cell)) for cell in open_row(SEGMENTS, row))
    return Sums(Total(rows, checksums), Total(terms, posted))


def shrink(db: Tables, segment: int, gone: Total, lost: Mapping[int, set[int]]) -> None:
    """Remove passages from a segment, in the open transaction.

    ``gone`` is their total. ``lost`` maps the hash of a token to the places of those with it.

    Raises:
        FoldDamaged: some of the passages are missing.
    """
    sums = stored_sums(db, segment)
    places = [place_of(segment, term) for term in sorted(lost)]
    found = [*postings_at(db, places)]
    if sums is None or len(found) != len(places):
        raise FoldDamaged(f"segment {segment} lacks postings of its passages")
    left = [(posting, _remove_lost(posting, lost[posting.term])) for posting in found]
    emptied = [posting.place for posting, rest in left if not rest]
    rows = [pack_posting(posting.place, rest) for posting, rest in left if rest]
    db.executemany(f"DELETE FROM {POSTINGS} WHERE place = ?", [(at,) for at in emptied])
    _put(db, rows)
    change = sum(row[2] for row in rows) - sum(posting.checksum for posting in found)
    less = Sums(Total(-gone.rows, -gone.checksums), Total(-len(emptied), change))
    _record(db, segment, sums.plus(less))


class PassageDamaged(FoldDamaged):
    """A passage was changed after it was stored."""


def problem_of(db: Tables, segment: int, stop: int) -> str:
    """Compare the passages of a segment with its postings. Return the problem, or an empty string.

    Passages numbered from ``stop`` on have no postings yet.

    Raises:
        PassageDamaged: a passage was changed after it was stored.
    """
    try:
        return _problem(db, segment, stop)
    except PassageDamaged:
        raise
    except FoldDamaged as error:
        return str(error)


def segments_in(db: Tables) -> list[int]:
    """Return all segments, oldest first."""
    rows = db.execute(f"SELECT segment FROM {SEGMENTS} ORDER BY segment")
    return [segment for (segment,) in rows]


def copy_segment(source: Tables, into: Tables, segment: int) -> int | None:
    """Copy a segment in its current state into empty tables.

    Return the first passage without postings, or None if there is no such segment.
    """
    source.execute("BEGIN")
    try:
        if stored_sums(source, segment) is None:
            return None
        for (read, write), bounds in zip(_COPIED, _bounds(segment), strict=True):
            into.executemany(write, source.execute(read, bounds))
        return posted_before(read_progress(source, PROJECTIONS).number)
    finally:
        source.execute("ROLLBACK")


def _bounds(segment: int) -> Sequence[tuple[int, int]]:
    """Return the key range of a segment in each table of ``_COPIED``."""
    places = (segment << TERM_BITS, (segment + 1) << TERM_BITS)
    return (segment, segment + 1), numbers_of(segment), places


def _grow(db: Tables, segment: int, more: Total, found: Mapping[int, Sequence[int]]) -> None:
    sums = stored_sums(db, segment)
    before: dict[int, Posting] = {}
    if sums is not None:
        places = [place_of(segment, term) for term in found]
        before = {posting.term: posting for posting in postings_at(db, places)}
    base = segment << TERM_BITS
    rows = [
        pack_posting(base | term, (*before[term].locals, *places) if term in before else places)
        for term, places in found.items()
    ]
    _put(db, rows)
    checksums = sum(row[2] for row in rows) - sum(p.checksum for p in before.values())
    grown = Sums(more, Total(len(rows) - len(before), checksums))
    _record(db, segment, (sums or Sums()).plus(grown))


def _put(db: Tables, rows: Sequence[Stored]) -> None:
    db.replace(POSTINGS, rows)


def _record(db: Tables, segment: int, sums: Sums) -> None:
    db.replace(SEGMENTS, [seal_row((segment, *sums.passages, *sums.postings))])


def _remove_lost(posting: Posting, lost: set[int]) -> list[int]:
    left = [local for local in posting.locals if local not in lost]
    if len(left) + len(lost) != len(posting.locals):
        raise FoldDamaged(f"posting {posting.place} lacks passages that have its token")
    return left


def _problem(db: Tables, segment: int, stop: int) -> str:
    growth, (begin, end) = Growth(segment), numbers_of(segment)
    for number, tokens, checksum in passages_between(db, begin, end):
        growth.take(number, tokens, checksum)
    growth.cut(stop)
    base = segment << TERM_BITS
    expected = [
        pack_posting(base | term, places) for term, places in growth.places_by_term().items()
    ]
    query = f"SELECT * FROM {POSTINGS} WHERE place >= ? AND place < ? ORDER BY place"
    found = db.execute(query, (base, (segment + 1) << TERM_BITS)).fetchall()
    if found != expected:
        return f"the postings of segment {segment} are not those of its passages"
    posted = Total(len(found), sum(row[2] for row in found))
    if stored_sums(db, segment) != Sums(growth.total, posted):
        return f"segment {segment} differs from its record"
    return ""


def passages_between(db: Tables, first: int, stop: int) -> Iterator[tuple[int, str, int]]:
    """Yield number, tokens and checksum of the passages numbered from ``first`` up to ``stop``.

    Raises:
        PassageDamaged: a passage was changed after it was stored.
    """
    query = (
        f"SELECT * FROM {PASSAGES} WHERE number >= ? AND number < ? AND {IS_THERE} ORDER BY number"
    )
    for row in db.execute(query, (first, stop)):
        try:
            values = open_row(PASSAGES, row)
        except FoldDamaged as error:
            raise PassageDamaged(str(error)) from error
        yield int(str(values[0])), str(values[_TOKENS]), int(row[-1])


_SIZE = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"

logger = plain_logger(__name__)


class SegmentsScrub:
    """A scrub that checks the next segment, and more within its budget. Each opening of the log runs one."""

    def __init__(
        self,
        followed: FollowedLog,
        last: Callable[[], str],
        keep: Callable[[str], None],
        budget: int,
    ) -> None:
        """Create a scrub. ``last`` returns the last checked segment, and ``keep`` records a new one.

        ``budget`` is the total number of bytes to check. One segment is checked in any case.
        """
        self._followed = followed
        self._last = last
        self._keep = keep
        self._left = budget
        self._count = 0
        self._done: set[int] = set()
        self._interrupted = False

    def step(self) -> bool:
        """Check the next segment, and return whether the budget allows another."""
        segment: int | None = None
        try:
            with blamed_on_file():
                segment = self._next()
                if segment is None:
                    return False
                # A read error looks the same, so the file is read from the disk again.
                problem = self._problem(segment) and self._problem(segment)
        except BROKEN as error:
            if is_unusable(error):
                logger.info("the background check of the recall index stopped: %s", error)
                return False
            problem = str(error) or type(error).__name__
        if self._interrupted:
            return False
        if problem:
            self._followed.distrust(problem)
            return False
        self._keep(str(segment))
        return self._left > 0 and len(self._done) < self._count

    def interrupt(self) -> None:
        """Cancel the current check."""
        self._interrupted = True

    def _next(self) -> int | None:
        found = self._followed.look_into(_overview)
        if found is None or not found[0]:
            return None
        segments, size = found
        self._count = len(segments)
        self._left -= size // len(segments)
        last = self._last()
        after = [s for s in segments if last.isdecimal() and s > int(last)]
        segment = (after or segments)[0]
        if segment in self._done:
            return None
        self._done.add(segment)
        return segment

    def _problem(self, segment: int) -> str:
        # In memory, because the result of the comparison is used only here.
        with closing(SQLiteTables(open_sqlite(":memory:", isolation_level=None))) as copy:
            create_tables(copy)
            stop = self._followed.look_into(lambda db: copy_segment(db, copy, segment))
            if stop is None or self._interrupted:
                return ""
            try:
                return problem_of(copy, segment, stop)
            except PassageDamaged as error:
                return str(error)


def _overview(db: Tables) -> tuple[list[int], int]:
    """Return all segments and their total number of bytes."""
    return segments_in(db), int(db.execute(_SIZE).fetchone()[0])
