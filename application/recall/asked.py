"""Vectors of questions: asked of the embedder while somebody waits, and not again soon where it fails."""

import time
from collections.abc import Callable, Mapping

from refold.application.containing import Contained
from refold.application.errors import EmbedderError

from .missing_vectors import understood
from .vectors import Embedder, Vector, VectorStore

QUESTIONS_PAUSE, LONGEST_QUESTIONS_PAUSE = 10.0, 300.0
"""Seconds for which no question is embedded after one could not be, for each may take long to fail; twice as
long after each."""

Figures = Mapping[str, str | int | float]
Told = Callable[[str, Figures], None]
"""Is told what happened: a name and figures, never a text."""


class Asked:
    """An embedder that is asked for the vectors of questions."""

    def __init__(
        self, embedder: Embedder, vectors: VectorStore, told: Told = lambda name, figures: None
    ) -> None:
        self._embedder = embedder
        self._vectors = vectors
        self._told = told
        self._has_any = False
        self._questions_failed = 0
        self._refused: tuple[float, EmbedderError] | None = None
        """When the last question was not embedded, and why."""
        self.losses = 0
        """How often vectors turned out to be damaged while they were searched."""

    def has_any(self) -> bool:
        """Whether there is a vector of this model at all.

        Raises:
            EmbedderError: vectors cannot be kept.
        """
        if not self._has_any:
            self._has_any = self._vectors.count(self._embedder.model) > 0
        return self._has_any

    def of_question(self, text: str) -> Vector:
        """The vector of a question.

        Raises:
            EmbedderError: there is none; for some seconds afterwards it is not even tried.
        """
        if self._refused is not None:
            refused_at, error = self._refused
            pause = QUESTIONS_PAUSE * 2 ** (self._questions_failed - 1)
            if time.monotonic() < refused_at + min(pause, LONGEST_QUESTIONS_PAUSE):
                raise EmbedderError(error.reason, str(error))
        try:
            with Contained():
                vector = self._embedder.embed_query(text)
            if not any(vector):
                raise EmbedderError("bad_answer", "the embedder gave nothing but zeros")
        except Exception as raised:  # An embedder of the user's own may raise anything.
            error = understood(raised)
            self._questions_failed += 1
            self._refused = (time.monotonic(), error)
            self._told("embedder.failed", self._reason(error))
            raise error from raised
        self._questions_failed, self._refused = 0, None
        return vector

    def lacks(self) -> str | None:
        """What results by meaning do not cover yet, in a few words; None: nothing that is known."""
        return None

    def _reason(self, error: EmbedderError) -> Figures:
        return {"embedder": self._embedder.name, "reason": error.reason}
