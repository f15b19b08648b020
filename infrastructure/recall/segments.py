"""Segments of the recall index: postings of several thousand events that are written and checked together."""

import sys
from array import array
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import islice, pairwise
from typing import NamedTuple

from refold.application.recall.tokens import Vocabulary
from refold.application.runtime.plain_lines import plain_logger
from refold.infrastructure.projection_store.catch_up import FollowedLog
from refold.infrastructure.projection_store.checkpoint import Total
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
    SEGMENTS,
    TERM_BITS,
    Posting,
    Stored,
    create_tables,
    local_of,
    numbers_of,
    pack_posting,
    place_of,
    postings_at,
    term_of,
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
_TOKENS = tuple(PASSAGE_COLUMNS).index("tokens")


class Sums(NamedTuple):
    """The expected totals of a segment."""

    passages: Total = Total()
    postings: Total = Total()

    def plus(self, more: "Sums") -> "Sums":
        """Return the sum of both."""
        return Sums(self.passages.plus(more.passages), self.postings.plus(more.postings))


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
        for tokens in islice(self.tokens, len(self.ends) - 1, None):
            self.terms.extend({term_of(token) for token in tokens})
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


class Growth:
    """New passages of one segment."""

    def __init__(self, segment: int) -> None:
        self.segment = segment
        self._checksums = 0
        self._passages: list[tuple[int, str]] = []

    def take(self, number: int, tokens: str, checksum: int) -> None:
        """Add a passage. Numbers must ascend."""
        self._passages.append((local_of(number), tokens))
        self._checksums += checksum

    @property
    def total(self) -> Total:
        """Number of passages and sum of their checksums."""
        return Total(len(self._passages), self._checksums)

    def places_by_term(self) -> dict[int, Sequence[int]]:
        """Map the hash of each token, in ascending order, to the places of the passages that have the token."""
        # Arrays take a tenth of the memory of lists, and the garbage collector does not visit them.
        by_token: defaultdict[str, array[int]] = defaultdict(partial(array, "I"))
        for local, tokens in self._passages:
            for token in set(tokens.split()):
                by_token[token].append(local)
        found: dict[int, Sequence[int]] = {}
        for token, places in by_token.items():
            term = term_of(token)
            shared = found.get(term)
            found[term] = places if shared is None else sorted({*shared, *places})
        return {term: found[term] for term in sorted(found)}

    def write(self, db: Tables, texts: BatchTexts, first: int) -> Mapping[int, int]:
        """Write all postings in the open transaction. Return the number of passages by token hash.

        The texts of its passages are those of the batch from ``first`` on.
        """
        found = texts.places_by_term(first, [local for local, _ in self._passages])
        if found is None:
            found = self.places_by_term()
        _grow(db, self.segment, self.total, found)
        return {term: len(places) for term, places in found.items()}


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


def problem_of(db: Tables, segment: int) -> str:
    """Compare the passages of a segment with its postings. Return the problem, or an empty string.

    Raises:
        PassageDamaged: a passage was changed after it was stored.
    """
    try:
        return _problem(db, segment)
    except PassageDamaged:
        raise
    except FoldDamaged as error:
        return str(error)


def segments_in(db: Tables) -> list[int]:
    """Return all segments, oldest first."""
    rows = db.execute(f"SELECT segment FROM {SEGMENTS} ORDER BY segment")
    return [segment for (segment,) in rows]


def copy_segment(source: Tables, into: Tables, segment: int) -> bool:
    """Copy a segment in its current state into empty tables, and return whether it exists."""
    source.execute("BEGIN")
    try:
        if stored_sums(source, segment) is None:
            return False
        for (read, write), bounds in zip(_COPIED, _bounds(segment), strict=True):
            into.executemany(write, source.execute(read, bounds))
        return True
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


def _problem(db: Tables, segment: int) -> str:
    growth, bounds = Growth(segment), numbers_of(segment)
    query = (
        f"SELECT * FROM {PASSAGES} WHERE number >= ? AND number < ? AND {IS_THERE} ORDER BY number"
    )
    for row in db.execute(query, bounds):
        try:
            values = open_row(PASSAGES, row)
        except FoldDamaged as error:
            raise PassageDamaged(str(error)) from error
        growth.take(int(str(values[0])), str(values[_TOKENS]), int(row[-1]))
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
            found = self._followed.look_into(lambda db: copy_segment(db, copy, segment))
            if not found or self._interrupted:
                return ""
            try:
                return problem_of(copy, segment)
            except PassageDamaged as error:
                return str(error)


def _overview(db: Tables) -> tuple[list[int], int]:
    """Return all segments and their total number of bytes."""
    return segments_in(db), int(db.execute(_SIZE).fetchone()[0])
