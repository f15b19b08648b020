"""How long `refold import` takes for a recording, next to raw sqlite3 that parses and stores it.

python benchmarks/rows_import.py
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from rows import Row
from rows_append import Raw, said

MESSAGES = 30_000
BATCH = 500


def raw_import(source: Path, target: Path) -> float:
    """Return the seconds that raw sqlite3 takes."""
    begin = time.perf_counter()
    raw = Raw(target)
    with closing(raw.connection), source.open() as lines:
        messages = [json.loads(line) for line in lines]
        for first in range(0, len(messages), BATCH):
            raw.append(messages[first : first + BATCH])
    return time.perf_counter() - begin


def rows(folder: Path, *, long: bool) -> Iterator[Row]:
    """Yield the row of the import."""
    del long
    source = folder / "talk.jsonl"
    source.write_text("".join(f"{json.dumps(said(n))}\n" for n in range(MESSAGES)))
    floor = raw_import(source, folder / "raw.db")
    command = [
        sys.executable,
        "-m",
        "refold",
        "import",
        str(source),
        "--db",
        str(folder / "log.db"),
    ]
    begin, before = time.perf_counter(), os.times()
    subprocess.run(command, check=True, capture_output=True)
    seconds, after = time.perf_counter() - begin, os.times()
    cpu = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    texts = f"{seconds:.1f} s, CPU {cpu:.1f}", f"{floor:.2f} s"
    yield Row(f"import of {MESSAGES:,} messages, the whole command", *texts, seconds, "s", 4)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        for row in rows(Path(place), long=False):
            print(row)
