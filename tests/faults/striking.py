"""Puts faults into sessions with ``strace``: one at a time, at the call that was asked for."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from signal import SIGKILL
from typing import NamedTuple

from .looking_over import refusals, told

ROOT = Path(__file__).resolve().parents[2]
SPARE = 100
"""A session may make so many more calls than the one that was counted."""
PATIENCE = 60
"""Seconds that a session may take."""


class Fault(NamedTuple):
    """What happens at a call of the system."""

    name: str
    call: str
    action: str
    """As ``strace`` calls it."""
    lasting: bool = False
    """From there on, at every further call as well."""


FAULTS = (
    *(
        Fault(f"killed at {call}", call, "signal=KILL")
        for call in ("pwrite64", "fdatasync", "ftruncate", "unlink", "rename")
    ),
    *(
        Fault(f"{error} at {call}", call, f"error={error}")
        for error in ("EIO", "ENOSPC")
        for call in ("pwrite64", "fdatasync", "ftruncate")
    ),
    *(Fault(f"EIO at {call}", call, "error=EIO") for call in ("unlink", "rename", "pread64")),
    *(
        Fault(f"{error} from {call} on", call, f"error={error}", lasting=True)
        for error in ("EIO", "ENOSPC")
        for call in ("pwrite64", "fdatasync")
    ),
)


class Struck(NamedTuple):
    """A session that a fault was put into."""

    folder: Path
    status: int
    """Of its process: 0 ran through, -9 was killed, anything else is not as it should be."""
    was_struck: bool
    """Whether the fault was put in at all."""


@cache
def missing() -> str | None:
    """Why no faults can be put in here; None where they can."""
    strace = shutil.which("strace")
    if strace is None:
        return "strace is not installed (on Debian: apt-get install strace)"
    tried = subprocess.run(
        [strace, "-f", "-qq", "-o", "/dev/null", "-e", "trace=unlink", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    if tried.returncode:
        return f"strace cannot follow processes here: {tried.stderr.strip()[:200]}"
    return None


def calls_of(call: str) -> int:
    """How many of these calls a session makes that nothing is put into."""
    with tempfile.TemporaryDirectory() as place:
        lines = Path(place, "calls")
        with _server(call, SPARE, ["-o", str(lines), "-e", f"trace={call}"]) as server:
            answer = _asked(server, SPARE, Path(place))
        pid, status = answer.split()
        facts = told(Path(place))
        # A session that breaks by itself would pass every fault.
        if int(status) or facts[-1:] != [{"act": "session", "phase": "ended"}] or refusals(facts):
            raise RuntimeError(f"the session does not run through: {status}, {facts[-1:]}")
        found = [line.split(None, 1)[1] for line in lines.read_text().splitlines() if pid in line]
        return sum(line.startswith(call) for line in found)


def struck(fault: Fault, points: Iterator[int], most: int) -> Generator[tuple[int, Struck]]:
    """One session for each point; its folder is gone when the next is asked for."""
    last = most + SPARE
    when = f"{last}+" if fault.lasting else str(last)
    inject = f"inject={fault.call}:{fault.action}:when={when}"
    with tempfile.TemporaryDirectory() as place:
        failed = Path(place, "failed")
        options = ["-Z", "-o", str(failed), "-e", f"trace={fault.call}", "-e", inject]
        # Faster; but signals are not put in then, and nothing says so.
        options += [] if "signal" in fault.action else ["--seccomp-bpf"]
        with _server(fault.call, last, options) as server:
            for point in points:
                with tempfile.TemporaryDirectory() as folder:
                    pid, status = _asked(server, point, Path(folder)).split()
                    told_of = failed.read_text().splitlines() if failed.exists() else []
                    hits = [line for line in told_of if line.startswith(pid) and "INJECTED" in line]
                    killed = int(status) == -SIGKILL
                    yield point, Struck(Path(folder), int(status), killed or bool(hits))


@contextmanager
def _server(call: str, last: int, options: list[str]) -> Generator["subprocess.Popen[str]"]:
    command = ["strace", "-f", "-qq", *options]
    command += [sys.executable, "-m", "tests.faults.server", call, str(last)]
    server = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        if server.stdout.readline() != "ready\n":
            raise RuntimeError(f"the server of sessions did not start: {' '.join(command)}")
        yield server
        server.stdin.close()
        server.wait(PATIENCE)
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def _asked(server: "subprocess.Popen[str]", point: int, folder: Path) -> str:
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(f"{point} {folder}\n")
    server.stdin.flush()
    answer = server.stdout.readline()
    if not answer:
        raise RuntimeError(f"the server of sessions ended at point {point}")
    return answer
