"""``refold inspect``: show the memory in a browser."""

import dataclasses
import webbrowser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from refold.application.api.memory import Memory
from refold.application.ports.read_models import ConversationRow
from refold.application.runtime.core import Core
from refold.application.runtime.memory_settings import (
    InstructionSettings,
    MemoriesSettings,
    NotesSettings,
)
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.value import replace
from refold.infrastructure.files.log_place import LogPlace

from .arguments import open_existing
from .export_command import Names, as_counts, require_packages, source_of
from .options import DEFAULT_DB, Db, Json, ModelName, PolicyFile, Window
from .output import Stopped, clean, print_json, say, steps, warn

Port = Annotated[
    int,
    typer.Option("--port", metavar="N", min=0, max=65_535, help="The port; 0 chooses a free one."),
]
NoBrowser = Annotated[
    bool, typer.Option("--no-browser", metavar="", help="Print the URL and open no browser.")
]
Bundle = Annotated[
    Path | None,
    typer.Option(
        "--bundle",
        metavar="DIR",
        help="Write all conversations as pages into this folder and end. They open without a server.",
    ),
]
HOST = "127.0.0.1"
INTERRUPTED = 130
EXAMPLES = {
    "inspect": "The URL has a token; who does not have it reads nothing. Only this machine can reach "
    "the server, and it changes nothing in the log. Ctrl-C stops it. As pages for others, without keys, passwords "
    'and this name: refold inspect --bundle pages --redact "Ada Lovelace".'
}


def inspect(
    db: Db = DEFAULT_DB,
    port: Port = 0,
    no_browser: NoBrowser = False,
    bundle: Bundle = None,
    redact: Names = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an older bundle in the folder.", metavar="")
    ] = False,
    window: Window = None,
    model: ModelName = None,
    policy: PolicyFile = None,
    json: Json = False,
) -> None:
    """Show conversations, requests and summaries in a browser, and why each message is where it is."""
    require_packages("refold inspect")
    if bundle is None and (redact or force):
        raise typer.BadParameter("--redact and --force are for pages in a folder: add --bundle DIR")
    if bundle is not None and port:
        raise typer.BadParameter("--port is for a server, and --bundle DIR writes pages")
    if bundle is not None:
        with open_existing(db, window=window, model=model, policy_file=policy) as memory:
            _write_bundle(memory, bundle, db, redact or (), force=force, json=json)
        return
    with open_existing(db, window=window, model=model, policy_file=policy) as memory:
        _serve(memory, db, port, browser=not (no_browser or json), json=json)


def _serve(memory: Memory, db: LogPlace, port: int, *, browser: bool, json: bool) -> None:
    from refold.infrastructure.inspector.serving import Inspector
    from refold.infrastructure.loopback import open_listener

    server = Inspector(memory, open_listener(HOST, port), open_trial)
    if json:
        print_json({"url": server.url})
    else:
        say(clean(server.url))
        warn(f"Serving {clean(db)} to this machine only. Press Ctrl-C to stop.")
    try:
        server.serve(lambda: webbrowser.open(server.url) if browser else None)
    except KeyboardInterrupt:
        if not json:
            warn("Stopped. Nothing was changed.")
        raise Stopped(INTERRUPTED) from None


def _write_bundle(
    memory: Memory, to: Path, db: LogPlace, names: Sequence[str], *, force: bool, json: bool
) -> None:
    from refold.infrastructure.inspector.bundle import write_bundle
    from refold.infrastructure.inspector.masking import Masker

    def watched(rows: Sequence[ConversationRow]) -> Iterator[ConversationRow]:
        return steps(rows, "Writing", quiet=json)

    masker, source = Masker(names), source_of(db)
    made = write_bundle(memory, to, masker, source, replace=force, watched=watched)
    if json:
        counts = {name: count for name, count in made._asdict().items() if name != "masked"}
        print_json({"path": str(to), **counts, **as_counts(made.masked)})
        return
    say(
        f"{clean(to / 'index.html')}: {made.conversations:,} conversations, {made.messages:,} messages, "
        f"{made.pages:,} pages, {made.bytes:,} bytes. {clean(made.masked.sentence())}. Read it before you share it."
    )


def open_trial(core: Core, policy: CompactionPolicy, window: int) -> Core:
    """Open a core for a trial of a policy. It writes no file and asks no service."""
    from refold.infrastructure.bootstrap import open_core

    settings = replace(
        core.settings,
        policy=policy,
        window=window,
        models=(),
        background=False,
        notes=NotesSettings(),
        memories=MemoriesSettings(),
        instructions=InstructionSettings(),
    )
    own = open_core(
        ":memory:",
        window=window,
        counter=core.counter,
        summariser="extractive",
        embedder="none",
        search_backend="builtin",
        telemetry=False,
        background=False,
    )
    return dataclasses.replace(
        own,
        settings=settings,
        notes_folder=None,
        markdown=None,
        instructions="",
        instruction_files=(),
        observers=(),
    )
