"""The content of the file of the recall index."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from sqlite_utils import Database

from refold.application.ports.conversation_log import ConversationLog, Damage, LoggedEvent
from refold.application.ports.recall_index import NO_FILTERS, Filters, Found
from refold.application.recall.passages import Passage
from refold.infrastructure.observability.log_observer import Notice, ignore
from refold.infrastructure.projection_store.catch_up import FollowedLog
from refold.infrastructure.projection_store.checkpoint import (
    Left,
    Progress,
    read_progress,
    reading_from,
)
from refold.infrastructure.projection_store.projection import Comparable

from . import index_search as finding
from .index_folds import fold_into
from .index_tables import (
    IS_THERE,
    PASSAGE_COLUMNS,
    PASSAGES,
    POSTINGS,
    PROJECTIONS,
    SEGMENTS,
    TERM_BITS,
    TERM_COLUMNS,
    TERMS,
    THREAD_COLUMNS,
    THREADS,
    Proved,
    create_tables,
)
from .segments import PassageDamaged, problem_of, segments_in


class RecallContent:
    """The ``Content`` of the recall index."""

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
        """Create every table except that of checkpoints, in the open transaction."""
        create_tables(db)

    def fold(
        self, db: Database, progress: Progress, events: Iterator[LoggedEvent], left: Left
    ) -> tuple[Progress, bool]:
        """Fold the next batch of events in, and store rows and checkpoint in the open transaction."""
        return fold_into(db, progress, events, left)

    def finish(self, db: Database) -> None:
        """Do nothing, because no object slows a bulk load down."""

    def count(self, db: Database) -> int:
        """Return the number of folded items."""
        return read_progress(db, PROJECTIONS).totals[PASSAGES].rows

    def forget(self, db: Database) -> None:
        """Empty the tables with final rows, after a check has compared these rows."""
        db.conn.execute(f"DELETE FROM {PASSAGES}")
        db.conn.execute(f"DELETE FROM {POSTINGS}")
        db.conn.execute(f"DELETE FROM {SEGMENTS}")

    def damage(self, db: Database) -> Iterator[Damage]:
        """Yield the segments whose postings differ from their passages."""
        known = segments_in(db)
        for segment in known:
            # The comparison of rows reports a changed passage.
            with suppress(PassageDamaged):
                if problem := problem_of(db, segment):
                    yield Damage(POSTINGS, "", 0, "differs", problem)
        query = f"SELECT DISTINCT place >> {TERM_BITS} FROM {POSTINGS}"
        for (segment,) in db.conn.execute(query).fetchall():
            if segment not in known:
                yield Damage(POSTINGS, "", 0, "unexpected", f"postings of segment {segment}")


RECALL = RecallContent()


class SQLiteRecallIndex:
    """The ``RecallIndex`` in an SQLite file next to the log, which may be deleted at any time.

    If the file cannot be used, the index is kept in memory while this object exists, and a warning is
    logged.
    """

    def __init__(
        self,
        path: str | Path,
        log: ConversationLog,
        *,
        of: str | Path | None = None,
        notify: Callable[[Notice], None] = ignore,
    ) -> None:
        """Create the index. The file is opened by the first query; ``":memory:"`` uses no disk.

        ``of`` is the log file, which gives the new file its permissions. ``notify`` is called for each
        rebuild because of damage.
        """
        self.followed = FollowedLog(path, RECALL, log, of=of, notify=notify)
        self._proved = Proved()

    def edition(self) -> int:
        """Return the edition of the index. Every erasure starts a new one."""
        return self.followed.answer(reading_from)

    def find(
        self,
        tokens: Sequence[str],
        filters: Filters = NO_FILTERS,
        *,
        limit: int = 50,
        also: Sequence[int] = (),
    ) -> Found:
        """Find the best passages with these tokens that pass the filters."""
        return self.followed.answer(
            lambda db: finding.find(db, tokens, filters, limit, also, self._proved)
        )

    def passages(
        self, after: int = 0, limit: int = 1_000, *, filters: Filters = NO_FILTERS
    ) -> Sequence[Passage]:
        """Return the next passages after a number that pass the filters."""
        return self.followed.answer(
            lambda db: finding.in_order(db, after, limit, filters, self._proved)
        )

    def digests(self) -> Collection[str]:
        """Return the digests of all texts."""
        return self.followed.answer(lambda db: finding.every_digest(db, self._proved))

    def check(self) -> Iterator[Damage]:
        """Yield all differences from a replay."""
        return self.followed.check()

    def rebuild(self) -> int:
        """Delete the index, fold the log again, and return the number of passages."""
        return self.followed.rebuild()

    def drop(self) -> bool:
        """Delete the index, and return whether nothing is left."""
        return self.followed.drop()

    def forget_erased(self) -> bool:
        """Remove erased content from all files, and return whether nothing of it is left."""
        return self.followed.forget_erased()

    def close(self) -> None:
        """Release files and connections. A second call does nothing."""
        self.followed.close()
