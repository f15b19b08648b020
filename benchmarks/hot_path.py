"""The hot path against raw sqlite3 doing the same work in the same run: append, context, replay.

    python benchmarks/hot_path.py [--quick]

Everything is a ratio of medians of interleaved measurements: the machine's noise hits both sides.
"""

import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

import refold

SIZES = (100, 1_000, 10_000, 100_000)
TAIL = 60
TURNS = 60
ROUNDS = 25
TEXT = (
    "The parser reads a token, looks at the next one and decides: def visit(self, node): ... " * 16
)


class FixedSummariser:
    """A summary that costs nothing, so that only the memory is measured."""

    name = "fixed"

    async def summarise(self, request: refold.SummaryRequest) -> refold.SummaryDraft:
        text = f"Covers {len(request.messages)} messages."
        return refold.SummaryDraft(text=text, complete=True, model="-", prompt_fingerprint="-")


def turn(number: int) -> list[dict[str, object]]:
    """Four messages: a request, a tool call, its result, the answer; about 1.4 kB each."""
    call = {"type": "tool_use", "id": f"call_{number}", "name": "read", "input": {"path": TEXT}}
    result = {"type": "tool_result", "tool_use_id": f"call_{number}", "content": TEXT}
    return [
        {"role": "user", "content": [{"type": "text", "text": f"{number} {TEXT}"}]},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": [{"type": "text", "text": f"{number} {TEXT}"}]},
    ]


class Raw:
    """The floor: the same JSON in one table, WAL, a sync at every commit."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection = self.connect()
        self.connection.execute(
            "CREATE TABLE events (stream TEXT, version INTEGER, topic TEXT, state BLOB, "
            "PRIMARY KEY (stream, version))"
        )
        self.version = 0

    def connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        return connection

    def append(self, messages: Sequence[dict[str, object]]) -> None:
        self.connection.execute("BEGIN")
        for message in messages:
            self.version += 1
            row = ("chat", self.version, "message", json.dumps(message).encode())
            self.connection.execute("INSERT INTO events VALUES (?,?,?,?)", row)
        self.connection.execute("COMMIT")

    def tail(self, connection: sqlite3.Connection, count: int) -> list[object]:
        rows = connection.execute(
            "SELECT state FROM events WHERE stream=? AND version>? ORDER BY version",
            ("chat", self.version - count),
        )
        return [json.loads(state) for (state,) in rows]

    def cold_tail(self, count: int) -> float:
        """µs to open the file and read the tail."""
        start = time.perf_counter()
        connection = self.connect()
        self.tail(connection, count)
        taken = time.perf_counter() - start
        connection.close()
        return taken * 1e6


def timed(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return (time.perf_counter() - start) * 1e6


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def measure(folder: Path, size: int) -> dict[str, float]:
    path, raw = folder / f"m{size}.db", Raw(folder / f"r{size}.db")

    def opened() -> refold.Memory:
        return refold.open(path, window=1_000_000, summariser=FixedSummariser())

    with opened() as memory:
        conversation = memory.conversation("chat")
        covered = fill(conversation, raw, size)
        append, raw_append = [], []
        for number in range(size, size + TURNS):
            messages = turn(number)
            raw_append.append(timed(lambda m=messages: raw.append(m)))
            append.append(timed(lambda m=messages: conversation.append(m)))
        live = raw.version - covered
        warm = [timed(conversation.context) for _ in range(ROUNDS)]
        raw_warm = [timed(lambda: raw.tail(raw.connection, live)) for _ in range(ROUNDS)]
    cold, raw_cold = [], []
    for _ in range(ROUNDS):
        raw_cold.append(raw.cold_tail(live))
        cold.append(cold_context(opened))
    replay, raw_replay = replay_rates(path)
    return {
        "append": median(append),
        "raw append": median(raw_append),
        "warm": median(warm),
        "raw warm": median(raw_warm),
        "cold": median(cold),
        "raw cold": median(raw_cold),
        "live": live,
        "replay": replay,
        "raw replay": raw_replay,
    }


def fill(conversation: refold.ConversationMemory, raw: Raw, size: int) -> int:
    """A conversation of ``size`` messages whose last ``TAIL`` are live; how many are summarised."""
    batch: list[dict[str, object]] = []
    early = max(3, size - TAIL)
    for number in range(early // 4):
        batch += turn(-number - 1)
        if len(batch) >= 900:
            conversation.append(batch, recorded=True)
            raw.append(batch)
            batch = []
    if batch:
        conversation.append(batch, recorded=True)
        raw.append(batch)
    covered = conversation.compact().messages_covered
    for number in range(TAIL // 4):
        messages = turn(-size - number)
        conversation.append(messages)
        raw.append(messages)
    return covered


def cold_context(opened: Callable[[], refold.Memory]) -> float:
    """µs to open the memory and make the first context."""
    start = time.perf_counter()
    with opened() as memory:
        memory.conversation("chat").context()
        return (time.perf_counter() - start) * 1e6


def replay_rates(path: Path) -> tuple[float, float]:
    """Events a second of a full replay, and of executemany of the same rows into the same tables."""
    views = path.with_name(f"{path.stem}.views.db")
    best = raw_best = 0.0
    for _ in range(3):
        with refold.open(path) as memory:
            start = time.perf_counter()
            events = memory.replay().events
            best = max(best, events / (time.perf_counter() - start))
        raw_best = max(raw_best, events / raw_rebuild(views))
    return best, raw_best


def raw_rebuild(views: Path) -> float:
    source = sqlite3.connect(views)
    tables = {
        name: (sql, source.execute(f"SELECT * FROM {name}").fetchall())
        for name, sql in source.execute("SELECT name, sql FROM sqlite_schema WHERE type='table'")
        if not name.startswith("sqlite_")
    }
    indexes = [
        sql
        for (sql,) in source.execute("SELECT sql FROM sqlite_schema WHERE type='index'")
        if sql is not None
    ]
    source.close()
    with tempfile.TemporaryDirectory(dir=views.parent) as folder:
        target = sqlite3.connect(Path(folder) / "raw.db")
        target.execute("PRAGMA journal_mode=WAL")
        start = time.perf_counter()
        for name, (sql, rows) in tables.items():
            target.execute(sql)
            if rows:
                marks = ",".join("?" * len(rows[0]))
                target.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
        for sql in indexes:
            target.execute(sql)
        target.commit()
        seconds = time.perf_counter() - start
        target.close()
    return seconds


def import_ratio() -> float:
    """``import refold`` against ``import pydantic`` (with BaseModel), in fresh interpreters."""

    def run(code: str) -> float:
        return timed(lambda: subprocess.run([sys.executable, "-c", code], check=True))

    nothing, pydantic, ours = [], [], []
    for _ in range(9):
        nothing.append(run("pass"))
        pydantic.append(run("from pydantic import BaseModel"))
        ours.append(run("import refold"))
    floor = min(nothing)
    return (min(ours) - floor) / (min(pydantic) - floor)


def main() -> int:
    sizes = SIZES[:3] if "--quick" in sys.argv else SIZES
    with tempfile.TemporaryDirectory() as folder:
        found = {size: measure(Path(folder), size) for size in sizes}
    table = Table(title="Hot path: µs, and ratio to raw sqlite3 in the same run")
    for column in (
        "messages",
        "live",
        "append 4",
        "×",
        "context warm",
        "×",
        "cold",
        "×",
        "replay/s",
        "×",
    ):
        table.add_column(column, justify="right")
    for size, r in found.items():
        table.add_row(
            f"{size:,}",
            f"{r['live']:.0f}",
            f"{r['append']:,.0f}",
            f"{r['append'] / r['raw append']:.2f}",
            f"{r['warm']:,.0f}",
            f"{r['warm'] / r['raw warm']:.2f}",
            f"{r['cold']:,.0f}",
            f"{r['cold'] / r['raw cold']:.2f}",
            f"{r['replay']:,.0f}",
            f"{r['replay'] / r['raw replay']:.2f}",
        )
    Console().print(table)
    bars = judge(found)
    for name, (value, limit, holds) in bars.items():
        print(f"{'ok  ' if holds else 'MISS'} {name}: {value:.2f} (bar {limit})")
    return 0 if all(holds for _, _, holds in bars.values()) else 1


def judge(found: dict[int, dict[str, float]]) -> dict[str, tuple[float, str, bool]]:
    """The bars: name, worst value, bar, and whether it holds."""
    last, small = found[max(found)], found[min(s for s in found if s >= 1_000)]

    def worst(ours: str, floor: str) -> float:
        return max(r[ours] / r[floor] for r in found.values())

    append, warm, cold = (
        worst("append", "raw append"),
        worst("warm", "raw warm"),
        worst("cold", "raw cold"),
    )
    # Sizes are measured one after the other: the floor of each run takes the machine's mood out.
    warm_growth = (last["warm"] / last["raw warm"]) / (small["warm"] / small["raw warm"])
    cold_growth = (last["cold"] / last["raw cold"]) / (small["cold"] / small["raw cold"])
    replay = min(r["replay"] / r["raw replay"] for s, r in found.items() if s >= 1_000)
    imports = import_ratio()
    return {
        "append of a turn / raw commit": (append, "≤ 1.5", append <= 1.5),
        "context warm / raw read": (warm, "≤ 4", warm <= 4),
        "context after cold open / raw cold read": (cold, "≤ 4", cold <= 4),
        "context warm, largest / 1,000": (warm_growth, "≤ 1.2", warm_growth <= 1.2),
        "context cold, largest / 1,000": (cold_growth, "≤ 1.2", cold_growth <= 1.2),
        "replay / raw executemany": (replay, "≥ 0.5", replay >= 0.5),
        "import refold / import pydantic": (imports, "≤ 2", imports <= 2),
    }


if __name__ == "__main__":
    sys.exit(main())
