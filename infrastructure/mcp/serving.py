"""Running the server: over standard input and output, or over HTTP on this machine alone."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import closing
from ipaddress import ip_address
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings

from refold.application.plain_lines import plain_logger
from refold.domain.errors import InvalidSetting

from .standard_streams import standard_streams

PATH = "/mcp"
CLOSING = 1
"""Seconds that open streams of clients are waited for at the end."""


def serve_standard_streams(server: Server[Any]) -> None:
    """Serve one client until it closes its end."""

    async def serve() -> None:
        async with standard_streams() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    try:
        asyncio.run(serve())
    except* (BrokenPipeError, ConnectionError):
        plain_logger(__name__).info("the client went away without waiting for its answers")


def listening(host: str, port: int) -> socket.socket:
    """A socket of this machine that no other machine reaches; port 0: any that is free.

    Raises:
        InvalidSetting: the host is not this machine alone, or the port is taken.
    """
    if not is_loopback(host):
        raise InvalidSetting(
            f"host={host!r} cannot be: what everybody said is served without asking who is there, so only to "
            "this machine. Use 127.0.0.1, ::1 or localhost.",
            setting="host",
            value=host,
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise InvalidSetting(
            f"port={port} of {host} cannot be used ({error}); give another one, or 0 for any that is free",
            setting="port",
            value=port,
        ) from error


def is_loopback(host: str) -> bool:
    """Whether this names the machine itself, to itself."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def url_of(listener: socket.socket) -> str:
    """Where clients find the server."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"


def serve_http(server: Server[Any], listener: socket.socket, begun: Callable[[], None]) -> None:
    """Serve any number of clients over streamable HTTP until somebody presses Ctrl-C.

    ``begun`` is called when the loop runs: from then on Ctrl-C ends it in order.
    """
    with closing(listener):
        asyncio.run(_serve_http(server, listener, begun))


async def _serve_http(
    server: Server[Any], listener: socket.socket, begun: Callable[[], None]
) -> None:
    begun()
    host, port = listener.getsockname()[:2]
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        host=host,
        # Every request says all that its answer needs. A session would be kept for clients that went away.
        stateless_http=True,
        transport_security=_only_from_here(host, port),
    )
    config = uvicorn.Config(
        app,
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=CLOSING,
        ws="none",
    )
    # Not by the lifespan of the app: a task of its own, which Ctrl-C at the start ends with a traceback.
    async with server.session_manager.run():
        await uvicorn.Server(config).serve(sockets=[listener])


def _only_from_here(host: str, port: int) -> TransportSecuritySettings:
    """A web page of somebody else must not get at the memory by a name that leads to this machine."""
    bare = f"[{host}]" if ":" in host else host
    names = [f"{name}:{port}" for name in dict.fromkeys((bare, "127.0.0.1", "localhost", "[::1]"))]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=names,
        allowed_origins=[f"http://{name}" for name in names],
    )
