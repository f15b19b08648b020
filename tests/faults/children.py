"""Runs a function in a child process of its own: imports are paid once, a hang or a crash ends nobody else.

The process that forks here never has a log open, so what is seen is what a program sees that was just started.
"""

import faulthandler
import json
import os
import pkgutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

PATIENCE = 90.0
"""Seconds that a child may take."""
UNTYPED = 70
"""Exit code of a child that an error of no known kind came out of."""
PLACE = "FAULTS_PLACE"
"""The setting that names the folder for what a child says, where its writes are watched."""
HUNG = -1000
"""Status of a child that did not end in time."""


class Ended(NamedTuple):
    """How a child ended, and what it said."""

    status: int
    """Its exit code; below zero the signal that killed it, or ``HUNG``."""
    answer: Any
    """What the function returned, by way of JSON; None where it never returned."""
    out: str
    err: str

    @property
    def hung(self) -> bool:
        return self.status == HUNG


def import_everything() -> None:
    """Import all of refold that can be imported, so that no child pays for it."""
    refold = import_module("refold")
    for module in pkgutil.walk_packages(refold.__path__, "refold."):
        try:
            import_module(module.name)
        except ImportError:
            continue


def run_apart(
    function: Callable[[], Any], *, patience: float = PATIENCE, stdin: bytes = b""
) -> Ended:
    """Run the function in a forked child; its output goes to files."""
    with tempfile.TemporaryDirectory(prefix="child-", dir=os.environ.get(PLACE)) as place:
        folder = Path(place)
        (folder / "in").write_bytes(stdin)
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            _be_the_child(function, folder)
        status = _wait(pid, patience)
        return Ended(status, _answer(folder), _text(folder / "out"), _text(folder / "err"))


def _be_the_child(function: Callable[[], Any], folder: Path) -> None:
    status = UNTYPED
    try:
        for number, name, flags in ((0, "in", os.O_RDONLY), (1, "out", 577), (2, "err", 577)):
            opened = os.open(folder / name, flags, 0o600)
            os.dup2(opened, number)
            os.close(opened)
        faulthandler.enable(2)
        # Not by a timer: one that runs in the parent would be waited for in vain.
        faulthandler.register(signal.SIGUSR1, 2)
        answer = function()
        (folder / "answer").write_text(json.dumps(answer))
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(bool(end.code))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _wait(pid: int, patience: float) -> int:
    until = time.monotonic() + patience
    pause = 0.002
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until:
            os.kill(pid, signal.SIGUSR1)  # It says where it is.
            time.sleep(1)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return HUNG
        time.sleep(pause)
        pause = min(0.05, pause * 1.5)


def _answer(folder: Path) -> Any:
    path = folder / "answer"
    return json.loads(path.read_text()) if path.exists() else None


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace") if path.exists() else ""
