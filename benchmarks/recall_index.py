"""The recall index by itself: how fast it is folded, what it takes, and how fast it finds.

    python benchmarks/recall_index.py [--messages 100000] [--conversations 100]

Short chat messages of made-up words, in as many conversations as are wanted. Times are those of the
processor, so that what else the machine does counts little.
"""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import islice, product
from pathlib import Path

from refold.application.ports.recall_index import Filters
from refold.application.ports.stemmer import stem_with
from refold.application.recall.tokens import tokens_of
from refold.domain.events import MessageAppended
from refold.domain.messages import Message
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.recall.recall_index import SQLiteRecallIndex
from refold.infrastructure.recall.stemmer import SNOWBALL

START = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = 20
"""In a message; drawn as in a language, a few of them in every other message."""
VOCABULARY = 20_000
QUESTIONS = 300
BATCH = 500


def main() -> None:
    stem_with(SNOWBALL)
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--conversations", type=int, default=100)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), given.messages, given.conversations)


def measure(folder: Path, messages: int, conversations: int) -> None:
    draw = random.Random(1)
    words = [
        "".join(letters) for letters in islice(product(*["bdgklmnprstz", "aeiou"] * 3), VOCABULARY)
    ]
    draw.shuffle(words)
    weights = [1 / (rank + 10) for rank in range(VOCABULARY)]

    def text() -> str:
        return " ".join(draw.choices(words, weights, k=WORDS))

    with (
        closing(SQLiteLog(folder / "a.db")) as log,
        closing(SQLiteRecallIndex(folder / "a.recall.db", log)) as index,
    ):
        for number in range(conversations):
            write(log, f"thread-{number:05d}", [text() for _ in range(messages // conversations)])
        scanned, folded = timed(lambda: list(log.scan())), timed(index.rebuild)
        size = (folder / "a.recall.db").stat().st_size
        print(f"{messages:,} messages in {conversations:,} conversations")
        print(
            f"folded {messages / folded:,.0f} messages/s (reading the log is {scanned / folded:.0%})"
        )
        print(f"{size / messages:,.0f} bytes a message")
        questions = [tokens_of(" ".join(draw.sample(words[20:2_000], 5))) for _ in range(QUESTIONS)]
        one = Filters(thread_id="thread-00000")
        for name, scope in (
            ("one conversation", one),
            ("its user's", one._replace(roles=frozenset({"user"}))),
            ("all", Filters()),
        ):
            times = [timed(lambda q=q, s=scope: index.find(q, s)) for q in questions]  # type: ignore[misc]
            print(f"{name}: p50 {ms(times, 50)}, p95 {ms(times, 95)}")
        after: list[float] = []
        for question in questions[:50]:
            write(log, "thread-00000", [text()])
            after.append(timed(lambda q=question: index.find(q, one)))  # type: ignore[misc]
        print(f"one conversation, right after an append: p50 {ms(after, 50)}, p95 {ms(after, 95)}")


def write(log: SQLiteLog, thread_id: str, texts: Sequence[str]) -> None:
    known = log.load(thread_id).state.length
    for start in range(0, len(texts), BATCH):
        events = [
            MessageAppended(
                position=position,
                message_id=f"{thread_id}-{position}",
                message=Message(role="assistant" if position % 2 else "user", content=text),
                tokens=WORDS,
                written_at=START + timedelta(minutes=position),
            )
            for position, text in enumerate(texts[start : start + BATCH], known + start)
        ]
        log.transact(thread_id, lambda _, events=events: events, at=START)  # type: ignore[misc]


def timed(act: Callable[[], object]) -> float:
    """Seconds of the processor."""
    start = time.thread_time()
    act()
    return time.thread_time() - start


def ms(times: Sequence[float], percentile: int) -> str:
    return f"{statistics.quantiles(times, n=100)[percentile - 1] * 1_000:.2f} ms"


if __name__ == "__main__":
    main()
