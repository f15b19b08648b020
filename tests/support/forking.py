"""What programs that fork are made of: memories in use, children that print their answers, and who waits for them."""

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import refold

ALARM = 40


def say(memory: refold.Memory, *words: str, thread: str = "t") -> None:
    for word in words:
        memory.conversation(thread).append({"role": "user", "content": word})


def words_of(memory: refold.Memory, thread: str = "t") -> str:
    return " ".join(str(m.message.content) for m in memory.conversation(thread).messages())


def used(path: Path) -> refold.Memory:
    """A memory with its log, read models and recall index open."""
    memory = refold.open(path, telemetry=False)
    say(memory, "one")
    memory.conversations()
    memory.conversation("t").recall("one")
    while threading.active_count() > 1:  # What reads the log in the background ends by itself.
        time.sleep(0.001)
    return memory


def in_child(work: Callable[[], object], fork: Callable[[], int] = os.fork) -> int:
    """Fork a process that does the work and prints its answer, or its error of refold."""
    sys.stdout.flush()
    pid = fork()
    if pid:
        return pid
    signal.alarm(ALARM)
    try:
        answer = work()
        if answer is not None:
            _say(answer)
    except refold.RefoldError as error:
        _say(f"{type(error).__name__}: {error}")
    except BaseException as error:
        _say(f"UNTYPED {error!r}")
    finally:
        sys.stdout.flush()
        os._exit(0)


def _say(answer: object) -> None:
    """Write a line at once: several children may write to one pipe, and Python may write line ends apart."""
    sys.stdout.flush()
    os.write(sys.stdout.fileno(), f"{answer}\n".encode())


def ended(*pids: int) -> None:
    for pid in pids:
        _, status = os.waitpid(pid, 0)
        if status:
            print("a child ended with", os.waitstatus_to_exitcode(status))


def past_python() -> int:
    return int(ctypes.PyDLL(None).fork())


def half_past_python() -> int:
    """As servers in C do."""
    if pid := past_python():
        return pid
    ctypes.pythonapi.PyOS_AfterFork_Child()
    return 0


PAST_PYTHON: tuple[Callable[[], int], ...] = (
    (past_python, half_past_python) if sys.version_info < (3, 13) else (past_python,)
)
"""Python 3.13 ends itself where it is told of a fork afterwards only."""


def appended(path: Path, *words: str) -> str:
    with refold.open(path, telemetry=False) as memory:
        say(memory, *words)
    return f"stored {' '.join(words)}"


def files_of(folder: Path) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for path in folder.iterdir():
        stat = path.stat()
        found[path.name] = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
    return found


def descriptors(path: Path) -> set[str]:
    """What this process has open beside ``path``."""
    places = Path("/proc/self/fd")
    links = [str(place.readlink()) for place in places.iterdir() if place.is_symlink()]
    return {link for link in links if link.startswith(str(path.parent))}
