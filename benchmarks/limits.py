"""How far one log goes: one very long conversation, and very many short ones.

    python benchmarks/limits.py [--small] [--markdown FILE]

Writes ``benchmarks/results/limits.md``. It takes some twenty minutes and 2 GB of disk; with
``--small`` everything is a hundredth as large. All times are those of the processor. Each part runs in a process of
its own, so that its memory is its own.
"""

import argparse
import os
import platform
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from rows_compact import messages

import refold

SHORT, ONCE, LONG, MANY = 1_000_000, 3_500, 300_000, 100_000
"""Short messages of a conversation and of a compaction, messages of the compacted one, and conversations."""
BATCH = 500
TURN = 8
WINDOW = 32_000


def seconds(act: Callable[[], object]) -> float:
    """Return the seconds of the processor that something takes."""
    begin = time.process_time()
    act()
    return time.process_time() - begin


def shown(taken: float) -> str:
    """Return a time with its unit."""
    number, unit = (taken * 1e3, "ms") if taken < 1 else (taken, "s")
    return f"{number:,.0f} {unit}" if number >= 10 else f"{number:.2g} {unit}"


def memory_used() -> str:
    """Return the most memory that this process had."""
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB"


def megabytes(path: Path) -> str:
    """Return the size of a file and of its write-ahead log."""
    whole = sum(p.stat().st_size for p in path.parent.glob(path.name + "*") if p.suffix != ".lock")
    return f"{whole / 1e6:,.0f} MB"


def appends(conversation: refold.ConversationMemory, count: int = 60) -> float:
    """Return the median seconds of an append."""
    said: dict[str, Any] = {"role": "user", "content": "Please go on with the next part."}
    return median(seconds(lambda: conversation.append(said)) for _ in range(count))


def row(tried: str, *results: str) -> str:
    """Return a row of the table."""
    return f"| {tried} | {'; '.join(results)} |"


def verified(memory: refold.Memory) -> str:
    """Verify a log and return its row."""
    taken = seconds(lambda: memory.verify().ok or sys.exit("damaged"))
    return row("the same, `verify`", f"{shown(taken)}, {memory_used()} of memory")


def short_texts(first: int) -> list[dict[str, Any]]:
    """Return the next short messages."""
    return [
        {
            "role": ("user", "assistant")[n % 2],
            "content": f"message {n}, a few words on part {n % 97}",
        }
        for n in range(first, first + BATCH)
    ]


def short_messages(path: Path, count: int) -> Iterator[str]:
    """One conversation of short messages, which is never compacted."""
    batches: list[float] = []
    with refold.open(path, scrub_megabytes=0) as memory:
        append = memory.conversation("long").append
        for first in range(0, count, BATCH):
            said = short_texts(first)
            batches.append(seconds(partial(append, said, recorded=True)))
    whole, at_first, at_last = sum(batches), median(batches[:9]), median(batches[-9:])
    yield row(
        f"{count:,} messages of about 40 characters in one conversation, {BATCH} in each append",
        f"{shown(whole)} in all ({count / whole:,.0f} a second)",
        f"{shown(at_first)} a batch at the beginning and {shown(at_last)} at the end",
        f"{path.stat().st_size // count} bytes a message in the log",
    )


def short_messages_again(path: Path, count: int) -> Iterator[str]:
    """The same conversation in a new process."""
    with refold.open(path, scrub_megabytes=0) as memory:
        conversation = memory.conversation("long")
        asked = {"role": "user", "content": "Are you there?"}
        first = seconds(partial(conversation.append, asked))
        steady, used = appends(conversation), memory_used()
        conversation.read(0)
        some = range(0, count, max(1, count // 50))
        read = median(seconds(partial(conversation.read, position)) for position in some)
        yield row(
            "the same, never compacted, opened again",
            f"first append {shown(first)}, each later one {shown(steady)}",
            f"reading any message {shown(read)}",
            f"{used} of memory",
        )
        yield verified(memory)


def at_once(path: Path, count: int) -> Iterator[str]:
    """One compaction of many short messages."""
    with refold.open(path, window=200_000, summariser="extractive", scrub_megabytes=0) as memory:
        conversation = memory.conversation("once")
        for first in range(0, max(count, BATCH), BATCH):
            conversation.append(short_texts(first), recorded=True)
        taken = seconds(partial(conversation.compact, force=True))
        yield row(f"one compaction of {max(count, BATCH):,} such messages, by code", shown(taken))


def compacted(path: Path, count: int) -> Iterator[str]:
    """One conversation of a coding session that is compacted as it grows."""
    source, made, costs = messages(), 0, list[float]()
    with refold.open(path, window=WINDOW, summariser="extractive", scrub_megabytes=0) as memory:
        conversation = memory.conversation("work")
        for _ in range(0, count, TURN):
            conversation.append(list(islice(source, TURN)), recorded=True)
            begin = time.process_time()
            found = conversation.context().compactions
            taken = time.process_time() - begin
            if any(one.outcome == "performed" for one in found):
                made, costs = made + 1, [*costs[-40:], taken]
        append = appends(conversation)
        request = median(seconds(conversation.context) for _ in range(20))
        yield row(
            f"{count:,} messages of a coding session, compacted as it grew",
            f"{made:,} compactions in a window of {WINDOW:,} tokens, {shown(median(costs))} each at the end",
            f"append {shown(append)}, request {shown(request)}",
            f"{memory_used()} of memory; log {megabytes(path)}",
        )
        memory.index()
        words = ("parser", "cache", "queue", "socket", "widget")
        asked = [f"which port did I say for the {word}? {n}" for n in range(5) for word in words]
        recalls = [seconds(partial(conversation.recall, question)) for question in asked]
        yield row("the same, recall", f"{shown(median(recalls[5:]))}")


def compacted_again(path: Path, count: int) -> Iterator[str]:
    """The same conversation in a new process."""
    del count
    with refold.open(path, window=WINDOW, scrub_megabytes=0) as memory:
        cold = seconds(memory.conversation("work").context)
        yield row(
            "the same, opened again",
            f"first request {shown(cold)}",
            f"{memory_used()} of memory",
        )
        yield verified(memory)


def many(path: Path, count: int) -> Iterator[str]:
    """Many conversations of two messages."""
    costs: list[float] = []
    with refold.open(path, scrub_megabytes=0) as memory:
        for number in range(count):
            asked = {"role": "user", "content": f"question {number}"}
            answer = {"role": "assistant", "content": "An answer."}
            append = memory.conversation(f"user-{number}").append
            costs.append(seconds(partial(append, [asked, answer])))
    some = min(1_000, count // 4)
    at_first, at_last = median(costs[:some]), median(costs[-some:])
    yield row(
        f"{count:,} conversations of two messages, one append for each",
        f"{shown(at_first)} an append at the beginning and {shown(at_last)} at the end",
        f"log {megabytes(path)}",
    )


def many_again(path: Path, count: int) -> Iterator[str]:
    """The same log in a new process."""
    begin = time.process_time()
    memory = refold.open(path, scrub_megabytes=0)
    opened = time.process_time() - begin
    with memory:
        asked = {"role": "user", "content": "Hello."}
        new = seconds(partial(memory.conversation("new").append, asked))
        first = seconds(memory.conversations_page)
        page = median(seconds(memory.conversations_page) for _ in range(20))
        every = seconds(lambda: sum(1 for _ in memory.iter_conversations()))
        yield row(
            "the same, opened again",
            f"opening {shown(opened)}, first append {shown(new)}",
            f"first list {shown(first)} (every event is folded once), each later page {shown(page)}",
            f"all {count:,} {shown(every)}; {memory_used()} of memory",
        )
        yield verified(memory)


PARTS: dict[str, tuple[Callable[[Path, int], Iterator[str]], str, int]] = {
    "short": (short_messages, "short.db", SHORT),
    "short-again": (short_messages_again, "short.db", SHORT),
    "once": (at_once, "once.db", ONCE),
    "compacted": (compacted, "compacted.db", LONG),
    "compacted-again": (compacted_again, "compacted.db", LONG),
    "many": (many, "many.db", MANY),
    "many-again": (many_again, "many.db", MANY),
}


def page() -> str:
    """Return the beginning of the page."""
    return f"""# How far one log goes

Made by `python benchmarks/limits.py --markdown FILE` with CPython {platform.python_version()} and SQLite
{sqlite3.sqlite_version} on {os.cpu_count()} cores, which did other work as well. All times are those of the
processor. They show orders of magnitude. Memory is the most that the process had.

| tried | result |
|---|---|"""


def main() -> None:
    """Print the rows, or those of one part."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--small", action="store_true")
    options.add_argument("--markdown", type=Path, metavar="FILE")
    options.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    options.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.part:
        measure, name, count = PARTS[given.part]
        for line in measure(given.folder / name, count // 100 if given.small else count):
            print(line, flush=True)
        return
    rows = [page()]
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        for part in PARTS:
            command = [
                sys.executable,
                __file__,
                "--part",
                part,
                "--folder",
                folder,
                *["--small"] * given.small,
            ]
            ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            print(ended.stdout, end="", flush=True)
            rows += ended.stdout.splitlines()
    if given.markdown:
        given.markdown.write_text("\n".join(rows) + "\n", "utf-8")


if __name__ == "__main__":
    main()
