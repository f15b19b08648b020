"""The ways to allow reading: a token for one user of this machine, or a function of the service around them."""

import hmac
import inspect
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from starlette.datastructures import URL, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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


@dataclass(frozen=True)
class Access:
    """The part of a memory that a reader may see."""

    owner: str | None = None
    """Show only conversations of this owner; None shows all."""


Authorise: TypeAlias = Callable[[Request], bool | Access | Awaitable[bool | Access]]
"""Function that says whether a request may read: True for everything, ``Access(owner=…)`` for what one owner has."""

ACCESS = "refold.access"
"""Key of the reader's ``Access`` in the scope of a request."""


class HeadersForAll:
    """ASGI middleware that gives every answer the same security headers, and allows reading only."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or pass on a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        app: ASGIApp = self._app
        if scope["method"] not in ("GET", "HEAD"):
            app = PlainTextResponse("The inspector only reads.\n", 405, {"allow": "GET, HEAD"})
        await app(scope, receive, send_with_headers)


class ServiceAccess:
    """ASGI middleware that asks a function of the service whether a request may read."""

    def __init__(self, app: ASGIApp, authorise: Authorise) -> None:
        self._app = app
        self._authorise = authorise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or pass on a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        allowed = self._authorise(Request(scope, receive))
        if inspect.isawaitable(allowed):
            allowed = await allowed
        if not allowed:
            await PlainTextResponse("You may not read this.\n", 403)(scope, receive, send)
            return
        scope[ACCESS] = allowed if isinstance(allowed, Access) else Access()
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
        host = request.headers.get("host", "")
        if host not in self._hosts:
            return PlainTextResponse("This host name is not served.\n", 421)
        if not self._is_own_page(request, host):
            return PlainTextResponse("Requests of other sites are refused.\n", 403)
        given = request.query_params.get("token")
        if given is not None and _equal(given, self._keys.token):
            return self._exchange(request.url)
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

    def _exchange(self, url: URL) -> Response:
        clean = url.remove_query_params("token")
        to = clean.path + (f"?{clean.query}" if clean.query else "")
        answer = RedirectResponse(to, 303)
        answer.set_cookie(
            self._cookie, self._keys.session, httponly=True, samesite="strict", path="/"
        )
        return answer


def _equal(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())
