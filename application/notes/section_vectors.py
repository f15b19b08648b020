"""Vectors of sections, kept only in memory because files change."""

import math
import threading
from collections import OrderedDict
from collections.abc import Sequence

from refold.application.errors import EmbedderError
from refold.application.ports.vectors import Embedder, Vector

KEPT = 5_000
"""Number of vectors to keep; the oldest are dropped."""


class SectionVectors:
    """Makes the vector of each text once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str], Vector] = OrderedDict()

    def cosines(self, embedder: Embedder, query: str, texts: Sequence[str]) -> list[float]:
        """Return the nearness of each text to the question, at least 0.

        Raises:
            EmbedderError: the embedder failed.
        """
        try:
            wanted = embedder.embed_query(query)
            vectors = self._vectors(embedder, texts)
        except EmbedderError:
            raise
        except Exception as error:  # An embedder of the user may raise anything.
            raise EmbedderError("error", f"{type(error).__name__}: {error}") from error
        return [_cosine(wanted, vector) for vector in vectors]

    def _vectors(self, embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
        with self._lock:
            missing = [t for t in dict.fromkeys(texts) if (embedder.model, t) not in self._known]
            if missing:
                made = embedder.embed_documents(missing)
                for text, vector in zip(missing, made, strict=True):
                    self._known[embedder.model, text] = vector
            found = [self._known[embedder.model, text] for text in texts]
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
        return found


def _cosine(one: Vector, other: Vector) -> float:
    lengths = math.hypot(*one) * math.hypot(*other)
    return (
        max(0.0, sum(a * b for a, b in zip(one, other, strict=True)) / lengths) if lengths else 0.0
    )
