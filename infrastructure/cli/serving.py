"""``refold mcp``: the memory as a server of the Model Context Protocol."""

from importlib.util import find_spec
from typing import Annotated

import typer

from refold.application.owners.scope import Scope
from refold.domain.errors import InvalidSetting

from .opening import opened, require
from .options import DEFAULT_DB, Db, Json
from .output import clean, warn

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
    from refold.infrastructure.mcp.serving import (
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
