"""What the file of the recall index consists of."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from sqlite_utils import Database

from refold.application.event_log import Damage, LoggedEvent
from refold.infrastructure.derived.content import Comparable
from refold.infrastructure.derived.outdating import Left
from refold.infrastructure.derived.progress import Progress, read_progress

from .folding import fold_into
from .postings import TERM_BITS
from .segments import PassageDamaged, problem_of, segments_in
from .tables import (
    IS_THERE,
    PASSAGE_COLUMNS,
    PASSAGES,
    POSTINGS,
    PROJECTIONS,
    SEGMENTS,
    TERM_COLUMNS,
    TERMS,
    THREAD_COLUMNS,
    THREADS,
    create_tables,
)


class RecallContent:
    """``Content`` of the recall index."""

    name = "recall"
    title = "the recall index"
    projections = PROJECTIONS
    counts = "passages"
    late = frozenset[str]()
    compared: Sequence[Comparable] = (
        Comparable(
            PASSAGES,
            tuple(PASSAGE_COLUMNS),
            ("number",),
            of_event=True,
            is_final=True,
            where=IS_THERE,
        ),
        Comparable(THREADS, tuple(THREAD_COLUMNS), ("thread",)),
        Comparable(TERMS, tuple(TERM_COLUMNS), ("term",)),
    )

    def create(self, db: Database) -> None:
        """See ``Content``."""
        create_tables(db)

    def fold(
        self, db: Database, progress: Progress, events: Iterator[LoggedEvent], left: Left
    ) -> tuple[Progress, bool]:
        """See ``Content``."""
        return fold_into(db, progress, events, left)

    def finish(self, db: Database) -> None:
        """See ``Content``. There is nothing."""

    def count(self, db: Database) -> int:
        """See ``Content``."""
        return read_progress(db, PROJECTIONS).totals[PASSAGES].rows

    def forget(self, db: Database) -> None:
        """See ``Content``."""
        db.conn.execute(f"DELETE FROM {PASSAGES}")
        db.conn.execute(f"DELETE FROM {POSTINGS}")
        db.conn.execute(f"DELETE FROM {SEGMENTS}")

    def damage(self, db: Database) -> Iterator[Damage]:
        """See ``Content``. The postings of each segment are held against its passages."""
        known = segments_in(db)
        for segment in known:
            # A passage that was changed is named by the comparison.
            with suppress(PassageDamaged):
                if problem := problem_of(db, segment):
                    yield Damage(POSTINGS, "", 0, "differs", problem)
        query = f"SELECT DISTINCT place >> {TERM_BITS} FROM {POSTINGS}"
        for (segment,) in db.conn.execute(query).fetchall():
            if segment not in known:
                yield Damage(POSTINGS, "", 0, "unexpected", f"postings of segment {segment}")


RECALL = RecallContent()
