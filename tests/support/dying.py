"""Deaths of a process: what its files hold at each moment of a deed, to be opened by another life.

A killed process leaves its files as they are. So nothing has to die: the files are read before each
statement of SQL and each call to the system that Python tells of, and the deed goes on.
"""

import sqlite3
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar, cast

Known = TypeVar("Known")
Files = Mapping[str, bytes]

SILENT = ("SELECT", "BEGIN", "ROLLBACK", "WITH")
"""How statements begin after which the files are as before."""
TOLD = frozenset(
    {"open", "os.remove", "os.rename", "os.truncate", "os.chmod", "fcntl.flock", "sqlite3.connect"}
)
LEFT_OUT = ("-shm", ".lock")
"""Ends of files that hold nothing: SQLite makes the memory of a WAL anew where nobody has it open."""


class Moment(NamedTuple, Generic[Known]):
    """What the files held, and what was known then."""

    before: str
    """What was about to be done."""
    files: Files
    known: Known


@dataclass
class Watch(Generic[Known]):
    """Reads the files of a folder whenever something is about to happen, and keeps what differs."""

    folder: Path
    know: Callable[[], Known]
    moments: list[Moment[Known]] = field(default_factory=list[Moment[Known]])
    reads: bool = False
    """Whether the files are being read just now: that is no deed of the process."""
    was_silent: bool = False

    def look(self, before: str) -> None:
        """Something is about to be done."""
        silent, self.was_silent = self.was_silent, before.lstrip().upper().startswith(SILENT)
        if self.reads or (silent and self.moments):
            return
        self.reads = True
        try:
            moment = Moment(before[:60], read_files(self.folder), self.know())
        finally:
            self.reads = False
        if not self.moments or moment[1:] != self.moments[-1][1:]:
            self.moments.append(moment)


_watches: list[Watch[object]] = []
_hooked: list[bool] = []


def _note(before: str) -> None:
    for watch in _watches:
        watch.look(before)


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    del arguments
    if event in TOLD:
        _note(event)


@contextmanager
def traced() -> Generator[None]:
    """Connections that are made from now on can be watched; Python cannot take the hook back."""
    if not _hooked:
        sys.addaudithook(_hook)
        _hooked.append(True)
    module: Any = sqlite3
    connect: Callable[..., sqlite3.Connection] = module.connect

    def connect_traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.set_trace_callback(_note)
        return connection

    module.connect = connect_traced
    try:
        yield
    finally:
        module.connect = connect


@contextmanager
def watched(folder: Path, know: Callable[[], Known]) -> Generator[list[Moment[Known]]]:
    """Gather the moments of what is done inside, its end included."""
    watch = Watch(folder, know)
    _watches.append(cast("Watch[object]", watch))
    try:
        yield watch.moments
        watch.was_silent = False
        watch.look("the next deed")
    finally:
        _watches.remove(cast("Watch[object]", watch))


def read_files(folder: Path) -> Files:
    """What is in each file of a folder and those below; a file that goes meanwhile is not there."""
    found: dict[str, bytes] = {}
    for path in sorted(folder.rglob("*")):
        if path.name.endswith(LEFT_OUT):
            continue
        try:
            found[path.relative_to(folder).as_posix()] = path.read_bytes()
        except (FileNotFoundError, IsADirectoryError):
            continue
    return found


def write_files(files: Files, folder: Path) -> None:
    """A folder as a process that died has left it."""
    folder.mkdir()
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def torn(moments: Sequence[Moment[Known]], share: float) -> Iterator[Moment[Known]]:
    """Moments between two others: killed while a WAL was written, only a share of it is there."""
    for one, next_one in pairwise(moments):
        changed = [n for n in next_one.files if one.files.get(n) != next_one.files[n]]
        if len(changed) != 1 or not changed[0].endswith("-wal"):
            continue
        [name] = changed
        old, new = one.files.get(name, b""), next_one.files[name]
        if new.startswith(old):
            cut = len(old) + int(share * (len(new) - len(old)))
            files = {**next_one.files, name: new[:cut]}
            yield Moment(f"within: {one.before}", files, one.known)
