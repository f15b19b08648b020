"""What recall works with: the index, and what is configured beside it."""

from dataclasses import dataclass

from .backend import SearchBackend
from .index import RecallIndex
from .vectors import Embedder, VectorStore


@dataclass(frozen=True, slots=True)
class RecallParts:
    """The adapters of recall."""

    index: RecallIndex
    vectors: VectorStore | None = None
    """None where no embedder is configured."""
    embedder: Embedder | None = None
    backend: SearchBackend | None = None
    """None: the built-in search."""
