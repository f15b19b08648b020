"""Bytes of a log a message, next to raw sqlite3 that stores the same messages.

    python benchmarks/rows_size.py [--long]

Every turn asks for a request, so that compactions fall due in a window of 32,000 tokens and are stored.
"""

import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from rows import Row
from rows_append import Raw, said

import refold

WINDOW = 32_000


def size_of(path: Path) -> int:
    """Return the bytes of a database without free space and without what is not yet copied into it."""
    tight = path.with_suffix(".tight")
    tight.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM INTO ?", (str(tight),))
    return tight.stat().st_size


def talk(folder: Path, size: int) -> tuple[Path, Path]:
    """Store a conversation on both sides, and return both files."""
    path, floor = folder / "log.db", folder / "raw.db"
    raw = Raw(floor)
    with closing(raw.connection), refold.open(path, window=WINDOW) as memory:
        conversation = memory.conversation("chat")
        for number in range(0, size, 2):
            pair = [said(number), said(number + 1)]
            raw.append(pair)
            conversation.append(pair)
            conversation.context()
    return path, floor


def rows(folder: Path, *, long: bool) -> Iterator[Row]:
    """Yield the rows of bytes."""
    size = 10_000 if long else 1_000
    path, floor = talk(folder, size)
    raw = size_of(floor) / size
    payload = sum(len(json.dumps(said(n))) for n in range(size)) / size
    what = f"{raw:,.0f} bytes raw, message {payload:,.0f}"
    ours = size_of(path) / size
    yield Row(
        f"bytes a message in a log of {size:,} messages, all events",
        f"{ours:,.0f} bytes",
        what,
        ours / raw,
        "×",
        1.3,
    )
    shutil.copy(path, folder / "copy.db")
    command = [sys.executable, "-m", "refold", "compress", "--db", str(folder / "copy.db")]
    subprocess.run(command, check=True, capture_output=True)
    pressed = size_of(folder / "copy.db") / size
    yield Row(
        "the same after `refold compress`", f"{pressed:,.0f} bytes", what, pressed / raw, "×", 0.7
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        for row in rows(Path(place), long="--long" in sys.argv):
            print(row)
