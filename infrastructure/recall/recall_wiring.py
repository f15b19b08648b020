"""Puts together what recall works with: the index, the vectors, who makes them, and a search program."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import get_args

from refold.application.ports.conversation_log import ConversationLog
from refold.application.ports.search_backend import SearchBackend
from refold.application.ports.vectors import Embedder
from refold.application.recall.embedding import Embedding
from refold.application.recall.ranking import words_in
from refold.application.recall.thread_recall import RecallParts
from refold.application.runtime.plain_lines import plain_logger
from refold.infrastructure.embedders.named_embedders import chosen_embedder, require_numpy
from refold.infrastructure.observability.log_observer import Notice
from refold.infrastructure.projection_store.projection_file import kind_of, place_of
from refold.infrastructure.search_backends.named_backends import drop_handed_over
from refold.infrastructure.settings.option_checks import refuse_unfit
from refold.infrastructure.settings.settings_model import EmbedderName, RefoldSettings

from .recall_index import RECALL, SQLiteRecallIndex
from .vector_file import VECTORS
from .vectors import SQLiteVectorStore

logger = plain_logger(__name__)

_PARTS = ("name", "model", "embed_documents", "embed_query")
"""Of an ``Embedder``."""


def recall_parts(
    path: str | Path,
    log: ConversationLog,
    embedder: Embedder | None,
    backend: SearchBackend | None,
    *,
    encrypted: bool,
    told: Callable[[Notice], None],
) -> RecallParts:
    """The parts of the log at ``path``; what an encrypted one needs lies in memory only."""
    place = place_of(path, kind_of(RECALL), encrypted=encrypted)
    index = SQLiteRecallIndex(place, log, of=path, told=told)
    handed_over = partial(drop_handed_over, path)
    if encrypted and not handed_over():
        logger.warning("what qmd was given of %s is not encrypted and cannot be removed", path)
    embedding: Embedding | None = None

    def told_of_vectors(notice: Notice) -> None:
        told(notice)
        if embedding is not None and notice.name == "vectors.damaged":
            embedding.lost()

    place = place_of(path, VECTORS, encrypted=encrypted)
    vectors = SQLiteVectorStore(place, index, of=path, told=told_of_vectors)
    if embedder is None:
        return RecallParts(
            index=index, vectors=vectors, backend=backend, drop_handed_over=handed_over
        )
    embedding = Embedding(
        index,
        vectors,
        embedder,
        words=partial(words_in, log),
        newest=log.newest,
        report=lambda name, figures: told(Notice(name, "", figures)),
    )
    return RecallParts(index, vectors, embedder, embedding, backend, handed_over)


def embedder_of(given: str | Embedder | None, settings: RefoldSettings) -> Embedder | None:
    """The embedder that was given or named; None where none is wanted.

    Raises:
        InvalidSetting: what it needs is not installed, it cannot be so, or is no embedder at all.
    """
    if given is not None and not isinstance(given, str):
        refuse_unfit("embedder", given, names=get_args(EmbedderName), parts=_PARTS)
        require_numpy()
        return given
    key = settings.embedder_key
    return chosen_embedder(
        settings.embedder,
        model=settings.embedder_model,
        url=settings.embedder_url,
        key=None if key is None else key.get_secret_value(),
        timeout=settings.embedder_timeout,
    )
