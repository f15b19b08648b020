"""The adapters of recall, addressed by thread id."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial

from refold.application.conversation.addresses import SEPARATOR, thread_of
from refold.application.conversation.thread_log import ThreadLog
from refold.application.ports.conversation_log import Damage
from refold.application.ports.embedder import Vector
from refold.application.ports.recall_index import NO_FILTERS, Filters, Found, Judge, RecallIndex
from refold.application.ports.search_backend import BackendHit, SearchBackend
from refold.application.ports.vectors import Nearest, VectorStore, always
from refold.application.runtime.core import RecallParts
from refold.application.runtime.memory_settings import RecallMode

from .passages import Passage


def address_by_thread(parts: RecallParts, log: ThreadLog, *, hands_over: bool) -> RecallParts:
    """Return adapters that are addressed by thread id.

    ``hands_over`` is true if the backend knows messages by their stream instead of their thread.
    """
    backend, vectors = parts.backend, parts.vectors
    return RecallParts(
        index=ThreadIndex(parts.index, log),
        vectors=None if vectors is None else ThreadVectors(vectors, log),
        embedder=parts.embedder,
        embedding=parts.embedding,
        backend=ThreadBackend(backend, log) if backend and hands_over else backend,
        drop_handed_over=parts.drop_handed_over,
    )


class ThreadIndex:
    """A recall index addressed by thread id."""

    def __init__(self, index: RecallIndex, log: ThreadLog) -> None:
        self._index = index
        self._log = log

    def edition(self) -> int:
        """Return the edition of the index, which changes with every erasure."""
        return self._index.edition()

    def find(
        self,
        tokens: Sequence[str],
        filters: Filters = NO_FILTERS,
        *,
        limit: int = 50,
        also: Sequence[int] = (),
        judge: Judge | None = None,
    ) -> Found:
        """Find the passages that have these tokens, and their neighbours."""
        find = partial(self._index.find, tokens, limit=limit, also=also, judge=judge)
        known = filters.thread_id and self._log.known_stream_of(filters.thread_id)
        found = find(filters._replace(thread_id=known))
        # A passage that is there proves that its stream was not erased, and so is the newest.
        if known is not None and not found.candidates:
            filters = _address_by_stream(self._log, filters)
            if filters.thread_id != known:
                found = find(filters)
        if not any(SEPARATOR in passage.thread_id for passage in found.candidates):
            return found  # Neighbours are of the same conversations.
        neighbours = {
            (thread_of(stream), position): _with_thread_ids(passages)
            for (stream, position), passages in found.neighbours.items()
        }
        return found._replace(candidates=_with_thread_ids(found.candidates), neighbours=neighbours)

    def passages(
        self, after: int = 0, limit: int = 1_000, *, filters: Filters = NO_FILTERS
    ) -> Sequence[Passage]:
        """Return the passages after a number, in order."""
        return _with_thread_ids(
            self._index.passages(after, limit, filters=_address_by_stream(self._log, filters))
        )

    def digests(self) -> Collection[str]:
        """Return the digests of all passages."""
        return self._index.digests()

    def check(self) -> Iterator[Damage]:
        """Yield the differences between the index and a fresh fold of the log."""
        return self._index.check()

    def rebuild(self) -> int:
        """Rebuild the index from the log and return the number of events."""
        return self._index.rebuild()

    def drop(self) -> bool:
        """Delete the index and return whether nothing is left."""
        return self._index.drop()

    def forget_erased(self) -> bool:
        """Remove erased content from all files and return whether none is left."""
        return self._index.forget_erased()

    def close(self) -> None:
        """Close the index."""
        self._index.close()


class ThreadVectors:
    """A vector store addressed by thread id."""

    def __init__(self, vectors: VectorStore, log: ThreadLog) -> None:
        self._vectors = vectors
        self._log = log

    def missing(self, model: str, digests: Sequence[str]) -> Sequence[str]:
        """Return the digests that have no vector of a model."""
        return self._vectors.missing(model, digests)

    def add(
        self, model: str, vectors: Mapping[str, Vector], *, still: Callable[[], bool] = always
    ) -> bool:
        """Store vectors unless ``still`` returns false, and return whether they were stored."""
        return self._vectors.add(model, vectors, still=still)

    def nearest(self, model: str, query: Vector, filters: Filters, limit: int) -> Sequence[Nearest]:
        """Return the passages nearest to a vector, nearest first."""
        return self._vectors.nearest(model, query, _address_by_stream(self._log, filters), limit)

    def cosines(
        self, model: str, query: Vector, passages: Sequence[Passage]
    ) -> Mapping[int, float]:
        """Return the cosines between a vector and those of passages, by passage number."""
        return self._vectors.cosines(model, query, passages)

    def keep_only(self, model: str) -> int:
        """Delete the vectors of all other models and return their number."""
        return self._vectors.keep_only(model)

    def settle(self, model: str) -> None:
        """Prepare for fast searches."""
        self._vectors.settle(model)

    def describe(self) -> str | None:
        """Describe, once, how searches differ from the usual ones, or return None."""
        return self._vectors.describe()

    def prune(self, keep: Callable[[], Iterable[str]]) -> bool:
        """Delete the vectors whose digests ``keep`` does not return; return whether none is left."""
        return self._vectors.prune(keep)

    def count(self, model: str) -> int:
        """Return the number of vectors of a model."""
        return self._vectors.count(model)

    def check(self) -> Iterator[Damage]:
        """Yield the damage found in the vectors."""
        return self._vectors.check()

    def mend(self) -> None:
        """Remove damaged vectors."""
        self._vectors.mend()

    def drop(self) -> bool:
        """Delete all vectors and return whether nothing is left."""
        return self._vectors.drop()

    def close(self) -> None:
        """Close the vector store."""
        self._vectors.close()


class ThreadBackend:
    """A search backend addressed by thread id. The wrapped backend knows messages by their stream."""

    def __init__(self, backend: SearchBackend, log: ThreadLog) -> None:
        self._backend = backend
        self._log = log

    @property
    def name(self) -> str:
        """Name of the search backend."""
        return self._backend.name

    def find(
        self, query: str, mode: RecallMode, thread_id: str | None, limit: int
    ) -> Sequence[BackendHit]:
        """Find the messages that answer a query."""
        stream = None if thread_id is None else self._log.stream_of(thread_id)
        hits = self._backend.find(query, mode, stream, limit)
        return [hit._replace(thread_id=thread_of(hit.thread_id)) for hit in hits]

    def drop(self) -> bool:
        """Delete the copies that the backend has, and return whether none is left."""
        return self._backend.drop()

    def close(self) -> None:
        """Close the search backend."""
        self._backend.close()


def _address_by_stream(log: ThreadLog, filters: Filters) -> Filters:
    if filters.thread_id is None:
        return filters
    return filters._replace(thread_id=log.stream_of(filters.thread_id))


def _with_thread_ids(passages: Sequence[Passage]) -> Sequence[Passage]:
    if not any(SEPARATOR in passage.thread_id for passage in passages):
        return passages
    return [passage._replace(thread_id=thread_of(passage.thread_id)) for passage in passages]
