"""Stores of killed processes whose newest messages lie in the write-ahead log, and damage to it."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import refold

FRAME = 4096 + 24
HEAD = 32
NAME = "a.db"


def killed_store(
    folder: Path, count: int, *, size: int = 1000, key: str | None = None, delivered: bool = False
) -> Path:
    """Return a folder as a killed process leaves it: ``count`` messages, appended one by one.

    ``delivered``: each under an idempotency key, so that a commit has more pages.
    """
    living = folder / "living"
    killed = folder / "killed"
    living.mkdir()
    killed.mkdir()
    with refold.open(living / NAME, encryption_key=key) as memory:
        conversation = memory.conversation("t")
        for number in range(count):
            said = {"role": "user", "content": f"message-{number:03d} " + "x" * size}
            conversation.append(said, key=f"delivery-{number}" if delivered else None)
        copy_store(living, killed)
    return killed


def copy_store(folder: Path, to: Path) -> Path:
    """Copy the files that outlive their processes; returns the path of the log."""
    to.mkdir(exist_ok=True)
    for name in (NAME, f"{NAME}-wal", f"{NAME}.anchor"):
        if (folder / name).exists():
            shutil.copy(folder / name, to / name)
    return to / NAME


def ahead(log: Path) -> Path:
    return Path(f"{log}-wal")


def flip(path: Path, place: int, bit: int = 3) -> None:
    """Turn one bit over."""
    content = bytearray(path.read_bytes())
    content[place] ^= 1 << bit
    path.write_bytes(content)


def places(size: int, share: float, chance: random.Random) -> Iterator[tuple[str, int]]:
    """Return a place in the file header, in a frame's head and in a page, so far into the file."""
    at = min(size - 1, int(size * share))
    frame = max(0, min((size - HEAD) // FRAME - 1, (at - HEAD) // FRAME))
    yield "header", int(share * (HEAD - 1))
    yield "frame head", HEAD + frame * FRAME + chance.randrange(24)
    yield "page", HEAD + frame * FRAME + 24 + chance.randrange(4096)


def texts_in(folder: Path, count: int) -> int:
    """Return how many of the messages lie in the files as plain text."""
    content = b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())
    return sum(b"message-%03d " % number in content for number in range(count))


def messages_of(log: Path, key: str | None = None) -> list[str]:
    """Return the messages in a log that opens."""
    with refold.open(log, encryption_key=key) as memory:
        return [str(m.message.content)[:11] for m in memory.conversation("t").messages()]
