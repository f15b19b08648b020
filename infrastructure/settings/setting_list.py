"""The settings as a list: each with its variable, its range, its default, its value and its source."""

import json
import re
from collections.abc import Iterator
from typing import Any

from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.value import Value, replace

from .configuration import OTHERS, Configuration, variable
from .settings_model import RefoldSettings, bounds_of, default_of, kind_of

INTRODUCTION = f"""# Settings

<!-- Made by `refold settings --markdown`; the texts stand beside the fields they are about. -->

Every setting can be given in three places, the strongest first:

1. an argument: `refold.open("agent.db", window=200_000, policy=refold.CompactionPolicy(keep_last=10))`, or an
   option of a command,
2. an environment variable: `REFOLD_KEEP_LAST=10`; an empty one counts as not set,
3. a policy file in TOML, named by the argument `policy_file`, by `REFOLD_POLICY_FILE` or by `--policy FILE`:

```toml
window = 200_000
keep_last = 10

# For requests to some models, by how their names begin. The longest beginning that fits counts, alone.
[models."claude-opus-5"]
window = 1_000_000
trigger_share = 0.5
```

What an argument or a variable sets holds for every model, whatever a table in the file says. `REFOLD_MODELS` takes such
tables as JSON.

A value that cannot be is refused when the memory is opened, with an `InvalidSetting` that names the setting, the place
where it stands, the value, and the range. So are keys and variables that are no settings, with the name that is most
alike; only variables that begin with `{OTHERS}` are left to other programs. `refold settings` shows every value and
where it comes from, `refold settings --check FILE` checks a policy file. `REFOLD_DB` is no setting: it names the log to
commands that are given no `--db`.

(A `CompactionPolicy` that is made by hand with such a value is refused in the same way.)

Shares are fractions of the context window unless they say otherwise.
"""

# The docstrings say which requirement a number comes from; people who set it have no use for that.
_SOURCES = re.compile(r" \((?:requirement|invariant)s? [^)]*\)")
_HEAD = "| setting, variable | type, range | default | meaning |\n|---|---|---|---|\n"


class Setting(Value, frozen=True):
    """One line of the list. ``value`` and ``default`` are as a policy file would say them."""

    name: str
    variable: str
    type: str
    range: str
    default: str
    meaning: str
    value: str = ""
    typed: Any = None
    """The value as JSON has it; None where it is not set."""
    source: str = "default"


def documented() -> Iterator[Setting]:
    """Every setting, those of the policy last."""
    fields = RefoldSettings.model_fields
    for name in sorted(fields, key=lambda name: name in CompactionPolicy.model_fields):
        field = fields[name]
        yield Setting(
            name=name,
            variable=variable(name),
            type=kind_of(name, field),
            range=bounds_of(field),
            default=default_of(field),
            meaning=_SOURCES.sub("", " ".join((field.description or "").split())),
        )


def with_values(configuration: Configuration) -> Iterator[Setting]:
    """Every setting with its value and where it comes from."""
    shown = configuration.settings.model_dump(mode="json")
    given = {name: own.model_dump(mode="json", exclude_unset=True)
             for name, own in configuration.settings.models.items()}  # fmt: skip
    for setting in documented():
        source = configuration.source_of(setting.name)
        value = given if setting.name == "models" else shown[setting.name]
        yield replace(
            setting,
            value="" if value in (None, {}) else _as_text(value),
            typed=value,
            source="default" if source is None else source.place_of(setting.name),
        )


def as_markdown() -> str:
    """The page docs/settings.md."""
    rows = {True: "", False: ""}
    for setting in documented():
        rows[setting.name in CompactionPolicy.model_fields] += _row(setting)
    return (
        f"{INTRODUCTION}\n## The memory\n\n{_HEAD}{rows[False]}"
        f"\n## The policy: when a context is made smaller, and to what size\n\n{_HEAD}{rows[True]}"
    )


def _row(setting: Setting) -> str:
    kind = ", ".join(part for part in (setting.type, setting.range) if part)
    default = f"`{setting.default}`" if setting.default else "–"
    meaning = setting.meaning.replace("``", "`").replace("|", "\\|")
    return f"| `{setting.name}`<br>`{setting.variable}` | {kind} | {default} | {meaning} |\n"


def _as_text(value: object) -> str:
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    return str(value).lower() if isinstance(value, bool) else str(value)
