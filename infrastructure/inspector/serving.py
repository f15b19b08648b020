"""The server of the inspector on this machine."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import closing

import uvicorn

from refold.application.api.memory import Memory
from refold.infrastructure.loopback import names_of

from .access import HeadersForAll, Keys, TokenAccess
from .policy_trials import OpenTrial, PolicyTrials
from .site import pages_of

CLOSING = 1
"""Seconds that running requests have when the server stops."""


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

    def serve(self, begun: Callable[[], None] = lambda: None) -> None:
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
