"""How many turns 8 processes store in one log, next to raw sqlite3 behind the same fair lock.

python benchmarks/rows_writers.py [--long]
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from rows import Row, quantile
from rows_append import Raw, turn

import refold
from refold.infrastructure.files.lock import WriteLock

PROCESSES = 8
SECONDS = 3.0
LONG = 10.0
LOCK_TIMEOUT = 30.0
Store = Callable[[int], None]


class Found(NamedTuple):
    """Figures of all processes together."""

    rate: float
    """Turns a second."""
    slowest: float
    """Turns of the slowest process, as a share of those of the fastest."""
    longest: float
    """Longest wait of one turn, in milliseconds."""
    p99: float


def refold_store(path: Path, name: str, *, whole: bool) -> tuple[Store, Callable[[], None]]:
    """Return how a process stores a turn in refold, and how it ends."""
    memory = refold.open(path, window=10_000_000, scrub_megabytes=0)
    conversation = memory.conversation(name)

    def store(number: int) -> None:
        if whole:
            conversation.append(turn(number))
            return
        for message in turn(number):
            conversation.append(message)

    return store, memory.close


def raw_store(path: Path, *, whole: bool) -> tuple[Store, Callable[[], None]]:
    """Return how a process stores a turn in raw sqlite3 behind the lock of refold, and how it ends."""
    raw = Raw(path)
    raw.connection.execute("PRAGMA busy_timeout=30000")
    lock = WriteLock(path.with_suffix(".db.lock"), LOCK_TIMEOUT)

    def store(number: int) -> None:
        messages = turn(number)
        for part in [messages] if whole else [[message] for message in messages]:
            with lock.held():
                [[raw.version]] = raw.connection.execute(
                    "SELECT COALESCE(MAX(version), 0) FROM messages WHERE stream='chat'"
                )
                raw.append(part)

    return store, raw.connection.close


def write(kind: str, path: Path, name: str, seconds: float, *, whole: bool) -> None:
    """Store turns for some seconds, and print each wait in milliseconds."""
    store, end = (
        refold_store(path, name, whole=whole) if kind == "refold" else raw_store(path, whole=whole)
    )
    store(0)
    print("ready", flush=True)
    sys.stdin.readline()
    waits: list[float] = []
    deadline = time.perf_counter() + seconds
    number = 1
    while (began := time.perf_counter()) < deadline:
        store(number)
        waits.append((time.perf_counter() - began) * 1e3)
        number += 1
    end()
    print(json.dumps(waits))


def measured(kind: str, seconds: float, *, whole: bool) -> Found:
    """Run all processes on a new log."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.db")
        with closing(Raw(path).connection) if kind == "raw" else refold.open(path):
            pass
        command = [
            sys.executable,
            __file__,
            "write",
            kind,
            str(path),
            str(seconds),
            str(int(whole)),
        ]
        pipe = subprocess.PIPE
        running = [
            subprocess.Popen([*command, f"w{n}"], stdin=pipe, stdout=pipe, text=True)
            for n in range(PROCESSES)
        ]
        for process in running:
            assert process.stdout
            process.stdout.readline()
        for process in running:
            assert process.stdin
            process.stdin.write("go\n")
            process.stdin.flush()
        waits: list[Sequence[float]] = [json.loads(p.communicate()[0]) for p in running]
    together = [wait for each in waits for wait in each]
    counts = [len(each) for each in waits]
    return Found(
        len(together) / seconds, min(counts) / max(counts), max(together), quantile(together, 0.99)
    )


def rows(folder: Path, *, long: bool) -> Iterator[Row]:
    """Yield the rows of both kinds of turns."""
    del folder
    seconds = LONG if long else SECONDS
    for whole in (False, True):
        name = "one commit" if whole else "three commits"
        floor, ours = (
            measured("raw", seconds, whole=whole),
            measured("refold", seconds, whole=whole),
        )
        texts = f"{ours.rate:.0f} turns/s", f"{floor.rate:.0f} turns/s"
        head = f"{PROCESSES} processes, one log, {name} a turn"
        yield Row(head, *texts, ours.rate / floor.rate, "×", 0.6, at_least=True)
        fair = f"{ours.slowest:.2f}", f"{floor.slowest:.2f}"
        yield Row(f"{head}: slowest of fastest", *fair, ours.slowest, "", 0.5, at_least=True)
        waits = (
            f"{ours.longest:.0f} ms, p99 {ours.p99:.0f}",
            f"{floor.longest:.0f} ms, p99 {floor.p99:.0f}",
        )
        yield Row(f"{head}: longest wait", *waits, ours.longest, "ms", 250)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["write", kind, path, seconds, whole, name]:
            write(kind, Path(path), name, float(seconds), whole=whole == "1")
        case _:
            for row in rows(Path(), long="--long" in sys.argv):
                print(row)
