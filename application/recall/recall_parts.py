"""What recall works with: the index, and what is configured beside it."""

from collections.abc import Callable
from dataclasses import dataclass

from refold.application.ports.recall_index import RecallIndex
from refold.application.ports.search_backend import SearchBackend
from refold.application.ports.vectors import Embedder, VectorStore

from .embedding import Embedding


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
