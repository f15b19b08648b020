"""Rows of the table of speed: recall by words, and turns with standing recall.

    python benchmarks/rows_recall.py [--long]

Messages and questions are those of the sets of ``recall_sets.py``, the messages over and over with other numbers
in them, or made up where these sets are not there. The floor of a search is FTS5 over the same texts in the same
run: the tokens of the question joined by OR, the best five rows read. The floor of a turn is raw sqlite3: the
question and the answer, each inserted and synced, and the newest rows read as JSON between them.
"""

import argparse
import json
import random
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice
from pathlib import Path

import recall_sets
from recall import append
from recall_sets import Said
from rows import Row, cost, medians, quantile
from rows_rebuild import recordings

import refold
from refold.application.conversation.transcripts import RecordedMessage
from refold.application.recall.recall_query import ask
from refold.infrastructure.transcripts.read_transcript import read_transcript

Fill = Callable[[refold.ConversationMemory], object]

QUESTIONS = 120
WARM = 10
"""Questions that are asked before."""
TURNS = 40
TAIL = 48
"""Rows that a raw turn reads."""
MOST_P50, MOST_P95, MOST_OF_MANY, MOST_OF_LONG = 3.0, 6.0, 10.0, 30.0
"""Milliseconds of CPU of a search."""
TURN_GOAL, TURN_FACTOR = 4.0, 1.3
"""Milliseconds of CPU that a turn may take above this multiple of its floor."""


def rows(folder: Path, *, long: bool) -> Iterator[Row]:
    """Yield the rows."""
    yield from searching(folder, 10_000, 1, (MOST_P50, MOST_P95))
    yield from searching(folder, 100_000 if long else 10_000, 1_000, (MOST_OF_MANY, None))
    if long:
        yield from searching(folder, 100_000, 1, (MOST_OF_LONG, None))
    messages = 10_000 if long else 2_000
    yield turn(folder, f"{messages:,} messages", lambda c: append(c, texts(messages)), questions())
    if said := recorded(messages):
        # What people ask for has more words, of which more are in many messages.
        what = f"{len(said):,} recorded messages, with what people asked for"
        yield turn(folder, what, lambda c: c.append_recorded(said), asked_by_people(said))


def searching(
    folder: Path, messages: int, conversations: int, goals: tuple[float, float | None]
) -> Iterator[Row]:
    """Search one conversation, or all of several, against FTS5."""
    path = folder / f"{messages}-{conversations}.db"
    said = list(texts(messages))
    with closing(full_text_of(said)) as floor, refold.open(path, telemetry=False) as memory:
        each = messages // conversations
        for number in range(conversations):
            append(memory.conversation(f"t{number}"), said[number * each : (number + 1) * each])
        memory.index()
        search: Callable[[str], object] = memory.search
        if conversations == 1:
            search = memory.conversation("t0").recall
        for question in islice(questions(), WARM):
            search(question)
        found = [
            (cost(lambda q=q: search(q)).cpu, cost(lambda q=q: full_text(floor, q)).cpu)  # type: ignore[misc]
            for q in islice(questions(), WARM, WARM + QUESTIONS)
        ]
    ours, theirs = zip(*found, strict=True)
    where = f"in {messages:,} messages"
    where += f" of {conversations:,} conversations" if conversations > 1 else ""
    for share, goal in zip((0.5, 0.95), goals, strict=True):
        if goal is not None:
            yield Row(
                what=f"recall by words {where}, p{share * 100:.0f}",
                ours=f"CPU {quantile(ours, share):.3g} ms",
                floor=f"FTS5, the best five: CPU {quantile(theirs, share):.3g} ms",
                figure=quantile(ours, share),
                unit="ms CPU",
                goal=goal,
            )


def texts(count: int) -> Iterator[Said]:
    """Yield so many messages."""
    if not recall_sets.DATA.is_dir():
        yield from made_up(count)
        return
    talks = [*recall_sets.locomo(), *recall_sets.longmemeval()]
    said = [one for talk in talks for one in talk.said]
    for number, one in enumerate(islice(cycle(said), count)):
        at = said[0].at + timedelta(minutes=7 * number)
        yield Said(one.role, f"{one.text} ({number})", at)


def made_up(count: int) -> Iterator[Said]:
    """Yield messages of words of which a few are in every other message."""
    draw = random.Random(1)
    words = [f"w{number}" for number in range(20_000)]
    weights = [1 / (rank + 10) for rank in range(len(words))]
    for number in range(count):
        text = " ".join(draw.choices(words, weights, k=40))
        at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=7 * number)
        yield Said("assistant" if number % 2 else "user", text, at)


def questions() -> Iterator[str]:
    """Yield questions without end."""
    draw = random.Random(2)
    if recall_sets.DATA.is_dir():
        talks = [*recall_sets.locomo(), *recall_sets.longmemeval()]
        asked = [one.text for talk in talks for one in talk.asked]
    else:
        asked = [" ".join(f"w{draw.randrange(20, 2_000)}" for _ in range(5)) for _ in range(500)]
    draw.shuffle(asked)
    yield from cycle(asked)


def full_text_of(said: Sequence[Said]) -> sqlite3.Connection:
    """Return a database that finds these texts by their words."""
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE words USING fts5(text, tokenize='porter')")
    db.executemany("INSERT INTO words VALUES (?)", ((one.text,) for one in said))
    return db


def full_text(db: sqlite3.Connection, question: str) -> object:
    """Find the best texts for a question."""
    sought = " OR ".join(f'"{token}"' for token in ask(question).tokens) or '""'
    query = "SELECT text FROM words WHERE words MATCH ? ORDER BY rank LIMIT 5"
    return db.execute(query, (sought,)).fetchall()


def recorded(most: int) -> list[RecordedMessage]:
    """Return messages of recorded coding sessions, or none where these are not there."""
    files = (read_transcript(file).conversations for file in recordings())
    every = (message for found in files for one in found for message in one.messages)
    return list(islice(every, most))


def asked_by_people(said: Sequence[RecordedMessage]) -> Iterator[str]:
    """Yield what people asked for in recordings, without end."""
    contents = [one.message.content for one in said if one.message.role == "user"]
    asked = [content for content in contents if isinstance(content, str) and len(content) > 5]
    random.Random(2).shuffle(asked)
    return cycle(asked)


def turn(folder: Path, what: str, fill: Fill, asked: Iterator[str]) -> Row:
    """Play turns with standing recall and without, each against a raw turn."""
    folder = Path(tempfile.mkdtemp(dir=folder))
    with closing(RawTurns(folder / "raw.db")) as raw:
        acts: list[Callable[[str], object]] = [raw.play]
        memories = [
            refold.open(folder / f"turns-{room}.db", telemetry=False, standing_recall=room)
            for room in (400, 0)
        ]
        acts += [Turns(memory, fill).play for memory in memories]
        for act in acts:
            act(next(asked))
        found = [
            [cost(lambda: act(question)) for act in acts]  # noqa: B023 (called at once)
            for question in islice(asked, TURNS)
        ]
        for memory in memories:
            memory.close()
    floor, ours, plain = (medians(one) for one in zip(*found, strict=True))
    return Row(
        what=f"a turn with standing recall after {what}",
        ours=f"{ours}; without recall {plain}",
        floor=f"raw sqlite3, two synced inserts and {TAIL} rows read: {floor}",
        figure=ours.cpu - TURN_FACTOR * floor.cpu,
        unit=f"ms CPU above {TURN_FACTOR} x the floor",
        goal=TURN_GOAL,
    )


class Turns:
    """A conversation of which most is out of sight."""

    def __init__(self, memory: refold.Memory, fill: Fill) -> None:
        self.conversation = memory.conversation("t")
        fill(self.conversation)
        self.conversation.compact(force=True)
        memory.index()

    def play(self, question: str) -> None:
        """Append a question, make the request, and append an answer."""
        self.conversation.append({"role": "user", "content": question})
        self.conversation.context()
        self.conversation.append({"role": "assistant", "content": f"I know: {question}"})


class RawTurns:
    """Messages as JSON in one table, synced at every commit."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode=WAL")
        self.connection.execute("PRAGMA synchronous=FULL")
        self.connection.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, message TEXT)")

    def play(self, question: str) -> None:
        """Insert a question, read the newest messages, and insert an answer."""
        for text in (question, f"I know: {question}"):
            message = json.dumps({"role": "user", "content": text})
            self.connection.execute("INSERT INTO messages (message) VALUES (?)", (message,))
            newest = "SELECT message FROM messages ORDER BY id DESC LIMIT ?"
            for (row,) in self.connection.execute(newest, (TAIL,)).fetchall():
                json.loads(row)

    def close(self) -> None:
        """Close the database."""
        self.connection.close()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--long", action="store_true")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        for row in rows(Path(folder), long=given.long):
            mark = "met" if row.is_met else "missed"
            print(f"{row.what}\n  {row.ours}\n  floor: {row.floor}")
            print(f"  {row.figure:,.3g} {row.unit}, goal {row.goal:,}: {mark}", flush=True)


if __name__ == "__main__":
    main()
