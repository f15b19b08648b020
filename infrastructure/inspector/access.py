"""The ways to allow reading: a token for one user of this machine, or a function of the service around them."""

import hmac
import inspect
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import parse_qsl, urlencode

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
        allowed: object = self._authorise(Request(scope, receive))
        if inspect.isawaitable(allowed):
            allowed = await allowed
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


@dataclass(frozen=True)
class Keys:
    """Secrets of one run of the server: the token of the URL, and the cookie that replaces it."""

    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    session: str = field(default_factory=lambda: secrets.token_urlsafe(24))


class TokenAccess:
    """ASGI middleware for one user of this machine.

    The token of the URL is exchanged for a cookie and leaves the address bar. Programs may send it as
    ``Authorization: Bearer``. Requests under other host names or from other origins are refused.
    """

    def __init__(self, app: ASGIApp, keys: Keys, hosts: Sequence[str], port: int) -> None:
        self._app = app
        self._keys = keys
        self._hosts = frozenset(hosts)
        self._cookie = f"refold_{port}"  # Cookies are shared by all ports of a host.

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or pass on a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = self._refusal(Request(scope))
        if answer is None:
            scope[ACCESS] = Access()
        await (answer or self._app)(scope, receive, send)

    def _refusal(self, request: Request) -> Response | None:
        """Return the answer to a request that may not read yet, or None if it may."""
        hosts = [host.lower() for host in request.headers.getlist("host")]
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return PlainTextResponse("This host name is not served.\n", 421)
        if not self._is_own_page(request, hosts[0]):
            return PlainTextResponse("Requests of other sites are refused.\n", 403)
        given = request.query_params.getlist("token")
        if any(_equal(one, self._keys.token) for one in given):
            # Programs that ask for JSON have no address bar and often no cookies.
            return None if request.url.path.startswith("/api/") else self._exchange(request)
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        cookie = request.cookies.get(self._cookie, "")
        if _equal(bearer, self._keys.token) or _equal(cookie, self._keys.session):
            return None
        return PlainTextResponse(
            "The token is missing or wrong. Open the URL that `refold inspect` printed.\n", 401
        )

    @staticmethod
    def _is_own_page(request: Request, host: str) -> bool:
        origin = request.headers.get("origin")
        if origin is not None and origin != f"http://{host}":
            return False
        # A link from elsewhere may open a page (a navigation); nothing may load one in the background.
        site = request.headers.get("sec-fetch-site", "none")
        return site in ("none", "same-origin") or (
            request.headers.get("sec-fetch-mode") == "navigate"
            and request.headers.get("sec-fetch-dest") == "document"
        )

    def _exchange(self, request: Request) -> Response:
        # The path as it was sent; with two slashes at its beginning it would name another host.
        to = "/" + request.scope["raw_path"].decode("latin-1").lstrip("/\\")
        query = parse_qsl(request.url.query, keep_blank_values=True, errors="replace")
        if rest := urlencode([(name, value) for name, value in query if name != "token"]):
            to += f"?{rest}"
        answer = Response(status_code=303, headers={"location": to})
        answer.set_cookie(
            self._cookie, self._keys.session, httponly=True, samesite="strict", path="/"
        )
        return answer


def _equal(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())
