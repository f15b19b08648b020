"""Logs on network file systems: told once, with what a commit costs there. Never a refusal.

SQLite's locks and its shared memory do not reach another machine, and a server may confirm a sync that
its disk has not done.
"""

import os
import sqlite3
import struct
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from time import perf_counter
from typing import NamedTuple, NoReturn

from eventsourcing.sqlite import SQLiteConnection, SQLiteCursor

from refold.application.errors import LogBusy, LogNotWritable
from refold.infrastructure.event_store.file_format import identify
from refold.infrastructure.files.fork_gate import GATE
from refold.infrastructure.files.lock import WriteLock
from refold.infrastructure.observability.log_observer import Figure, Notice

from .sqlite_connection import open_sqlite

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


_HEADER, _FRAME = 32, 24
_MAGIC = 0x377F0682
_VERSIONS = slice(18, 20)
"""In the header of a database: 2 says that it has a write-ahead log, 1 that it has none."""


class _WriteAhead(NamedTuple):
    """The header of a write-ahead log."""

    order: str
    """Of the bytes in the words that checksums are made of."""
    page_size: int
    salts: bytes
    checksum: tuple[int, int]


def whole_database(database: bytes, ahead: bytes) -> bytes:
    """The bytes of the database with every page that is committed in its write-ahead log."""
    content = bytearray(database)
    pages, count = committed_pages(ahead)
    if count:
        size = len(next(iter(pages.values())))
        content.extend(bytes(max(0, count * size - len(content))))
        del content[count * size :]
        for number, page in pages.items():
            if number <= count:
                content[(number - 1) * size : number * size] = page
    content[_VERSIONS] = b"\1\1"
    return bytes(content)


def committed_pages(ahead: bytes) -> tuple[dict[int, bytes], int]:
    """The newest committed page by its number, and how many pages the database has then; 0: no commit.

    As SQLite recovers: up to the first frame of another round, or with a wrong checksum.
    """
    header = _header(ahead)
    if header is None:
        return {}, 0
    committed: dict[int, bytes] = {}
    pending: dict[int, bytes] = {}
    count, sums, size = 0, header.checksum, header.page_size
    for at in range(_HEADER, len(ahead) - _FRAME - size + 1, _FRAME + size):
        frame, page = ahead[at : at + _FRAME], ahead[at + _FRAME : at + _FRAME + size]
        sums = _checksum(frame[:8] + page, sums, header.order)
        number, pages, salts, *found = struct.unpack(">II8sII", frame)
        if salts != header.salts or tuple(found) != sums or not number:
            break
        pending[number] = page
        if pages:
            committed.update(pending)
            pending, count = {}, pages
    return committed, count


def _header(ahead: bytes) -> _WriteAhead | None:
    if len(ahead) < _HEADER:
        return None
    magic, _, size, _, salts, *found = struct.unpack(">IIII8sII", ahead[:_HEADER])
    if magic & ~1 != _MAGIC:
        return None
    order = ">" if magic & 1 else "<"
    sums = _checksum(ahead[: _HEADER - 8], (0, 0), order)
    return _WriteAhead(order, size, salts, sums) if tuple(found) == sums else None


def _checksum(data: bytes, before: tuple[int, int], order: str) -> tuple[int, int]:
    first, second = before
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for x, y in zip(words[::2], words[1::2], strict=True):
        first = (first + x + second) & 0xFFFFFFFF
        second = (second + y + first) & 0xFFFFFFFF
    return first, second


Stamp = tuple[int, int, int]
"""Which file it is, its size, and when it was written."""


class ReadOnlyPlace:
    """A log that can only be read, as it lay there when it was found to be so.

    Where nobody writes to it, SQLite reads the file alone. Where a program that may write has it open,
    SQLite reads what that program shares. Where a write-ahead log was left and nobody shares it, SQLite
    cannot read it without writing: then its pages and those of the file are put together in memory.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._names = (path, Path(f"{path}-wal"))
        self._stamps = self._found()
        has_more = _size(self._names[1]) > 0
        self._shared = self._names[1].exists() and os.access(f"{path}-shm", os.R_OK)
        self.in_memory = has_more and not self._shared
        """Whether it must be read into memory as a whole."""

    @property
    def uri(self) -> str:
        """What SQLite opens; not for one in memory."""
        mode = "mode=ro" if self._shared else "mode=ro&immutable=1"
        return f"{self.path.absolute().as_uri()}?{mode}"

    def check(self) -> None:
        """Check that what is read is as it was: SQLite does not look.

        Raises:
            LogBusy: another program has written to it since.
        """
        if not self._shared and self._found() != self._stamps:
            raise LogBusy(
                f"another program has written to {self.path} since it was opened here for reading "
                "only; open it again"
            )

    def refuse(self) -> NoReturn:
        """Refuse what would write.

        Raises:
            LogNotWritable: always.
        """
        raise LogNotWritable(
            f"{self.path} can be read here and not written; check its permissions, and those of the "
            f"folder {self.path.parent}, or copy the log with its -wal file to a folder of yours"
        )

    def content(self) -> bytes:
        """The whole database, with what is committed in the write-ahead log."""
        content = whole_database(*(name.read_bytes() for name in self._names))
        self.check()
        return content

    def _found(self) -> tuple[Stamp | None, ...]:
        return tuple(_stamp(name) for name in self._names)


def read_only_place(path: Path) -> ReadOnlyPlace | None:
    """How to read a log whose folder cannot be written; None where SQLite can do as always."""
    if not _size(path) or _may_write(path.absolute().parent):
        return None
    files = (path, Path(f"{path}-wal"), Path(f"{path}-shm"))
    if all(file.exists() and _may_write(file) for file in files):
        return None  # Somebody else has made what a writer needs.
    return ReadOnlyPlace(path)


def connected(path: Path) -> sqlite3.Connection:
    """A connection that reads the log at ``path`` and changes nothing, not even by closing.

    Raises:
        sqlite3.Error, OSError: it cannot be read.
    """
    place = read_only_place(path)
    if place is None:
        uri = f"{path.absolute().as_uri()}?mode=ro"
    elif not place.in_memory:
        uri = place.uri
    else:
        connection = open_sqlite(":memory:", isolation_level=None)
        connection.deserialize(place.content())
        return connection
    return open_sqlite(uri, uri=True, isolation_level=None)


class ReadingConnection(SQLiteConnection):
    """A connection of the pool that only reads, from a place that is checked before each transaction."""

    def __init__(self, place: ReadOnlyPlace, name: str, max_age: float | None) -> None:
        """``name``: of the database in memory, where the log must be read into one."""
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

    @contextmanager
    def transaction(self, *, commit: bool) -> Generator[SQLiteCursor]:
        """A transaction that reads.

        Raises:
            LogNotWritable: it was to write.
            LogBusy: another program has written to the log since it was opened here.
        """
        if commit:
            self._place.refuse()
        self._place.check()
        with super().transaction(commit=commit) as cursor:
            yield cursor


class RefusingLock(WriteLock):
    """The lock of a log that nobody can write to from here."""

    refuses = True

    def __init__(self, place: ReadOnlyPlace) -> None:
        super().__init__(None, 0)
        self._place = place

    @contextmanager
    def held(self) -> Generator[None]:
        """Refuse; raises ``LogNotWritable``."""
        self._place.refuse()
        yield


def _fill(shared: sqlite3.Connection, place: ReadOnlyPlace) -> None:
    """Put the log of ``place`` into a database in memory that several connections share."""
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
