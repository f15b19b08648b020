"""Runs a program with a time-out: never through a shell, and never leaves a process of it behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

MOST_BYTES = 32 * 1024 * 1024
"""Of one stream; whoever writes more is not read on, and runs into the time-out."""
GRACE = 0.5
"""Seconds between the request to end and the end."""


class Ran(NamedTuple):
    """What a program said, and how it ended."""

    status: int
    """Negative: the number of the signal that ended it."""
    out: str
    err: str


class NotStarted(Exception):
    """The program is not there, or is none that this system can run."""


class TimedOut(Exception):
    """It did not end in time, and was ended with everything that it had started."""


class _Said(threading.Thread):
    """Reads a stream to its end, so that the program never waits for a reader."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(daemon=True, name="refold-program-output")
        self._stream = stream
        self.content = b""
        self.start()

    def run(self) -> None:
        with suppress(OSError, ValueError), self._stream:
            self.content = self._stream.read(MOST_BYTES)
            if len(self.content) == MOST_BYTES:
                # Left unread, so that the program stops there; the time-out ends it.
                threading.Event().wait(3_600)

    @property
    def text(self) -> str:
        return self.content.decode(errors="replace")


def run(
    command: Sequence[str], *, folder: Path, environment: Mapping[str, str], timeout: float
) -> Ran:
    """Run ``command`` in ``folder`` and return what it said; each argument reaches it as it is.

    Raises:
        TimedOut: it took longer than ``timeout`` seconds.
        NotStarted: the program cannot be started.
        OSError: nothing can be started there.
    """
    deadline = time.monotonic() + timeout
    process = _started(command, folder, environment)
    assert process.stdout is not None
    assert process.stderr is not None
    said = _Said(process.stdout), _Said(process.stderr)
    try:
        status = process.wait(timeout)
        for stream in said:
            stream.join(max(deadline - time.monotonic(), 0.1))
        if any(stream.is_alive() for stream in said):
            raise TimedOut
    except subprocess.TimeoutExpired as error:
        raise TimedOut from error
    finally:
        _end(process, any(stream.is_alive() for stream in said))
    return Ran(status, *(stream.text for stream in said))


def _started(
    command: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # A group of its own: the program may have started others, which end with it.
            start_new_session=True,
        )
    except OSError as error:
        # Of a folder or of the system as a whole it says something else.
        if error.filename != command[0]:
            raise
        there = isinstance(error, FileNotFoundError) and Path(command[0]).exists()
        why = "the interpreter that it names is missing" if there else error.strerror
        raise NotStarted(f"{command[0]}: {why}") from error


def _end(process: "subprocess.Popen[bytes]", still_open: bool) -> None:
    """End what is left of the group: ask first, so that locks are given back, then do not ask."""
    if process.poll() is not None and not still_open:
        return
    _ask_to_end(process)
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)
    _kill(process)
    process.wait()


if sys.platform == "win32":  # There are no groups that signals reach.

    def _ask_to_end(process: "subprocess.Popen[bytes]") -> None:
        process.terminate()

    def _kill(process: "subprocess.Popen[bytes]") -> None:
        process.kill()

else:

    def _ask_to_end(process: "subprocess.Popen[bytes]") -> None:
        _signal(process.pid, signal.SIGTERM)

    def _kill(process: "subprocess.Popen[bytes]") -> None:
        _signal(process.pid, signal.SIGKILL)

    def _signal(group: int, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
