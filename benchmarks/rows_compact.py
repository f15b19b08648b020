"""Rows about compactions: their time, whether it grows with the conversation, and the bytes that they store.

    python benchmarks/rows_compact.py [--long]

Two conversations of made-up coding work are compacted in turn by the embedded summariser, in a window of 32,000
tokens: a young one, and one that was compacted many times before. Between them the floor is measured: reading the
newly covered messages once as JSON, compressing them, and storing the result durably in a table of SQLite.
"""

import json
import random
import sqlite3
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import closing
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

from rows import Cost, Row, cost, medians

import refold

WINDOW = 32_000
YOUNG = 10
OLD, OLD_LONG = 40, 1_000
"""Compactions before those that are measured, of the older conversation."""
ROUNDS = 6
BATCH = 8
WORDS = (
    *(
        "parser",
        "token",
        "node",
        "visitor",
        "config",
        "cache",
        "index",
        "worker",
        "queue",
        "socket",
    ),
    *(
        "buffer",
        "schema",
        "ledger",
        "cursor",
        "batch",
        "stream",
        "commit",
        "branch",
        "render",
        "layout",
    ),
    *("widget", "canvas", "signal", "thread", "timer", "codec", "filter", "module", "adapter"),
)


def messages(seed: int = 3) -> Iterator[dict[str, Any]]:
    """Messages of a coding session without end: requests, calls with results, and answers."""
    draw = random.Random(seed)

    def word() -> str:
        return draw.choice(WORDS)

    for number in count():
        path = f"src/{word()}/{word()}_{word()}{draw.randrange(400)}.py"
        asked = f"Please fix the {word()} in {path}. It must never drop a {word()}; use port {draw.randrange(9_000)}."
        yield {"role": "user", "content": asked}
        command = f"pytest tests/test_{word()}.py -k {word()}"
        given = ({"path": path}, {"command": command}, {"path": path, "old": word(), "new": word()})
        for name, values in zip(("read", "bash", "edit"), given, strict=True):
            call = f"{name}_{number}"
            used = {"type": "tool_use", "id": call, "name": name, "input": values}
            lines = (
                f"{n}: def {word()}_{word()}(self): return self.{word()}({draw.randrange(1_000)})"
                for n in range(30)
            )
            result = "ok" if name == "edit" else "\n".join(lines)
            yield {
                "role": "assistant",
                "content": [{"type": "text", "text": f"I use {name} now."}, used],
            }
            yield {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": call, "content": result}],
            }
        yield {"role": "assistant", "content": f"I decided to keep the {word()} of {path}."}


class Made(NamedTuple):
    """A compaction that fell due."""

    cost: Cost
    shown: int
    """Bytes of what the request shows for older messages."""
    covered: list[dict[str, Any]]
    """About the messages that it covered first."""
    rebuilt: bool


class Talk:
    """A conversation that goes on until a compaction falls due."""

    def __init__(self, memory: refold.Memory, thread_id: str, seed: int = 3) -> None:
        self._conversation = memory.conversation(thread_id)
        self._messages = messages(seed)

    def next_compaction(self) -> Made:
        """Go on until the next compaction, and return what the context that made it took."""
        said: list[dict[str, Any]] = []
        while True:
            new = list(islice(self._messages, BATCH))
            said += new
            self._conversation.append(new, recorded=True)
            found: list[refold.Context] = []
            taken = cost(lambda found=found: found.append(self._conversation.context()))
            [context] = found
            made = [one for one in context.compactions if one.outcome == "performed"]
            if made:
                shown = sum(len(text.encode()) for text in context.memory)
                return Made(taken, shown, said, made[0].rebuilt)

    def carried_compaction(self) -> Made:
        """The next one that is no rebuild. These are one in five, and cost more."""
        made = self.next_compaction()
        return self.next_compaction() if made.rebuilt else made


def stored(rows: sqlite3.Connection, covered: list[dict[str, Any]]) -> None:
    """The floor."""
    said = [json.loads(text) for text in map(json.dumps, covered)]
    with rows:
        rows.execute("INSERT INTO rows VALUES (?)", (zlib.compress(json.dumps(said).encode()),))


def sizes(path: Path, thread_id: str) -> list[int]:
    """The bytes of each stored compaction of a conversation, the oldest first."""
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(
            "SELECT length(state) FROM stored_events WHERE originator_id=? AND "
            "topic='compaction_performed' ORDER BY originator_version",
            (thread_id,),
        )
        return [row[0] for row in found]


def rows(folder: Path, *, long: bool) -> Iterator[Row]:
    """Measure, and yield the rows."""
    path, before = folder / "compact.db", OLD_LONG if long else OLD
    floor = sqlite3.connect(folder / "floor.db")
    floor.execute("PRAGMA journal_mode=WAL")
    floor.execute("PRAGMA synchronous=FULL")
    floor.execute("CREATE TABLE rows (data BLOB)")
    young, old, floors = list[Made](), list[Made](), list[Cost]()
    with (
        closing(floor),
        refold.open(path, window=WINDOW, summariser="extractive", scrub_megabytes=0) as memory,
    ):
        # With the same words, what is known of one conversation would make the other one faster.
        talks = Talk(memory, "young", 4), Talk(memory, "old", 3)
        for talk, times in zip(talks, (YOUNG - 1, before - 1), strict=True):
            shown = [talk.next_compaction().shown for _ in range(times)]
        for _ in range(ROUNDS):
            young.append(talks[0].carried_compaction())
            covered = young[-1].covered
            floors.append(cost(lambda covered=covered: stored(floor, covered)))
            old.append(talks[1].carried_compaction())
    yield from _times(young, old, floors, before)
    ratio = max(size / old[-1].shown for size in sizes(path, "old"))
    yield Row(
        "bytes of a stored compaction, at most",
        f"{max(sizes(path, 'old')):,}",
        f"what it shows to the model: {old[-1].shown:,} (at first {shown[0]:,})",
        ratio,
        "× what is shown",
        2.0,
    )


def _times(young: list[Made], old: list[Made], floors: list[Cost], before: int) -> Iterator[Row]:
    first = medians([made.cost for made in young])
    later = medians([made.cost for made in old])
    named = f"covered messages as JSON, compressed and stored: {medians(floors)}"
    yield Row(f"compaction, from the {YOUNG}th on", str(first), named, first.cpu, "ms CPU", 60.0)
    yield Row(f"compaction, from the {before:,}th on", str(later), named, later.cpu, "ms CPU", 60.0)
    yield Row(
        f"compaction, from the {before:,}th on against the {YOUNG}th",
        str(later),
        f"the same, from the {YOUNG}th on: {first}",
        later.cpu / first.cpu,
        "×",
        1.1,
    )


def main() -> None:
    """Print the rows."""
    with tempfile.TemporaryDirectory() as name:
        for row in rows(Path(name), long="--long" in sys.argv):
            met = "met " if row.is_met else "miss"
            print(
                f"{met} {row.what}: {row.figure:.3g} {row.unit} (goal {row.goal:g}); {row.ours}; floor: {row.floor}"
            )


if __name__ == "__main__":
    main()
