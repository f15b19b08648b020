"""Bits turned over in the write-ahead log at every place, and disks of power losses: saved and false alarms.

python -m tests.faults.write_ahead [--step PERCENT] [--messages N] [--images N] [--seed S]
"""

import argparse
import logging
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import refold
from refold.infrastructure.maintenance.restore import salvage_file
from refold.infrastructure.write_ahead.examination import examine
from tests.support.damaged_ahead import ahead, copy_store, flip, killed_store, messages_of, places

from .power_loss import Image, images, write_disk
from .power_writers import ENCRYPTED, KEY, KINDS, SQL
from .striking import missing

HISTORY = 600
"""Images of one history."""
OPENED = 5
"""Of so many images one is opened and read to its end."""
WAL_BYTES = 4 * 2**20


class Line(NamedTuple):
    """Flips in one zone of one kind of log."""

    log: str
    zone: str
    flips: int
    refused: int
    fewest: int
    messages: int


class Losses(NamedTuple):
    """What came of the disks of power losses."""

    images: int
    alarms: tuple[str, ...]
    opened: int
    lost: tuple[str, ...]


def flipped(folder: Path, messages: int, step: int, key: str | None, seed: int) -> Iterator[Line]:
    """Turn a bit over in each zone at every ``step`` percent, open the log, and salvage it."""
    name = "plain" if key is None else "encrypted"
    place = folder / name
    place.mkdir()
    killed = killed_store(place, messages, key=key)
    chance = random.Random(seed)
    saved: dict[str, list[tuple[bool, int]]] = {}
    for percent in range(0, 101, step):
        size = ahead(killed / "a.db").stat().st_size
        for zone, at in places(size, percent / 100, chance):
            with tempfile.TemporaryDirectory(dir=folder) as one:
                log = copy_store(killed, Path(one))
                flip(ahead(log), at, chance.randrange(8))
                saved.setdefault(zone, []).append(_outcome(log, key))
    for zone, found in saved.items():
        refused, fewest = sum(told for told, _ in found), min(count for _, count in found)
        yield Line(name, zone, len(found), refused, fewest, messages)


def _outcome(log: Path, key: str | None) -> tuple[bool, int]:
    try:
        refold.open(log, encryption_key=key).close()
        refused = False
    except refold.WriteAheadDamaged:
        refused = True
    salvage_file(log, log.with_name("new.db"))
    return refused, len(messages_of(log.with_name("new.db"), key))


def lost_power(folder: Path, count: int, seed: int, kinds: Sequence[str] = KINDS) -> Losses:
    """Look for false alarms, and for lost messages, on ``count`` disks of power losses."""
    alarms, lost = list[str](), list[str]()
    done = opened = 0
    place = folder / "image"
    place.mkdir()
    while done < count:
        kind = kinds[seed % len(kinds)]
        for image in images(folder, seed, min(HISTORY, count - done) or 1, kind):
            done += 1
            path = write_disk(image.disk, place)
            if examine(path) is not None:
                alarms.append(f"{kind}, history {seed}, image {done}")
            elif kind != SQL and image.disk["agent.db"] and not done % OPENED:
                opened += 1
                lost += _lost(path, image, kind)
        seed += 1
    return Losses(done, tuple(alarms), opened, tuple(lost))


def _lost(path: Path, image: Image, kind: str) -> Iterator[str]:
    try:
        with refold.open(path, encryption_key=KEY if kind == ENCRYPTED else None) as memory:
            messages = memory.conversation("t").messages()
            words = {str(m.message.content).split()[0] for m in messages}
    except refold.RefoldError as error:
        yield f"{kind}: {error}"
        return
    yield from sorted(f"{kind}: {word} is gone" for word in image.acknowledged - words)


def cost_of_4_mb(folder: Path) -> float:
    """Return the seconds of CPU that the check of 4 MB takes."""
    killed = killed_store(folder, 360)
    path = copy_store(killed, folder / "cost")
    content = ahead(path).read_bytes()
    assert len(content) > WAL_BYTES * 0.9, len(content)
    began = time.process_time()
    assert examine(path) is None
    return (time.process_time() - began) * WAL_BYTES / len(content)


def main() -> int:
    """Run everything and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--step", type=int, default=2)
    parser.add_argument("--messages", type=int, default=100)
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    logging.getLogger("refold").addHandler(logging.NullHandler())
    well = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print("| log | zone | flips | refused | fewest saved | of |")
        print("|---|---|---:|---:|---:|---:|")
        for key in (None, KEY):
            os.environ.pop("REFOLD_ENCRYPTION_KEY", None)
            if key is not None:
                os.environ["REFOLD_ENCRYPTION_KEY"] = key
            for line in flipped(folder, given.messages, given.step, key, given.seed):
                print("|", " | ".join(map(str, line)), "|", flush=True)
                well &= line.fewest >= line.messages - 1
        os.environ.pop("REFOLD_ENCRYPTION_KEY", None)
        print(f"check of 4 MB: {cost_of_4_mb(folder) * 1000:.0f} ms of CPU")
        why = missing()
        if given.images and why is None:
            losses = lost_power(folder, given.images, given.seed)
            print(
                f"power losses: {losses.images:,} images, {len(losses.alarms)} false alarms; "
                f"{losses.opened:,} were opened, {len(losses.lost)} messages were lost"
            )
            print(*losses.alarms, *losses.lost, sep="\n")
            well &= not losses.alarms and not losses.lost
        elif given.images:
            print(f"power losses: not tried, {why}")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
