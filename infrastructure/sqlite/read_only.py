"""Open logs that cannot be written, and warn about logs on network file systems.

A log is read without a write where its folder cannot be written, and where the disk is full.

SQLite's locks and shared memory do not reach another machine, and a server may confirm a sync that its disk
has not done. The warning is given once and includes the measured cost of a commit. Such a log is never
refused.
"""

import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import closing, contextmanager
from pathlib import Path
from time import perf_counter
from typing import Literal, NamedTuple, NoReturn

from refold.application.errors import LogBusy, LogNotWritable
from refold.application.runtime.opening_process import has_size_limit
from refold.domain.lazy_pattern import lazy_pattern
from refold.infrastructure.event_store.file_format import identify, is_too_long
from refold.infrastructure.files.fork_gate import GATE
from refold.infrastructure.files.lock import WriteLock
from refold.infrastructure.observability.log_observer import Figure, Notice

from .sqlite_connection import CheckedConnection, open_sqlite

_KINDS = """
9p acfs afpfs afs beegfs ceph cephfs cifs coda curlftpfs davfs davfs2 drvfs gcsfuse gfs gfs2 glusterfs goofys
gpfs juicefs lustre lustre_lite moosefs mfs ncpfs nfs nfs3 nfs4 ocfs2 orangefs panfs prl_fs pvfs2 quobyte
rclone s3fs seaweedfs smb smb2 smb3 smbfs sshfs vboxsf virtiofs vmhgfs vmhgfs-fuse webdav weka wekafs
"""
KINDS = frozenset(_KINDS.split())
"""File system types that another machine, or the host of a virtual machine, provides."""
_SYNCED = b"\0" * 4096
"""Page that is written to measure a commit."""


MOUNTS = Path("/proc/self/mounts")
_OCTAL = lazy_pattern(r"\\([0-7]{3})")


class Mount(NamedTuple):
    """A mounted file system and its mount point."""

    place: str
    kind: str
    options: str = ""


def mounts() -> list[Mount]:
    """Return the mounted file systems, or an empty list if the system does not list them."""
    try:
        table = os.fsdecode(MOUNTS.read_bytes())
    except OSError:
        return _mounts_of_system()
    parts = (line.split(" ") for line in table.splitlines())
    return [Mount(_unescape(place), kind, options) for _, place, kind, options, *_ in parts]


def _unescape(place: str) -> str:
    """Return a path of Linux's table, in which blanks and backslashes are octal numbers."""
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), place)


def _mounts_of_system() -> list[Mount]:
    # Imported on first use: Linux has a file with the table.
    import psutil

    try:
        return [
            Mount(part.mountpoint, part.fstype, part.opts)
            for part in psutil.disk_partitions(all=True)
        ]
    except (psutil.Error, OSError, NotImplementedError):
        return []


def network_mount(path: Path, table: Iterable[Mount]) -> Mount | None:
    """Return the network file system that a file is on, or None."""
    real = Path(os.path.realpath(path))
    home: Mount | None = None
    for mount in table:
        # Of two mounts at one place, the later one hides the earlier.
        if real.is_relative_to(mount.place) and (
            home is None or len(Path(mount.place).parts) >= len(Path(home.place).parts)
        ):
            home = mount
    return home if home is not None and _is_remote(home) else None


def _is_remote(mount: Mount) -> bool:
    kind = mount.kind.lower().removeprefix("fuse.")
    return kind in KINDS or "remote" in mount.options.lower().split(",")


class NetworkWarnings:
    """Warnings about logs on network file systems, one per log."""

    def __init__(
        self,
        table: Callable[[], Iterable[Mount]] = lambda: mounts(),
        measure: Callable[[Path], float | None] = lambda folder: seconds_of_sync(folder),
    ) -> None:
        self._table = table
        self._measure = measure
        self._reported: set[str] = set()
        self._threads = threading.Lock()
        GATE.close_in_child(self.forget_threads)

    def forget_threads(self) -> None:
        """Replace the lock: a thread that does not exist in a forked process may hold it."""
        self._threads = threading.Lock()
        GATE.close_in_child(self.forget_threads)

    def look(self, log: Path, notify: Callable[[Notice], None]) -> None:
        """Report this log if it is on a network file system and was not checked before."""
        place = os.path.realpath(log)
        with self._threads:
            if place in self._reported:
                return
            self._reported.add(place)
        mount = network_mount(log, self._table())
        if mount is None:
            return
        figures: dict[str, Figure] = {"path": str(log), "kind": mount.kind, "mount": mount.place}
        seconds = self._measure(Path(place).parent)
        if seconds is not None:
            figures["commit_ms"] = round(seconds * 1_000, 3)
        notify(Notice("log.on_network", "", figures))


NETWORK = NetworkWarnings()
"""Warnings of this process."""


def seconds_of_sync(folder: Path) -> float | None:
    """Return the seconds needed to write and sync a page in a folder, or None if it is not writable."""
    from tempfile import TemporaryFile

    try:
        with TemporaryFile(dir=folder, buffering=0) as file:
            began = perf_counter()
            file.write(_SYNCED)
            os.fsync(file.fileno())
            return perf_counter() - began
    except OSError:
        return None


Stamp = tuple[int, int, int]
"""Identity, size and modification time of a file."""


class ReadOnlyPlace:
    """A log that can only be read, with the state of its files when it was opened.

    Without a writer, SQLite reads the database file alone. With a running writer, SQLite reads through the
    shared memory of that program. If a write-ahead log was left without a writer, SQLite cannot read it
    without writing, so its pages are merged with the database in memory.
    """

    def __init__(self, path: Path, *, is_full: bool = False) -> None:
        """Describe the log at ``path``. ``is_full``: no program can make its shared memory."""
        self.path = path
        self._names = (path, Path(f"{path}-wal"))
        self._stamps = self._find_stamps()
        has_more = _size(self._names[1]) > 0
        is_shared = self._names[1].exists() and os.access(f"{path}-shm", os.R_OK)
        self._shared = is_shared and not is_full
        self.in_memory = has_more and not self._shared
        """True if the whole log must be read into memory."""

    @property
    def uri(self) -> str:
        """URI for SQLite. Not used if the log is read into memory."""
        mode = "mode=ro" if self._shared else "mode=ro&immutable=1"
        return f"{self.path.absolute().as_uri()}?{mode}"

    def check(self) -> None:
        """Check that the files are unchanged, because SQLite does not check it.

        Raises:
            LogBusy: another program has written to the log since.
        """
        if not self._shared and self._find_stamps() != self._stamps:
            raise LogBusy(
                f"another program has written to {self.path} since it was opened here for reading "
                "only; open it again"
            )

    def refuse(self) -> NoReturn:
        """Refuse a write.

        Raises:
            LogNotWritable: always.
        """
        raise LogNotWritable(
            f"{self.path} can be read here and not written; check its permissions, and those of the "
            f"folder {self.path.parent}, or copy the log with its -wal file to a writable folder"
        )

    def content(self) -> bytes:
        """Return the whole database including the commits of the write-ahead log."""
        # Imported on first use: few logs are read so.
        from refold.infrastructure.write_ahead.frames import merge_write_ahead

        content = merge_write_ahead(*(name.read_bytes() for name in self._names))
        self.check()
        return content

    def _find_stamps(self) -> tuple[Stamp | None, ...]:
        return tuple(_stamp(name) for name in self._names)


def read_only_place(path: Path) -> ReadOnlyPlace | None:
    """Describe how to read a log in a read-only folder, or return None if SQLite can open it normally."""
    if not _size(path) or _may_write(path.absolute().parent):
        return None
    files = (path, Path(f"{path}-wal"), Path(f"{path}-shm"))
    if all(file.exists() and _may_write(file) for file in files):
        return None  # Another program has already created the files that a writer needs.
    return ReadOnlyPlace(path)


def connect_read_only(
    path: Path, *, mode: Literal["ro", "rw"] = "ro", timeout: float = 5.0
) -> sqlite3.Connection:
    """Connect to the database at ``path`` without ever changing it, not even on close.

    ``mode`` and ``timeout`` are used where SQLite can open it as usual. With ``rw``, it leaves no files on close.

    Raises:
        sqlite3.Error, OSError: the database cannot be read.
    """
    place = read_only_place(path)
    if place is None:
        uri = f"{path.absolute().as_uri()}?mode={mode}"
        connection = open_sqlite(uri, uri=True, timeout=timeout, isolation_level=None)
        try:
            connection.execute(_FIRST_READ).fetchone()
        except BaseException as error:
            connection.close()
            if not lacks_room(path, error):
                raise
            place = ReadOnlyPlace(path, is_full=True)
        else:
            return connection
    if not place.in_memory:
        return open_sqlite(place.uri, uri=True, isolation_level=None)
    connection = open_sqlite(":memory:", isolation_level=None)
    connection.deserialize(place.content())
    return connection


_FIRST_READ = "SELECT 1 FROM sqlite_schema LIMIT 1"
"""Statement for which SQLite makes the files next to a log."""


def lacks_room(path: Path, error: BaseException) -> bool:
    """Return whether SQLite could not make the files next to ``path``, although nothing is wrong with it.

    The disk is full, or this process may not write files of that size.
    """
    name = str(getattr(error, "sqlite_errorname", ""))
    if name.startswith("SQLITE_CANTOPEN"):
        return not _has_free_names(path.absolute().parent)
    if name == "SQLITE_IOERR_SHMOPEN":
        return has_size_limit()
    return name in ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE")


def find_refusal(path: Path, error: BaseException) -> str:
    """Return the error code name of the system if it is known why SQLite cannot open a file, or an empty text."""
    if is_too_long(path):
        return "ENAMETOOLONG"
    return "ENOSPC" if lacks_room(path, error) else ""


def _has_free_names(folder: Path) -> bool:
    """Return whether the file system can take another file, as far as it says so."""
    if sys.platform == "win32":
        return True
    try:
        found = os.statvfs(folder)
    except OSError:
        return True
    return not found.f_files or found.f_favail > 0


class ReadingConnection(CheckedConnection):
    """A pooled connection that only reads, and checks the files before each transaction."""

    def __init__(self, place: ReadOnlyPlace, name: str, max_age: float | None) -> None:
        """Connect to the log.

        ``name`` is the name of the shared database in memory, if the log must be read into one.
        """
        place.check()
        connection = open_sqlite(
            name if place.in_memory else place.uri,
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            kept=True,
        )
        try:
            # A new database in memory is empty.
            if not identify(connection, str(place.path)) and place.in_memory:
                _fill(connection, place)
                identify(connection, str(place.path))
        except BaseException:
            connection.close()
            raise
        connection.row_factory = sqlite3.Row
        super().__init__(sqlite_conn=connection, max_age=max_age)
        self._place = place

    def prepare(self, *, commit: bool) -> None:
        """Check the files before a transaction.

        Raises:
            LogNotWritable: the transaction would write.
            LogBusy: another program has written to the log since it was opened.
        """
        if commit:
            self._place.refuse()
        self._place.check()


class OneReadConnection(ReadingConnection):
    """A connection for one transaction that reads a log whose disk is full.

    It is not kept: as soon as there is room, SQLite opens the log as usual.
    """

    @property
    def closing(self) -> bool:
        """True, so that the pool closes it when it comes back."""
        return True

    def __init__(self, path: Path, error: sqlite3.Error) -> None:
        """Connect to the log at ``path``. ``error`` is that of SQLite, which a write raises."""
        super().__init__(ReadOnlyPlace(path, is_full=True), ":memory:", None)
        self._error = error

    def prepare(self, *, commit: bool) -> None:
        """Check the files before a transaction.

        Raises:
            sqlite3.Error: the transaction would write.
            LogBusy: another program has written to the log since it was opened.
        """
        if commit:
            raise self._error
        super().prepare(commit=False)


def read_once(path: Path, error: sqlite3.Error) -> ReadingConnection:
    """Return a connection for one transaction, if ``error`` was that of a full disk.

    Raises:
        sqlite3.Error: it was another error.
    """
    if not lacks_room(path, error) or not _size(path):  # A new log has nothing to read.
        raise error
    return OneReadConnection(path, error)


class RefusingLock(WriteLock):
    """A lock of a log that cannot be written from here."""

    refuses = True

    def __init__(self, place: ReadOnlyPlace) -> None:
        super().__init__(None, 0)
        self._place = place

    @contextmanager
    def held(self, is_done: Callable[[], bool] | None = None) -> Generator[bool]:
        """Refuse to lock.

        Raises:
            LogNotWritable: always.
        """
        del is_done
        self._place.refuse()
        yield True


def _fill(shared: sqlite3.Connection, place: ReadOnlyPlace) -> None:
    """Copy the log of ``place`` into a database in memory that several connections share."""
    with closing(open_sqlite(":memory:")) as whole:
        whole.deserialize(place.content())
        whole.backup(shared)


def _may_write(path: Path) -> bool:
    effective = os.access in os.supports_effective_ids
    return os.access(path, os.W_OK, effective_ids=effective)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _stamp(path: Path) -> Stamp | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
