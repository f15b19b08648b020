"""The composition root: puts adapters and settings together into the service that agents embed."""

import logging
import uuid
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Unpack

from refold.application.async_memory import AsyncMemory
from refold.application.core import Core
from refold.application.derived import forget_erased
from refold.application.errors import LogError
from refold.application.memory import Memory
from refold.application.notes.writing import write_notes
from refold.application.opening_process import OpeningProcess
from refold.application.ports import Summariser, TokenCounter
from refold.application.recall.parts import RecallParts

from .options import NAME_OR_OBJECT, NO_SETTINGS, READ_APART
from .options import Options as Options

if TYPE_CHECKING:
    from collections.abc import Callable

    from refold.application.instructions import Instructions

    from .log.store import SQLiteLog
    from .log.stored.encryption import KeySource
    from .notes.folder import MarkdownFolder
    from .observing.notices import Notice
    from .observing.wiring import Observing
    from .settings.model import RefoldSettings
    from .settings.reading import Configuration
    from .views.views import SQLiteViews

logger = logging.getLogger(__name__)


def open_memory(path: str | Path, **options: Unpack[Options]) -> Memory:
    """Open the memory in the file at ``path``; every option is described in ``Options``.

    Raises:
        InvalidSetting: a setting cannot be; says which, where it comes from, and what it must be.
        LogError: the log cannot be opened; nothing was changed.
    """
    return Memory(open_core(path, **options))


def open_async_memory(path: str | Path, **options: Unpack[Options]) -> AsyncMemory:
    """Open the memory in the file at ``path`` for asyncio: ``async with refold.aopen(…) as memory``.

    Options and errors are those of ``refold.open``.
    """
    return AsyncMemory(open_core(path, **options))


def configuration_of(options: Options) -> "Configuration":
    """The settings that these options, environment and policy file give together.

    Raises:
        InvalidSetting: a setting cannot be; says which, where it comes from, and what it must be.
    """
    from .log.stored.encryption import hidden_key
    from .settings.reading import read_configuration

    named: dict[str, object] = {
        name: value
        for name, value in options.items()
        if name not in (*NO_SETTINGS, *READ_APART)
        and (name not in NAME_OR_OBJECT or isinstance(value, str))
    }
    if isinstance(key := options.get("encryption_key"), bytes | str):
        named["encryption_key"] = hidden_key(key)
    return read_configuration(
        policy=options.get("policy"), policy_file=options.get("policy_file"), **named
    )


def open_core(path: str | Path, **options: Unpack[Options]) -> Core:
    """The core of a memory by itself, for use cases that open and close it on their own.

    Options and errors are those of ``refold.open``.
    """
    # All of it is one use: a fork in the middle of an import would leave the child half a module.
    from .fork_gate import GATE

    with GATE.used():
        return _opened(path, options)


def _opened(path: str | Path, options: Options) -> Core:
    from .log.keeping import SQLiteKeeper
    from .observing.wiring import Observing
    from .processes import ThisProcess
    from .summarisers.extractive import ExtractiveSummariser
    from .tokens.estimator import EstimatingTokenCounter
    from .tools.anthropic import AnthropicTools

    _refuse_unknown(options)
    configuration = configuration_of(options)
    settings, instructions = configuration.settings, _instructions(configuration)
    counter = options.get("counter") or EstimatingTokenCounter()
    observing = Observing.of(settings, options.get("on_compaction"), options.get("observers", ()))
    embedded = observing.summariser(ExtractiveSummariser(counter=counter))
    chosen = _summariser(options.get("summariser"), settings, counter, observing) or embedded
    key = key_source(options, settings)
    stores = _stores(path, options, settings, key, observing.noticed)
    core = Core(
        log=observing.log(stores.log),
        keeper=SQLiteKeeper(stores.log, key),
        views=stores.views,
        recall=stores.recall,
        counter=counter,
        summariser=chosen,
        fallback=embedded,
        clock=options.get("clock") or _now,
        new_id=options.get("new_id") or _new_id,
        settings=configuration.for_core(),
        notes_folder=_notes_folder(path, configuration),
        instructions=instructions.text,
        instruction_files=instructions.files,
        observers=observing.observers(chosen),
        owner=ThisProcess(),
        process=OpeningProcess(str(path)),
        sdk_tools=AnthropicTools(),
    )
    _settle(core, stores, settings.scrub_megabytes)
    return core


class _Stores(NamedTuple):
    """What lies on the disk."""

    log: "SQLiteLog"
    views: "SQLiteViews"
    recall: RecallParts


def _stores(
    path: str | Path,
    options: Options,
    settings: "RefoldSettings",
    key: "KeySource | None",
    told: "Callable[[Notice], None]",
) -> _Stores:
    from .backends.choosing import given_backend, named_backend, refuse_files_of
    from .derived.places import place_of
    from .log.store import SQLiteLog
    from .recall.wiring import embedder_of, recall_parts
    from .views.content import VIEWS
    from .views.views import SQLiteViews

    encrypted = key is not None
    # What cannot be is refused before a log is made.
    embedder = embedder_of(options.get("embedder"), settings)
    given = given_backend(options.get("search_backend"))
    refuse_files_of(settings, path, encrypted=encrypted)
    create = options.get("create", True)
    log = SQLiteLog(path, create=create, anchor=settings.anchor, key=key, told=told)
    views = SQLiteViews(place_of(path, VIEWS, encrypted=encrypted), log, of=path, told=told)
    backend = named_backend(settings, path, log) if given is None else given
    recall = recall_parts(path, log, embedder, backend, encrypted=encrypted, told=told)
    return _Stores(log, views, recall)


def _scrub(stores: _Stores, megabytes: int) -> None:
    """Have the files read in the background, until the log is closed."""
    from .log.scrubbing.scrub_thread import Job, ScrubThread
    from .log.scrubbing.scrubber import LogScrubber
    from .recall.index import SQLiteRecallIndex
    from .recall.segments_scrub import SegmentsScrub

    if not megabytes:
        return
    known, budget = stores.log.known, megabytes << 20
    scrubber = LogScrubber(known, budget)
    jobs: list[Job] = [scrubber]
    if isinstance(stores.recall.index, SQLiteRecallIndex):
        followed = stores.recall.index.followed
        last = lambda: known.record.words  # noqa: E731
        jobs.append(SegmentsScrub(followed, last, known.keep_words, budget))
    thread = ScrubThread(jobs, scrubber.finish)
    known.stop_reading = thread.stop
    thread.start()


def _settle(core: Core, stores: _Stores, scrub_megabytes: int) -> None:
    """Finish what earlier processes left unfinished, and have the files read in the background."""
    with suppress(LogError):  # The next one that opens it tries again.
        stores.log.finish_erasures(lambda: forget_erased(core))
    write_notes(core)
    _scrub(stores, scrub_megabytes)


def _summariser(
    given: str | Summariser | None,
    settings: "RefoldSettings",
    counter: TokenCounter,
    observing: "Observing",
) -> Summariser | None:
    """The summariser that was given or named; None for the embedded one."""
    from .summarisers.retrying import retrying

    if given is None or isinstance(given, str):
        if settings.summariser == "extractive":
            return None
        from .summarisers.choosing import anthropic_summariser

        given = anthropic_summariser(
            settings.summariser,
            counter,
            model=settings.summariser_model,
            answering=settings.model,
            timeout=settings.summariser_timeout,
        )
    return retrying(given, settings.summary_tries, each=observing.summariser)


def _refuse_unknown(options: Options) -> None:
    for name in options:
        if name not in Options.__annotations__:
            from .settings.sources import nearest

            hint = nearest(name, Options.__annotations__)
            raise TypeError(f"refold.open has no argument {name!r}{hint}")


def _instructions(configuration: "Configuration") -> "Instructions":
    """What the instruction files say, read once."""
    from .instruction_files import read_instructions

    return read_instructions(configuration.for_core().instructions)


def _notes_folder(path: str | Path, configuration: "Configuration") -> "MarkdownFolder | None":
    """The folder that notes are written into, if the settings name one."""
    folder = configuration.for_core().notes.folder
    if folder is None:
        return None
    from .notes.folder import MarkdownFolder

    return MarkdownFolder(folder, None if str(path) == ":memory:" else Path(path))


def key_source(options: Options, settings: "RefoldSettings") -> "KeySource | None":
    """What gives the keys of a log: a callback, or the key that a setting says."""
    given = options.get("encryption_key")
    if callable(given):
        return given
    secret = settings.encryption_key
    return None if secret is None else secret.get_secret_value()


def _now() -> datetime:
    return datetime.now(UTC)


def _new_id() -> str:
    return uuid.uuid4().hex
