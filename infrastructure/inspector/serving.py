"""The server of the inspector on this machine, and the token that opens its pages."""

import asyncio
import hmac
import secrets
import socket
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode

import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from refold.application.api.memory import Memory
from refold.infrastructure.loopback import names_of

from .access import ACCESS, Access, HeadersForAll
from .policy_trials import OpenTrial, PolicyTrials
from .site import pages_of

CLOSING = 1
"""Seconds that running requests have when the server stops."""


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
            return None if request.scope["path"].startswith("/api/") else self._exchange(request)
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
        # An older starlette takes an encoded "?" of the path for the beginning of the query.
        query_string = request.scope["query_string"].decode("latin-1")
        query = parse_qsl(query_string, keep_blank_values=True, errors="replace")
        if rest := urlencode([(name, value) for name, value in query if name != "token"]):
            to += f"?{rest}"
        answer = Response(status_code=303, headers={"location": to})
        answer.set_cookie(
            self._cookie, self._keys.session, httponly=True, samesite="strict", path="/"
        )
        return answer


def _equal(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())


class Inspector:
    """Serves the pages of one memory to one user of this machine."""

    def __init__(self, memory: Memory, listener: socket.socket, open_trial: OpenTrial) -> None:
        host, port = listener.getsockname()[:2]
        keys = Keys()
        self._listener = listener
        self._trials = PolicyTrials(open_trial)
        pages = pages_of(memory, self._trials)
        self._app = HeadersForAll(TokenAccess(pages, keys, names_of(host, port), port))
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{port}/?token={keys.token}"
        """URL with the token of this run."""

    def serve(self, begun: Callable[[], object] = lambda: None) -> None:
        """Serve until Ctrl-C. ``begun`` is called when the event loop runs."""

        async def run() -> None:
            begun()
            config = uvicorn.Config(
                self._app,
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=CLOSING,
                ws="none",
            )
            await uvicorn.Server(config).serve(sockets=[self._listener])

        with closing(self._listener), closing(self._trials):
            asyncio.run(run())
