"""Scrubbing step by step: what a thread does in the background is done here and now."""

import sqlite3
from contextlib import closing
from pathlib import Path

import refold
from refold.application.api.memory import Memory
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.maintenance.scrubber import LogScrubber
from refold.infrastructure.observability.log_observer import Notice

WORDS = "word " * 100


def covered(path: Path, messages: int = 60) -> Path:
    """A log with two conversations; of ``t`` most messages are behind a snapshot."""
    with quiet(path) as memory:
        for thread in ("t", "u"):
            for n in range(messages // 2):
                memory.conversation(thread).append(
                    [
                        {"role": "user", "content": f"{thread}-needle-{n:03} {WORDS}"},
                        {"role": "assistant", "content": f"{thread}-answer-{n:03} {WORDS}"},
                    ]
                )
        assert memory.conversation("t").compact().success
    return path


def quiet(path: Path) -> Memory:
    """A memory that reads nothing in the background."""
    return refold.open(path, window=8_000, scrub_megabytes=0)


def scrubbed(path: Path, budget: int = 1 << 30, told: list[Notice] | None = None) -> None:
    """One opening that reads so many bytes."""
    heard: list[Notice] = []
    with closing(SQLiteLog(path, notify=(heard if told is None else told).append)) as log:
        scrubber = LogScrubber(log.known, budget)
        while scrubber.step():
            pass
        scrubber.finish()


def flip(path: Path, text: bytes, bit: int = 1) -> int:
    """Turn a bit over in the first byte of a text that the closed log holds; where that is."""
    content = bytearray(path.read_bytes())
    at = content.find(text)
    assert at >= 0, text
    content[at] ^= 1 << bit
    path.write_bytes(content)
    return at


def flip_at(path: Path, at: int, bit: int = 1) -> None:
    """Turn a bit over at a place of the closed log."""
    content = bytearray(path.read_bytes())
    content[at] ^= 1 << bit
    path.write_bytes(content)


def changed(path: Path, statement: str, *values: object) -> None:
    """Change the closed log with SQL."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, values)
