"""Read the settings. Arguments override the environment, which overrides the policy file and the defaults."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import pydantic
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from refold.application.runtime.memory_settings import (
    InstructionSettings,
    MemoriesSettings,
    ModelSettings,
    NotesSettings,
    Settings,
)
from refold.domain.compaction.policy import ROUNDING, TIERS, CompactionPolicy
from refold.domain.errors import InvalidSetting
from refold.domain.late_model import late_classes
from refold.domain.text_cuts import beginning
from refold.domain.value import build_unvalidated, fields_of, replace_from
from refold.infrastructure.event_store.plain_shapes import Unusual, read_plain

from .settings_model import CHECKED_BY_CODE, PREFIX, RefoldSettings, SettingsOfModel, expected

OTHERS = f"{PREFIX}X_"
"""Prefix of variables that are not settings. Programs that use refold, and its tests, may use it."""

LOG_VARIABLE = f"{PREFIX}DB"
"""Variable that names the log for the command line. It is not a setting: a memory is opened with a path."""

SECRETS = ("encryption_key", "embedder_key")
"""Settings that are secrets."""

Kind = Literal["argument", "environment", "file"]


class Source(NamedTuple):
    """The settings that one source provides."""

    kind: Kind
    values: Mapping[str, Any]
    path: Path | None = None
    in_policy: frozenset[str] = frozenset()
    """Arguments that were given as fields of a policy."""

    def place_of(self, *keys: str) -> str:
        """Describe where this source defines a setting, for error messages."""
        match self.kind:
            case "argument":
                return f"argument {'policy.' if keys[0] in self.in_policy else ''}{'.'.join(keys)}"
            case "environment":
                inside = "".join(f"[{key!r}]" for key in keys[1:])
                return f"environment variable {variable(keys[0])}{inside}"
            case "file":
                return f"{self.path}: {'.'.join(map(_toml_key, keys))}"


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return PREFIX + name.upper()


def from_environment() -> Source:
    """Read the settings in environment variables. An empty variable counts as unset.

    Raises:
        InvalidSetting: a variable has the prefix of settings but is unknown, or its JSON is invalid.
    """
    set_here = [name for name, value in os.environ.items() if value and _is_ours(name.upper())]
    known = {variable(name): name for name in RefoldSettings.model_fields} if set_here else {}
    values: dict[str, Any] = {}
    for name in set_here:
        if name.upper() not in known:
            raise InvalidSetting(
                f"environment variable {name}: unknown setting{nearest(name, known)}. "
                f"Unset it, or rename it to {OTHERS}… if another program uses it",
                setting=name,
            )
        setting = known[name.upper()]
        values[setting] = _read_variable(setting, os.environ[name])
    return Source("environment", values)


def _read_variable(setting: str, text: str) -> object:
    if (
        setting in SECRETS
    ):  # Wrapped from here on, so that no error, list or representation shows it.
        return pydantic.SecretStr(text)
    if setting != "models":
        return text
    try:
        return json.loads(text)
    except ValueError:
        example = '{"claude-opus-5": {"trigger_share": 0.6}}'
        raise InvalidSetting(
            f"environment variable {variable(setting)}: must be a JSON object such as {example}",
            setting=setting,
            value=text,
        ) from None


def _is_ours(name: str) -> bool:
    return name.startswith(PREFIX) and not name.startswith(OTHERS) and name != LOG_VARIABLE


def from_file(path: Path, named_by: str) -> Source:
    """Read the settings in a policy file.

    Raises:
        InvalidSetting: the file cannot be read, is not TOML, or contains a setting that files cannot set.
    """
    import tomllib

    try:
        values = tomllib.loads(path.expanduser().read_text("utf-8"))
    except OSError as error:
        raise InvalidSetting(
            f"policy file {path} ({named_by}) cannot be read: {error.strerror}",
            setting="policy_file",
            value=path,
        ) from None
    except UnicodeDecodeError as error:
        raise InvalidSetting(
            f"policy file {path} is not UTF-8 text (byte {error.start}): save it as UTF-8",
            setting="policy_file",
            value=path,
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidSetting(
            f"policy file {path} is not valid TOML: {error}", setting="policy_file", value=path
        ) from None
    for key in SECRETS:
        if key in values:
            raise InvalidSetting(
                f"{path}: {key}: a secret does not belong in a policy file; set {variable(key)} instead",
                setting=key,
            )
    if "policy_file" in values:
        raise InvalidSetting(
            f"{path}: policy_file: a policy file cannot name another policy file",
            setting="policy_file",
        )
    return Source("file", values, path)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint with the most similar known name, or an empty string."""
    import difflib

    alike = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {alike[0]}?)" if alike else ""


def _toml_key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else f'"{key}"'


_NOT_ABOVE = (("split_prefix_least", "split_prefix_share"), ("chunk_least", "chunk_share"))
"""Pairs of settings in which the first is a lower limit for the second."""
MOST_TARGET = 0.9
"""Largest target as a share of the trigger. With a higher target, a compaction frees almost nothing."""


class Configuration(NamedTuple):
    """The settings and their sources."""

    settings: RefoldSettings
    sources: tuple[Source, ...]
    """Sources, highest priority first."""

    def source_of(self, name: str) -> Source | None:
        """Return the source of a setting, or None if it has its default."""
        return next((source for source in self.sources if name in source.values), None)

    def for_core(self) -> Settings:
        """Return the settings in the form that use cases need."""
        given = self.settings
        return build_unvalidated(
            Settings,
            window=given.window,
            model=given.model,
            policy=given.policy,
            summary_place=given.summary_place,
            background=given.background,
            close_wait=given.close_wait,
            compaction_wait=given.compaction_wait,
            request_bytes=given.request_bytes,
            shorten_texts=given.shorten_texts,
            recall_tokens=given.recall_tokens,
            standing_recall=given.standing_recall,
            recall_hits=given.recall_hits,
            recall_least_score=given.recall_least_score,
            recall_mode=given.recall_mode,
            notes=_notes_settings(given),
            memories=build_unvalidated(
                MemoriesSettings,
                most=given.memories,
                least_score=given.memories_least_score,
                tokens=given.memories_tokens,
                of_owner=given.owner_memories,
            ),
            instructions=build_unvalidated(
                InstructionSettings,
                files=given.instruction_files or (),
                characters=given.instruction_characters,
                total=given.instruction_total,
            ),
            models=tuple(self._model_settings(prefix, own) for prefix, own in given.models.items()),
        )

    def _model_settings(self, prefix: str, own: SettingsOfModel) -> ModelSettings:
        table_from = self.source_of("models")
        stronger = self.sources[: self.sources.index(table_from)] if table_from else ()
        names = {
            name
            for name in own.model_fields_set
            if not any(name in source.values for source in stronger)
        }
        given = self.settings
        return build_unvalidated(
            ModelSettings,
            prefix=prefix,
            window=own.window if "window" in names else given.window,
            policy=replace_from(given.policy, own, names & CompactionPolicy.model_fields.keys()),
            request_bytes=own.request_bytes if "request_bytes" in names else given.request_bytes,
        )


def _notes_settings(given: RefoldSettings) -> NotesSettings:
    return build_unvalidated(
        NotesSettings,
        by=given.notes,
        folder=given.notes_folder,
        searched=given.markdown_folder,
        reserve_tokens=given.notes_reserve_tokens,
        soft_tokens=given.notes_soft_tokens,
        timeout=given.notes_timeout,
        timezone=given.notes_timezone,
    )


def read_configuration(
    *,
    policy: CompactionPolicy | None = None,
    policy_file: str | Path | None = None,
    **arguments: object,
) -> Configuration:
    """Read every setting.

    An argument that is None counts as not given. Of ``policy``, the fields that were set explicitly count,
    and those that differ from their default.

    Raises:
        InvalidSetting: a value is invalid; the message names the setting, its source and the expected
            value.
    """
    own = {} if policy is None else _given_fields(policy)
    values = {name: value for name, value in arguments.items() if value is not None}
    given = Source("argument", {**values, **own}, in_policy=frozenset(own))
    environment = from_environment()
    sources = (given, environment, *_policy_file(policy_file, environment))
    merged: dict[str, Any] = {}
    for source in reversed(sources):
        merged |= source.values
    if merged and (truths := tuple(_truths_for_numbers(merged))):
        raise _refusal(truths, sources)
    try:
        configuration = Configuration(_settings_of(merged), sources)
    except ValidationError as error:
        raise _refusal(error.errors(include_url=False), sources) from None
    _refuse_crossed(configuration)
    return configuration


_made: dict[str, RefoldSettings] = {}
"""The settings of the last call. Programs often open memories with the same settings, which are immutable."""


def _settings_of(values: dict[str, Any]) -> RefoldSettings:
    if not values:
        return build_unvalidated(RefoldSettings)  # Building a validator takes longer than the rest.
    if any(name in values for name in SECRETS):
        return RefoldSettings(**values)  # All keys have the same representation.
    key = repr(values)  # Not by equality: True equals 1, but is not a valid number here.
    settings = _made.get(key)
    if settings is None:
        settings = _read(values)
        _made.clear()
        _made[key] = settings
    return settings


def _read(values: dict[str, Any]) -> RefoldSettings:
    """Read the settings. Building a validator takes longer than opening a memory, and few values need it."""
    if RefoldSettings in late_classes and CHECKED_BY_CODE.isdisjoint(values):
        try:
            return read_plain(RefoldSettings, values)
        except Unusual:
            pass  # The validator converts the value, or explains what is wrong.
    return RefoldSettings(**values)


def _given_fields(policy: CompactionPolicy) -> dict[str, object]:
    default = CompactionPolicy()
    return {
        name: getattr(policy, name)
        for name in CompactionPolicy.model_fields
        if name in policy.model_fields_set or getattr(policy, name) != getattr(default, name)
    }


def _policy_file(argument: str | Path | None, environment: Source) -> tuple[Source, ...]:
    if argument is not None:
        return (from_file(Path(argument), "argument policy_file"),)
    if named := environment.values.get("policy_file"):
        return (from_file(Path(named), environment.place_of("policy_file")),)
    return ()


def _truths_for_numbers(merged: Mapping[str, Any]) -> Iterator[ErrorDetails]:
    """Yield an error for each setting that is true or false where a number is expected.

    Python treats ``true`` as 1, but ``keep_last = true`` is a mistake.
    """
    own = _table(merged.get("models"))
    for place, kind, values in (
        ((), RefoldSettings, merged),
        *((("models", name), SettingsOfModel, own[name]) for name in own),
    ):
        types = fields_of(kind).types
        for name, value in _table(values).items():
            if isinstance(value, bool) and types.get(name, bool) is not bool:
                yield ErrorDetails(loc=(*place, name), type="bool", input=value, msg="")


def _table(given: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", given) if isinstance(given, Mapping) else {}


def _refusal(details: Sequence[ErrorDetails], sources: tuple[Source, ...]) -> InvalidSetting:
    name = str(details[0]["loc"][0])
    return InvalidSetting(
        "; ".join(_explain(detail, sources) for detail in details),
        setting=name,
        value=details[0]["input"],
    )


def _explain(detail: ErrorDetails, sources: tuple[Source, ...]) -> str:
    keys = tuple(str(key) for key in detail["loc"])
    source = next(source for source in sources if keys[0] in source.values)
    place = source.place_of(*keys)
    fields = RefoldSettings.model_fields if len(keys) == 1 else SettingsOfModel.model_fields
    if detail["type"] == "extra_forbidden":
        what = "setting" if len(keys) == 1 else "setting of a model"
        return f"{place}: unknown {what}{nearest(keys[-1], fields)}"
    field = fields.get(keys[-1]) or RefoldSettings.model_fields[keys[0]]
    if len(keys) == 2 and keys[0] == "models":
        return f"{place} = {_show(detail['input'])}: must be a table of settings"
    return f"{place} = {_show(detail['input'])}: must be {expected(keys[-1], field)}"


def _refuse_crossed(configuration: Configuration) -> None:
    made = configuration.for_core()
    for policy in (made.policy, *(own.policy for own in made.models)):
        _refuse_shares(configuration, policy)
        for least, share in _NOT_ABOVE:
            value, limit = getattr(policy, least), getattr(policy, share)
            if value > limit:
                raise InvalidSetting(
                    f"{least} = {value} ({_where(configuration, least)}): must be at most "
                    f"{share} = {limit} ({_where(configuration, share)})",
                    setting=least,
                    value=value,
                )


def _refuse_shares(configuration: Configuration, policy: CompactionPolicy) -> None:
    """Refuse a target close to the trigger, and tiers that exceed the budget together.

    Policies in stored events may have such values, so the fields themselves allow them.
    """
    if policy.target_share > MOST_TARGET:
        raise InvalidSetting(
            f"target_share = {policy.target_share} ({_where(configuration, 'target_share')}): must be at "
            f"most {MOST_TARGET} of the trigger; otherwise almost every request triggers a compaction",
            setting="target_share",
            value=policy.target_share,
        )
    tiers = {name: getattr(policy, name) for name in TIERS}
    if sum(tiers.values()) > 1 + ROUNDING:
        said = " + ".join(
            f"{name} = {v} ({_where(configuration, name)})" for name, v in tiers.items()
        )
        raise InvalidSetting(
            f"{said}: must be at most 1 together", setting=TIERS[0], value=sum(tiers.values())
        )


def _where(configuration: Configuration, name: str) -> str:
    source = configuration.source_of(name)
    return "default" if source is None else source.place_of(name)


def _show(value: object) -> str:
    return beginning(str(value) if isinstance(value, pydantic.SecretStr) else repr(value), 80)
