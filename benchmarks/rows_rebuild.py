"""Rows of the table of speed: rebuilding what is folded from the log, and reading everything.

    python benchmarks/rows_rebuild.py [--long]

Made-up messages are turns with tool calls, about 1 kB each, of words drawn by Zipf's law. Recorded ones are
those of coding sessions, where the recordings are there.
"""

import argparse
import gc
import json
import os
import random
import sqlite3
import tempfile
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import accumulate, islice, product
from pathlib import Path
from typing import Any

from rows import Row, cost, interleaved

import refold
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.projection_store.read_models import SQLiteViews
from refold.infrastructure.recall.recall_index import SQLiteRecallIndex
from refold.infrastructure.transcripts.read_transcript import read_transcript

DATA = Path(os.environ.get("REFOLD_X_DATA") or Path(__file__).parents[2] / "shared" / "data")
SESSIONS = ("claude-code-*/*.jsonl.gz", "pi/*.jsonl.gz")
WORDS = 160
"""In a message."""
VOCABULARY = 20_000
BATCH = 500
ROUNDS = 3
VIEWS_GOAL, RECALL_GOAL = 40_000, 15_000
"""Messages per second of CPU."""
READING_GOAL = 3
"""Multiple of decoding the rows."""
MEMORY_GOAL = 1.2
"""Multiple of the memory at the smaller length."""

Messages = Iterator[dict[str, Any]]


def rows(folder: Path, *, long: bool) -> Iterator[Row]:
    """Yield the rows."""
    made = folder / "made.db"
    fill(made, made_up(), 40_000 if long else 4_000, threads=4)
    yield from rebuilding(made, "made-up messages")
    yield from reading(folder, 10_000 if long else 3_000)
    yield from peaks_of_memory(folder, (1_000, 10_000) if long else (1_000, 2_000))
    if any(recordings()):
        recorded = folder / "recorded.db"
        count = import_recorded(recorded, None if long else 3_000)
        yield from rebuilding(recorded, f"{count:,} recorded messages")


def rebuilding(log: Path, what: str) -> Iterator[Row]:
    """Rebuild the lists and the recall index of a log, each against inserting the same rows."""
    with closing(SQLiteLog(log)) as opened:
        for name, make, table, goal in (
            ("the read models", SQLiteViews, "messages", VIEWS_GOAL),
            ("the recall index", SQLiteRecallIndex, "passages", RECALL_GOAL),
        ):
            path = log.with_suffix(f".{table}")
            with closing(make(path, opened)) as folded:
                folded.rebuild()
                insert = inserting(path, table)
                ours, floor = interleaved(folded.rebuild, insert, rounds=ROUNDS)
            count = sum(1 for _ in opened.scan())
            speed = count / ours.cpu * 1e3
            yield Row(
                f"rebuild {name}, {what}",
                f"{ours}, {speed:,.0f}/s",
                f"executemany of the rows of {table}: {floor}, {count / floor.cpu * 1e3:,.0f}/s",
                speed,
                "messages/s CPU",
                goal,
                at_least=True,
            )


def inserting(path: Path, table: str) -> Callable[[], None]:
    """Return a function that inserts the rows of a table into a new file by one statement."""
    with closing(sqlite3.connect(path)) as source:
        found = source.execute(f"SELECT * FROM {table}").fetchall()
        (create,) = source.execute(
            "SELECT sql FROM sqlite_schema WHERE name = ?", (table,)
        ).fetchone()
    bare = path.with_suffix(".bare")

    def insert() -> None:
        bare.unlink(missing_ok=True)
        with closing(sqlite3.connect(bare)) as into:
            into.execute("PRAGMA synchronous=OFF")
            into.execute(create)
            marks = ",".join("?" * len(found[0]))
            into.executemany(f"INSERT INTO {table} VALUES ({marks})", found)
            into.commit()

    return insert


def reading(folder: Path, count: int) -> Iterator[Row]:
    """Read a whole conversation as a list and one by one, against decoding its rows."""
    path = folder / "reading.db"
    fill(path, made_up(), count, threads=1)
    with at_rest(path) as memory, closing(sqlite3.connect(path)) as log:
        conversation = memory.conversation("thread-0")
        conversation.messages(0, 1)

        def decode() -> list[Any]:
            found = log.execute("SELECT state FROM stored_events ORDER BY rowid")
            return [json.loads(state[state.index(b"\n") + 1 :]) for (state,) in found]

        listing, floor, iterating, flat = interleaved(
            conversation.messages,
            decode,
            lambda: deque(conversation.iter_messages(), 0),
            lambda: deque(map(json.loads, map(_payload, states(log))), 0),
            rounds=5,
        )
    for name, ours, least in (
        ("messages()", listing, floor),
        ("iter_messages()", iterating, flat),
    ):
        yield Row(
            f"{name} of {count:,} messages",
            str(ours),
            f"SELECT state, json.loads: {least}",
            ours.cpu / least.cpu,
            "x CPU",
            READING_GOAL,
        )


def states(log: sqlite3.Connection) -> Iterator[bytes]:
    """Yield the stored bytes of all events."""
    for (state,) in log.execute("SELECT state FROM stored_events ORDER BY rowid"):
        yield state


def _payload(state: bytes) -> bytes:
    return state[state.index(b"\n") + 1 :]


def peaks_of_memory(folder: Path, lengths: tuple[int, int]) -> Iterator[Row]:
    """Compare the peak of memory while one conversation, or the list of all, is read at two lengths."""
    peaks: dict[str, list[int]] = {}
    for length in lengths:
        path = folder / f"{length}.long.db"
        fill(path, made_up(), length, threads=1)
        with at_rest(path) as memory:
            conversation = memory.conversation("thread-0")
            found = peak(lambda c=conversation: deque(c.iter_messages(), 0))  # type: ignore[misc]
            peaks.setdefault("iter_messages()", []).append(found)
        path = folder / f"{length}.many.db"
        questions = (m for m in made_up() if isinstance(m["content"], str))
        fill(path, questions, length, threads=length)
        with at_rest(path) as memory:
            for name, act in (
                ("iter_conversations()", lambda m=memory: deque(m.iter_conversations(), 0)),  # type: ignore[misc]
                ("search()", lambda m=memory: m.search("bade")),  # type: ignore[misc]
                ("verify()", memory.verify),
            ):
                peaks.setdefault(f"{name}, a message each", []).append(peak(act))
    for name, (short, long) in peaks.items():
        yield Row(
            f"memory of {name}, {lengths[1]:,}",
            f"{long / 1e6:.1f} MB",
            f"at {lengths[0]:,}: {short / 1e6:.1f} MB",
            long / short,
            "x memory",
            MEMORY_GOAL,
        )


def peak(act: Callable[[], object]) -> int:
    """Return the bytes that something takes at most, the second time."""
    act()
    gc.collect()
    tracemalloc.start()
    act()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


@contextmanager
def at_rest(path: Path) -> Iterator[refold.Memory]:
    """Open a memory that does nothing in the background."""
    with refold.open(path, background=False, scrub_megabytes=0) as memory:
        yield memory


def fill(path: Path, messages: Messages, count: int, *, threads: int) -> None:
    """Write messages into as many conversations."""
    with at_rest(path) as memory:
        for thread in range(threads):
            conversation, left = memory.conversation(f"thread-{thread}"), count // threads
            while left:
                some = list(islice(messages, min(left, BATCH)))
                conversation.append(some)
                left -= len(some)


def made_up() -> Messages:
    """Messages of turns without end: a question, a call, its result, an answer."""
    draw = random.Random(1)
    letters = product(*["bdgklmnprstz", "aeiou"] * 2, ["", *"bdgklmnprst"])
    words = ["".join(some) for some in islice(letters, VOCABULARY)]
    draw.shuffle(words)
    weights = list(accumulate(1 / (rank + 1) for rank in range(len(words))))
    for number in range(1 << 30):
        texts = [" ".join(draw.choices(words, cum_weights=weights, k=WORDS)) for _ in range(4)]
        call = {"type": "tool_use", "id": f"c{number}", "name": "read", "input": {"path": texts[1]}}
        result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": texts[2]}
        yield {"role": "user", "content": texts[0]}
        yield {"role": "assistant", "content": [call]}
        yield {"role": "user", "content": [result]}
        yield {"role": "assistant", "content": [{"type": "text", "text": texts[3]}]}


def recordings() -> Iterator[Path]:
    """Yield the recorded sessions."""
    for pattern in SESSIONS:
        yield from sorted(DATA.glob(pattern))


def import_recorded(path: Path, most: int | None) -> int:
    """Write recorded sessions, and return the number of their messages."""
    count = 0
    with at_rest(path) as memory:
        for file in recordings():
            for number, recorded in enumerate(read_transcript(file).conversations):
                conversation = memory.conversation(f"{file.stem}-{number}")
                conversation.append_recorded(recorded.messages)
                count += len(recorded.messages)
            if most is not None and count >= most:
                break
    return count


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--long", action="store_true")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:

        def run() -> None:
            for row in rows(Path(folder), long=given.long):
                mark = "met" if row.is_met else "missed"
                print(f"{row.what}\n  {row.ours}\n  floor: {row.floor}")
                print(f"  {row.figure:,.3g} {row.unit}, goal {row.goal:,}: {mark}")

        print(f"all: {cost(run)}")


if __name__ == "__main__":
    main()
