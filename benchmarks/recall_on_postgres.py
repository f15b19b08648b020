"""Recall on a PostgreSQL server beside recall in a file: how fast both fold one log, and how fast they find.

    python benchmarks/recall_on_postgres.py ADDRESS [--messages 10000] [--others 10000] [--vectors 24000]

ADDRESS is that of an empty database. One conversation has ``--messages`` messages, and ten more have ``--others``
together. Both indexes follow the log on the server, in turns, and every answer is compared. Times are those of a clock.
"""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import islice, product
from pathlib import Path
from typing import TypeVar

import numpy as np
from recall_index import BATCH, START, VOCABULARY, WORDS

from refold.application.ports.recall_index import Filters, RecallIndex
from refold.application.ports.stemmer import stem_with
from refold.application.ports.vectors import VectorStore
from refold.application.recall.tokens import tokens_of
from refold.domain.events import MessageAppended
from refold.domain.messages import Message
from refold.infrastructure.postgres.connections import Address
from refold.infrastructure.postgres.log import PostgresLog
from refold.infrastructure.postgres.passage_index import PostgresRecallIndex
from refold.infrastructure.postgres.vector_store import PostgresVectorStore
from refold.infrastructure.recall.recall_index import SQLiteRecallIndex
from refold.infrastructure.recall.stemmer import SNOWBALL
from refold.infrastructure.recall.vectors import SQLiteVectorStore

DIMENSION = 384
QUESTIONS = 100
NEAR_QUESTIONS = 20
LONG = "thread-long"
SCOPES = (
    ("the long conversation", Filters(LONG)),
    ("its user's messages", Filters(LONG, roles=frozenset({"user"}))),
    ("a short conversation", Filters("thread-0")),
    ("all", Filters()),
)
Answer = TypeVar("Answer")


def main() -> None:
    stem_with(SNOWBALL)
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("address")
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--others", type=int, default=10_000)
    parser.add_argument("--vectors", type=int, default=24_000)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(PostgresLog(Address.of(given.address))) as log,
        closing(PostgresRecallIndex(log.store, log)) as there,
        closing(SQLiteRecallIndex(Path(folder) / "a.recall.db", log)) as here,
    ):
        texts = made_texts()
        write(log, LONG, list(islice(texts, given.messages)))
        for number in range(10):
            write(log, f"thread-{number}", list(islice(texts, given.others // 10)))
        fold(there, here)
        find(there, here, list(islice(texts, QUESTIONS)))
        near(log, there, here, Path(folder), given.vectors)


def made_texts() -> Iterator[str]:
    """Texts of made-up words, drawn as in a language."""
    draw = random.Random(1)
    words = [
        "".join(letters) for letters in islice(product(*["bdgklmnprstz", "aeiou"] * 3), VOCABULARY)
    ]
    draw.shuffle(words)
    weights = [1 / (rank + 10) for rank in range(VOCABULARY)]
    while True:
        yield " ".join(draw.choices(words, weights, k=WORDS))


def write(log: PostgresLog, thread_id: str, texts: Sequence[str]) -> None:
    for start in range(0, len(texts), BATCH):
        events = [
            MessageAppended(
                position=position,
                message_id=f"{thread_id}-{position}",
                message=Message(role="assistant" if position % 2 else "user", content=text),
                tokens=WORDS,
                written_at=START,
            )
            for position, text in enumerate(texts[start : start + BATCH], start)
        ]
        log.transact(thread_id, lambda _, events=events: events, at=START)  # type: ignore[misc]


def fold(there: PostgresRecallIndex, here: SQLiteRecallIndex) -> None:
    for name, index in (("server", there), ("file", here)):
        count, seconds = timed(index.rebuild)
        print(f"{name}: {count / seconds:,.0f} passages/s folded, the log read from the server")


def find(there: RecallIndex, here: RecallIndex, texts: Sequence[str]) -> None:
    questions = [tokens_of(" ".join(text.split()[:5])) for text in texts]
    for name, scope in SCOPES:
        times: tuple[list[float], list[float]] = ([], [])
        for question in questions:
            found, first = timed(lambda q=question, s=scope: there.find(q, s))  # type: ignore[misc]
            expected, second = timed(lambda q=question, s=scope: here.find(q, s))  # type: ignore[misc]
            assert list(found.candidates) == list(expected.candidates)
            assert found.frequencies == expected.frequencies
            times[0].append(first)
            times[1].append(second)
        print(f"words, {name}: server {show(times[0])}, file {show(times[1])}")


def near(
    log: PostgresLog,
    there: PostgresRecallIndex,
    here: SQLiteRecallIndex,
    folder: Path,
    most: int,
) -> None:
    on_server = PostgresVectorStore(log.store, there, answer=there.answer)
    compared = PostgresVectorStore(log.store, there)
    in_file = SQLiteVectorStore(folder / "a.vectors.db", here)
    draw = np.random.default_rng(1)
    centres = draw.normal(size=(50, DIMENSION))

    def vector() -> list[float]:
        near_by: list[float] = (
            centres[draw.integers(50)] + 0.3 * draw.normal(size=DIMENSION)
        ).tolist()
        return near_by

    digests = sorted(there.digests())[:most]
    for start in range(0, len(digests), BATCH):
        made = {digest: vector() for digest in digests[start : start + BATCH]}
        on_server.add("m", made)
        in_file.add("m", made)
    stores = (("pgvector", on_server), ("numpy", compared), ("file", in_file))
    compare(stores, vector, f"{len(digests):,} vectors of {DIMENSION}")
    seconds = timed(lambda: on_server.settle("m"))[1]
    print(f"settled in {seconds:.1f} s")
    compare(stores, vector, "settled")


def compare(
    stores: Sequence[tuple[str, VectorStore]], vector: Callable[[], list[float]], title: str
) -> None:
    for name, scope in SCOPES:
        times: dict[str, list[float]] = {store: [] for store, _ in stores}
        same = 0.0
        for store, one in stores:
            one.nearest("m", vector(), scope, 50)
            del store
        for _ in range(NEAR_QUESTIONS):
            query, found = vector(), []
            for store, one in stores:
                nearest, seconds = timed(lambda o=one, q=query, s=scope: o.nearest("m", q, s, 50))  # type: ignore[misc]
                times[store].append(seconds)
                found.append({hit.number for hit in nearest})
            same += len(found[0] & found[1]) / max(len(found[1]), 1) / NEAR_QUESTIONS
            assert found[1] == found[2]
        shown = ", ".join(f"{store} {show(taken)}" for store, taken in times.items())
        print(f"{title}, {name}: {shown}; pgvector finds {same:.3f} of the others' best 50")


def timed(act: Callable[[], Answer]) -> tuple[Answer, float]:
    start = time.perf_counter()
    answer = act()
    return answer, time.perf_counter() - start


def show(times: Sequence[float]) -> str:
    cut = statistics.quantiles(times, n=100)
    return f"p50 {cut[49] * 1_000:.1f} p95 {cut[94] * 1_000:.1f} ms"


if __name__ == "__main__":
    main()
