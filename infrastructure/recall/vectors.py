"""The vectors of a log, in a file beside it: made once for each text, compared by numpy."""

import logging
import os
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from refold.application.errors import EmbedderError, LogError
from refold.application.recall.index import Filters, RecallIndex
from refold.application.recall.passages import Passage
from refold.application.recall.vectors import Nearest, Vector, always
from refold.infrastructure.derived.damage import FoldDamaged, is_unusable

from .vectors_file import VectorsFile

if TYPE_CHECKING:
    from .matrices import Scope

TRIES = 4
"""As it is, made anew, in memory, and anew in memory."""
PAGE = 1_000
"""Passages that are asked of the index at a time."""
KEPT_BYTES = 256 * 1024 * 1024
"""Matrices are kept in memory until they take more; the one that was asked last stays in any case."""

logger = logging.getLogger(__name__)
Answer = TypeVar("Answer")


class _Known(NamedTuple):
    """A scope, and what it has seen."""

    scope: "Scope"
    edition: int
    times_opened: int
    newest: int
    """Of the rows of the file; what came later may be a vector that it lacks."""


class SQLiteVectorStore:
    """``VectorStore`` in an SQLite file beside the log; the file may be deleted at any time.

    Locks are taken in this order: the store's own, then those of the index. Whoever drops the index
    holds none of its locks when the vectors are pruned. Where the file cannot be used (a read-only
    folder, a full disk), the vectors live in memory for as long as this object does, with a warning.
    """

    def __init__(
        self, path: str | Path, index: RecallIndex, *, of: str | Path | None = None
    ) -> None:
        """Nothing is opened before the first question. ``":memory:"`` never touches a disk.

        ``of``: the file of the log; whoever may use that one may use this one.
        """
        self._index = index
        self._path = None if str(path) == ":memory:" else Path(path).absolute()
        self._of = None if of is None else Path(of).absolute()
        self._file = VectorsFile(self._path, of=self._of)
        self._threads = threading.RLock()
        self._pid = os.getpid()
        self._closed = False
        self._known: OrderedDict[tuple[str, str | None], _Known] = OrderedDict()

    def missing(self, model: str, digests: Sequence[str]) -> Sequence[str]:
        """See ``VectorStore``."""
        from .vector_rows import digests_in, model_in

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
        from .matrices import packed, same_length
        from .vector_rows import model_for, put_vectors

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
        from .matrices import packed

        wanted = packed(query)
        return self._answer(lambda: self._nearest(model, wanted, filters, limit))

    def cosines(
        self, model: str, query: Vector, passages: Sequence[Passage]
    ) -> Mapping[int, float]:
        """See ``VectorStore``."""
        from .matrices import cosines, packed

        wanted = packed(query)

        def question() -> Mapping[int, float]:
            stored = self._stored(model, [p.digest for p in passages], len(wanted) // 4)
            return cosines(
                wanted, {p.number: stored[p.digest] for p in passages if p.digest in stored}
            )

        return self._answer(question)

    def keep_only(self, model: str) -> int:
        """See ``VectorStore``."""
        from .vector_rows import has_others, keep_model

        def question() -> int:
            with self._file.reading() as db:
                if db is None or not has_others(db, model):
                    return 0
            for key in [key for key in self._known if key[0] != model]:
                del self._known[key]
            with self._file.writing() as db:
                return keep_model(db, model)

        return self._answer(question)

    def count(self, model: str) -> int:
        """See ``VectorStore``."""
        from .vector_rows import count_of, model_in

        def question() -> int:
            with self._file.reading() as db:
                known = None if db is None else model_in(db, model)
                return 0 if db is None or known is None else count_of(db, known)

        return self._answer(question)

    def prune(self, keep: Callable[[], Iterable[str]]) -> bool:
        """See ``VectorStore``. A file that is too damaged to be read is deleted."""
        # Asked before anything is locked here: the index has locks of its own.
        texts = frozenset(keep()) if self._file.exists() else frozenset[str]()
        with self._alone():
            self._known.clear()
            try:
                self._file.prune(texts)
            except (FoldDamaged, sqlite3.Error, OSError) as error:
                logger.warning("the vectors %s are deleted: %s", self._path, error)
                return self.drop()
            return self._file.path == self._path or self._dropped(VectorsFile(self._path))

    def drop(self) -> bool:
        """See ``VectorStore``."""
        with self._alone():
            self._known.clear()
            # Where they were moved into memory, what the file held is there still.
            moved = self._file.path != self._path
            return self._dropped(self._file) and (
                not moved or self._dropped(VectorsFile(self._path))
            )

    def close(self) -> None:
        """See ``VectorStore``. What is added afterwards is not kept."""
        if os.getpid() != self._pid:
            return
        with self._alone():
            self._closed = True
            self._known.clear()
            self._file.close()

    def _dropped(self, file: VectorsFile) -> bool:
        try:
            file.drop()
        except OSError as error:
            logger.warning("the vectors %s cannot be deleted: %s", file.path, error)
            return False
        return True

    @contextmanager
    def _alone(self) -> Generator[None]:
        # Before the lock: a thread that held it does not live in a forked process.
        if os.getpid() != self._pid:
            raise LogError(
                f"{self._file.path or 'the log'} was opened before this process was forked; open it "
                "again here"
            )
        with self._threads:
            yield

    def _answer(self, question: Callable[[], Answer]) -> Answer:
        with self._alone():
            for tries in range(TRIES):
                try:
                    return question()
                except (FoldDamaged, sqlite3.Error, OSError, UnicodeDecodeError) as error:
                    self._repair(error, tries)
        raise EmbedderError("store", f"vectors cannot be kept in {self._file.path or 'memory'}")

    def _repair(self, error: Exception, tries: int) -> None:
        self._known.clear()
        if is_unusable(error) or (tries and self._file.path is not None):
            self._move_to_memory(error)
            return
        logger.warning(
            "the vectors %s are damaged (%s); they are made again", self._file.path, error
        )
        try:
            self._file.drop(only_mine=True)
        except OSError as refused:
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
        for _ in range(TRIES):
            edition = self._index.edition()
            scope = self._scope(model, len(query) // 4, filters.thread_id, edition)
            if scope is None or limit < 1:
                return ()
            if self._index.edition() == edition:
                return scope.nearest(query, filters, limit)
        raise EmbedderError("store", "messages are being erased all the time; ask again later")

    def _scope(
        self, model: str, dimension: int, thread_id: str | None, edition: int
    ) -> "Scope | None":
        """The vectors of a conversation as they are now; None if the model has none of this dimension."""
        from .matrices import Scope
        from .vector_rows import digests_since, model_in, newest_in

        key = (model, thread_id)
        known = self._known.pop(key, None)
        if known is None or known.edition != edition or known.scope.dimension != dimension:
            known = _Known(Scope(dimension), edition, 0, 0)
        with self._file.reading() as db:
            row = None if db is None else model_in(db, model)
            if db is None or row is None or row.dimension != dimension:
                return None
            opened, newest = self._file.times_opened, newest_in(db)
            seen = known.newest if known.times_opened == opened else 0
            fresh = digests_since(db, row, seen) if known.scope.is_waiting else ()

        def read(digests: Sequence[str]) -> Mapping[str, bytes]:
            return self._stored(model, digests, dimension)

        known.scope.fill(fresh, read)
        self._extend(known.scope, thread_id, read)
        self._known[key] = known._replace(times_opened=opened, newest=newest)
        self._forget_oldest()
        return known.scope

    def _extend(
        self,
        scope: "Scope",
        thread_id: str | None,
        read: Callable[[Sequence[str]], Mapping[str, bytes]],
    ) -> None:
        only = Filters(thread_id)
        while page := self._index.passages(scope.last, PAGE, filters=only):
            scope.extend(page, read)
            if len(page) < PAGE:
                return

    def _stored(self, model: str, digests: Sequence[str], dimension: int) -> Mapping[str, bytes]:
        """The vectors of these texts; those that are damaged are deleted, so that they are missing."""
        from .vector_rows import Stored, delete_rows, model_in, vectors_in

        found = Stored({}, ())
        with self._file.reading() as db:
            if db is not None and (known := model_in(db, model)) and known.dimension == dimension:
                found = vectors_in(db, known, digests)
        if found.damaged:
            logger.warning("%d vectors are damaged; they are made again", len(found.damaged))
            with self._file.writing() as db:
                delete_rows(db, found.damaged)
        return found.vectors

    def _forget_oldest(self) -> None:
        room = sum(known.scope.bytes for known in self._known.values())
        while room > KEPT_BYTES and len(self._known) > 1:
            _, known = self._known.popitem(last=False)
            room -= known.scope.bytes
