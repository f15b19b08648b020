"""Create the parts of a memory on a server."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from refold.application.ports.conversation_log import ConversationLog
from refold.application.ports.embedder import Embedder
from refold.application.ports.read_models import ReadModels
from refold.application.ports.search_backend import SearchBackend
from refold.application.runtime.core import RecallParts
from refold.domain.errors import InvalidSetting
from refold.infrastructure.observability.log_observer import Notice, ignore
from refold.infrastructure.projection_store.read_models import VIEWS, FollowedViews, SQLiteViews
from refold.infrastructure.recall.recall_wiring import join_recall, recall_parts
from refold.infrastructure.settings.settings_model import RefoldSettings

from .connections import Address, Store
from .followed_tables import FollowedTables
from .keeper import PostgresKeeper
from .log import PostgresLog
from .passage_index import PostgresRecallIndex
from .vector_store import PostgresVectorStore

if TYPE_CHECKING:
    from refold.infrastructure.event_store.encryption import KeySource


class PostgresViews(FollowedViews[FollowedTables]):
    """The ``ReadModels`` in tables next to the log, which several machines keep up to date together."""

    def __init__(
        self, store: Store, log: ConversationLog, *, notify: Callable[[Notice], None] = ignore
    ) -> None:
        """Create the read models. The first query creates their tables."""
        super().__init__(FollowedTables(store, VIEWS, log, notify=notify))


class ServerParts(NamedTuple):
    """The parts of a memory on a server."""

    log: PostgresLog
    views: ReadModels
    recall: RecallParts
    keeper: PostgresKeeper


def postgres_parts(
    place: str,
    settings: RefoldSettings,
    embedder: Embedder | None,
    backend: SearchBackend | None,
    *,
    key: "KeySource | None",
    create: bool,
    notify: Callable[[Notice], None],
) -> ServerParts:
    """Open the log at the address ``place``, and create its read models and recall.

    Raises:
        InvalidSetting: the address or a setting does not fit a server.
        LogError: the server cannot be used.
    """
    address = Address.of(place, schema=settings.postgres_schema, pool=settings.postgres_pool)
    if settings.search_backend == "qmd":
        raise InvalidSetting(
            "search_backend: 'qmd' searches files next to a log file; use search_backend='builtin'",
            setting="search_backend",
            value="qmd",
        )
    log = PostgresLog(address, create=create, key=key, notify=notify)
    keeper = PostgresKeeper(log)
    if key is not None or log.is_replica:
        # A replica has no tables outside of the write-ahead log. And as for an encrypted file, what is derived has
        # the words of people, so it is kept in memory.
        recall = recall_parts(":memory:", log, embedder, backend, encrypted=False, notify=notify)
        return ServerParts(log, SQLiteViews(":memory:", log, notify=notify), recall, keeper)
    index = PostgresRecallIndex(log.store, log, notify=notify)

    def vectors(notify: Callable[[Notice], None]) -> PostgresVectorStore:
        return PostgresVectorStore(log.store, index, answer=index.answer, notify=notify)

    recall = join_recall(index, vectors, log, embedder, backend, notify=notify)
    return ServerParts(log, PostgresViews(log.store, log, notify=notify), recall, keeper)
