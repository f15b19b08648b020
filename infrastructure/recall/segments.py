"""Segments of the recall index: postings of several thousand events that are written and checked together."""

import json
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any

from refold.application.recall.passages import Passage
from refold.application.runtime.plain_lines import plain_logger
from refold.infrastructure.projection_store.catch_up import FollowedLog
from refold.infrastructure.projection_store.checkpoint import (
    Total,
    has_earlier_fold,
    read_progress,
)
from refold.infrastructure.projection_store.row_checksums import (
    BROKEN,
    FoldDamaged,
    MemoryShort,
    blamed_on_file,
    is_unusable,
    open_row,
    seal_row,
)
from refold.infrastructure.projection_store.tables import SQLiteTables, Tables
from refold.infrastructure.sqlite.sqlite_connection import open_sqlite

from .index_tables import (
    BUCKET_BITS,
    IS_THERE,
    PASSAGE_COLUMNS,
    PASSAGES,
    POSTINGS,
    PROJECTIONS,
    RUNS,
    Bucket,
    Run,
    Thread,
    bounds_of,
    bucket_of,
    check_of,
    create_tables,
    local_of,
    numbers_at,
    numbers_of,
    numbers_of_run,
    open_bucket,
    posted_before,
    runs_of,
    segment_of,
    segment_of_run,
    term_of,
    terms_of,
)
from .passage_texts import BatchTexts
from .posting_runs import (
    Grouped,
    Stored,
    content_of,
    delete_run,
    grouped,
    merged,
    pack_bucket,
    put_run,
    record_of,
    rows_of,
    stored_run,
)

_PASSAGE_MARKS = ",".join("?" * len(PASSAGE_COLUMNS))
_COPIED = (
    (f"SELECT * FROM {RUNS} WHERE run >= ? AND run < ?", f"INSERT INTO {RUNS} VALUES (?,?,?,?,?)"),
    (
        f"SELECT * FROM {PASSAGES} WHERE number >= ? AND number < ?",
        f"INSERT INTO {PASSAGES} VALUES ({_PASSAGE_MARKS})",
    ),
    (
        f"SELECT * FROM {POSTINGS} WHERE place >= ? AND place < ?",
        f"INSERT INTO {POSTINGS} VALUES (?,?,?,?)",
    ),
)
_NUMBERED = f"SELECT * FROM {PASSAGES} WHERE number IN (SELECT value FROM json_each(?))"
TOKENS_AT = tuple(PASSAGE_COLUMNS).index("tokens")
"""Index of the tokens in the row of a passage."""


def group_tokens(passages: Iterable[tuple[int, str]]) -> Grouped:
    """Return the terms of passages that are given by their places and tokens. Places must ascend."""
    # Arrays take a tenth of the memory of lists, and the garbage collector does not visit them.
    by_token: defaultdict[str, array[int]] = defaultdict(partial(array, "I"))
    for place, tokens in passages:
        for token in set(tokens.split()):
            by_token[token].append(place)
    found: dict[int, Sequence[int]] = {}
    for token, places in by_token.items():
        term = term_of(token)
        shared = found.get(term)
        found[term] = places if shared is None else sorted({*shared, *places})
    return grouped(found)


class SegmentPostings:
    """The ``Postings`` in a file: runs in segments."""

    def __init__(self) -> None:
        self._numbers = array("Q")
        self._checksums = array("Q")
        self._texts = BatchTexts()

    def lines_of(self, texts: Sequence[tuple[bytes, str]]) -> Sequence[tuple[str, int]]:
        """Return the tokens of the next passages, and their numbers."""
        return self._texts.lines_of(texts)

    def take(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Collect the rows of new passages."""
        self._numbers.extend([row[0] for row in rows])
        self._checksums.extend([row[-1] for row in rows])

    def write(self, db: Tables, first: int, stop: int) -> None:
        """Write the runs that are complete, and merge those before them."""
        # What was collected is in the table as well.
        own = self._numbers[0] if self._numbers else stop
        waiting = [*passages_between(db, first, min(own, stop))] if first < stop else []
        new = self._numbers[: bisect_left(self._numbers, stop)]
        for segment in sorted(
            {segment_of(first), *map(segment_of, new)}.union(segment_of(one[0]) for one in waiting)
        ):
            before, after = runs_of(segment, first), runs_of(segment, stop)
            for run in after:
                if run not in before:
                    self._write(db, run, before, waiting)
            for run in before:
                if run not in after:
                    delete_run(db, run)
        self._texts.done()

    def _write(
        self, db: Tables, run: int, before: Iterable[int], waiting: Sequence[tuple[int, str, int]]
    ) -> None:
        """Write a run of what earlier runs have, of what waits and of what was collected, in this order."""
        begin, end = numbers_of_run(run)
        total, parts = Total(), list[Grouped]()
        for earlier in before:
            if begin <= numbers_of_run(earlier)[0] < end and (known := stored_run(db, earlier)):
                total = total.plus(known.total)
                parts.append(content_of(db, earlier, known))
        own = [one for one in waiting if begin <= one[0] < end]
        if own:
            total = total.plus(Total(len(own), sum(checksum for _, _, checksum in own)))
            parts.append(group_tokens((local_of(number), tokens) for number, tokens, _ in own))
        start, stop = (bisect_left(self._numbers, number) for number in (begin, end))
        if start < stop:
            total = total.plus(Total(stop - start, sum(self._checksums[start:stop])))
            places = [*map(local_of, self._numbers[start:stop])]
            parts.append(self._texts.grouped(start, places))
        if parts:
            put_run(db, run, total, merged(parts))

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
        """Replace the rows of passages by empty ones, and remove them from their run."""
        number = passages[0].number
        if number < stop:
            lost: defaultdict[int, set[int]] = defaultdict(set)
            for passage in passages:
                for term in terms_of(passage.tokens):
                    lost[term].add(local_of(passage.number))
            runs = runs_of(segment_of(number), stop)
            run = next(one for one in runs if number < numbers_of_run(one)[1])
            take_out(db, run, gone, lost)
        # Not the number itself: an update of the key deletes the row, and SQLite would move others into
        # its place.
        columns = ", ".join(f"{column} = ?" for column in PASSAGE_COLUMNS if column != "number")
        db.executemany(
            f"UPDATE {PASSAGES} SET {columns} WHERE number = ?",
            [(*_empty_row(passage.number)[1:], passage.number) for passage in passages],
        )


def take_out(db: Tables, run: int, gone: Total, lost: Mapping[int, set[int]]) -> None:
    """Remove passages from a run, in the open transaction.

    ``gone`` is their total. ``lost`` maps the hash of a token to the places of those with it.

    Raises:
        FoldDamaged: some of the passages are missing.
    """
    known = stored_run(db, run)
    if known is None:
        raise FoldDamaged(f"run {run} lacks its passages")
    total = known.total.plus(Total(-gone.rows, -gone.checksums))
    if not total.rows:
        delete_run(db, run)
        return
    rows: list[Stored] = []
    for place in sorted({bucket_of(run, term) for term in lost}):
        bucket = place & ((1 << BUCKET_BITS) - 1)
        found = _stored_bucket(db, place, known.checks[bucket])
        rows.append(_without(place, found, lost))
        known.checks[bucket] = check_of(rows[-1])
    db.replace(POSTINGS, rows)
    db.replace(RUNS, [record_of(run, Run(total, known.checks))])


def _stored_bucket(db: Tables, place: int, check: int) -> Bucket:
    row = db.execute(f"SELECT * FROM {POSTINGS} WHERE place = ?", (place,)).fetchone()
    if row is None:
        raise FoldDamaged(f"row {place} of postings is missing")
    return open_bucket(row, check)


def _without(place: int, bucket: Bucket, lost: Mapping[int, set[int]]) -> Stored:
    """Return the row of a bucket without the lost places of its terms."""
    left: dict[int, Sequence[int]] = {}
    missing = 0
    for term in memoryview(bucket.terms).cast("Q"):
        places = bucket.places_between(*bucket.find(term))
        gone = lost.get(term, set[int]())
        if rest := [one for one in places if one not in gone]:
            left[term] = rest
        missing += len(rest) + len(gone) - len(places)
    if missing or any(
        bucket_of(place >> BUCKET_BITS, t) == place and not bucket.has(t) for t in lost
    ):
        raise FoldDamaged(f"row {place} of postings lacks passages that have its tokens")
    return pack_bucket(place, *grouped(left))


class PassageDamaged(FoldDamaged):
    """A passage was changed after it was stored."""


def _empty_row(number: int) -> tuple[str | int | None, ...]:
    """Return the row that replaces a passage. It is shorter than any other, so that SQLite moves nothing."""
    kinds = [*PASSAGE_COLUMNS.values()][:-1]
    values: list[str | int | None] = ["" if kind is str else 0 for kind in kinds]
    # Places are unique. For a placeholder, the number is unique enough.
    values[0] = values[2] = number
    return seal_row(tuple(values))


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
    """Return all segments with runs, oldest first."""
    return sorted({segment_of_run(run) for (run,) in db.execute(f"SELECT run FROM {RUNS}")})


def copy_segment(source: Tables, into: Tables, segment: int) -> int | None:
    """Copy a segment in its current state into empty tables.

    Return the first passage without postings, or None if there is no such segment.
    """
    source.execute("BEGIN")
    try:
        if segment not in segments_in(source):
            return None
        for (read, write), bounds in zip(_COPIED, _bounds(segment), strict=True):
            into.executemany(write, source.execute(read, bounds))
        return posted_before(read_progress(source, PROJECTIONS).number)
    finally:
        source.execute("ROLLBACK")


def _bounds(segment: int) -> Sequence[tuple[int, int]]:
    """Return the key range of a segment in each table of ``_COPIED``."""
    first, stop = bounds_of(segment)
    return (first, stop), numbers_of(segment), (first << BUCKET_BITS, stop << BUCKET_BITS)


def _problem(db: Tables, segment: int, stop: int) -> str:
    begin, end = numbers_of(segment)
    passages = [*passages_between(db, begin, end)]
    expected: list[Stored] = []
    records: list[tuple[int | bytes, ...]] = []
    for run in runs_of(segment, stop):
        first, last = numbers_of_run(run)
        own = [one for one in passages if first <= one[0] < last]
        if own:
            rows = rows_of(
                run, group_tokens((local_of(number), tokens) for number, tokens, _ in own)
            )
            total = Total(len(own), sum(checksum for _, _, checksum in own))
            records.append(record_of(run, Run(total, array("I", map(check_of, rows)))))
            expected += rows
    of_runs, _, of_postings = _bounds(segment)
    query = f"SELECT * FROM {POSTINGS} WHERE place >= ? AND place < ? ORDER BY place"
    if db.execute(query, of_postings).fetchall() != expected:
        return f"the postings of segment {segment} are not those of its passages"
    query = f"SELECT * FROM {RUNS} WHERE run >= ? AND run < ? ORDER BY run"
    if db.execute(query, of_runs).fetchall() != records:
        return f"segment {segment} differs from the records of its runs"
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
        yield int(str(values[0])), str(values[TOKENS_AT]), int(row[-1])


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
            if is_unusable(error) or isinstance(error, MemoryShort):
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


def _overview(db: SQLiteTables) -> tuple[list[int], int]:
    """Return all segments and their total number of bytes; none of a file that the next question rebuilds."""
    if has_earlier_fold(db, PROJECTIONS):
        return [], 0
    return segments_in(db), int(db.execute(_SIZE).fetchone()[0])
