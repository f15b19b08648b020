"""Transports over standard streams and HTTP. They stop without delay, but answer pending requests first."""

import asyncio
import json
import os
import socket
import threading
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager, closing, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from refold.application.agent_tools.answers import well_formed
from refold.application.runtime.plain_lines import plain_logger
from refold.domain.lazy_pattern import lazy_pattern
from refold.infrastructure.loopback import names_of

if TYPE_CHECKING:
    import anyio


Incoming = SessionMessage | Exception
Streams = tuple[ReadStream[Incoming], WriteStream[SessionMessage]]
STANDARD_INPUT = 0
AT_ONCE = 65_536
_HALVES = lazy_pattern(r"\\u[dD][89a-fA-F]")
CANCELLED = "notifications/cancelled"
OWED = 30.0
"""Seconds to wait for pending answers after the client has closed its end."""


@asynccontextmanager
async def standard_streams() -> AsyncGenerator[Streams]:
    """Open the two streams of a server, and redirect everything else that is printed to standard error."""
    lines = cast("anyio.AsyncFile[str]", _Lines(asyncio.get_running_loop()))
    async with stdio_server(stdin=lines) as (reading, writing):
        pending = _PendingRequests()
        yield _Reading(reading, pending), _Writing(writing, pending)


class _Lines:
    """The lines of standard input, read in a daemon thread.

    A read cannot be cancelled, and Ctrl-C must not wait for the next line.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._found = asyncio.Queue[str | None](maxsize=100)
        threading.Thread(target=self._read, name="refold-mcp-input", daemon=True).start()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        line = await self._found.get()
        if line is None:
            raise StopAsyncIteration
        return line

    def _read(self) -> None:
        # A closed or missing stream is the end. A stopping loop accepts no more lines.
        with suppress(OSError, RuntimeError, CancelledError):
            rest: list[bytes] = []
            # Not through sys.stdin: its lock would be held when the interpreter exits.
            while piece := os.read(STANDARD_INPUT, AT_ONCE):
                *lines, last = piece.split(b"\n")
                for line in lines:
                    self._put(b"".join((*rest, line)))
                    rest.clear()
                rest.append(last)
            if any(rest):
                self._put(b"".join(rest))
        with suppress(RuntimeError, CancelledError):
            self._put(None)

    def _put(self, line: bytes | None) -> None:
        text = None if line is None else replace_surrogates(line.decode("utf-8", "replace"))
        asyncio.run_coroutine_threadsafe(self._found.put(text), self._loop).result()


def replace_surrogates(line: str) -> str:
    """Replace each escaped lone surrogate in the line by U+FFFD.

    Python and JavaScript write lone surrogates into JSON, and the SDK drops such a line without an answer.
    """
    if not _HALVES.search(line):
        return line
    try:
        return well_formed(json.dumps(json.loads(line), ensure_ascii=False))
    except (ValueError, RecursionError):
        return line


class _PendingRequests:
    """The requests that are not answered yet."""

    def __init__(self) -> None:
        self._requests = set[str | int]()
        self._paid = asyncio.Event()

    def add(self, item: Incoming) -> None:
        """Add the request in a message from the client, or remove the one that the message cancels."""
        message = item.message if isinstance(item, SessionMessage) else None
        if isinstance(message, JSONRPCRequest):
            self._requests.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == CANCELLED:
            cancelled = (message.params or {}).get("requestId")
            if isinstance(cancelled, str | int):
                self._requests.discard(cancelled)

    def remove(self, item: SessionMessage) -> None:
        """Remove the request that a message to the client answers, if it answers one."""
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            if item.message.id is not None:
                self._requests.discard(item.message.id)
            self._paid.set()

    async def wait_for_answers(self) -> None:
        """Wait for the answers that the client requested before it closed its end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(OWED):
                while self._requests:
                    self._paid.clear()
                    await self._paid.wait()


class _Reading:
    """The incoming stream. It ends when all requests are answered."""

    def __init__(self, inner: ReadStream[Incoming], pending: _PendingRequests) -> None:
        self._inner, self._pending = inner, pending

    async def receive(self) -> Incoming:
        item = await self._inner.receive()
        self._pending.add(item)
        return item

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Incoming:
        try:
            item = await self._inner.__anext__()
        except StopAsyncIteration:
            await self._pending.wait_for_answers()
            raise
        self._pending.add(item)
        return item

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        return await self._inner.__aexit__(exc_type, exc_val, exc_tb)


class _Writing:
    """The outgoing stream."""

    def __init__(self, inner: WriteStream[SessionMessage], pending: _PendingRequests) -> None:
        self._inner, self._pending = inner, pending

    async def send(self, item: SessionMessage, /) -> None:
        try:
            await self._inner.send(item)
        finally:
            self._pending.remove(item)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        return await self._inner.__aexit__(exc_type, exc_val, exc_tb)


PATH = "/mcp"
CLOSING = 1
"""Seconds to wait for open streams of clients on shutdown."""


def serve_standard_streams(server: Server[Any]) -> None:
    """Serve one client until it closes its end."""

    async def serve() -> None:
        async with standard_streams() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    try:
        asyncio.run(serve())
    except* (BrokenPipeError, ConnectionError):
        plain_logger(__name__).info("the client went away without waiting for its answers")


def url_of(listener: socket.socket) -> str:
    """Return the URL of the server."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"


def serve_http(server: Server[Any], listener: socket.socket, begun: Callable[[], None]) -> None:
    """Serve clients over streamable HTTP until Ctrl-C.

    ``begun`` is called when the event loop runs; from then on Ctrl-C shuts down cleanly.
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
        # Every request is self-contained. Sessions would be kept for clients that are gone.
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
    # Not in the app's lifespan: its separate task would end with a traceback on an early Ctrl-C.
    async with server.session_manager.run():
        await uvicorn.Server(config).serve(sockets=[listener])


def _only_from_here(host: str, port: int) -> TransportSecuritySettings:
    """Accept only loopback host names, so that a web page cannot reach the memory by DNS rebinding."""
    names = list(names_of(host, port))
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=names,
        allowed_origins=[f"http://{name}" for name in names],
    )
