"""Logs on network file systems: told once, with what a commit costs there. Never a refusal.

SQLite's locks and its shared memory do not reach another machine, and a server may confirm a sync that
its disk has not done.
"""

import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryFile
from time import perf_counter
from typing import NamedTuple

from refold.infrastructure.files.fork_gate import GATE
from refold.infrastructure.observability.notices import Figure, Notice

_KINDS = """
9p acfs afpfs afs beegfs ceph cephfs cifs coda curlftpfs davfs davfs2 drvfs gcsfuse gfs gfs2 glusterfs goofys
gpfs juicefs lustre lustre_lite moosefs mfs ncpfs nfs nfs3 nfs4 ocfs2 orangefs panfs prl_fs pvfs2 quobyte
rclone s3fs seaweedfs smb smb2 smb3 smbfs sshfs vboxsf virtiofs vmhgfs vmhgfs-fuse webdav weka wekafs
"""
KINDS = frozenset(_KINDS.split())
"""Of file systems that another machine, or the host of this one, keeps."""
_SYNCED = b"\0" * 4096
"""What is written to measure a commit: a page."""


class Mount(NamedTuple):
    """A file system, and where it begins."""

    place: str
    kind: str
    options: str = ""


def mounts() -> list[Mount]:
    """The file systems of this machine; none where it does not tell."""
    import psutil

    try:
        return [
            Mount(part.mountpoint, part.fstype, part.opts)
            for part in psutil.disk_partitions(all=True)
        ]
    except (psutil.Error, OSError, NotImplementedError):
        return []


def network_mount(path: Path, table: Iterable[Mount]) -> Mount | None:
    """The network file system that a file lies on; None where it lies on another kind."""
    real = Path(os.path.realpath(path))
    home: Mount | None = None
    for mount in table:
        # Of two at one place, the one that was mounted later hides the other.
        if real.is_relative_to(mount.place) and (
            home is None or len(Path(mount.place).parts) >= len(Path(home.place).parts)
        ):
            home = mount
    return home if home is not None and _is_remote(home) else None


def _is_remote(mount: Mount) -> bool:
    kind = mount.kind.lower().removeprefix("fuse.")
    return kind in KINDS or "remote" in mount.options.lower().split(",")


class NetworkWarnings:
    """Tells of each log that lies on a network, once."""

    def __init__(
        self,
        table: Callable[[], Iterable[Mount]] = lambda: mounts(),
        measure: Callable[[Path], float | None] = lambda folder: seconds_of_sync(folder),
    ) -> None:
        self._table = table
        self._measure = measure
        self._told: set[str] = set()
        self._threads = threading.Lock()
        GATE.close_in_child(self.forget_threads)

    def forget_threads(self) -> None:
        """Take the lock from a thread that does not live in a forked process."""
        self._threads = threading.Lock()
        GATE.close_in_child(self.forget_threads)

    def look(self, log: Path, told: Callable[[Notice], None]) -> None:
        """Tell of this log, if it lies on a network and was not looked at before."""
        place = os.path.realpath(log)
        with self._threads:
            if place in self._told:
                return
            self._told.add(place)
        mount = network_mount(log, self._table())
        if mount is None:
            return
        figures: dict[str, Figure] = {"path": str(log), "kind": mount.kind, "mount": mount.place}
        seconds = self._measure(Path(place).parent)
        if seconds is not None:
            figures["commit_ms"] = round(seconds * 1_000, 3)
        told(Notice("log.on_network", "", figures))


NETWORK = NetworkWarnings()
"""Of this process."""


def seconds_of_sync(folder: Path) -> float | None:
    """What it takes to write a page in a folder and have it kept; None where nothing can be written."""
    try:
        with TemporaryFile(dir=folder, buffering=0) as file:
            began = perf_counter()
            file.write(_SYNCED)
            os.fsync(file.fileno())
            return perf_counter() - began
    except OSError:
        return None
