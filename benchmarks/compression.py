"""Bytes per message against raw JSON, and what reading costs, before and after ``refold compress``.

    python benchmarks/compression.py FILE...

The files are transcripts, as ``refold import`` takes them; each conversation is compacted once with the
built-in summariser, so that it has a part that is old.
"""

import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import zstandard

import refold
from refold.infrastructure.event_store.encodings import DICTIONARY_BYTES, LEVEL, Compressor

ROUNDS = 7


class Sizes(NamedTuple):
    """Of all stored events, and of the log as one file without free space."""

    events: int
    file: int


def imported(files: list[str], db: Path) -> list[str]:
    """Import every transcript; the thread ids."""
    run = "from refold.infrastructure.cli.program import main; main()"
    subprocess.run(
        [sys.executable, "-c", run, "import", *files, "--db", str(db)],
        check=False,  # Exit code 1: some line of some file is unknown.
        capture_output=True,
    )
    with refold.open(db) as memory:
        return [row.thread_id for row in memory.conversations()]


def stored(db: Path, folder: Path) -> Sizes:
    """What the log takes up; the file as ``VACUUM INTO`` writes it."""
    tight = folder / "tight.db"
    tight.unlink(missing_ok=True)
    with closing(sqlite3.connect(db)) as connection:
        (events,) = connection.execute("SELECT sum(length(state)) FROM stored_events").fetchone()
        connection.execute("VACUUM INTO ?", (str(tight),))
    return Sizes(events, tight.stat().st_size)


def median_ms(act: Callable[[], object]) -> float:
    """The median of some runs, in time of the processor: other programs do not count."""
    taken: list[float] = []
    for _ in range(ROUNDS):
        start = time.process_time()
        act()
        taken.append((time.process_time() - start) * 1_000)
    return statistics.median(taken)


def reading(db: Path, threads: list[str]) -> dict[str, float]:
    """Milliseconds of what an agent does, over all conversations."""

    def cold() -> None:
        with refold.open(db) as memory:
            for thread in threads:
                memory.conversation(thread).context()

    with refold.open(db) as memory:
        chats = [memory.conversation(thread) for thread in threads]
        for conversation in chats:
            conversation.context()
        warm = median_ms(lambda: [conversation.context() for conversation in chats])
        old = median_ms(lambda: [conversation.messages(0, 50) for conversation in chats])
    return {"context, cold": median_ms(cold), "context, warm": warm, "first 50 messages": old}


def payloads(db: Path) -> list[bytes]:
    """The payloads of all events, while none is compressed."""
    with closing(sqlite3.connect(db)) as connection:
        rows = connection.execute("SELECT state FROM stored_events").fetchall()
    return [state.partition(b"\n")[2] for (state,) in rows]


def ways(found: list[bytes]) -> list[tuple[str, int]]:
    """All payloads in several ways: which dictionary and which level are worth it."""
    alone = Compressor(None)
    result = [("as they are", sum(map(len, found)))]
    result.append(("zstd alone", sum(len(alone.compress(p)) for p in found)))
    for size in (DICTIONARY_BYTES // 2, DICTIONARY_BYTES, DICTIONARY_BYTES * 2):
        samples = [p[:8192] for p in found[::2]]
        dictionary = zstandard.train_dictionary(size, samples, level=LEVEL)
        for level in (3, LEVEL):
            writer = zstandard.ZstdCompressor(level, dict_data=dictionary, write_dict_id=False)
            # Only those it was not trained on, counted twice: a fair guess at payloads to come.
            total = 2 * sum(len(writer.compress(p)) for p in found[1::2])
            result.append((f"dictionary of {size // 1024} KiB, level {level}", total))
    return result


def main() -> None:
    files = [word for word in sys.argv[1:] if not word.startswith("--")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        db = folder / "agent.db"
        threads = imported(files, db)
        with refold.open(db) as memory:
            for thread in threads:
                memory.conversation(thread).compact()
            raw = [
                len(json.dumps(line.get("message", line)).encode())
                for thread in threads
                for line in memory.conversation(thread).export("jsonl")
            ]
        tried = ways(payloads(db))
        before, slow = stored(db, folder), reading(db, threads)
        with refold.open(db) as memory:
            start = time.process_time()
            done = memory.compress()
            seconds = time.process_time() - start
        after, then = stored(db, folder), reading(db, threads)
        print(f"{len(threads)} conversations, {len(raw):,} messages\n")
        print("| bytes per message | before | after |\n|---|---|---|")
        count = len(raw)
        print(f"| raw JSON | {sum(raw) / count:,.0f} | |")
        print(f"| stored events | {before.events / count:,.0f} | {after.events / count:,.0f} |")
        print(
            f"| file without free space | {before.file / count:,.0f} | {after.file / count:,.0f} |"
        )
        print(
            f"\n{done.events:,} events were compressed in {seconds:.1f} s: {done.bytes_before:,} → "
            f"{done.bytes_after:,} bytes ({done.bytes_after / done.bytes_before:.1%}), "
            f"{done.bytes_after / done.events:,.0f} bytes an event.\n"
        )
        print("| all conversations, ms | before | after |\n|---|---|---|")
        for what, was in slow.items():
            print(f"| {what} | {was:.1f} | {then[what]:.1f} |")
        print("\n| all payloads | bytes | share |\n|---|---|---|")
        for what, size in tried:
            print(f"| {what} | {size:,} | {size / tried[0][1]:.1%} |")


if __name__ == "__main__":
    main()
