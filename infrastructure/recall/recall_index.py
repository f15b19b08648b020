"""What the file of the recall index consists of."""

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


class SQLiteRecallIndex:
    """``RecallIndex`` in an SQLite file beside the log; the file may be deleted at any time.

    Where the file cannot be used, the index lives in memory for as long as this object does, and a
    warning is logged.
    """

    def __init__(
        self,
        path: str | Path,
        log: ConversationLog,
        *,
        of: str | Path | None = None,
        told: Callable[[Notice], None] = ignore,
    ) -> None:
        """Nothing is opened before the first question. ``":memory:"`` never touches a disk.

        ``of``: the file of the log; whoever may use that one may use this one. ``told``: of every
        rebuild that damage makes necessary.
        """
        self.followed = FollowedLog(path, RECALL, log, of=of, told=told)
        self._proved = Proved()

    def edition(self) -> int:
        """See ``RecallIndex``."""
        return self.followed.answer(reading_from)

    def find(
        self,
        tokens: Sequence[str],
        filters: Filters = NO_FILTERS,
        *,
        limit: int = 50,
        also: Sequence[int] = (),
    ) -> Found:
        """See ``RecallIndex``."""
        return self.followed.answer(
            lambda db: finding.find(db, tokens, filters, limit, also, self._proved)
        )

    def passages(
        self, after: int = 0, limit: int = 1_000, *, filters: Filters = NO_FILTERS
    ) -> Sequence[Passage]:
        """See ``RecallIndex``."""
        return self.followed.answer(
            lambda db: finding.in_order(db, after, limit, filters, self._proved)
        )

    def digests(self) -> Collection[str]:
        """See ``RecallIndex``."""
        return self.followed.answer(lambda db: finding.every_digest(db, self._proved))

    def check(self) -> Iterator[Damage]:
        """See ``RecallIndex``."""
        return self.followed.check()

    def rebuild(self) -> int:
        """See ``RecallIndex``."""
        return self.followed.rebuild()

    def drop(self) -> bool:
        """See ``RecallIndex``."""
        return self.followed.drop()

    def forget_erased(self) -> bool:
        """See ``RecallIndex``."""
        return self.followed.forget_erased()

    def close(self) -> None:
        """See ``RecallIndex``."""
        self.followed.close()
