"""The vectors of a log on its server, compared there by pgvector, or here by numpy where pgvector is not there."""

import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from eventsourcing.persistence import PersistenceError

from refold.application.errors import EmbedderError
from refold.application.ports.conversation_log import Damage
from refold.application.ports.embedder import Vector
from refold.application.ports.recall_index import Filters, RecallIndex
from refold.application.ports.vectors import Nearest, always
from refold.application.recall.passages import Passage
from refold.application.runtime.plain_lines import plain_logger
from refold.infrastructure.observability.log_observer import Notice, ignore
from refold.infrastructure.projection_store.catch_up import TRIES
from refold.infrastructure.projection_store.tables import Tables

from .connections import Store, to_text
from .failures import code_of, retry
from .vector_tables import (
    LOCK,
    MANY,
    WIDEST,
    WIDEST_INDEXED,
    Model,
    NearQuery,
    Pgvector,
    add_pgvector,
    count_of,
    create_index,
    delete_empty_models,
    delete_rows,
    digests_in,
    fill_halves,
    has_index,
    lacks_halves,
    model_for,
    model_in,
    note_pruning,
    prunings,
    put_vectors,
    rewrite,
    stored_vector,
    vectors_in,
)

if TYPE_CHECKING:
    from refold.infrastructure.recall.vector_matrices import Fresh, Scopes

logger = plain_logger(__name__)
Answering = Callable[[Callable[[Tables], list[Nearest] | None]], list[Nearest] | None]

LOOK_AGAIN = 300.0
"""Seconds after which pgvector is looked for again."""
PAGE = 1_000
"""Number of vectors that a check reads at once."""
WITHOUT = (
    "the server has no pgvector 0.8 or newer, so vectors are compared in this process: the hits are the same, "
    "and searches read every vector once; have it installed, then run CREATE EXTENSION vector"
)


class PostgresVectorStore:
    """The ``VectorStore`` on the server of a log. Its tables may be emptied at any time.

    The lock of the vectors comes before those of the index. No lock of the index may be held when vectors are
    pruned.
    """

    def __init__(
        self,
        store: Store,
        index: RecallIndex,
        *,
        answer: Answering | None = None,
        notify: Callable[[Notice], None] = ignore,
    ) -> None:
        """Create the store. ``prepare_schema`` must have prepared the schema.

        ``answer`` queries the tables of ``index`` in a transaction, after they caught up with the log. Without it,
        vectors are compared in this process.
        """
        self._store = store
        self._index = index
        self._answer = answer
        self._notify = notify
        self._closed = False
        self._alone = threading.RLock()
        self._scopes: Scopes | None = None
        self._pgvector: Pgvector | None = None
        self._look_at = 0.0
        self._said = self._noticed = False
        self._made_at: dict[str, int] = {}
        """Times of the models at the last searches."""

    def missing(self, model: str, digests: Sequence[str]) -> Sequence[str]:
        """Return those of these digests that have no vector."""
        with self._guard():
            there = (
                retry(lambda: digests_in(self._store, model, digests)) if digests else set[str]()
            )
        return [digest for digest in dict.fromkeys(digests) if digest not in there]

    def add(
        self, model: str, vectors: Mapping[str, Vector], *, still: Callable[[], bool] = always
    ) -> bool:
        """Store vectors, unless ``still`` returns False. Return whether they were stored."""
        from refold.infrastructure.recall.vector_matrices import pack_vector, same_length

        rows = {digest: pack_vector(vector) for digest, vector in vectors.items()}
        dimension = same_length(rows.values())

        def put() -> bool:
            pgvector, pruned = self.pgvector(), prunings(self._store)
            while not self._closed and still():
                # Not asked while this transaction is open: the answer needs a connection of its own.
                with self._writing():
                    if (now := prunings(self._store)) == pruned:
                        known = model_for(self._store, model, dimension)
                        put_vectors(self._store, known, rows, pgvector)
                        return True
                pruned = now
            return False

        if not rows:
            return True
        with self._guard():
            return retry(put)

    def nearest(self, model: str, query: Vector, filters: Filters, limit: int) -> Sequence[Nearest]:
        """Return the passages nearest to the query that pass the filters, best first."""
        from refold.infrastructure.recall.vector_matrices import pack_vector

        wanted = pack_vector(query)
        with self._guard():
            known = self._expect_dimension(model, len(wanted) // 4)
            self._notify_once()
            if known is None or limit < 1:
                return ()
            pgvector, answer = self.pgvector(), self._answer
            if pgvector is not None and answer is not None and known.dimension <= WIDEST:
                asked = NearQuery(pgvector, known, wanted, limit)
                if (found := self._compare_there(asked, filters, answer)) is not None:
                    return found
            return self._compare_here(model, wanted, filters, limit)

    def cosines(
        self, model: str, query: Vector, passages: Sequence[Passage]
    ) -> Mapping[int, float]:
        """Return the cosine similarity of these passages to the query, as far as they have vectors."""
        from refold.infrastructure.recall.vector_matrices import cosines, pack_vector

        wanted = pack_vector(query)
        with self._guard():
            stored = self._read_vectors(model, [p.digest for p in passages], len(wanted) // 4)
        rows = {p.number: stored[p.digest] for p in passages if p.digest in stored}
        return cosines(wanted, rows)

    def keep_only(self, model: str) -> int:
        """Delete the vectors of all other models, and return their number."""
        with self._guard():
            others = "SELECT number FROM {vector_models} WHERE name <> %s"
            if not self._store.rows(others, (to_text(model),)):
                return 0
            with self._writing():
                deleted = self._store.run(_DELETE_OTHERS, (to_text(model),)).rowcount
                delete_empty_models(self._store)
        self._forget()
        return int(deleted)

    def settle(self, model: str) -> None:
        """Create an index if a model has very many vectors. It takes up to minutes."""
        with self._guard():
            known, pgvector = model_in(self._store, model), self.pgvector()
            if known is None or pgvector is None or known.dimension > WIDEST_INDEXED:
                return
            if not has_index(self._store, known) and count_of(self._store, model) > MANY:
                create_index(self._store, known, pgvector)

    def prune(self, keep: Callable[[], Iterable[str]]) -> bool:
        """Delete the vectors of all other texts, and write the rest to new files."""
        try:
            with self._guard():
                # Called before any lock is taken here, because the index has locks of its own.
                texts = frozenset[str]() if self._is_empty() else frozenset(keep())
                with self._writing():
                    note_pruning(self._store)
                    if not self._is_empty():
                        rewrite(self._store, texts)
        except EmbedderError as error:
            logger.warning("vectors of erased texts wait for their table: %s", error)
            return False
        self._made_at.clear()
        self._forget()
        return True

    def count(self, model: str) -> int:
        """Return the number of vectors of a model."""
        with self._guard():
            return retry(lambda: count_of(self._store, model))

    def check(self) -> Iterator[Damage]:
        """Yield all changed vectors. A replica has none to check: their table is not replicated."""
        with self._guard():
            if self._store.is_replica:
                return iter(())
            numbers = self._damaged()
        return (Damage("vectors", "", 0, "differs", f"vector {n} was changed") for n in numbers)

    def mend(self) -> None:
        """Delete changed vectors."""
        with self._guard(), self._writing():
            damaged = self._damaged()
            delete_rows(self._store, damaged)
        if damaged:
            self._tell_damage(len(damaged))

    def drop(self) -> bool:
        """Delete all vectors, and return whether nothing is left."""
        return self.prune(tuple)

    def describe(self) -> str | None:
        """Describe the comparison without pgvector at the first call, or return None."""
        if self._said or self.pgvector() is not None:
            return None
        self._said = True
        return WITHOUT

    def close(self) -> None:
        """Close the store. Vectors that are added later are not stored."""
        self._closed = True
        self._forget()

    def pgvector(self) -> Pgvector | None:
        """Return pgvector, or None where it is not there. It may be installed at any time."""
        if self._pgvector is None and time.monotonic() >= self._look_at:
            found = add_pgvector(self._store)
            if found is not None:
                with self._writing():
                    fill_halves(self._store, found)
            self._pgvector, self._look_at = found, time.monotonic() + LOOK_AGAIN
        return self._pgvector

    def fresh(self, model: str, dimension: int, since: "Fresh | None") -> "Fresh | None":
        """Return the state of the table, with the texts stored after an earlier state."""
        from refold.infrastructure.recall.vector_matrices import Fresh

        known = model_in(self._store, model)
        if known is None or known.dimension != dimension:
            return None
        ((newest,),) = self._store.rows("SELECT coalesce(max(id), 0) FROM {vectors}")
        opened = known.made_at
        if since is None:
            return Fresh(opened, newest)
        seen = since.newest if since.opened == opened else 0
        rows = self._store.rows(
            "SELECT digest FROM {vectors} WHERE id > %s AND model = %s", (seen, known.number)
        )
        return Fresh(opened, newest, [digest for (digest,) in rows])

    def _compare_here(
        self, model: str, query: bytes, filters: Filters, limit: int
    ) -> Sequence[Nearest]:
        """Compare with every vector, read into matrices."""
        from refold.infrastructure.recall.vector_matrices import Scopes

        dimension = len(query) // 4

        def read(digests: Sequence[str]) -> Mapping[str, bytes]:
            return self._read_vectors(model, digests, dimension)

        with self._alone:
            scopes = self._scopes = self._scopes or Scopes(self._index)
            for _ in range(TRIES):
                edition = self._index.edition()
                scope = scopes.scope(self, model, dimension, filters.thread_id, edition, read)
                if scope is None or limit < 1:
                    return ()
                if self._index.edition() == edition:
                    return scope.nearest(query, filters, limit)
        raise EmbedderError("store", "messages are erased too often at the moment; try again later")

    def _compare_there(
        self, asked: NearQuery, filters: Filters, answer: Answering
    ) -> Sequence[Nearest] | None:
        """Let the server compare. Return None if the tables of the index are not on the server."""
        from .near_vectors import Damaged, nearest_by_pgvector

        # Another process may have stored some before pgvector was there.
        if lacks_halves(self._store, asked.model):
            with self._writing():
                fill_halves(self._store, asked.pgvector)
        indexed = filters.thread_id is None and has_index(self._store, asked.model)

        def question(db: Tables) -> list[Nearest] | None:
            if db.leaves_bytes:
                return None
            return nearest_by_pgvector(db, self._store, asked, filters, indexed=indexed)

        for _ in range(TRIES):
            try:
                return answer(question)
            except Damaged as error:
                with self._writing():
                    delete_rows(self._store, error.numbers)
                self._tell_damage(len(error.numbers))
        raise EmbedderError("store", "vectors change all the time on the server; verify its disks")

    def _expect_dimension(self, model: str, dimension: int) -> Model | None:
        """Return the model, or None if it has no vectors.

        Vectors of another dimension belong to another model with the same name. They are deleted, so that they are
        computed again.
        """
        known = self._notice_loss(model, model_in(self._store, model))
        if known is None or known.dimension == dimension:
            return known
        with self._writing():
            deleted = self._store.run("DELETE FROM {vectors} WHERE model = %s", (known.number,))
            delete_empty_models(self._store)
        self._made_at.pop(model, None)
        self._tell_damage(deleted.rowcount)
        raise EmbedderError(
            "dimension", f"{model} returns other vectors than before, so all are computed again"
        )

    def _notice_loss(self, model: str, known: Model | None) -> Model | None:
        """Tell that vectors are gone which were there, as after a crash of the server, so that they are made again."""
        made_at = 0 if known is None else known.made_at
        before, self._made_at[model] = self._made_at.get(model, made_at), made_at
        if before not in (0, made_at):
            self._tell_damage(0)
        return known

    def _read_vectors(
        self, model: str, digests: Sequence[str], dimension: int
    ) -> Mapping[str, bytes]:
        """Return the vectors of these texts. Damaged ones are deleted, so that they are missing."""
        known = model_in(self._store, model)
        if known is None or known.dimension != dimension or not digests:
            return {}
        found = vectors_in(self._store, known, digests)
        if damaged := [one.number for one in found if not one.is_intact]:
            with self._writing():
                delete_rows(self._store, damaged)
            self._tell_damage(len(damaged))
        return {one.digest: one.vector for one in found if one.is_intact}

    def _damaged(self) -> list[int]:
        damaged: list[int] = []
        last = 0
        while rows := self._store.rows(_ALL, (last, PAGE)):
            last = rows[-1][1]
            found = [stored_vector(row, dimension) for dimension, *row in rows]
            damaged += [one.number for one in found if not one.is_intact]
        return damaged

    def _is_empty(self) -> bool:
        # Not by its rows: deleted ones leave their bytes.
        table = f'"{self._store.address.schema}".vectors'
        ((size,),) = self._store.rows("SELECT pg_relation_size(%s::regclass)", (table,))
        return not size

    def _notify_once(self) -> None:
        if self.pgvector() is None and not self._noticed:
            self._noticed = True
            self._notify(Notice("vectors.compared_here", "", {"reason": WITHOUT}))

    def _tell_damage(self, vectors: int) -> None:
        self._forget()
        self._notify(Notice("vectors.damaged", "", {"vectors": vectors}))

    def _forget(self) -> None:
        with self._alone:
            if self._scopes is not None:
                self._scopes.forget()

    @contextmanager
    def _writing(self) -> Generator[None]:
        with self._store.transaction():
            self._store.run("SET LOCAL synchronous_commit = off")
            self._store.lock(LOCK)
            yield

    @contextmanager
    def _guard(self) -> Generator[None]:
        try:
            yield
        except PersistenceError as error:
            shown, code = self._store.address.shown, code_of(error)
            raise EmbedderError(
                "store", f"vectors cannot be kept on {shown} (SQLSTATE {code}); try again"
            ) from error


_DELETE_OTHERS = """
DELETE FROM {vectors} v USING {vector_models} m WHERE m.number = v.model AND m.name <> %s
"""
_ALL = """
SELECT m.dimension, v.id, v.digest, v.vector, v.checksum FROM {vectors} v
LEFT JOIN {vector_models} m ON m.number = v.model WHERE v.id > %s ORDER BY v.id LIMIT %s
"""
