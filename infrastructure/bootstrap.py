"""Composition root: build a memory from adapters and settings."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from refold.application.api.memory import Memory
from refold.application.compaction.unwritten import UnwrittenWrites
from refold.application.conversation.instructions import Instructions
from refold.application.conversation.thread_log import ThreadLog
from refold.application.errors import LogError
from refold.application.frames.request_frames import NewestRequests
from refold.application.ports.stemmer import stem_with
from refold.application.runtime.core import Core, RecallParts, frequent_terms, read_once
from refold.application.runtime.opening_process import OpeningProcess
from refold.infrastructure.files.fork_gate import GATE, deferred
from refold.infrastructure.files.log_place import (
    LogPlace,
    derived_path,
    is_address,
    require_psycopg,
)
from refold.infrastructure.files.processes import ThisProcess
from refold.infrastructure.settings.option_checks import (
    NAME_OR_OBJECT,
    NO_SETTINGS,
    READ_APART,
    check_options,
    checked_clock,
    checked_counter,
    checked_new_id,
)
from refold.infrastructure.settings.option_checks import Options as Options

if TYPE_CHECKING:
    from refold.application.api.async_memory import AsyncMemory
    from refold.application.ports.embedder import Embedder
    from refold.application.ports.log_keeper import LogKeeper
    from refold.application.ports.read_models import ReadModels
    from refold.application.ports.sdk_tools import SDKTools
    from refold.application.ports.search_backend import SearchBackend
    from refold.application.ports.summariser import Summariser
    from refold.application.ports.token_counter import TokenCounter
    from refold.infrastructure.event_store.encryption import KeySource
    from refold.infrastructure.event_store.store import SQLiteLog
    from refold.infrastructure.maintenance.scrubber import Job, KnownDamage
    from refold.infrastructure.notes.markdown_pages import MarkdownReader
    from refold.infrastructure.notes.notes_folder import MarkdownFolder
    from refold.infrastructure.observability.log_observer import Notice
    from refold.infrastructure.observability.observers import Observing
    from refold.infrastructure.postgres.log import PostgresLog
    from refold.infrastructure.settings.configuration import Configuration
    from refold.infrastructure.settings.settings_model import RefoldSettings

    Notify = Callable[[Notice], None]


ID_BYTES = 10
"""Random bytes of an id, stored as hex digits. The chance that two of 10**9 ids are equal is below 1 in a million."""


def open_memory(path: str | Path, **options: Unpack[Options]) -> Memory:
    """Open the memory in the file at ``path``.

    ``Options`` describes every option.

    Raises:
        InvalidSetting: a setting is invalid; the message names it, its source and the expected value.
        LogError: the log cannot be opened; nothing was changed.
    """
    return Memory(open_core(path, **options))


def open_async_memory(path: str | Path, **options: Unpack[Options]) -> AsyncMemory:
    """Open the memory in the file at ``path`` for asyncio: ``async with refold.aopen(…) as memory``.

    Options and errors are those of ``refold.open``.
    """
    from refold.application.api.async_memory import AsyncMemory

    return AsyncMemory(open_core(path, **options))


def configuration_of(options: Options) -> Configuration:
    """Merge options, environment and policy file into one configuration.

    Raises:
        InvalidSetting: a setting is invalid; the message names it, its source and the expected value.
    """
    from refold.infrastructure.event_store.encryption import hide_key
    from refold.infrastructure.settings.configuration import read_configuration

    named: dict[str, object] = {
        name: value
        for name, value in options.items()
        if name not in (*NO_SETTINGS, *READ_APART)
        and (name not in NAME_OR_OBJECT or isinstance(value, str))
    }
    if isinstance(key := options.get("encryption_key"), bytes | str):
        named["encryption_key"] = hide_key(key)
    return read_configuration(
        policy=options.get("policy"), policy_file=options.get("policy_file"), **named
    )


def open_core(path: str | Path, **options: Unpack[Options]) -> Core:
    """Open the core of a memory, for use cases that open and close it themselves.

    Options and errors are those of ``refold.open``.
    """
    # Import everything inside one use: a fork in the middle of an import would leave the child with half a module.
    with GATE.used():
        from refold.infrastructure.files.log_place import real_place

        check_options(path, options)
        return _open(real_place(path), options)


def _open(path: str | Path, options: Options) -> Core:
    from refold.infrastructure.event_store.envelope import random_hex
    from refold.infrastructure.observability.observers import Observing

    configuration = configuration_of(options)
    settings, instructions = configuration.settings, _instructions(configuration)
    counter = _counter(options)
    observing = Observing.of(settings, options.get("on_compaction"), options.get("observers") or ())
    chosen, embedded = _summarisers(options.get("summariser"), settings, counter, observing)
    stores = _stores(path, options, settings, key_source(options, settings), observing.notify)
    asked, unwritten = NewestRequests(), UnwrittenWrites()
    log = ThreadLog(stores.log, asked, unwritten, observer=observing.log_observer())
    core = Core(
        log=log,
        keeper=stores.keeper,
        views=deferred(lambda: _views(stores, log)) if stores.is_plain else _views(stores, log),
        recall=_recall(stores, log, options),
        counter=counter,
        summariser=chosen,
        fallback=embedded,
        clock=checked_clock(options.get("clock")) or partial(datetime.now, UTC),
        new_id=checked_new_id(options.get("new_id")) or partial(random_hex, ID_BYTES),
        settings=configuration.for_core(),
        notes_folder=_notes_folder(path, configuration),
        markdown=_markdown(configuration),
        instructions=instructions.text,
        instruction_files=instructions.files,
        observers=observing.observers(chosen),
        needs_no_loop=_needs_no_loop(chosen is embedded, counter, observing),
        owner=ThisProcess(),
        process=OpeningProcess(str(LogPlace.parse(path))),
        sdk_tools=deferred(_sdk_tools),
        follower_parts=_follower_parts,
        topics=deferred(frequent_terms),
        reading=deferred(read_once),
        asked=asked,
        unwritten=unwritten,
        turns=stores.log.turns,
    )
    return _start(core, path, stores, settings.scrub_megabytes)


def _counter(options: Options) -> TokenCounter:
    from refold.infrastructure.tokens.estimator import EstimatingTokenCounter

    return checked_counter(options.get("counter")) or EstimatingTokenCounter()


def _needs_no_loop(by_code: bool, counter: TokenCounter, observing: Observing) -> bool:
    from refold.application.ports.token_counter import RequestCounter

    return by_code and not observing.others and not isinstance(counter, RequestCounter)


def _follower_parts(name: str, version: int, fold: Any, into: object) -> Any:
    from refold.infrastructure.projection_store.follower_tables import follower_parts

    return follower_parts(name, version, fold, into)


def _sdk_tools() -> SDKTools:
    from refold.infrastructure.sdk_tools import AnthropicTools

    return AnthropicTools()


def _summarisers(
    given: str | Summariser | None,
    settings: RefoldSettings,
    counter: TokenCounter,
    observing: Observing,
) -> tuple[Summariser, Summariser]:
    """Return the chosen summariser, and the built-in one that replaces it when it fails."""

    def extractive() -> Summariser:
        from refold.infrastructure.summarisers.extractive.summariser import ExtractiveSummariser

        return observing.summariser(ExtractiveSummariser(counter=counter))

    embedded = deferred(extractive)
    return _summariser(given, settings, counter, observing) or embedded, embedded


def _views(stores: _Stores, log: ThreadLog) -> ReadModels:
    from refold.application.projections.thread_views import ThreadViews

    return ThreadViews(stores.views, log)


def _recall(stores: _Stores, log: ThreadLog, options: Options) -> RecallParts:
    from refold.infrastructure.recall.stemmer import SNOWBALL

    stem_with(SNOWBALL)
    backend = options.get("search_backend")
    hands_over = backend is None or isinstance(backend, str)

    def addressed() -> RecallParts:
        from refold.application.recall.thread_recall import address_by_thread

        return address_by_thread(stores.recall, log, hands_over=hands_over)

    if not stores.is_plain:
        return addressed()
    parts = deferred(addressed)
    return RecallParts(
        index=deferred(lambda: parts.index),
        vectors=deferred(lambda: parts.vectors),
        drop_handed_over=lambda: parts.drop_handed_over(),
    )


def _start(core: Core, path: str | Path, stores: _Stores, scrub_megabytes: int) -> Core:
    """Finish what earlier processes left unfinished, and start the background scrub."""
    with suppress(LogError):  # The next process that opens the log tries again.
        stores.log.finish_erasures(lambda: _forget_erased(core))
    if core.notes_folder is not None:
        from refold.application.notes.note_files import write_notes

        write_notes(core)
    _scrub(path, stores, scrub_megabytes)
    return core


def _forget_erased(core: Core) -> bool:
    from refold.application.maintenance.verifying import forget_erased

    return forget_erased(core)


def _summariser(
    given: str | Summariser | None,
    settings: RefoldSettings,
    counter: TokenCounter,
    observing: Observing,
) -> Summariser | None:
    """Return the given or named summariser, or None for the built-in one."""
    if given is None or isinstance(given, str):
        if settings.summariser == "extractive":
            return None
        if settings.summariser == "off":
            from refold.application.summaries.leaves import SummariesOff

            return SummariesOff(counter.count_text)
        from refold.infrastructure.summarisers.named_summarisers import (
            anthropic_summariser,
            warn_without_key,
        )

        warn_without_key(settings.summariser)
        given = anthropic_summariser(
            settings.summariser,
            counter,
            model=settings.summariser_model,
            answering=settings.model,
            timeout=settings.summariser_timeout,
        )
    from refold.infrastructure.summarisers.named_summarisers import retrying

    return retrying(given, settings.summary_tries, each=observing.summariser)


def _instructions(configuration: Configuration) -> Instructions:
    """Read the instruction files once."""
    settings = configuration.for_core().instructions
    if not settings.files:
        return Instructions()
    from refold.infrastructure.notes.markdown_pages import read_instructions

    return read_instructions(settings)


def _notes_folder(path: str | Path, configuration: Configuration) -> MarkdownFolder | None:
    """Return the folder for durable notes, or None if no folder is configured."""
    folder = configuration.for_core().notes.folder
    if folder is None:
        return None
    from refold.infrastructure.notes.notes_folder import MarkdownFolder

    in_a_file = str(path) != ":memory:" and not is_address(path)
    return MarkdownFolder(folder, Path(path) if in_a_file else None)


def _markdown(configuration: Configuration) -> MarkdownReader | None:
    """Return the reader of the searched Markdown files, or None if no folder is configured."""
    notes = configuration.for_core().notes
    folder = notes.searched or notes.folder
    if folder is None:
        return None
    from refold.infrastructure.notes.markdown_pages import MarkdownReader

    return MarkdownReader(folder)


def key_source(options: Options, settings: RefoldSettings) -> KeySource | None:
    """Return the key source of a log: a callback, the configured key, or None."""
    given = options.get("encryption_key")
    if callable(given):
        return given
    return None if (secret := settings.encryption_key) is None else secret.get_secret_value()


class _Stores(NamedTuple):
    """Files and connections of one memory. Those of a log file are opened on first use."""

    log: SQLiteLog | PostgresLog
    views: ReadModels
    recall: RecallParts
    keeper: LogKeeper
    is_plain: bool = False
    """True for a log file that is searched by words only."""


def _file_settings(settings: RefoldSettings) -> dict[str, bool]:
    return {"anchor": settings.anchor, "checkpoints": settings.checkpoints}


def _stores(
    path: str | Path,
    options: Options,
    settings: RefoldSettings,
    key: KeySource | None,
    notify: Notify,
) -> _Stores:
    encrypted = key is not None
    # Reject invalid options before a log is created.
    embedder = _embedder(options.get("embedder"), settings)
    backend = _backend(options.get("search_backend"))
    create = options.get("create", True)
    if is_address(path):
        require_psycopg()
        from refold.infrastructure.postgres.wiring import postgres_parts as parts

        place = str(path)
        return _Stores(
            *parts(place, settings, embedder, backend, key=key, create=create, notify=notify)
        )
    from refold.infrastructure.event_store.store import SQLiteLog

    is_named = settings.search_backend != "builtin"
    if is_named:
        from refold.infrastructure.search_backends.named_backends import refuse_files_of

        refuse_files_of(settings, path, encrypted=encrypted)
    log = SQLiteLog(path, create=create, key=key, notify=notify, **_file_settings(settings))
    if is_named and backend is None:
        from refold.infrastructure.search_backends.named_backends import named_backend

        backend = named_backend(settings, path, log)
    # With a key, plain files that were derived from the log are deleted at once.
    views = deferred(lambda: _file_views(path, log, encrypted, notify), at_once=encrypted)
    recall = deferred(
        lambda: _file_recall(path, log, embedder, backend, encrypted, notify), at_once=encrypted
    )
    is_plain = embedder is None and backend is None and not encrypted
    return _Stores(log, views, recall, deferred(lambda: _file_keeper(log, key)), is_plain)


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


def _scrub(path: str | Path, stores: _Stores, megabytes: int) -> None:
    """Scrub the files in the background until the log is closed."""
    from refold.infrastructure.event_store.store import SQLiteLog

    if not megabytes or not isinstance(stores.log, SQLiteLog):
        return
    from refold.infrastructure.maintenance.scrubber import LogScrubber, ScrubThread

    known, budget = stores.log.known, megabytes << 20
    scrubber = LogScrubber(known, budget)
    jobs: list[Job] = [scrubber]
    if Path(derived_path(path, "recall")).exists():
        jobs.append(deferred(lambda: _segments_scrub(known, stores, budget)))
    thread = ScrubThread(jobs, scrubber.finish)
    known.stop_reading = thread.stop
    thread.start()


def _segments_scrub(known: KnownDamage, stores: _Stores, budget: int) -> Job:
    from refold.infrastructure.recall.recall_index import SQLiteRecallIndex
    from refold.infrastructure.recall.segments import SegmentsScrub

    index = stores.recall.index
    assert isinstance(index, SQLiteRecallIndex), "a log file has its index in a file"
    return SegmentsScrub(index.followed, lambda: known.record.words, known.keep_words, budget)
