"""The vectors of a log in a file next to it, computed once for each text and compared with numpy."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from refold.application.errors import EmbedderError
from refold.application.ports.conversation_log import Damage
from refold.application.ports.embedder import Vector
from refold.application.ports.recall_index import Filters, RecallIndex
from refold.application.ports.vectors import Nearest, always
from refold.application.recall.passages import Passage
from refold.application.runtime.plain_lines import plain_logger
from refold.infrastructure.files.fork_gate import FileTurn
from refold.infrastructure.observability.log_observer import Notice, ignore
from refold.infrastructure.projection_store.catch_up import TRIES, NoAnswer, query_with_repairs
from refold.infrastructure.projection_store.database_file import DisplacedFile
from refold.infrastructure.projection_store.projection_check import check_place
from refold.infrastructure.projection_store.row_checksums import BROKEN, blamed_on_file, is_unusable

from .vector_file import VectorsFile, damage_of, delete_damaged, delete_of_other_dimension
from .vector_rows import (
    Stored,
    count_of,
    delete_rows,
    digests_in,
    digests_since,
    has_others,
    keep_model,
    model_for,
    model_in,
    newest_in,
    put_vectors,
    vectors_in,
)

if TYPE_CHECKING:
    from .vector_matrices import Fresh, Scopes

logger = plain_logger(__name__)
Answer = TypeVar("Answer")


class SQLiteVectorStore:
    """The ``VectorStore`` in an SQLite file next to the log, which may be deleted at any time.

    Locks are taken in this order: the store's own, then those of the index. A caller that deletes the
    index must hold none of its locks when vectors are pruned. If the file cannot be used (a read-only
    folder, a full disk), the vectors are kept in memory until it can be used again, and a warning is
    logged.
    """

    def __init__(
        self,
        path: str | Path,
        index: RecallIndex,
        *,
        of: str | Path | None = None,
        notify: Callable[[Notice], None] = ignore,
    ) -> None:
        """Create the store. The file is opened by the first query; ``":memory:"`` uses no disk.

        ``of`` is the log file, which gives the new file its permissions. ``notify`` is called for each
        damage.
        """
        self._index = index
        self._notify = notify
        self._path = None if str(path) == ":memory:" else Path(path).absolute()
        self._of = None if of is None or str(of) == ":memory:" else Path(of).absolute()
        self._file = VectorsFile(self._path, of=self._of)
        self._displaced: DisplacedFile[VectorsFile] | None = None
        self._turn = FileTurn(f"{of or path}", self.let_go)
        self._closed = False
        self._scopes: Scopes | None = None

    def missing(self, model: str, digests: Sequence[str]) -> Sequence[str]:
        """Return those of these digests that have no vector."""

        def question() -> Sequence[str]:
            there: set[str] = set()
            with self._file.reading() as db:
                if db is not None and (known := model_in(db, model)):
                    there = digests_in(db, known, digests)
            return [digest for digest in dict.fromkeys(digests) if digest not in there]

        return self._answer(question)

    def add(
        self, model: str, vectors: Mapping[str, Vector], *, still: Callable[[], bool] = always
    ) -> bool:
        """Store vectors, unless ``still`` returns False. Return whether they were stored."""
        from .vector_matrices import pack_vector, same_length

        rows = {digest: pack_vector(vector) for digest, vector in vectors.items()}
        dimension = same_length(rows.values())

        def question() -> bool:
            if self._closed:
                return False
            with self._file.writing() as db:
                if not still():
                    return False
                put_vectors(db, model_for(db, model, dimension), rows)
            return True

        return not rows or self._answer(question)

    def nearest(self, model: str, query: Vector, filters: Filters, limit: int) -> Sequence[Nearest]:
        """Return the passages nearest to the query that pass the filters, best first."""
        from .vector_matrices import pack_vector

        wanted = pack_vector(query)
        return self._answer(lambda: self._nearest(model, wanted, filters, limit))

    def cosines(
        self, model: str, query: Vector, passages: Sequence[Passage]
    ) -> Mapping[int, float]:
        """Return the cosine similarity of these passages to the query, as far as they have vectors."""
        from .vector_matrices import cosines, pack_vector

        wanted = pack_vector(query)

        def question() -> Mapping[int, float]:
            stored = self._read_vectors(model, [p.digest for p in passages], len(wanted) // 4)
            rows = {p.number: stored[p.digest] for p in passages if p.digest in stored}
            return cosines(wanted, rows)

        return self._answer(question)

    def keep_only(self, model: str) -> int:
        """Delete the vectors of all other models, and return their number."""

        def question() -> int:
            with self._file.reading() as db:
                if db is None or not has_others(db, model):
                    return 0
            self._forget()
            with self._file.writing() as db:
                return keep_model(db, model)

        return self._answer(question)

    def settle(self, model: str) -> None:
        """Do nothing: searches compare with every vector."""

    def describe(self) -> str | None:
        """Return None: searches are the usual ones."""
        return None

    def count(self, model: str) -> int:
        """Return the number of vectors of a model."""

        def question() -> int:
            with self._file.reading() as db:
                known = None if db is None else model_in(db, model)
                return 0 if db is None or known is None else count_of(db, known)

        return self._answer(question)

    def prune(self, keep: Callable[[], Iterable[str]]) -> bool:
        """Delete the vectors of all other texts. A file that cannot be read is deleted."""
        # Called before any lock is taken here, because the index has locks of its own.
        texts = frozenset(keep()) if self._file.is_there else frozenset[str]()
        with self._alone():
            self._forget()
            try:
                with blamed_on_file():
                    self._file.prune(texts)
            except BROKEN as error:
                logger.warning("the vectors %s are deleted: %s", self._path, error)
                return self.drop()
            return self._drop_on_disk()

    def check(self) -> Iterator[Damage]:
        """Yield all damage of the file."""
        with self._alone():
            moved = self._file.path != self._path
            taken = check_place(VectorsFile(self._path)) if moved else ()
            return iter((*taken, *damage_of(self._file)))

    def mend(self) -> None:
        """Delete damaged vectors. A file that is damaged as a whole is deleted."""
        with self._alone():
            if damaged := [one for one in damage_of(self._file) if one.kind != "foreign"]:
                self._forget()
                self._notify(Notice("vectors.damaged", "", {"vectors": len(damaged)}))
                if not delete_damaged(self._file):
                    self.drop()

    def drop(self) -> bool:
        """Delete the file, and return whether nothing is left."""
        with self._alone():
            self._forget()
            return self._drop_file(self._file) and self._drop_on_disk()

    def close(self) -> None:
        """Release the file. Vectors that are added later are not stored."""
        if self._turn.process.is_this:
            with self._alone():
                self._closed = True
                self._forget()
                self._file.close()

    def let_go(self) -> None:
        """Close the file before a fork. The next query opens it again."""
        self._file.let_go()

    def _drop_on_disk(self) -> bool:
        # The vectors were moved into memory, but the content of the file still exists.
        if self._file.path == self._path:
            return True
        with closing(VectorsFile(self._path, of=self._of)) as elsewhere:
            return self._drop_file(elsewhere)

    def _drop_file(self, file: VectorsFile) -> bool:
        try:
            with blamed_on_file():
                file.drop(any_file=True)
        except BROKEN as error:
            logger.warning("the vectors %s cannot be deleted: %s", file.path, error)
            return False
        return True

    def _forget(self) -> None:
        if self._scopes is not None:
            self._scopes.forget()

    def _alone(self) -> AbstractContextManager[None]:
        return self._turn.taken()

    def _answer(self, question: Callable[[], Answer]) -> Answer:
        with self._alone():
            if self._displaced is not None and not self._closed:
                self._return_to_file(self._displaced)
            try:
                return query_with_repairs(
                    question,
                    is_replaced=lambda: self._file.is_replaced,
                    repair=self._repair,
                )
            except NoAnswer as error:
                place = self._file.path or "memory"
                raise EmbedderError("store", f"vectors cannot be kept in {place}") from error

    def _repair(self, error: Exception, tries: int) -> None:
        self._forget()
        if is_unusable(error, self._file.path) or (tries and self._file.path is not None):
            self._move_to_memory(error)
            return
        logger.warning(
            "the vectors %s are damaged (%s); they are computed again", self._file.path, error
        )
        self._notify(Notice("vectors.damaged", "", {"vectors": 0}))
        try:
            with blamed_on_file():
                self._file.drop()
        except BROKEN as refused:
            self._move_to_memory(refused)

    def _move_to_memory(self, error: Exception) -> None:
        logger.warning(
            "the vectors %s cannot be used (%s); keeping them in memory instead",
            self._file.path or "in memory",
            error,
        )
        if self._file.path is not None:
            self._displaced = DisplacedFile(self._file, error)
        self._file.close()
        self._file = VectorsFile(None)

    def _return_to_file(self, displaced: DisplacedFile[VectorsFile]) -> None:
        if (file := displaced.try_again()) is not None:
            self._forget()
            self._file.close()
            self._file, self._displaced = file, None

    def _nearest(self, model: str, query: bytes, filters: Filters, limit: int) -> Sequence[Nearest]:
        from .vector_matrices import Scopes

        scopes = self._scopes = self._scopes or Scopes(self._index)
        dimension = len(query) // 4

        def read(digests: Sequence[str]) -> Mapping[str, bytes]:
            return self._read_vectors(model, digests, dimension)

        for _ in range(TRIES):
            self._expect_dimension(model, dimension)
            edition = self._index.edition()
            scope = scopes.scope(self, model, dimension, filters.thread_id, edition, read)
            if scope is None or limit < 1:
                return ()
            if self._index.edition() == edition:
                return scope.nearest(query, filters, limit)
        raise EmbedderError("store", "messages are erased too often at the moment; try again later")

    def fresh(self, model: str, dimension: int, since: "Fresh | None") -> "Fresh | None":
        """Return the state of the file, with the texts stored after an earlier state."""
        from .vector_matrices import Fresh

        with self._file.reading() as db:
            row = None if db is None else model_in(db, model)
            if db is None or row is None or row.dimension != dimension:
                return None
            opened, newest = self._file.times_opened, newest_in(db)
            if since is None:
                return Fresh(opened, newest)
            seen = since.newest if since.opened == opened else 0
            return Fresh(opened, newest, digests_since(db, row, seen))

    def _expect_dimension(self, model: str, dimension: int) -> None:
        """Delete vectors of another dimension. They belong to another model with the same name, so they
        are computed again.
        """
        if (deleted := delete_of_other_dimension(self._file, model, dimension)) is not None:
            self._notify(Notice("vectors.damaged", "", {"vectors": deleted}))
            raise EmbedderError(
                "dimension", f"{model} returns other vectors than before, so all are computed again"
            )

    def _read_vectors(
        self, model: str, digests: Sequence[str], dimension: int
    ) -> Mapping[str, bytes]:
        """Return the vectors of these texts. Damaged ones are deleted, so that they are missing."""
        found = Stored({}, ())
        with self._file.reading() as db:
            if db is not None and (known := model_in(db, model)) and known.dimension == dimension:
                found = vectors_in(db, known, digests)
        if found.damaged:
            self._notify(Notice("vectors.damaged", "", {"vectors": len(found.damaged)}))
            with self._file.writing() as db:
                delete_rows(db, found.damaged)
        return found.vectors
