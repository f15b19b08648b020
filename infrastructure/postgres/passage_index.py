"""The recall index on a server: the same passages as in a file, and an index of their tokens."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from refold.application.ports.conversation_log import ConversationLog, Damage, LoggedEvent
from refold.application.ports.recall_index import NO_FILTERS, Filters, Found, Judge
from refold.application.recall.passages import Passage
from refold.application.recall.tokens import counted_line
from refold.infrastructure.observability.log_observer import Notice, ignore
from refold.infrastructure.projection_store.checkpoint import Left, Progress, Total, reading_from
from refold.infrastructure.projection_store.projection import Comparable
from refold.infrastructure.projection_store.tables import Tables
from refold.infrastructure.recall import index_search
from refold.infrastructure.recall.index_tables import (
    PASSAGE_COLUMNS,
    PASSAGES,
    THREAD_COLUMNS,
    THREADS,
    Thread,
    terms_of,
)
from refold.infrastructure.recall.proved_counts import Proved
from refold.infrastructure.recall.recall_index import RecallContent, fold_into
from refold.infrastructure.recall.segments import TOKENS_AT, SegmentPostings

from . import passage_search as searching
from .connections import Store
from .followed_tables import FollowedTables
from .passage_search import TOKENS

Answer = TypeVar("Answer")

TERMS = "terms"
TERM_COLUMNS: Mapping[str, type] = {"term": int, "passages": int}
"""Number of passages of each token, by its hash."""

_COLUMNS = ", ".join(PASSAGE_COLUMNS)
_AT = f"SELECT {_COLUMNS} FROM {{passages}} WHERE thread = ? AND position = ?"


class TokenPostings:
    """The ``Postings`` on a server, which keeps an index of the tokens itself."""

    def __init__(self) -> None:
        self._terms = Counter[int]()

    def lines_of(self, texts: Sequence[tuple[bytes, str]]) -> Sequence[tuple[str, int]]:
        """Return the tokens of the next passages, and their numbers."""
        return [counted_line(words, date) for words, date in texts]

    def take(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Count the tokens of new passages."""
        for row in rows:
            self._terms.update(terms_of(row[TOKENS_AT]))

    def write(self, db: Tables, first: int, stop: int) -> None:
        """Count the new passages of each token."""
        del first, stop
        _add_terms(db, self._terms)

    def rows_at(
        self, db: Tables, thread_id: str, thread: Thread, position: int
    ) -> Sequence[tuple[Any, ...]]:
        """Return the rows of the passages of a message."""
        del thread_id
        return db.execute(_AT, (thread.token, position)).fetchall()

    def remove(self, db: Tables, passages: Sequence[Passage], gone: Total, stop: int) -> None:
        """Delete the rows of passages, and take them out of the counts of their tokens."""
        del gone, stop
        numbers = [(passage.number,) for passage in passages]
        db.executemany("DELETE FROM {passages} WHERE number = ?", numbers)
        _take_out_terms(db, passages)


class CountedPostings(SegmentPostings):
    """The ``Postings`` of a file, with the counts of tokens that a server has."""

    def __init__(self) -> None:
        super().__init__()
        self._terms = Counter[int]()

    def take(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Collect new passages."""
        super().take(rows)
        for row in rows:
            self._terms.update(terms_of(row[TOKENS_AT]))

    def write(self, db: Tables, first: int, stop: int) -> None:
        """Write runs and counts."""
        super().write(db, first, stop)
        _add_terms(db, self._terms)

    def remove(self, db: Tables, passages: Sequence[Passage], gone: Total, stop: int) -> None:
        """Remove passages from their run and from the counts."""
        super().remove(db, passages, gone, stop)
        _take_out_terms(db, passages)


def _add_terms(db: Tables, terms: Mapping[int, int]) -> None:
    if terms:
        db.executemany(
            "INSERT INTO {terms} AS t VALUES (?, ?) ON CONFLICT (term) DO UPDATE SET "
            "passages = t.passages + excluded.passages",
            sorted(terms.items()),
        )


def _take_out_terms(db: Tables, passages: Sequence[Passage]) -> None:
    counts = Counter[int]()
    for passage in passages:
        counts.update(terms_of(passage.tokens))
    db.executemany(
        "UPDATE {terms} SET passages = passages - ? WHERE term = ?",
        [(count, term) for term, count in counts.items()],
    )
    db.executemany(
        "DELETE FROM {terms} WHERE term = ? AND passages <= 0", [(term,) for term in counts]
    )


class ServerRecallContent(RecallContent):
    """The ``Content`` of the recall index on a server.

    Where the tables on the server cannot be used, they are in memory: those of a file, and the counts of tokens.
    """

    compared: Sequence[Comparable] = (
        *RecallContent.compared,
        Comparable(TERMS, tuple(TERM_COLUMNS), ("term",)),
    )

    def create(self, db: Tables) -> None:
        """Create every table except that of checkpoints, in the open transaction."""
        if db.leaves_bytes:
            super().create(db)
        else:
            for name, columns in ((PASSAGES, PASSAGE_COLUMNS), (THREADS, THREAD_COLUMNS)):
                db.create_table(name, columns, next(iter(columns)), columns)
        db.create_table(TERMS, TERM_COLUMNS, "term", TERM_COLUMNS)

    def finish(self, db: Tables) -> None:
        """Create the indexes on a server."""
        if db.leaves_bytes:
            return
        db.create_index("passages_of_owners", PASSAGES, "owner", where="owner <> ''")
        db.create_index("passages_by_place", PASSAGES, "thread, position, part", unique=True)
        db.create_index("passages_by_digest", PASSAGES, "digest")
        db.execute(f"CREATE INDEX ON {{passages}} USING gin ({TOKENS})")
        db.execute(_NO_STATISTICS)

    def fold(
        self, db: Tables, progress: Progress, events: Iterator[LoggedEvent], left: Left
    ) -> tuple[Progress, bool]:
        """Fold the next batch of events in, and store rows and checkpoint in the open transaction."""
        postings = CountedPostings if db.leaves_bytes else TokenPostings
        return fold_into(db, progress, events, left, postings)

    def forget(self, db: Tables) -> None:
        """Empty the tables with final rows."""
        if db.leaves_bytes:
            super().forget(db)
        else:
            db.execute("DELETE FROM {passages}")

    def damage(self, db: Tables) -> Iterator[Damage]:
        """Yield the damage outside of rows. A server keeps its indexes itself."""
        return super().damage(db) if db.leaves_bytes else iter(())


# Statistics of an index of arrays would have words that people wrote.
_NO_STATISTICS = """
DO $do$ BEGIN EXECUTE (
    SELECT 'ALTER INDEX ' || indexrelid::regclass || ' ALTER COLUMN 1 SET STATISTICS 0' FROM pg_index
    WHERE indrelid = '{passages}'::regclass AND indexprs IS NOT NULL
); END $do$
"""

SERVER_RECALL = ServerRecallContent()


class PostgresRecallIndex:
    """The ``RecallIndex`` on the server of a log, which several machines share."""

    def __init__(
        self, store: Store, log: ConversationLog, *, notify: Callable[[Notice], None] = ignore
    ) -> None:
        """Create the index. Its tables are created and filled by the first query."""
        self.followed = FollowedTables(store, SERVER_RECALL, log, notify=notify)
        self._proved = Proved()

    def answer(self, question: Callable[[Tables], Answer]) -> Answer:
        """Catch up with the log, then query."""
        return self.followed.answer(question)

    def edition(self) -> int:
        """Return the edition of the index. Every erasure starts a new one."""
        return self.answer(reading_from)

    def find(
        self,
        tokens: Sequence[str],
        filters: Filters = NO_FILTERS,
        *,
        limit: int = 50,
        also: Sequence[int] = (),
        judge: Judge | None = None,
    ) -> Found:
        """Find the best passages with these tokens that pass the filters."""
        search = index_search.Search(tokens, filters, limit, also, judge)

        def question(db: Tables) -> Found:
            if db.leaves_bytes:
                return index_search.find(db, search, self._proved)
            return searching.find(db, search)

        return self.answer(question)

    def passages(
        self, after: int = 0, limit: int = 1_000, *, filters: Filters = NO_FILTERS
    ) -> Sequence[Passage]:
        """Return the next passages after a number that pass the filters."""

        def question(db: Tables) -> Sequence[Passage]:
            if db.leaves_bytes:
                return index_search.in_order(db, after, limit, filters, self._proved)
            return searching.in_order(db, after, limit, filters)

        return self.answer(question)

    def digests(self) -> Collection[str]:
        """Return the digests of all texts."""

        def question(db: Tables) -> Collection[str]:
            if db.leaves_bytes:
                return index_search.every_digest(db, self._proved)
            return searching.every_digest(db)

        return self.answer(question)

    def check(self) -> Iterator[Damage]:
        """Yield all differences from a replay."""
        return self.followed.check()

    def rebuild(self) -> int:
        """Fold the whole log again, and return the number of passages."""
        return self.followed.rebuild()

    def drop(self) -> bool:
        """Delete the index, and return whether nothing is left."""
        return self.followed.drop()

    def forget_erased(self) -> bool:
        """Write what is left to new files, and return whether nothing that was erased is left."""
        return self.followed.forget_erased()

    def close(self) -> None:
        """Release connections. A second call does nothing."""
        self.followed.close()
