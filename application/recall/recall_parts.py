"""The adapters that recall works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from refold.application.ports.embedder import Embedder
    from refold.application.ports.recall_index import RecallIndex
    from refold.application.ports.search_backend import SearchBackend
    from refold.application.ports.vectors import VectorStore

    from .embedding import Embedding


@dataclass(frozen=True, slots=True)
class RecallParts:
    """Adapters of recall."""

    index: RecallIndex
    vectors: VectorStore | None = None
    """Vector store; also set without an embedder, so that an erasure reaches older vectors."""
    embedder: Embedder | None = None
    embedding: Embedding | None = None
    """Background embedding, or None if no embedder is configured."""
    backend: SearchBackend | None = None
    """Search backend, or None for the built-in search."""
    drop_handed_over: Callable[[], bool] = lambda: True
    """Deletes the copies that any search backend has of this log, and returns whether none is left."""

    def close(self) -> None:
        """Release files and connections; closing twice is allowed."""
        for part in (self.embedding, self.index, self.vectors, self.backend):
            if part is not None:
                part.close()
