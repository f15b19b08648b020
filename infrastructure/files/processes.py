"""Name processes of this machine, and detect that a named one has certainly ended."""

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    import psutil

CLOCK_SLACK = 1.0
"""Seconds by which two start times of one process may differ, because clocks are rounded."""


class _Place(NamedTuple):
    """The scope of a process id. The same id in another scope is another process."""

    host: str
    boot: str
    """Boot id of the machine, or empty if the system does not provide one."""
    namespace: str
    """Process namespace. Containers on one machine number their processes separately."""


class _ProcessName(NamedTuple):
    place: _Place
    pid: int
    started: float

    @classmethod
    def read(cls, name: str) -> Self | None:
        """Parse a name. Return None if it has another format."""
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
    """The owner that names this process by machine, boot, id and start time."""

    @property
    def name(self) -> str:
        """Name of this process."""
        return _own_name(os.getpid())

    def is_gone(self, name: str) -> bool:
        """Return whether the named process has certainly ended.

        Return False if that is uncertain: the process is on another machine, in another container, or
        hidden by the system.
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
    # Imported on first use, so that programs that never compact do not pay for it.
    import psutil

    return str(_ProcessName(_place(), pid, _start_time(psutil.Process(pid))))


def _runs(its: _ProcessName) -> bool:
    import psutil

    try:
        process = psutil.Process(its.pid)
        # A zombie process keeps its id until its parent collects the exit code; it does nothing any more.
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return abs(_start_time(process) - its.started) <= CLOCK_SLACK
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True


def _start_time(process: "psutil.Process") -> float:
    import psutil

    # Linux counts from boot, and changes of the clock shift both values.
    return process.create_time() - (psutil.boot_time() if psutil.LINUX else 0)


def _place() -> _Place:
    import platform

    host = f"{platform.node()}-{_first_line('/etc/machine-id')}"
    return _Place(host, _first_line("/proc/sys/kernel/random/boot_id"), _namespace())


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").stat().st_ino)
    except OSError:
        return ""


def _first_line(path: str) -> str:
    try:
        return Path(path).read_bytes().decode("ascii", "replace").strip()
    except OSError:
        return ""
