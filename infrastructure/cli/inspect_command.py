"""``refold inspect``: show the memory in a browser."""

import webbrowser
from importlib.util import find_spec
from typing import Annotated

import typer

from refold.domain.errors import InvalidSetting

from .arguments import open_existing
from .options import DEFAULT_DB, Db, Json, ModelName, PolicyFile, Window
from .output import Stopped, clean, print_json, say, warn

Port = Annotated[
    int,
    typer.Option("--port", metavar="N", min=0, max=65_535, help="The port; 0 chooses a free one."),
]
NoBrowser = Annotated[
    bool, typer.Option("--no-browser", metavar="", help="Print the URL and open no browser.")
]
HOST = "127.0.0.1"
INTERRUPTED = 130
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

    def begun(url: str) -> None:
        if not (no_browser or json):
            webbrowser.open(url)

    try:
        with open_existing(db, window=window, model=model, policy_file=policy) as memory:
            server = Inspector(memory, open_listener(HOST, port))
            if json:
                print_json({"url": server.url})
            else:
                say(clean(server.url))
                warn(f"Serving {clean(db)} to this machine only. Press Ctrl-C to stop.")
            server.serve(lambda: begun(server.url))
    except KeyboardInterrupt:
        if not json:
            warn("Stopped. Nothing was changed.")
        raise Stopped(INTERRUPTED) from None


def _require_packages() -> None:
    """Raise if a package of the inspector is not installed.

    Raises:
        InvalidSetting: the message says how to install it.
    """
    if any(find_spec(name) is None for name in ("starlette", "jinja2", "uvicorn")):
        raise InvalidSetting(
            "refold inspect needs packages that are not installed: pip install 'refold[inspect]'"
        )
