"""The command line in tests: how a command ended, commands in processes of their own, files for them."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

# What a terminal could take for a command; a new line is the only control character that is meant.
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
HOSTILE = "\x1b[31mred\x1b]0;title\x07\x9b2J\x08\r\u202e"


class Ran(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def answer(self) -> dict[str, Any]:
        """The one JSON object that is all of standard output."""
        (line,) = self.out.splitlines()
        found: dict[str, Any] = json.loads(line)
        return found


Refold = Callable[..., Ran]


# A shell that starts tests in the background has Ctrl-C ignored, and children inherit that.
START = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from refold.infrastructure.cli.program import main
main()
"""
PROGRAM = [sys.executable, "-c", START]


def process(
    *words: object, folder: Path, env: Mapping[str, str] | None = None
) -> "subprocess.Popen[bytes]":
    """A command in a process of its own, as a shell would start it."""
    return subprocess.Popen(
        [*PROGRAM, *map(str, words)],
        cwd=folder,
        env={**os.environ, **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def ran(
    *words: object, folder: Path, env: Mapping[str, str] | None = None, encoding: str = "utf-8"
) -> Ran:
    """A command in a process of its own, run to its end."""
    with process(*words, folder=folder, env=env) as started:
        out, err = started.communicate(timeout=120)
    return Ran(started.returncode, out.decode(encoding), err.decode(encoding))


def talk(turns: int, words: str = "Some words of the talk. ") -> list[dict[str, Any]]:
    """Messages of a talk with tools, four for each turn, all different."""
    messages: list[dict[str, Any]] = []
    for n in range(turns):
        used = {"type": "tool_use", "id": f"c{n}", "name": "look", "input": {"at": n}}
        found = {"type": "tool_result", "tool_use_id": f"c{n}", "content": f"{n}: {words * 4}"}
        messages += [
            {"role": "user", "content": f"Question {n}: {words}"},
            {"role": "assistant", "content": [used]},
            {"role": "user", "content": [found]},
            {"role": "assistant", "content": f"Answer {n}: {words}"},
        ]
    return messages


def talk_file(path: Path, turns: int = 3) -> Path:
    path.write_text(json.dumps(talk(turns)), "utf-8")
    return path
