"""Disks as a loss of power leaves them: of what was written since the last sync, any sectors or none.

The calls of real processes are recorded by strace: two writers on one file, with transactions that spill
out of a small cache, are rolled back, or are killed at any moment, and lives that go on after a loss.
"""

import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from .disks.simulated_disk import Deed, DiskFile
from .striking import ROOT

NAME = "agent.db"
FILES = (NAME, f"{NAME}-wal", f"{NAME}.anchor")
ACKS = "acks"
CALLS = "trace=pwrite64,write,lseek,fdatasync,fsync,ftruncate,unlink,rename"
_CALL = re.compile(r"(\d+) +(\w+)\((.*?)\) += (-?\d+)")
_PATH = re.compile(r"^\d+<([^>]*)>")

Disk = Mapping[str, bytes]


class Image(NamedTuple):
    """A disk after a loss of power, and what had been acknowledged before."""

    disk: Disk
    acknowledged: frozenset[str]


class Life(NamedTuple):
    """What processes did to a disk until all of them were killed."""

    before: Disk
    deeds: Sequence[Deed]
    acknowledged: frozenset[str]
    """In earlier lives."""

    def image(self, chance: random.Random) -> Image:
        """Return the disk after a loss of power at some moment."""
        until = chance.randrange(len(self.deeds) + 1)
        files = {name: DiskFile(bytearray(self.before.get(name, b""))) for name in FILES}
        said = set(self.acknowledged)
        for deed in self.deeds[:until]:
            if deed.kind == "said":
                said.update(deed.data.decode().split())
            else:
                files[deed.name].take(deed)
        share = chance.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        disk = {name: file.after_loss(share, chance) for name, file in files.items()}
        return Image(disk, frozenset(said))

    def last(self) -> Image:
        """Return what the files hold where only processes died."""
        files = {name: DiskFile(bytearray(self.before.get(name, b""))) for name in FILES}
        for deed in self.deeds:
            if deed.kind != "said":
                files[deed.name].take(deed)
        said = {word for d in self.deeds if d.kind == "said" for word in d.data.decode().split()}
        disk = {name: file.now() for name, file in files.items()}
        return Image(disk, self.acknowledged | said)


def images(folder: Path, seed: int, count: int, kind: str, *, lives: int = 3) -> Iterator[Image]:
    """Return ``count`` disks of one history, or up to two more: as many of each life.

    ``kind``: which writers; see ``power_writers``.
    """
    chance = random.Random(f"{kind} {seed}")
    world = Image({}, frozenset())
    for life in range(lives):
        lived = _lived(folder / f"{kind}-{seed}-{life}", world, chance.randrange(10**9), kind)
        for _ in range(-(-count // lives)):
            yield lived.image(chance)
        world = lived.image(chance) if chance.random() < 0.5 else lived.last()


def write_disk(disk: Disk, folder: Path) -> Path:
    """Put a disk where it can be opened; returns the path of the log."""
    for name in (*FILES, f"{NAME}-shm"):
        (folder / name).unlink(missing_ok=True)
        if disk.get(name):
            (folder / name).write_bytes(disk[name])
    return folder / NAME


def _lived(folder: Path, world: Image, seed: int, kind: str) -> Life:
    folder.mkdir()
    write_disk(world.disk, folder)
    trace = folder.with_suffix(".trace")
    command = [
        "strace",
        "-f",
        "--seccomp-bpf",
        "-y",
        "-xx",
        "-s",
        "100000",
        "-qq",
        "-o",
        str(trace),
        "-e",
        CALLS,
    ]
    program = [sys.executable, "-m", "tests.faults.power_writers", str(folder), kind, str(seed)]
    subprocess.run([*command, *program], check=True, cwd=ROOT, timeout=300, capture_output=True)
    deeds = list(_deeds(trace, folder))
    shutil.rmtree(folder)
    trace.unlink()
    return Life(world.disk, deeds, world.acknowledged)


def _deeds(trace: Path, folder: Path) -> Iterator[Deed]:
    places: dict[tuple[str, str], int] = {}
    begun: dict[str, str] = {}
    with trace.open() as lines:
        for line in lines:
            who = line.split(" ", 1)[0]
            if "<unfinished ...>" in line:
                begun[who] = line.partition("<unfinished ...>")[0]
                continue
            if "resumed>" in line:
                line = begun.pop(who, "") + line.partition("resumed>")[2]
            call = _CALL.match(line)
            if call is not None and not call[4].startswith("-"):
                yield from _deed(call[2], call[3], int(call[4]), folder, (places, who))


def _deed(
    call: str, said: str, answer: int, folder: Path, state: tuple[dict[tuple[str, str], int], str]
) -> Iterator[Deed]:
    places, who = state
    if call == "openat":
        return
    if call in ("unlink", "rename"):
        names = [_plain(text) for text in re.findall(r'"([^"]*)"', said)]
        if names[-1] == str(folder / FILES[2]):
            yield from _renamed(Path(names[0]), folder)
        elif names[0] == str(folder / FILES[1]):
            yield Deed("cut", name=FILES[1])
        return
    found = _PATH.match(said)
    path = Path(_plain(found[1])) if found else Path()
    place = (who, said.split("<", 1)[0])
    if path.parent != folder or path.name not in (*FILES, ACKS):
        return
    match call:
        case "lseek":
            places[place] = answer
        case "fdatasync" | "fsync":
            yield Deed("sync", name=path.name)
        case "ftruncate":
            yield Deed("cut", name=path.name, at=int(said.rsplit(",", 1)[1]))
        case _:
            data = _bytes(re.findall(r'"([^"]*)"', said)[0])[:answer]
            if path.name == ACKS:
                yield Deed("said", name=ACKS, data=data)
            elif call == "write":
                yield Deed("write", name=path.name, at=places.get(place, 0), data=data)
                places[place] = places.get(place, 0) + len(data)
            else:
                yield Deed("write", name=path.name, at=int(said.rsplit(",", 1)[1]), data=data)


def _renamed(source: Path, folder: Path) -> Iterator[Deed]:
    """An anchor that was made new: its content is looked up where the history ended."""
    del source
    yield Deed("cut", name=FILES[2])


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def _plain(text: str) -> str:
    return _bytes(text).decode() if text.startswith("\\x") else text
