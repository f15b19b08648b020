"""Names processes of this machine, so that it can be told later that one certainly runs no more."""

import os
import platform
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    import psutil

CLOCK_SLACK = 1.0
"""Seconds by which the same process may seem to have started at another time: clocks are rounded."""


class _Place(NamedTuple):
    """Where a process id means something: the same id elsewhere is another process."""

    host: str
    boot: str
    """Which start of the machine; empty where the system does not tell."""
    namespace: str
    """Containers on one machine number their processes apart from each other."""


class _ProcessName(NamedTuple):
    place: _Place
    pid: int
    started: float

    @classmethod
    def read(cls, name: str) -> Self | None:
        """The parts of a name; None if it was made by something else."""
        match name.split("/"):
            case [host, boot, namespace, pid, started]:
                try:
                    return cls(_Place(host, boot, namespace), int(pid), float(started))
                except ValueError:
                    return None
            case _:
                return None

    def __str__(self) -> str:
        return "/".join([*self.place, str(self.pid), f"{self.started:.2f}"])


class ThisProcess:
    """An ``Owner``: names this process by machine, start of the machine, id and time of start."""

    @property
    def name(self) -> str:
        """The name of this process."""
        return _own_name(os.getpid())

    def is_gone(self, name: str) -> bool:
        """Whether the process with this name certainly runs no more.

        Not certain of a process on another machine or in another container, or of one that the
        system does not let us see.
        """
        if name == self.name:
            return False
        its, here = _ProcessName.read(name), _place()
        if its is None or its.place.host != here.host:
            return False
        if its.place.boot != here.boot:
            return bool(its.place.boot and here.boot)
        if its.place.namespace != here.namespace:
            return False
        return not _runs(its)


@cache
def _own_name(pid: int) -> str:
    # Imported when first used: a program that never compacts does not pay for it.
    import psutil

    return str(_ProcessName(_place(), pid, _started(psutil.Process(pid))))


def _runs(its: _ProcessName) -> bool:
    import psutil

    try:
        process = psutil.Process(its.pid)
        # A process that nobody asked for its exit code keeps its id; it does nothing any more.
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return abs(_started(process) - its.started) <= CLOCK_SLACK
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True


def _started(process: "psutil.Process") -> float:
    import psutil

    # Linux counts from the start of the machine, and what the clock is set to later moves both.
    return process.create_time() - (psutil.boot_time() if psutil.LINUX else 0)


def _place() -> _Place:
    host = f"{platform.node()}-{_first_line('/etc/machine-id')}"
    return _Place(host, _first_line("/proc/sys/kernel/random/boot_id"), _namespace())


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").stat().st_ino)
    except OSError:
        return ""


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
