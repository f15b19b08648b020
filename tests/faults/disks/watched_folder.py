"""A folder whose changes are recorded, and whose disk fails where a seed says so."""

import ctypes
import os
import random
import sys
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from .simulated_disk import Deed, Image, is_of_sqlite
from .sqlite_calls import OK, CallsOfSQLite

READ_ERROR = 266
SHORT_READ = 522
WRITE_ERROR = 778
SYNC_ERROR = 1034
FULL = 13

HONEST = {"full": "write", "write error": "write", "sync error": "sync", "read error": "read"}
"""Failures that the disk reports, and the call that each strikes."""
LYING = {
    "lost write": "write",
    "misdirected write": "write",
    "repeated write": "write",
    "lost sync": "sync",
    "short read": "read",
}
"""Failures that the disk does not report."""


class Fault(NamedTuple):
    """A failure of the disk: from the n-th call of its kind on, for so many calls."""

    kind: str
    first: int
    times: int
    at: int = 0
    """The number of pages by which a misdirected write misses its place; the calls after which a write is repeated."""

    @property
    def call(self) -> str:
        """The call that it strikes."""
        return (HONEST | LYING)[self.kind]


class WatchedFolder:
    """Records what is done to the files of one folder."""

    def __init__(self, path: Path, faults: tuple[Fault, ...] = ()) -> None:
        """Begin with the files that are there, which are taken for certain."""
        self.path = path
        self.faults = faults
        self.deeds: list[Deed] = []
        self.struck: Counter[str] = Counter()
        """How often each kind of fault came to pass."""
        self._calls: Counter[str] = Counter()
        self._open: dict[int, int] = {}
        self._repeated: list[tuple[int, int, int, bytes]] = []
        self._names = {entry.name: n for n, entry in enumerate(_entries(path))}
        self._next = len(self._names)
        self._marks = {entry.name: _mark(entry) for entry in _entries(path)}

    # Calls of SQLite.

    def opened(self, file: int, path: str) -> None:
        """Record that a file was opened."""
        if (name := self._name(path)) is not None:
            self._open[file] = self._number(name)

    def closed(self, file: int) -> None:
        """Record that a file is closed."""
        self._open.pop(file, None)

    def deleted(self, path: str, *, synced: bool = False) -> None:
        """Record that a file is deleted. ``synced``: its folder is synced afterwards."""
        name = self._name(path)
        if name is not None and (number := self._names.pop(name, None)) is not None:
            self.deeds.append(Deed("delete", number, name))
            if synced:
                self.deeds.append(Deed("sync"))

    def read(self, file: int, at: int, buffer: int, size: int, read: Any) -> int:
        """Read, or fail."""
        match self._fault("read", file):
            case Fault(kind="read error"):
                return READ_ERROR
            case Fault(kind="short read") if size > 1:
                code: int = read(buffer, size, at)
                ctypes.memset(buffer + size // 2, 0, size - size // 2)
                return code
            case _:
                return int(read(buffer, size, at))

    def write(self, file: int, at: int, data: bytes, write: Any) -> int:
        """Write, or fail."""
        match fault := self._fault("write", file):
            case Fault(kind="full"):
                return FULL
            case Fault(kind="write error"):
                return WRITE_ERROR
            case Fault(kind="lost write"):
                return OK
            case Fault(kind="misdirected write"):
                at += fault.at * len(data) if at + fault.at * len(data) >= 0 else len(data)
            case Fault(kind="repeated write"):
                self._repeated.append((self._calls["write"] + abs(fault.at), file, at, data))
            case _:
                pass
        code = self._write(file, at, data, write)
        for one in [r for r in self._repeated if r[0] <= self._calls["write"] and r[1] == file]:
            self._repeated.remove(one)
            self._write(file, one[2], one[3], write)
        return code

    def _write(self, file: int, at: int, data: bytes, write: Any) -> int:
        code = int(write(data, at))
        if code == OK and file in self._open:
            self.deeds.append(Deed("write", self._open[file], at=at, data=data))
        return code

    def cut(self, file: int, size: int, cut: Any) -> int:
        """Cut a file."""
        code = int(cut())
        if code == OK and file in self._open:
            self.deeds.append(Deed("cut", self._open[file], at=size))
        return code

    def sync(self, file: int, sync: Any) -> int:
        """Sync a file, or fail."""
        self.look()
        fault, number = self._fault("sync", file), self._open.get(file)
        if number is None:
            return int(sync())
        if fault is not None:
            if fault.kind == "lost sync":
                return OK
            self.deeds.append(Deed("failed sync", number))
            return SYNC_ERROR
        self.deeds.append(Deed("sync", number))
        return OK

    # Calls of Python.

    def renamed(self, source: str, target: str) -> None:
        """Record that a file gets another name."""
        self.look()
        old, new = self._name(source), self._name(target)
        if old is not None and new is not None and old in self._names:
            self._names[new] = number = self._names.pop(old)
            self._marks[new] = self._marks.pop(old, (0, 0, 0))
            self.deeds.append(Deed("rename", number, old, data=new.encode()))

    def synced(self, path: str) -> None:
        """Record that Python synced a file or the folder."""
        self.look()
        self.deeds.append(Deed("sync", self._names.get(self._name(path) or "", -1)))

    def look(self) -> None:
        """Record how files have changed that are not of SQLite."""
        entries = [entry for entry in _entries(self.path) if not is_of_sqlite(entry.name)]
        for entry in entries:
            if self._marks.get(entry.name) != (mark := _mark(entry)):
                self._marks[entry.name] = mark
                number = self._number(entry.name)
                self.deeds.append(Deed("content", number, data=Path(entry.path).read_bytes()))
        here = {entry.name for entry in entries}
        for name in [one for one in self._names if one not in here and not is_of_sqlite(one)]:
            self.deeds.append(Deed("delete", self._names.pop(name), name))
            self._marks.pop(name, None)

    def _name(self, path: str) -> str | None:
        folder, name = os.path.split(path)
        return name if folder == str(self.path) and not name.endswith("-shm") else None

    def _number(self, name: str) -> int:
        if name not in self._names:
            self._names[name], self._next = self._next, self._next + 1
            self.deeds.append(Deed("create", self._names[name], name))
        return self._names[name]

    def _fault(self, call: str, file: int) -> Fault | None:
        if file not in self._open:
            return None
        number = self._calls[call]
        self._calls[call] += 1
        for fault in self.faults:
            if fault.call == call and fault.first <= number < fault.first + fault.times:
                self.struck[fault.kind] += 1
                return fault
        return None


class Simulator:
    """The process in which disks are simulated: its calls of SQLite and Python pass through here."""

    def __init__(self) -> None:
        """Put the simulator in front of the files of this process.

        Raises:
            NoSharedLibrary: the library of ``sqlite3`` cannot be reached.
        """
        self._calls = CallsOfSQLite()
        self._folder: WatchedFolder | None = None
        self.errors: list[str] = []
        """Errors of the simulator itself."""
        sys.addaudithook(self._audit)
        sys.unraisablehook = lambda raised: self.errors.append(repr(raised.exc_value))
        self._fsync = os.fsync
        setattr(os, "fsync", self._sync)  # noqa: B010 (its type has a parameter of another name)

    @contextmanager
    def watching(self, folder: WatchedFolder) -> Generator[WatchedFolder]:
        """Record and strike what is done to a folder."""
        self._folder = self._calls.disk = folder
        try:
            yield folder
            folder.look()
        finally:
            self._folder = self._calls.disk = None

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._folder is None:
            return
        if event == "os.rename":
            self._folder.renamed(str(arguments[0]), str(arguments[1]))
        elif event == "os.remove":
            self._folder.deleted(str(arguments[0]))

    def _sync(self, file: Any) -> None:
        number = file if isinstance(file, int) else file.fileno()
        if self._folder is None:
            self._fsync(number)
        else:
            self._folder.synced(str(Path(f"/proc/self/fd/{number}").readlink()))


def drawn(chance: random.Random, kinds: Mapping[str, str], longest: int) -> tuple[Fault, ...]:
    """Return one or two faults that strike among so many calls."""
    faults: list[Fault] = []
    for _ in range(chance.choice((1, 1, 2))):
        kind = chance.choice(sorted(kinds))
        count = chance.choice((1, 1, 1, 2, 5, 30)) if kind in HONEST else 1
        faults.append(
            Fault(kind, chance.randrange(longest), count, chance.choice((-2, -1, 1, 2, 7)))
        )
    return tuple(faults)


def write_image(image: Image, folder: Path) -> None:
    """Write the files of an image into a new folder."""
    folder.mkdir()
    for name, content in image.items():
        (folder / name).write_bytes(content)


def read_image(folder: Path) -> Image:
    """Return the files of a folder."""
    return {entry.name: Path(entry.path).read_bytes() for entry in _entries(folder)}


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    found = [
        entry for entry in os.scandir(folder) if entry.is_file() and not entry.name.endswith("-shm")
    ]
    return sorted(found, key=lambda entry: entry.name)


def _mark(entry: os.DirEntry[str]) -> tuple[int, int, int]:
    status = entry.stat()
    return status.st_ino, status.st_mtime_ns, status.st_size
