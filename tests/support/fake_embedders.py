"""Embedders without a model: quick, exact, and as bad as a test wants them."""

import hashlib
import threading
from collections.abc import Sequence

from refold.application.errors import EmbedderError
from refold.application.ports.embedder import Vector


class DigestEmbedder:
    """A vector for each text that no other text has; the same ones from every object."""

    def __init__(self, model: str = "digests-1", dimension: int = 8) -> None:
        self.name = "digests"
        self.model = model
        self.dimension = dimension
        self.asked: list[list[str]] = []
        """The texts of each call."""

    @property
    def texts(self) -> list[str]:
        """All texts that were embedded, in their order."""
        return [text for batch in self.asked for text in batch]

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Vector]:
        self.asked.append(list(texts))
        return [self.vector(text) for text in texts]

    def embed_query(self, text: str) -> Vector:
        return self.vector(text)

    def vector(self, text: str) -> Vector:
        seed = f"{self.model} {text}".encode("utf-8", "surrogatepass")
        raw = hashlib.shake_128(seed).digest(self.dimension)
        return [byte / 128 - 1 for byte in raw]


class HeldEmbedder(DigestEmbedder):
    """Says when it was asked, and answers when it is let."""

    def __init__(self, model: str = "digests-1") -> None:
        super().__init__(model)
        self.begun = threading.Event()
        self.let = threading.Event()

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Vector]:
        self.begun.set()
        assert self.let.wait(30)
        return super().embed_documents(texts)


class FailingEmbedder(DigestEmbedder):
    """Fails as long as it has errors; with ``of``, only where one of the texts holds this."""

    def __init__(self, *errors: Exception, of: str = "") -> None:
        super().__init__()
        self.errors = list(errors)
        self._of = of

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Vector]:
        if self._of and any(self._of in text for text in texts):
            raise self.errors[0]
        if not self._of and self.errors:
            raise self.errors.pop(0)
        return super().embed_documents(texts)

    def embed_query(self, text: str) -> Vector:
        if self.errors:
            raise self.errors.pop(0)
        return super().embed_query(text)


def unreachable() -> EmbedderError:
    """What passes, some day."""
    return EmbedderError("connection", "no connection")
