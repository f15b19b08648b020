"""A disk that loses power: what was done to the files of a folder, and what they may hold afterwards.

A sync keeps what was written to its file, and the names of all files. What was not synced is kept, lost or torn,
sector by sector. Names change in order: if one change was kept, so were those before it.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

SECTOR = 512
TORN = 0.03
"""Share of the kept sectors of which only the beginning was written."""

Image = Mapping[str, bytes]
"""The files of a folder by name."""


class Deed(NamedTuple):
    """One change of the disk."""

    kind: str
    """write, cut, sync, failed sync, create, delete, rename or content.

    ``content`` is all of a file that is not one of SQLite: it is read when it has changed.
    """
    file: int = -1
    name: str = ""
    at: int = 0
    data: bytes = b""


@dataclass
class DiskFile:
    """A file with what is certain of it, and what was written since its last sync."""

    kept: bytearray = field(default_factory=bytearray)
    waiting: list[Deed] = field(default_factory=list[Deed])

    def take(self, deed: Deed) -> None:
        """Change the file. A sync makes all changes certain."""
        if deed.kind == "sync":
            self.sync()
        else:
            self.waiting.append(deed)

    def sync(self) -> None:
        """Make all changes certain."""
        for deed in self.waiting:
            _apply(self.kept, deed)
        self.waiting.clear()

    def now(self) -> bytes:
        """Return the content as programs see it."""
        content = bytearray(self.kept)
        for deed in self.waiting:
            _apply(content, deed)
        return bytes(content)

    def after_loss(self, share: float, chance: random.Random) -> bytes:
        """Return the content after a loss of power that keeps this share of the uncertain sectors."""
        content = bytearray(self.kept)
        for deed in self.waiting:
            for part in _sectors(deed) if deed.kind == "write" else (deed,):
                if chance.random() >= share:
                    continue
                torn = part.kind == "write" and chance.random() < TORN
                data = part.data[: chance.randrange(len(part.data) + 1)] if torn else part.data
                _apply(content, part._replace(data=data))
        return bytes(content)


class SimulatedDisk:
    """The files of a folder as the deeds leave them, with what is certain of each."""

    def __init__(self, image: Image) -> None:
        """Begin with an image of which everything is certain."""
        self._files: dict[int, DiskFile] = {}
        self._names: dict[str, int] = {}
        self._unsure: list[Deed] = []
        """Changes of names since the last sync."""
        for number, (name, content) in enumerate(sorted(image.items())):
            self._files[number], self._names[name] = DiskFile(bytearray(content)), number

    def take(self, deed: Deed, chance: random.Random) -> None:
        """Change the disk by a deed."""
        match deed.kind:
            case "create" | "delete" | "rename":
                self._files.setdefault(deed.file, DiskFile())
                self._unsure.append(deed)
            case "sync":
                if deed.file in self._files:
                    self._files[deed.file].sync()
                self._sync_names()
            case "failed sync":
                # The system drops pages that it could not write, and later says that all is well.
                waiting = self._files[deed.file].waiting
                waiting[:] = [one for one in waiting if chance.random() < 0.5]
            case _:
                self._files.setdefault(deed.file, DiskFile()).waiting.append(deed)

    def after_loss(self, chance: random.Random, *, plain: bool = False) -> Image:
        """Return the files after a loss of power.

        ``plain``: everything was written in time except to files of SQLite.
        """
        share = chance.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        names, unsure = dict(self._names), len(self._unsure)
        for deed in self._unsure[: unsure if plain else chance.randrange(unsure + 1)]:
            _rename(names, deed)
        return {
            name: self._files[number].now()
            if plain and not is_of_sqlite(name)
            else self._files[number].after_loss(share, chance)
            for name, number in names.items()
        }

    def now(self) -> Image:
        """Return the files as programs see them."""
        names = dict(self._names)
        for deed in self._unsure:
            _rename(names, deed)
        return {name: self._files[number].now() for name, number in names.items()}

    def _sync_names(self) -> None:
        for deed in self._unsure:
            _rename(self._names, deed)
        self._unsure.clear()


def is_of_sqlite(name: str) -> bool:
    """Return whether a file is one that SQLite writes."""
    return name.endswith((".db", ".db.new", "-wal", "-journal"))


def losses(
    image: Image, deeds: Sequence[Deed], after: Sequence[int], chance: random.Random, *, plain: bool
) -> Iterator[tuple[int, Image]]:
    """Return an image for each number of deeds in ``after``, which must be in order."""
    disk, done = SimulatedDisk(image), 0
    for count in after:
        for deed in deeds[done:count]:
            disk.take(deed, chance)
        done = count
        yield count, disk.after_loss(chance, plain=plain)


def _rename(names: dict[str, int], deed: Deed) -> None:
    match deed.kind:
        case "create":
            names[deed.name] = deed.file
        case "delete":
            names.pop(deed.name, None)
        case _:
            names.pop(deed.name, None)
            names[deed.data.decode()] = deed.file


def _sectors(deed: Deed) -> Iterator[Deed]:
    start, end = deed.at, deed.at + len(deed.data)
    while start < end:
        stop = min(end, start // SECTOR * SECTOR + SECTOR)
        yield deed._replace(at=start, data=deed.data[start - deed.at : stop - deed.at])
        start = stop


def _apply(content: bytearray, deed: Deed) -> None:
    match deed.kind:
        case "content":
            content[:] = deed.data
        case "cut":
            del content[deed.at :]
            content.extend(bytes(deed.at - len(content)))
        case _:
            content.extend(bytes(max(0, deed.at - len(content)) if deed.data else 0))
            content[deed.at : deed.at + len(deed.data)] = deed.data
