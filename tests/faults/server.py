"""Runs the session again and again, each time in a fork: imports are paid once.

    strace -f -e inject=SYSCALL:…:when=LAST python -m tests.faults.server SYSCALL LAST

Standard input names a point and a folder. A fault strikes at call ``LAST`` of a process: the child makes
so many harmless calls first that this is call number ``point`` of the session.
"""

import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from .session import run


def harmless(name: str) -> Callable[[], object]:
    """A call of the system that changes nothing which anybody looks at."""
    spare = os.open(tempfile.gettempdir(), os.O_RDWR | os.O_TMPFILE)
    match name:
        case "pwrite64":
            return lambda: os.pwrite(spare, b"x", 0)
        case "pread64":
            return lambda: os.pread(spare, 1, 0)
        case "fdatasync":
            return lambda: os.fdatasync(spare)
        case "ftruncate":
            return lambda: os.ftruncate(spare, 0)
        case "unlink":
            return lambda: os.unlink("/nowhere/at/all")  # noqa: PTH108 - the very call
        case "rename":
            return lambda: os.rename("/nowhere/a", "/nowhere/b")  # noqa: PTH104 - the very call
        case _:
            raise ValueError(f"no harmless {name} is known")


def child(call: Callable[[], object], times: int, folder: Path) -> int:
    for _ in range(times):
        with suppress(OSError):
            call()
    return run(folder)


def main() -> None:
    name, last = sys.argv[1], int(sys.argv[2])
    call = harmless(name)
    with tempfile.TemporaryDirectory() as warm:
        run(Path(warm))
    print("ready", flush=True)
    for line in sys.stdin:
        point, _, folder = line.rstrip("\n").partition(" ")
        pid = os.fork()
        if pid == 0:
            status = 99
            try:
                status = child(call, last - int(point), Path(folder))
            finally:
                os._exit(status)
        _, status = os.waitpid(pid, 0)
        print(pid, os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
