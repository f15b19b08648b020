"""What an append, a turn and a warm context cost, next to raw sqlite3 that stores and reads the same.

python benchmarks/rows_append.py [--long]
"""

import json
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from rows import Cost, Row, cost, interleaved, medians

import refold

TEXT = "The parser reads a token, looks at the next one and decides what it has to do: visit(self, node). "
LIVE = 60
"""Messages after the summary, which each request reads."""
ROUNDS = 120
SHARED_MEMORY = Path("/dev/shm")
Messages = Sequence[dict[str, object]]


class FixedSummariser:
    """A summary that costs nothing, so that only the memory is measured."""

    name = "fixed"

    async def summarise(self, request: refold.SummaryRequest) -> refold.SummaryDraft:
        """Return the same words each time."""
        text = f"Covers {len(request.messages)} messages."
        return refold.SummaryDraft(text=text, complete=True, model="-", prompt_fingerprint="-")


def said(number: int) -> dict[str, object]:
    """Return a message of about 1 kB."""
    role = "assistant" if number % 2 else "user"
    return {"role": role, "content": [{"type": "text", "text": f"{number} {TEXT * 10}"}]}


def turn(number: int) -> Messages:
    """Return three messages: the call of a tool, its result and the answer."""
    name = f"call_{number}"
    call = {"type": "tool_use", "id": name, "name": "read", "input": {"path": TEXT * 10}}
    result = {"type": "tool_result", "tool_use_id": name, "content": TEXT * 10}
    return [
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
        said(2 * number + 1),
    ]


class Raw:
    """The floor: the JSON of each message in one table, WAL, and a sync at every commit."""

    def __init__(self, path: Path, *, synchronous: str = "FULL") -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode=WAL")
        self.connection.execute(f"PRAGMA synchronous={synchronous}")
        self.connection.execute(
            "CREATE TABLE IF NOT EXISTS messages (stream TEXT, version INTEGER, state BLOB, "
            "PRIMARY KEY (stream, version))"
        )
        [[self.version]] = self.connection.execute("SELECT COALESCE(MAX(version), 0) FROM messages")

    def append(self, messages: Messages) -> None:
        """Store messages in one commit."""
        self.connection.execute("BEGIN IMMEDIATE")
        for message in messages:
            self.version += 1
            row = ("chat", self.version, json.dumps(message).encode())
            self.connection.execute("INSERT INTO messages VALUES (?,?,?)", row)
        self.connection.execute("COMMIT")

    def append_each(self, messages: Messages) -> None:
        """Store each message in a commit of its own."""
        for message in messages:
            self.append([message])

    def tail(self, count: int) -> list[object]:
        """Read and decode the newest messages."""
        rows = self.connection.execute(
            "SELECT state FROM messages WHERE stream='chat' AND version>? ORDER BY version",
            (self.version - count,),
        )
        return [json.loads(state) for (state,) in rows]


def fill(conversation: refold.ConversationMemory, raw: Raw, size: int) -> None:
    """Store ``size`` messages on both sides; all but the newest are summarised."""
    for first in range(0, size - LIVE, 900):
        batch = [said(n) for n in range(first, min(first + 900, size - LIVE))]
        conversation.append(batch, recorded=True)
        raw.append(batch)
    conversation.compact(all=True)
    batch = [said(n) for n in range(size - LIVE, size)]
    conversation.append(batch)
    raw.append(batch)


def show(ours: Cost, floor: Cost) -> tuple[str, str]:
    """Return the texts of both costs."""
    return str(ours), str(floor)


def appended(conversation: refold.ConversationMemory, raw: Raw) -> Iterator[Row]:
    """Yield the rows of one message and of a turn of three."""
    numbers = iter(range(10**6, 10**7, 2))
    pairs: list[tuple[Cost, Cost]] = []
    for _ in range(ROUNDS):
        message = said(next(numbers))
        floor = cost(partial(raw.append, [message]))
        pairs.append((cost(partial(conversation.append, message)), floor))
    ours, floor = (medians(each) for each in zip(*pairs, strict=True))
    texts = show(ours, floor)
    yield Row("append of one message, durable", *texts, ours.wall / floor.wall, "×", 1.5)
    yield Row("the same, CPU", *texts, ours.cpu / floor.cpu, "×", 2)
    turns: list[tuple[Cost, Cost, Cost]] = []
    for number in range(ROUNDS // 2):
        messages = turn(number)
        whole = cost(partial(conversation.append, messages))
        turns.append(
            (whole, cost(partial(raw.append_each, messages)), cost(partial(raw.append, messages)))
        )
    ours, each, one = (medians(found) for found in zip(*turns, strict=True))
    texts = show(ours, each)
    yield Row(
        "a turn of three in one commit, to three raw commits",
        *texts,
        ours.wall / each.wall,
        "×",
        0.45,
    )
    yield Row("the same to one raw commit", *show(ours, one), ours.wall / one.wall, "×", 1.5)


def contexts(conversation: refold.ConversationMemory, raw: Raw, live: int) -> Iterator[Row]:
    """Yield the row of a context whose conversation is in memory."""
    ours, floor = interleaved(conversation.context, partial(raw.tail, live), rounds=ROUNDS)
    yield Row(
        "context, warm, to reading the tail raw", *show(ours, floor), ours.wall / floor.wall, "×", 1
    )
    both: list[tuple[Cost, Cost]] = []
    for number in range(ROUNDS // 2):
        messages = turn(10**6 + number)

        def ask(messages: Messages = messages) -> None:
            conversation.append(messages)
            conversation.context()

        def read(messages: Messages = messages) -> None:
            raw.append(messages)
            raw.tail(live)

        floor = cost(read)
        both.append((cost(ask), floor))
    ours, floor = (medians(found) for found in zip(*both, strict=True))
    yield Row(
        "a turn: append of three and context", *show(ours, floor), ours.wall / floor.wall, "×", 1.3
    )


TOOLS = [
    {
        "name": f"tool_{number}",
        "description": TEXT,
        "input_schema": {
            "type": "object",
            "properties": {
                name: {
                    "type": "string",
                    "description": "The path of a file, or the name of a symbol in it.",
                }
                for name in ("path", "symbol", "pattern")
            },
            "required": ["path"],
        },
    }
    for number in range(20)
]


def contexts_of_an_agent(folder: Path) -> Iterator[Row]:
    """Yield the row of a context with all that an agent passes. The floor also decodes the JSON of the tools."""
    raw, text = Raw(folder / "raw-agent.db"), json.dumps(TOOLS)
    opened = refold.open(folder / "agent.db", window=1_000_000, summariser=FixedSummariser())
    with closing(raw.connection), opened as memory:
        conversation = memory.conversation("chat")
        ask = partial(conversation.context, model="claude-opus-4-5", system=TEXT * 30, tools=TOOLS)
        fill(conversation, raw, 1_000)
        ask()
        conversation.append(said(0))  # The answer records what was asked.
        raw.append([said(0)])

        def read() -> None:
            raw.tail(LIVE + 1)
            json.loads(text)

        ours, floor = interleaved(ask, read, rounds=ROUNDS)
    what = "context with a model, a system text and 20 tools, to reading tail and tools raw"
    yield Row(what, *show(ours, floor), ours.wall / floor.wall, "×", 2)


def rows(folder: Path, *, long: bool) -> Iterator[Row]:
    """Yield the rows at 1,000 messages, or at 1,000, 10,000 and 300,000."""
    for size in (1_000, 10_000, 300_000) if long else (1_000,):
        path, raw = folder / f"log-{size}.db", Raw(folder / f"raw-{size}.db")
        opened = refold.open(path, window=1_000_000, summariser=FixedSummariser())
        with closing(raw.connection), opened as memory:
            conversation = memory.conversation("chat")
            fill(conversation, raw, size)
            for _ in range(20):
                conversation.append(said(0))
                raw.append([said(0)])
            name = f"{size:,} messages: "
            for row in (*contexts(conversation, raw, LIVE + 20), *appended(conversation, raw)):
                yield row._replace(what=name + row.what)
    yield from contexts_of_an_agent(folder)
    yield from in_software_alone()


def in_software_alone() -> Iterator[Row]:
    """Yield the row of a turn in a file system in memory, which has nothing to sync."""
    if not SHARED_MEMORY.is_dir():
        return
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as place:
        raw = Raw(Path(place, "raw.db"))
        opened = refold.open(Path(place, "log.db"), window=1_000_000)
        with closing(raw.connection), opened as memory:
            conversation = memory.conversation("chat")
            found: list[tuple[Cost, Cost]] = []
            for number in range(2 * ROUNDS):
                messages = turn(number)
                floor = cost(partial(raw.append, messages))
                found.append((cost(partial(conversation.append, messages)), floor))
            ours, floor = (medians(each) for each in zip(*found[ROUNDS:], strict=True))
    yield Row(
        "software alone (no sync), a turn of three",
        *show(ours, floor),
        ours.wall / floor.wall,
        "×",
        3,
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        for row in rows(Path(place), long="--long" in sys.argv):
            print(row)
