"""Open a log and what is stored with it. Adapters that few programs need are made on first use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

if TYPE_CHECKING:
    from refold.application.ports.embedder import Embedder
    from refold.application.ports.log_keeper import LogKeeper
    from refold.application.ports.read_models import ReadModels
    from refold.application.ports.search_backend import SearchBackend
    from refold.application.recall.recall_parts import RecallParts
    from refold.infrastructure.event_store.encryption import KeySource
    from refold.infrastructure.event_store.store import SQLiteLog
    from refold.infrastructure.maintenance.scrubber import Job, KnownDamage
    from refold.infrastructure.observability.log_observer import Notice
    from refold.infrastructure.postgres.log import PostgresLog
    from refold.infrastructure.settings.option_checks import Options
    from refold.infrastructure.settings.settings_model import RefoldSettings

    Notify = Callable[[Notice], None]


class Stores(NamedTuple):
    """Files and connections of one memory. Those of a log file are opened on first use."""

    log: SQLiteLog | PostgresLog
    views: ReadModels
    recall: RecallParts
    keeper: LogKeeper
    is_plain: bool = False
    """True for a log file that is searched by words only."""


_Made = TypeVar("_Made")


def deferred(make: Callable[[], _Made]) -> _Made:
    """Return a stand-in for an adapter that is made when it is first used."""
    return cast("_Made", _Deferred(make))


class _Deferred:
    """An adapter that is made when it is first used: most programs use few, and all should open quickly."""

    def __init__(self, make: Callable[[], object]) -> None:
        self._make = make
        self._lock = RLock()
        self._made: object = None

    def __getattr__(self, name: str) -> Any:
        from refold.infrastructure.files.fork_gate import GATE

        # Once made, this is an attribute of the adapter at hand: no lock is taken.
        if self._made is None:
            if name in _ENDS:
                return _do_nothing
            with GATE.used(), self._lock:
                if self._made is None:
                    self._made = self._make()
        return getattr(self._made, name)


_ENDS = ("close", "interrupt")
"""Methods that have nothing to end before an adapter was made."""


def _do_nothing() -> None:
    """Do nothing, because there is nothing to end."""


def _file_settings(settings: RefoldSettings) -> dict[str, bool]:
    return {"anchor": settings.anchor, "checkpoints": settings.checkpoints}


def open_stores(
    path: str | Path,
    options: Options,
    settings: RefoldSettings,
    key: KeySource | None,
    notify: Notify,
) -> Stores:
    """Open the log at a place, with the adapters that belong to it."""
    from refold.infrastructure.files.log_place import is_address, require_psycopg

    encrypted = key is not None
    # Reject invalid options before a log is created.
    embedder = _embedder(options.get("embedder"), settings)
    given = _backend(options.get("search_backend"))
    create = options.get("create", True)
    if is_address(path):
        require_psycopg()
        from refold.infrastructure.postgres.wiring import postgres_parts as parts

        place = str(path)
        return Stores(
            *parts(place, settings, embedder, given, key=key, create=create, notify=notify)
        )
    from refold.infrastructure.event_store.store import SQLiteLog
    from refold.infrastructure.search_backends.named_backends import named_backend, refuse_files_of

    refuse_files_of(settings, path, encrypted=encrypted)
    log = SQLiteLog(path, create=create, key=key, notify=notify, **_file_settings(settings))
    backend = named_backend(settings, path, log) if given is None else given
    views = deferred(lambda: _file_views(path, log, encrypted, notify))
    recall = deferred(lambda: _file_recall(path, log, embedder, backend, encrypted, notify))
    is_plain = embedder is None and backend is None and not encrypted
    return Stores(log, views, recall, deferred(lambda: _file_keeper(log, key)), is_plain)


def _file_views(path: str | Path, log: SQLiteLog, encrypted: bool, notify: Notify) -> ReadModels:
    from refold.infrastructure.projection_store.projection import kind_of, place_of
    from refold.infrastructure.projection_store.read_models import VIEWS, SQLiteViews

    place = place_of(path, kind_of(VIEWS), encrypted=encrypted)
    return SQLiteViews(place, log, of=path, notify=notify)


def _file_recall(
    path: str | Path,
    log: SQLiteLog,
    embedder: Embedder | None,
    backend: SearchBackend | None,
    encrypted: bool,
    notify: Notify,
) -> RecallParts:
    from refold.infrastructure.recall.recall_wiring import recall_parts

    return recall_parts(path, log, embedder, backend, encrypted=encrypted, notify=notify)


def _file_keeper(log: SQLiteLog, key: KeySource | None) -> LogKeeper:
    from refold.infrastructure.maintenance.log_keeper import SQLiteKeeper

    return SQLiteKeeper(log, key)


def _embedder(given: str | Embedder | None, settings: RefoldSettings) -> Embedder | None:
    """Return the given or configured embedder, or None if none is configured."""
    if given is None and settings.embedder == "none":
        return None
    from refold.infrastructure.recall.recall_wiring import embedder_of

    return embedder_of(given, settings)


def _backend(given: str | SearchBackend | None) -> SearchBackend | None:
    """Return the given search program, or None if a name or nothing was given."""
    if given is None or isinstance(given, str):
        return None
    from refold.infrastructure.search_backends.named_backends import given_backend

    return given_backend(given)


def scrub_stores(path: str | Path, stores: Stores, megabytes: int) -> None:
    """Scrub the files in the background until the log is closed."""
    from refold.infrastructure.event_store.store import SQLiteLog

    if not megabytes or not isinstance(stores.log, SQLiteLog):
        return
    from refold.infrastructure.files.log_place import derived_path
    from refold.infrastructure.maintenance.scrubber import LogScrubber, ScrubThread

    known, budget = stores.log.known, megabytes << 20
    scrubber = LogScrubber(known, budget)
    jobs: list[Job] = [scrubber]
    if Path(derived_path(path, "recall")).exists():
        jobs.append(deferred(lambda: _segments_scrub(known, stores, budget)))
    thread = ScrubThread(jobs, scrubber.finish)
    known.stop_reading = thread.stop
    thread.start()


def _segments_scrub(known: KnownDamage, stores: Stores, budget: int) -> Job:
    from refold.infrastructure.recall.recall_index import SQLiteRecallIndex
    from refold.infrastructure.recall.segments import SegmentsScrub

    index = stores.recall.index
    assert isinstance(index, SQLiteRecallIndex), "a log file has its index in a file"
    return SegmentsScrub(index.followed, lambda: known.record.words, known.keep_words, budget)
