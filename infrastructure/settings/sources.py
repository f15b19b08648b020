"""The sources of settings: arguments, environment and policy file, each read by itself."""

import difflib
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import SecretStr
from pydantic_settings import EnvSettingsSource, SettingsError

from refold.domain.errors import InvalidSetting

from .model import PREFIX, RefoldSettings

OTHERS = f"{PREFIX}X_"
"""Variables that begin so are no settings: room for programs around refold, and for its tests."""

LOG_VARIABLE = f"{PREFIX}DB"
"""Names the log to the command line; no setting of a memory, which is opened with a path."""

SECRETS = ("encryption_key", "embedder_key")
"""The settings that are secrets."""

Kind = Literal["argument", "environment", "file"]


class Source(NamedTuple):
    """The settings that were given in one place."""

    kind: Kind
    values: Mapping[str, Any]
    path: Path | None = None
    in_policy: frozenset[str] = frozenset()
    """Of arguments, those that came as fields of a policy."""

    def place_of(self, *keys: str) -> str:
        """Where a setting of this source stands, for people."""
        match self.kind:
            case "argument":
                return f"argument {'policy.' if keys[0] in self.in_policy else ''}{'.'.join(keys)}"
            case "environment":
                inside = "".join(f"[{key!r}]" for key in keys[1:])
                return f"environment variable {variable(keys[0])}{inside}"
            case "file":
                return f"{self.path}: {'.'.join(map(_toml_key, keys))}"


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + name.upper()


def from_environment() -> Source:
    """What environment variables say. An empty one counts as not set.

    Raises:
        InvalidSetting: a variable begins like a setting and is none, or holds no JSON where it must.
    """
    set_here = [name for name, value in os.environ.items() if value and _is_ours(name.upper())]
    if not set_here:
        return Source("environment", {})  # As most often: then nothing is asked field by field.
    known = {variable(name): name for name in RefoldSettings.model_fields}
    for name in set_here:
        if name.upper() not in known:
            raise InvalidSetting(
                f"environment variable {name}: there is no such setting{nearest(name, known)}. "
                f"Unset it, or name it {OTHERS}… if it belongs to another program",
                setting=name,
            )
    try:
        values = EnvSettingsSource(RefoldSettings)()
        # From here on it is shown by nothing: no error, no list, no representation.
        secrets = {name: SecretStr(values[name]) for name in SECRETS if name in values}
        return Source("environment", {**values, **secrets})
    except SettingsError as error:
        raise _no_json(str(error)) from None


def _no_json(message: str) -> InvalidSetting:
    # The message has the field between quotation marks, and that is all that can be known of it.
    quoted = re.findall(r'"(\w+)"', message)
    name = next((name for name in quoted if name in RefoldSettings.model_fields), "models")
    example = '{"claude-opus-5": {"trigger_share": 0.6}}'
    form = f"a JSON object such as {example}" if name == "models" else "JSON"
    return InvalidSetting(
        f"environment variable {variable(name)}: must be {form}",
        setting=name,
        value=os.environ.get(variable(name)),
    )


def _is_ours(name: str) -> bool:
    return name.startswith(PREFIX) and not name.startswith(OTHERS) and name != LOG_VARIABLE


def from_file(path: Path, named_by: str) -> Source:
    """What a policy file says.

    Raises:
        InvalidSetting: it cannot be read, is no TOML, or sets what no file can set.
    """
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
            f"policy file {path} is no text in UTF-8 (byte {error.start}): save it as such",
            setting="policy_file",
            value=path,
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidSetting(
            f"policy file {path} is no TOML: {error}", setting="policy_file", value=path
        ) from None
    for key in SECRETS:
        if key in values:
            raise InvalidSetting(
                f"{path}: {key}: a key does not belong in a policy file; give it by {variable(key)}",
                setting=key,
            )
    if "policy_file" in values:
        raise InvalidSetting(
            f"{path}: policy_file: a policy file cannot name another", setting="policy_file"
        )
    return Source("file", values, path)


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint at the known name that is most alike, or nothing."""
    alike = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {alike[0]}?)" if alike else ""


def _toml_key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else f'"{key}"'
