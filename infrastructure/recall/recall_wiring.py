"""Create the parts of recall: the index, the vectors, the embedder and a search program."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import get_args

from refold.application.ports.conversation_log import ConversationLog
from refold.application.ports.embedder import Embedder
from refold.application.ports.recall_index import RecallIndex
from refold.application.ports.search_backend import SearchBackend
from refold.application.ports.vectors import VectorStore
from refold.application.recall.embedding import Embedding
from refold.application.recall.ranking import words_in
from refold.application.runtime.core import RecallParts
from refold.application.runtime.plain_lines import plain_logger
from refold.infrastructure.embedders.named_embedders import chosen_embedder, require_numpy
from refold.infrastructure.observability.log_observer import Notice
from refold.infrastructure.projection_store.projection import kind_of, place_of
from refold.infrastructure.search_backends.named_backends import drop_handed_over
from refold.infrastructure.settings.option_checks import refuse_unfit
from refold.infrastructure.settings.settings_model import EmbedderName, RefoldSettings

from .recall_index import RECALL, SQLiteRecallIndex
from .vector_file import VECTORS
from .vectors import SQLiteVectorStore

logger = plain_logger(__name__)
Notify = Callable[[Notice], None]

_PARTS = ("name", "model", "embed_documents", "embed_query")
"""Required attributes of an ``Embedder``."""


def recall_parts(
    path: str | Path,
    log: ConversationLog,
    embedder: Embedder | None,
    backend: SearchBackend | None,
    *,
    encrypted: bool,
    notify: Callable[[Notice], None],
) -> RecallParts:
    """Create the recall parts of the log at ``path``. For an encrypted log, they are kept in memory."""
    place = place_of(path, kind_of(RECALL), encrypted=encrypted)
    index = SQLiteRecallIndex(place, log, of=path, notify=notify)
    handed_over = partial(drop_handed_over, path)
    if encrypted and not handed_over():
        logger.warning(
            "the messages of %s in the folder of qmd are not encrypted and cannot be removed", path
        )
    place = place_of(path, VECTORS, encrypted=encrypted)

    def vectors(notify_of_vectors: Notify) -> VectorStore:
        return SQLiteVectorStore(place, index, of=path, notify=notify_of_vectors)

    return join_recall(
        index, vectors, log, embedder, backend, handed_over=handed_over, notify=notify
    )


def join_recall(
    index: RecallIndex,
    vectors_with: Callable[[Notify], VectorStore],
    log: ConversationLog,
    embedder: Embedder | None,
    backend: SearchBackend | None,
    *,
    handed_over: Callable[[], bool] = lambda: True,
    notify: Notify,
) -> RecallParts:
    """Create recall over an index and vectors. ``vectors_with`` creates them with what they notify."""
    embedding: Embedding | None = None

    def notify_of_vectors(notice: Notice) -> None:
        notify(notice)
        if embedding is not None and notice.name == "vectors.damaged":
            embedding.lost()

    vectors = vectors_with(notify_of_vectors)
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
        report=lambda name, figures: notify(Notice(name, "", figures)),
    )
    return RecallParts(index, vectors, embedder, embedding, backend, handed_over)


def embedder_of(given: str | Embedder | None, settings: RefoldSettings) -> Embedder | None:
    """Return the given or configured embedder, or None if none is configured.

    Raises:
        InvalidSetting: a required package is missing, the name is not valid, or the object is not an
        embedder.
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
