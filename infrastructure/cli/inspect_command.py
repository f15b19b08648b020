"""``refold inspect``: show the memory in a browser."""

import dataclasses
import webbrowser
from importlib.util import find_spec
from typing import Annotated

import typer

from refold.application.runtime.core import Core
from refold.application.runtime.memory_settings import (
    InstructionSettings,
    MemoriesSettings,
    NotesSettings,
)
from refold.domain.compaction.policy import CompactionPolicy
from refold.domain.errors import InvalidSetting
from refold.domain.value import replace

from .arguments import open_existing
from .options import DEFAULT_DB, Db, Json, ModelName, PolicyFile, Window
from .output import clean, print_json, say, warn

Port = Annotated[
    int,
    typer.Option("--port", metavar="N", min=0, max=65_535, help="The port; 0 chooses a free one."),
]
NoBrowser = Annotated[
    bool, typer.Option("--no-browser", metavar="", help="Print the URL and open no browser.")
]
HOST = "127.0.0.1"
EXAMPLES = {
    "inspect": "The URL has a token; who does not have it reads nothing. Only this machine can reach "
    "the server, and it changes nothing in the log. Ctrl-C stops it."
}


def inspect(
    db: Db = DEFAULT_DB,
    port: Port = 0,
    no_browser: NoBrowser = False,
    window: Window = None,
    model: ModelName = None,
    policy: PolicyFile = None,
    json: Json = False,
) -> None:
    """Show conversations, requests and summaries in a browser, and why each message is where it is."""
    _require_packages()
    from refold.infrastructure.inspector.serving import Inspector
    from refold.infrastructure.loopback import open_listener

    with open_existing(db, window=window, model=model, policy_file=policy) as memory:
        server = Inspector(memory, open_listener(HOST, port), open_trial)
        if json:
            print_json({"url": server.url})
        else:
            say(clean(server.url))
            warn(f"Serving {clean(db)} to this machine only. Press Ctrl-C to stop.")

        def begun() -> None:
            if not (no_browser or json):
                webbrowser.open(server.url)

        server.serve(begun)


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


def _require_packages() -> None:
    """Raise if a package of the inspector is not installed.

    Raises:
        InvalidSetting: the message says how to install it.
    """
    if any(find_spec(name) is None for name in ("starlette", "jinja2", "uvicorn")):
        raise InvalidSetting(
            "refold inspect needs packages that are not installed: pip install 'refold[inspect]'"
        )
