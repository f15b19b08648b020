"""The embedder on fastembed: many local models, in a folder of the user or downloaded once."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from refold.application.errors import EmbedderError
from refold.application.ports.embedder import Vector
from refold.domain.errors import InvalidSetting
from refold.domain.text_cuts import encodable

MODEL = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"
"""Default model: about fifty languages, 384 dimensions."""
LONGEST = 8_000
"""Maximum number of characters of a text. Each model also cuts at its own number of tokens."""


class _TextEmbedding(Protocol):
    """The methods of the package that are used."""

    def passage_embed(self, texts: Iterable[str]) -> Iterable[Vector]:
        """Yield a vector for each document."""
        ...

    def query_embed(self, query: Iterable[str]) -> Iterable[Vector]:
        """Yield a vector for each query."""
        ...


class FastEmbedEmbedder:
    """An ``Embedder`` on the package fastembed."""

    name = "fastembed"

    def __init__(self, model: str | None = None, *, folder: str | Path | None = None) -> None:
        """Create an embedder. The model is loaded for the first text.

        ``model`` is one that fastembed knows. ``folder`` contains its files; without it they are
        downloaded on first use into fastembed's cache.

        Raises:
            InvalidSetting: fastembed does not know the model, or the folder does not exist.
        """
        self._name = model or MODEL
        self._folder = None if folder is None else Path(folder).expanduser()
        if self._folder is not None and not self._folder.is_dir():
            raise InvalidSetting(
                f"embedder_model: there is no folder {self._folder}", setting="embedder_model"
            )
        self.model = f"fastembed/{self._name}:{_dimension(self._name)}"
        self._loading = threading.Lock()
        self._loaded: _TextEmbedding | None = None

    def embed_documents(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return a vector for each document."""
        if not texts:
            return ()
        loaded = self._model()
        try:
            return list(loaded.passage_embed([encodable(text, LONGEST) for text in texts]))
        except Exception as error:  # The runtime of the package raises errors of its own.
            raise _error_for("failed", error) from error

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query."""
        loaded = self._model()
        try:
            return next(iter(loaded.query_embed([encodable(text, LONGEST)])))
        except Exception as error:
            raise _error_for("failed", error) from error

    def _model(self) -> _TextEmbedding:
        with self._loading:
            if self._loaded is None:
                where = {} if self._folder is None else {"specific_model_path": str(self._folder)}
                try:
                    made: _TextEmbedding = import_module("fastembed").TextEmbedding(
                        self._name, **where
                    )
                except (
                    Exception
                ) as error:  # No network, no space, a missing file or an incomplete download.
                    raise _error_for("model", error) from error
                self._loaded = made
                return made
            return self._loaded


def fastembed_embedder(model: str | None) -> FastEmbedEmbedder:
    """Return the embedder that a setting names: ``MODEL`` or ``MODEL@FOLDER``.

    Raises:
        InvalidSetting: fastembed does not know the model, or the folder does not exist.
    """
    name, _, folder = (model or "").partition("@")
    return FastEmbedEmbedder(name or None, folder=folder or None)


def _dimension(name: str) -> int:
    known: Sequence[Mapping[str, Any]] = import_module(
        "fastembed"
    ).TextEmbedding.list_supported_models()
    for one in known:
        if str(one["model"]).lower() == name.lower():
            return int(one["dim"])
    some = ", ".join(sorted(str(one["model"]) for one in known)[:40])
    raise InvalidSetting(
        f"embedder_model: fastembed has no model {name!r}; it has {some}",
        setting="embedder_model",
        value=name,
    )


def _error_for(reason: str, error: Exception) -> EmbedderError:
    advice = {
        "model": "Put the model's files into a folder and set embedder_model to MODEL@FOLDER, or let "
        "it be downloaded once.",
        "failed": "Try again, or another model.",
    }[reason]
    return EmbedderError(reason, f"fastembed: {type(error).__name__}: {error}. {advice}")
