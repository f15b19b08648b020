"""The MCP server as a process of its own, and clients of the official SDK for it."""

import re
import signal
import subprocess
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

from .command_line import PROGRAM

LINE = re.compile(r"Serving .* at (http://\S+)\.")


class Serving(NamedTuple):
    """A server over HTTP that runs."""

    url: str
    process: "subprocess.Popen[str]"


@contextmanager
def served(folder: Path, *words: str) -> Generator[Serving]:
    """``refold mcp --http`` on a free port; ended by Ctrl-C, if it has not ended before."""
    command = [*PROGRAM, "mcp", "--db", "agent.db", "--http", "--port", "0", *words]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            found = next(filter(None, map(LINE.search, process.stderr)), None)
            assert found is not None, "the server has not begun"
            yield Serving(found[1], process)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)


def program(folder: Path, *words: str) -> StdioServerParameters:
    """``refold mcp`` over standard input and output, for a client to start."""
    rest = [*PROGRAM[1:], "mcp", "--db", "agent.db", *words]
    return StdioServerParameters(command=PROGRAM[0], args=rest, cwd=folder)


@asynccontextmanager
async def client_of(server: Any, mode: str = "auto") -> AsyncGenerator[Client]:
    """A client that has shaken hands with a server object, a program, or a URL."""
    async with Client(server, mode=mode, read_timeout_seconds=60) as client:
        yield client


def said(result: Any) -> str:
    """The text of what a tool gave."""
    return "".join(block.text for block in result.content)
