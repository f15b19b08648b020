"""The port of the vector store."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from refold.application.ports.embedder import Vector
from refold.application.recall.passages import Passage

from .conversation_log import Damage
from .recall_index import Filters


class Nearest(NamedTuple):
    """A passage with the similarity of its vector."""

    number: int
    """Passage number, as in ``Passage.number``."""
    cosine: float


def always() -> bool:
    """Return True: the vectors are still wanted."""
    return True


class VectorStore(Protocol):
    """Vectors by model and by digest of their text.

    A cache that may be deleted at any time: missing vectors are computed again. Vectors are blobs, compared
    by numpy. Every method may raise ``EmbedderError`` with the reason ``store`` if the store is unusable.
    """

    def missing(self, model: str, digests: Sequence[str]) -> Sequence[str]:
        """Return the digests that have no vector of this model, without duplicates, in their order."""
        ...

    def add(
        self, model: str, vectors: Mapping[str, Vector], *, still: Callable[[], bool] = always
    ) -> bool:
        """Store vectors by the digests of their texts. Return whether they were stored.

        ``still`` is called while no other process can prune. If it returns False, because a text may have
        been erased since it was read, nothing is stored.

        Raises ``EmbedderError`` if a vector is invalid, or its dimension differs from the model's other
        vectors.
        """
        ...

    def nearest(self, model: str, query: Vector, filters: Filters, limit: int) -> Sequence[Nearest]:
        """Return the nearest passages that match the filters and have a vector of this model."""
        ...

    def cosines(
        self, model: str, query: Vector, passages: Sequence[Passage]
    ) -> Mapping[int, float]:
        """Return the cosine similarity of each passage by number; passages without a vector are omitted."""
        ...

    def keep_only(self, model: str) -> int:
        """Delete the vectors of all other models. Return how many there were."""
        ...

    def prune(self, keep: Callable[[], Iterable[str]]) -> bool:
        """Delete the vectors of all other texts, also from the disk. Return whether they are gone.

        ``keep`` returns the digests to keep; it is called only if there are vectors.
        """
        ...

    def settle(self, model: str) -> None:
        """Prepare for fast searches. Called in the background after vectors were made; it may take minutes."""
        ...

    def describe(self) -> str | None:
        """Describe, once, how searches differ from the usual ones, or return None."""
        ...

    def count(self, model: str) -> int:
        """Return the number of vectors of this model."""
        ...

    def check(self) -> Iterator[Damage]:
        """Read all vectors and report the damaged ones; change nothing."""
        ...

    def mend(self) -> None:
        """Delete what ``check`` reports, so that it is computed again."""
        ...

    def drop(self) -> bool:
        """Delete all vectors. Return whether none remains."""
        ...

    def close(self) -> None:
        """Release files and connections; closing twice is safe."""
        ...
