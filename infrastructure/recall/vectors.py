"""The vectors of a log, in a file beside it: made once for each text, compared by numpy."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from refold.application.errors import EmbedderError
from refold.application.ports.conversation_log import Damage
from refold.application.ports.recall_index import Filters, RecallIndex
from refold.application.ports.vectors import Nearest, Vector, always
from refold.application.recall.passages import Passage
from refold.application.runtime.plain_lines import plain_logger
from refold.infrastructure.files.fork_gate import FileTurn
from refold.infrastructure.observability.log_observer import Notice, ignore
from refold.infrastructure.projection_store.catch_up import TRIES, NoAnswer, answered
from refold.infrastructure.projection_store.projection_check import check_place
from refold.infrastructure.projection_store.row_checksums import BROKEN, blamed_on_file, is_unusable

from .vector_file import VectorsFile, damage_of, delete_damaged, delete_of_other_dimension
from .vector_rows import (
    Stored,
    count_of,
    delete_rows,
    digests_in,
    has_others,
    keep_model,
    model_for,
    model_in,
    put_vectors,
    vectors_in,
)

if TYPE_CHECKING:
    from .vector_matrices import Scopes

logger = plain_logger(__name__)
Answer = TypeVar("Answer")


class SQLiteVectorStore:
    """``VectorStore`` in an SQLite file beside the log; the file may be deleted at any time.

    Locks are taken in this order: the store's own, then those of the index. Whoever drops the index
    holds none of its locks when the vectors are pruned. Where the file cannot be used (a read-only
    folder, a full disk), the vectors live in memory for as long as this object does, with a warning.
    """

    def __init__(
        self,
        path: str | Path,
        index: RecallIndex,
        *,
        of: str | Path | None = None,
        told: Callable[[Notice], None] = ignore,
    ) -> None:
        """Nothing is opened before the first question. ``":memory:"`` never touches a disk.

        ``of``: the file of the log; whoever may use that one may use this one. ``told``: of damage.
        """
        self._index = index
        self._told = told
        self._path = None if str(path) == ":memory:" else Path(path).absolute()
        self._of = None if of is None else Path(of).absolute()
        self._file = VectorsFile(self._path, of=self._of)
        self._turn = FileTurn(f"{of or path}", self.let_go)
        self._closed = False
        self._scopes: Scopes | None = None

    def missing(self, model: str, digests: Sequence[str]) -> Sequence[str]:
        """See ``VectorStore``."""

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
        """See ``VectorStore``."""
        from .vector_matrices import packed, same_length

        rows = {digest: packed(vector) for digest, vector in vectors.items()}
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
        """See ``VectorStore``."""
        from .vector_matrices import packed

        wanted = packed(query)
        return self._answer(lambda: self._nearest(model, wanted, filters, limit))

    def cosines(
        self, model: str, query: Vector, passages: Sequence[Passage]
    ) -> Mapping[int, float]:
        """See ``VectorStore``."""
        from .vector_matrices import cosines, packed

        wanted = packed(query)

        def question() -> Mapping[int, float]:
            stored = self._stored(model, [p.digest for p in passages], len(wanted) // 4)
            rows = {p.number: stored[p.digest] for p in passages if p.digest in stored}
            return cosines(wanted, rows)

        return self._answer(question)

    def keep_only(self, model: str) -> int:
        """See ``VectorStore``."""

        def question() -> int:
            with self._file.reading() as db:
                if db is None or not has_others(db, model):
                    return 0
            self._forget()
            with self._file.writing() as db:
                return keep_model(db, model)

        return self._answer(question)

    def count(self, model: str) -> int:
        """See ``VectorStore``."""

        def question() -> int:
            with self._file.reading() as db:
                known = None if db is None else model_in(db, model)
                return 0 if db is None or known is None else count_of(db, known)

        return self._answer(question)

    def prune(self, keep: Callable[[], Iterable[str]]) -> bool:
        """See ``VectorStore``. A file that is too damaged to be read is deleted."""
        # Asked before anything is locked here: the index has locks of its own.
        texts = frozenset(keep()) if self._file.is_there else frozenset[str]()
        with self._alone():
            self._forget()
            try:
                with blamed_on_file():
                    self._file.prune(texts)
            except BROKEN as error:
                logger.warning("the vectors %s are deleted: %s", self._path, error)
                return self.drop()
            return self._dropped_on_disk()

    def check(self) -> Iterator[Damage]:
        """See ``VectorStore``."""
        with self._alone():
            moved = self._file.path != self._path
            taken = check_place(VectorsFile(self._path)) if moved else ()
            return iter((*taken, *damage_of(self._file)))

    def mend(self) -> None:
        """See ``VectorStore``. A file that is damaged as such is deleted."""
        with self._alone():
            if damaged := [one for one in damage_of(self._file) if one.kind != "foreign"]:
                self._forget()
                self._told(Notice("vectors.damaged", "", {"vectors": len(damaged)}))
                if not delete_damaged(self._file):
                    self.drop()

    def drop(self) -> bool:
        """See ``VectorStore``."""
        with self._alone():
            self._forget()
            return self._dropped(self._file) and self._dropped_on_disk()

    def close(self) -> None:
        """See ``VectorStore``. What is added afterwards is not kept."""
        if self._turn.process.is_this:
            with self._alone():
                self._closed = True
                self._forget()
                self._file.close()

    def let_go(self) -> None:
        """Close the file before a fork; the next question opens it again."""
        self._file.let_go()

    def _dropped_on_disk(self) -> bool:
        # Where they were moved into memory, what the file held is there still.
        if self._file.path == self._path:
            return True
        with closing(VectorsFile(self._path, of=self._of)) as elsewhere:
            return self._dropped(elsewhere)

    def _dropped(self, file: VectorsFile) -> bool:
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
            try:
                return answered(
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
            "the vectors %s are damaged (%s); they are made again", self._file.path, error
        )
        self._told(Notice("vectors.damaged", "", {"vectors": 0}))
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
        self._file.close()
        self._file = VectorsFile(None)

    def _nearest(self, model: str, query: bytes, filters: Filters, limit: int) -> Sequence[Nearest]:
        from .vector_matrices import Scopes

        scopes = self._scopes = self._scopes or Scopes(self._index)
        dimension = len(query) // 4

        def read(digests: Sequence[str]) -> Mapping[str, bytes]:
            return self._stored(model, digests, dimension)

        for _ in range(TRIES):
            self._expect_dimension(model, dimension)
            edition = self._index.edition()
            scope = scopes.scope(self._file, model, dimension, filters.thread_id, edition, read)
            if scope is None or limit < 1:
                return ()
            if self._index.edition() == edition:
                return scope.nearest(query, filters, limit)
        raise EmbedderError("store", "messages are being erased all the time; ask again later")

    def _expect_dimension(self, model: str, dimension: int) -> None:
        """Vectors of another dimension are those of another model, whatever its name: they are deleted, so
        that they are made anew.
        """
        if (deleted := delete_of_other_dimension(self._file, model, dimension)) is not None:
            self._told(Notice("vectors.damaged", "", {"vectors": deleted}))
            raise EmbedderError(
                "dimension", f"{model} gives other vectors than before, so all are made anew"
            )

    def _stored(self, model: str, digests: Sequence[str], dimension: int) -> Mapping[str, bytes]:
        """The vectors of these texts; those that are damaged are deleted, so that they are missing."""
        found = Stored({}, ())
        with self._file.reading() as db:
            if db is not None and (known := model_in(db, model)) and known.dimension == dimension:
                found = vectors_in(db, known, digests)
        if found.damaged:
            self._told(Notice("vectors.damaged", "", {"vectors": len(found.damaged)}))
            with self._file.writing() as db:
                delete_rows(db, found.damaged)
        return found.vectors
