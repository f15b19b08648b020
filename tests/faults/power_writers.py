"""Two writers on one log that are killed again and again, for ``power_loss`` to record.

python -m tests.faults.power_writers FOLDER KIND SEED
"""

import os
import random
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import refold
from refold.infrastructure.write_ahead.damaged_copies import refuse_damaged

from .power_loss import ACKS, NAME

SQL, PLAIN, ENCRYPTED = "sql", "plain", "encrypted"
KINDS = (SQL, PLAIN, ENCRYPTED)
"""SQL alone, with transactions as hostile as can be; and refold itself."""
KEY = "ab" * 32


class Writer:
    """A process of its own, forked before anything was opened: it does a deed for each line it is sent."""

    def __init__(self, folder: Path, kind: str, number: int) -> None:
        asked, self._asks = os.pipe()
        self._answers, answered = os.pipe()
        self._number = os.fork()
        if not self._number:
            os.close(self._asks)
            os.close(self._answers)
            _write(folder, kind, number, (asked, answered))
            os._exit(0)
        os.close(asked)
        os.close(answered)
        self.wait()

    def ask(self, number: int) -> None:
        """Send it a deed."""
        os.write(self._asks, b"%08d" % number)

    def wait(self) -> None:
        """Wait until it has done what it was asked."""
        assert os.read(self._answers, 1), "a writer ended by itself"

    def kill(self) -> None:
        """Kill it."""
        os.kill(self._number, signal.SIGKILL)
        os.waitpid(self._number, 0)
        os.close(self._asks)
        os.close(self._answers)


def main() -> None:
    """Let two writers work, and kill them."""
    folder, kind, chance = Path(sys.argv[1]), sys.argv[2], random.Random(int(sys.argv[3]))
    writers = [Writer(folder, kind, chance.randrange(10**6)) for _ in range(2)]
    for _ in range(chance.randint(4, 14)):
        at = chance.randrange(2)
        writers[at].ask(chance.randrange(10**6))
        if chance.random() < 0.6:
            writers[at].wait()
            continue
        time.sleep(chance.random() * 0.01)
        dying = (0, 1) if chance.random() < 0.4 else (at,)
        for number in dying:
            writers[number].kill()
        for number in dying:
            writers[number] = Writer(folder, kind, chance.randrange(10**6))
    for writer in writers:
        writer.kill()


def _write(folder: Path, kind: str, seed: int, pipes: tuple[int, int]) -> None:
    asked, answered = pipes
    acks = os.open(folder / ACKS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    work = _sql(folder, seed) if kind == SQL else _refold(folder, kind, f"w{seed}", acks)
    os.write(answered, b".")
    while line := os.read(asked, 8):
        work(random.Random(int(line)))
        os.write(answered, b".")


def _sql(folder: Path, seed: int) -> Callable[[random.Random], None]:
    path = folder / NAME
    refuse_damaged(path)
    chance = random.Random(seed)
    connection = sqlite3.connect(path, isolation_level=None, timeout=30)
    for setting in (
        "journal_mode=WAL",
        "synchronous=FULL",
        f"cache_size={chance.choice((2, 5, 2000))}",
        f"wal_autocheckpoint={chance.choice((0, 30, 1000))}",
    ):
        connection.execute(f"PRAGMA {setting}").fetchall()
    connection.execute("CREATE TABLE IF NOT EXISTS t(a INTEGER PRIMARY KEY, b)")

    def work(chance: random.Random) -> None:
        for _ in range(chance.choice((1, 1, 3, 8))):
            _transaction(connection, chance)
        if chance.random() < 0.15:
            mode = chance.choice(("PASSIVE", "RESTART", "TRUNCATE"))
            connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()

    return work


def _transaction(connection: sqlite3.Connection, chance: random.Random) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for _ in range(chance.choice((1, 1, 2, 20))):
        # Texts that differ in few bits, so that leftovers look much like what is written over them.
        text = (b"%d" % chance.randint(0, 9)) * chance.choice((10, 200, 1000, 6000))
        if chance.random() < 0.3:
            # Rows that were spilled and are changed again: frames are written over in place.
            connection.execute("UPDATE t SET b=? WHERE a % 7 = ?", (text, chance.randint(0, 6)))
        else:
            connection.execute("INSERT INTO t(b) VALUES (?)", (text,))
    connection.execute("COMMIT" if chance.random() < 0.7 else "ROLLBACK")


def _refold(folder: Path, kind: str, name: str, acks: int) -> Callable[[random.Random], None]:
    module: Any = sqlite3
    usual: Callable[..., sqlite3.Connection] = module.connect

    def connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = usual(*arguments, **options)
        connection.execute("PRAGMA cache_size=5")
        return connection

    module.connect = connect
    key = KEY if kind == ENCRYPTED else None
    memory = refold.open(folder / NAME, encryption_key=key)
    conversation = memory.conversation("t")
    count = 0

    def work(chance: random.Random) -> None:
        nonlocal count
        for _ in range(chance.choice((1, 2, 5))):
            words: list[str] = []
            for _ in range(chance.choice((1, 1, 2, 15))):
                count += 1
                words.append(f"{name}-{count}")
            size = chance.choice((10, 1000, 9000))
            conversation.append(
                [{"role": "user", "content": f"{word} {'x' * size}"} for word in words]
            )
            os.write(acks, " ".join(words).encode() + b"\n")

    return work


if __name__ == "__main__":
    main()
