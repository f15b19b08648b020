"""The right to read pages in a service, and the headers of every answer."""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias, cast

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from refold.application.runtime.plain_lines import plain_logger, raised

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Headers of every answer."""


LOGGER = plain_logger(__name__)


@dataclass(frozen=True)
class Access:
    """The part of a memory that a reader may see."""

    owner: str | None = None
    """Show only conversations of this owner, with what guests said in them; None shows all."""


Authorise: TypeAlias = Callable[[Request], bool | Access | Awaitable[bool | Access]]
"""Function that says whether a request may read.

It returns True for everything, ``Access(owner=…)`` for the conversations of one owner, and False for nothing.
"""

ACCESS = "refold.access"
"""Key of the reader's ``Access`` in the scope of a request."""


class HeadersForAll:
    """ASGI middleware around everything: security headers, reading only, and plain answers to errors."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or pass on a request."""
        if scope["type"] == "websocket":
            await WebSocketClose(1008)(scope, receive, send)
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        try:
            await self._app_for(scope)(scope, receive, send_with_headers)
        except HTTPException as error:
            if not begun:
                await _plain(error)(scope, receive, send_with_headers)
        except Exception as error:
            LOGGER.error("a page of the inspector failed: %s", raised(error))
            if not begun:
                await PlainTextResponse(FAILED, 500)(scope, receive, send_with_headers)

    def _app_for(self, scope: Scope) -> ASGIApp:
        if scope["method"] in ("GET", "HEAD"):
            return self._app
        return PlainTextResponse("The inspector only reads.\n", 405, {"allow": "GET, HEAD"})


FAILED = "This page could not be made. The log of the program names the error.\n"


def _plain(error: HTTPException) -> Response:
    return PlainTextResponse(f"{error.detail}\n", error.status_code, error.headers)


class ServiceAccess:
    """ASGI middleware that asks a function of the service whether a request may read."""

    def __init__(self, app: ASGIApp, authorise: Authorise) -> None:
        self._app = app
        self._authorise = authorise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or pass on a request.

        Raises:
            TypeError: the function returned something else than a bool or an ``Access``.
        """
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        returned = self._authorise(Request(scope, receive))
        # A function without types may return anything.
        allowed = cast("object", await returned if inspect.isawaitable(returned) else returned)
        if allowed is False or allowed is None:
            await PlainTextResponse("You may not read this.\n", 403)(scope, receive, send)
            return
        if allowed is True:
            allowed = Access()
        if not isinstance(allowed, Access):
            # A user or a name is no permission to read everything.
            raise TypeError(
                f"authorise must return a bool or an Access, not {type(allowed).__name__}"
            )
        scope[ACCESS] = allowed
        await self._app(scope, receive, send)
