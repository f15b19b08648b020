"""How a stored conversation grows: refold, the messages alone, and the whole state stored each turn.

    python benchmarks/growth.py [--markdown FILE]

A turn is four messages, durable (WAL, ``synchronous=FULL``) before the next begins. refold makes the
context of every turn, so compactions fall due and are stored, and its read models are made at the end.
The messages are those of a recorded coding session, over and over with new call ids, or made up where
that recording is not there. The whole state is written for every turn up to 1,000 messages. Beyond, only
for some turns, and what lies between is interpolated: the full run would write over 20 GB.
"""

import argparse
import json
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import count, islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import refold
from refold.infrastructure.transcripts.read_transcript import read_transcript

SIZES = (1_000, 10_000)
TURN = 4
EVERY_TURN = 1_000
"""Messages up to which the whole state is really written each turn."""
SAMPLES = 40
"""Turns for which it is written beyond that."""
NEWEST = 25
"""Turns at the end over which the time of an append is taken."""
DATA = Path(os.environ.get("REFOLD_X_DATA") or Path(__file__).parents[2] / "shared" / "data")
RECORDING = DATA / "pi" / "before-compaction.jsonl.gz"

Messages = Sequence[dict[str, Any]]


class Grown(NamedTuple):
    """A design at one length."""

    bytes: float
    next_turn: float
    """Bytes that one more turn adds at this length."""
    append: float
    """Milliseconds of appending a turn at this length, the median."""


def messages() -> Iterator[dict[str, Any]]:
    """Messages of a conversation without end."""
    recorded = _recorded() or _made_up()
    for cycle in count():
        for message in recorded:
            yield {**message, "content": _numbered(message["content"], cycle)}


def _recorded() -> list[dict[str, Any]]:
    if not RECORDING.is_file():
        return []
    (conversation,) = read_transcript(RECORDING).conversations
    said = [item.message for item in conversation.messages if item.message.role != "system"]
    return [{"role": m.role, "content": [*m.blocks()]} for m in said]


def _made_up() -> list[dict[str, Any]]:
    text = (
        "The parser reads a token, looks at the next one and decides: visit(self, node) ... " * 16
    )
    call = {"type": "tool_use", "id": "call", "name": "read", "input": {"path": text}}
    result = {"type": "tool_result", "tool_use_id": "call", "content": text}
    words = [{"type": "text", "text": text}]
    contents = [("user", words), ("assistant", [call]), ("user", [result]), ("assistant", words)]
    return [{"role": role, "content": content} for role, content in contents]


def _numbered(content: Messages, cycle: int) -> Messages:
    """The same blocks with ids of their own, as no two calls of a conversation share one."""
    names = ("id", "tool_use_id")
    return [{k: f"{v}_{cycle}" if k in names else v for k, v in block.items()} for block in content]


def turns(size: int) -> Iterator[Messages]:
    said = messages()
    return (list(islice(said, TURN)) for _ in range(size // TURN))


class Rows:
    """One table in the same SQLite settings; what is in a row is up to the design."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode=WAL")
        self.connection.execute("PRAGMA synchronous=FULL")
        self.connection.execute("CREATE TABLE rows (thread TEXT, number INTEGER, state BLOB, "
                                "PRIMARY KEY (thread, number))")  # fmt: skip
        self.number = 0

    def append(self, values: Sequence[object]) -> None:
        self.connection.execute("BEGIN")
        for value in values:
            self.number += 1
            state = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
            self.connection.execute("INSERT INTO rows VALUES ('chat', ?, ?)", (self.number, state))
        self.connection.execute("COMMIT")

    def bytes(self) -> int:
        self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return self.path.stat().st_size


def timed(act: Callable[[], object]) -> float:
    """Milliseconds."""
    start = time.perf_counter()
    act()
    return (time.perf_counter() - start) * 1e3


def messages_alone(folder: Path, size: int) -> Grown:
    """The floor: each message once, as JSON."""
    rows = Rows(folder / "alone.db")
    times = [timed(lambda new=new: rows.append(new)) for new in turns(size)]
    with closing(rows.connection):
        total = rows.bytes()
    return Grown(total, total / size * TURN, statistics.median(times[-NEWEST:]))


def whole_state(folder: Path, size: int, *, sampled: bool) -> Grown:
    """Each turn writes the list of all messages so far, as checkpointers do."""
    rows = Rows(folder / f"whole-{sampled}.db")
    last = size // TURN
    wanted = set(range(1, last + 1))
    if sampled:
        wanted = {round(1 + n * (last - 1) / (SAMPLES - 1)) for n in range(SAMPLES)}
        wanted |= {last - n for n in range(3)}
    so_far: list[dict[str, Any]] = []
    places, added, times, before = [0], [0.0], [0.0], rows.bytes()
    for number, new in enumerate(turns(size), start=1):
        so_far += new
        if number in wanted:
            times.append(timed(partial(rows.append, [so_far])))
            now = rows.bytes()
            places.append(number)
            added.append(float(now - before))
            before = now
    rows.connection.close()
    pairs = list(zip(places, added, strict=True))
    total = sum(
        (right - left) * (high + low) / 2 + (high - low) / 2
        for (left, low), (right, high) in pairwise(pairs)
    )
    newest = times[-NEWEST:] if not sampled else times[-3:]
    return Grown(total, added[-1], statistics.median(newest))


def with_refold(folder: Path, size: int) -> tuple[Grown, Grown, int]:
    """The log, the read models, and how often it was compacted."""
    path, times = folder / "agent.db", []
    with refold.open(path, window=200_000) as memory:
        conversation = memory.conversation("chat")
        for new in turns(size):
            times.append(timed(lambda new=new: conversation.append(new, recorded=True)))
            conversation.context()
        compactions = sum(row.outcome == "performed" for row in conversation.compactions())
        stored = memory.stats().conversations[0]
    per_turn = stored.bytes_per_message * TURN
    log = Grown(path.stat().st_size, per_turn, statistics.median(times[-NEWEST:]))
    views = folder / "agent.views.db"
    return log, Grown(views.stat().st_size, 0, 0), compactions


def table(found: dict[int, dict[str, Grown]]) -> str:
    lines = [
        "| messages | design | bytes a message | × messages alone | bytes of one more turn | ms to append a turn |",
        "| ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    for size, designs in found.items():
        floor = designs["messages alone"].bytes
        for name, grown in designs.items():
            extra = (
                (f"{grown.next_turn:,.0f}", f"{grown.append:,.1f}") if grown.append else ("", "")
            )
            lines.append(
                f"| {size:,} | {name} | {grown.bytes / size:,.0f} | {grown.bytes / floor:,.2f} | "
                f"{extra[0]} | {extra[1]} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    target = parser.parse_args().markdown
    found: dict[int, dict[str, Grown]] = {}
    compactions: dict[int, int] = {}
    checked = 0.0
    for size in SIZES:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            log, views, compactions[size] = with_refold(folder, size)
            found[size] = {
                "messages alone": messages_alone(folder, size),
                "refold: log": log,
                "refold: read models (may be deleted)": views,
                "whole state each turn": whole_state(folder, size, sampled=size > EVERY_TURN),
            }
            if size <= EVERY_TURN:
                written = found[size]["whole state each turn"].bytes
                checked = whole_state(folder, size, sampled=True).bytes / written
    report = page(found, compactions, checked)
    print(report)
    if target is not None:
        target.write_text(report, "utf-8")


def page(found: dict[int, dict[str, Grown]], compactions: dict[int, int], checked: float) -> str:
    small, large = (found[size] for size in SIZES)
    times = SIZES[1] / SIZES[0]
    grows = [
        f"- {name}: {large[name].bytes / small[name].bytes / times:,.2f} × the bytes a message"
        for name in ("messages alone", "refold: log", "whole state each turn")
    ]
    source = "a recorded coding session" if RECORDING.is_file() else "made-up messages"
    made = " and ".join(f"{compactions[size]} at {size:,}" for size in SIZES)
    return "\n".join(
        [
            "# Growth of a stored conversation",
            "",
            f"Messages of {source}, repeated. A turn is {TURN} messages, durable before the next begins.",
            f"refold made every turn's context in a window of 200,000 tokens; compactions: {made}.",
            f"The whole state was written each turn up to {EVERY_TURN:,} messages; beyond, for {SAMPLES}",
            "turns, and the bytes between them are interpolated (done so up to there as well, that gives",
            f"{checked:.3f} of what was really written). Times are those of a busy machine.",
            "",
            table(found),
            "",
            f"From {SIZES[0]:,} to {SIZES[1]:,} messages:",
            "",
            *grows,
            "",
            "Made by `python benchmarks/growth.py --markdown FILE`.",
            "",
        ]
    )


if __name__ == "__main__":
    main()
