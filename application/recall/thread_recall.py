"""What recall works with: the index, and what is configured beside it."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from refold.application.conversation.addresses import SEPARATOR, thread_of
from refold.application.conversation.thread_log import ThreadLog
from refold.application.ports.conversation_log import Damage
from refold.application.ports.recall_index import NO_FILTERS, Filters, Found, RecallIndex
from refold.application.ports.search_backend import BackendHit, SearchBackend
from refold.application.ports.vectors import Embedder, Nearest, Vector, VectorStore, always

from .embedding import Embedding
from .hits import RecallMode
from .passages import Passage


@dataclass(frozen=True, slots=True)
class RecallParts:
    """The adapters of recall."""

    index: RecallIndex
    vectors: VectorStore | None = None
    """Also where no embedder is configured: an erasure reaches what an earlier one made."""
    embedder: Embedder | None = None
    embedding: Embedding | None = None
    """Makes the vectors in the background; None where no embedder is configured."""
    backend: SearchBackend | None = None
    """None: the built-in search."""
    drop_handed_over: Callable[[], bool] = lambda: True
    """Deletes what search programs were given of this log by whoever opened it, whichever is asked now;
    whether nothing is left."""


def by_thread(parts: RecallParts, log: ThreadLog, *, hands_over: bool) -> RecallParts:
    """These parts, asked by thread id.

    ``hands_over``: whether the backend was given the messages by stream.
    """
    backend, vectors = parts.backend, parts.vectors
    return replace(
        parts,
        index=ThreadIndex(parts.index, log),
        vectors=None if vectors is None else ThreadVectors(vectors, log),
        backend=ThreadBackend(backend, log) if backend and hands_over else backend,
    )


class ThreadIndex:
    """``index``, asked by thread id."""

    def __init__(self, index: RecallIndex, log: ThreadLog) -> None:
        self._index = index
        self._log = log

    def edition(self) -> int:
        """See ``RecallIndex``."""
        return self._index.edition()

    def find(
        self,
        tokens: Sequence[str],
        filters: Filters = NO_FILTERS,
        *,
        limit: int = 50,
        also: Sequence[int] = (),
    ) -> Found:
        """See ``RecallIndex``."""
        found = self._index.find(tokens, _by_stream(self._log, filters), limit=limit, also=also)
        neighbours = {
            (thread_of(stream), position): _told(passages)
            for (stream, position), passages in found.neighbours.items()
        }
        return found._replace(candidates=_told(found.candidates), neighbours=neighbours)

    def passages(
        self, after: int = 0, limit: int = 1_000, *, filters: Filters = NO_FILTERS
    ) -> Sequence[Passage]:
        """See ``RecallIndex``."""
        return _told(self._index.passages(after, limit, filters=_by_stream(self._log, filters)))

    def digests(self) -> Collection[str]:
        """See ``RecallIndex``."""
        return self._index.digests()

    def check(self) -> Iterator[Damage]:
        """See ``RecallIndex``."""
        return self._index.check()

    def rebuild(self) -> int:
        """See ``RecallIndex``."""
        return self._index.rebuild()

    def drop(self) -> bool:
        """See ``RecallIndex``."""
        return self._index.drop()

    def forget_erased(self) -> bool:
        """See ``RecallIndex``."""
        return self._index.forget_erased()

    def close(self) -> None:
        """See ``RecallIndex``."""
        self._index.close()


class ThreadVectors:
    """``vectors``, asked by thread id."""

    def __init__(self, vectors: VectorStore, log: ThreadLog) -> None:
        self._vectors = vectors
        self._log = log

    def missing(self, model: str, digests: Sequence[str]) -> Sequence[str]:
        """See ``VectorStore``."""
        return self._vectors.missing(model, digests)

    def add(
        self, model: str, vectors: Mapping[str, Vector], *, still: Callable[[], bool] = always
    ) -> bool:
        """See ``VectorStore``."""
        return self._vectors.add(model, vectors, still=still)

    def nearest(self, model: str, query: Vector, filters: Filters, limit: int) -> Sequence[Nearest]:
        """See ``VectorStore``."""
        return self._vectors.nearest(model, query, _by_stream(self._log, filters), limit)

    def cosines(
        self, model: str, query: Vector, passages: Sequence[Passage]
    ) -> Mapping[int, float]:
        """See ``VectorStore``."""
        return self._vectors.cosines(model, query, passages)

    def keep_only(self, model: str) -> int:
        """See ``VectorStore``."""
        return self._vectors.keep_only(model)

    def prune(self, keep: Callable[[], Iterable[str]]) -> bool:
        """See ``VectorStore``."""
        return self._vectors.prune(keep)

    def count(self, model: str) -> int:
        """See ``VectorStore``."""
        return self._vectors.count(model)

    def check(self) -> Iterator[Damage]:
        """See ``VectorStore``."""
        return self._vectors.check()

    def mend(self) -> None:
        """See ``VectorStore``."""
        self._vectors.mend()

    def drop(self) -> bool:
        """See ``VectorStore``."""
        return self._vectors.drop()

    def close(self) -> None:
        """See ``VectorStore``."""
        self._vectors.close()


class ThreadBackend:
    """``backend``, which was given messages by stream, asked by thread id."""

    def __init__(self, backend: SearchBackend, log: ThreadLog) -> None:
        self._backend = backend
        self._log = log

    @property
    def name(self) -> str:
        """See ``SearchBackend``."""
        return self._backend.name

    def find(
        self, query: str, mode: RecallMode, thread_id: str | None, limit: int
    ) -> Sequence[BackendHit]:
        """See ``SearchBackend``."""
        stream = None if thread_id is None else self._log.stream_of(thread_id)
        hits = self._backend.find(query, mode, stream, limit)
        return [hit._replace(thread_id=thread_of(hit.thread_id)) for hit in hits]

    def drop(self) -> bool:
        """See ``SearchBackend``."""
        return self._backend.drop()

    def close(self) -> None:
        """See ``SearchBackend``."""
        self._backend.close()


def _by_stream(log: ThreadLog, filters: Filters) -> Filters:
    if filters.thread_id is None:
        return filters
    return filters._replace(thread_id=log.stream_of(filters.thread_id))


def _told(passages: Sequence[Passage]) -> Sequence[Passage]:
    if not any(SEPARATOR in passage.thread_id for passage in passages):
        return passages
    return [passage._replace(thread_id=thread_of(passage.thread_id)) for passage in passages]
