"""Every bit of the files that are derived from a log, turned over one by one, before every command.

python -m tests.faults.derived_bits --jobs 8      # all: some ten hours of one processor
python -m tests.faults.derived_bits --every 97    # a sample

Each bit of the schema page of each file, and every 7th of one page of each other kind; of the gap of a
page, which SQLite never reads, every 97th.
"""

import argparse
import collections
import logging
import multiprocessing
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

import refold
from refold.application.errors import LogError
from refold.application.maintenance.verifying import Verification
from tests.support.fake_embedders import DigestEmbedder

SECRET = "quokka-4711"
ERASED = b"quokka"
"""What must not stand in any file after the erasure: indices hold words."""
SECRET_AT = 6
"""The position of the message that is erased."""
FILES = ("agent.views.db", "agent.recall.db", "agent.vectors.db")
LOG = "agent.db"
QUESTION = "which port has the second server"
RIGHT, REFUSED = "right", "refused with an error of the log"
WRONG, UNTYPED, LEFT = "WRONG AND SILENT", "AN ERROR OF SOMETHING ELSE", "ERASED TEXT IS LEFT"
BAD = (REFUSED, WRONG, UNTYPED, LEFT)
"""The log is intact here: so nothing may be refused either."""
SCHEMA = "schema"
OF_LOG = ("log", "snapshots", "anchor")

Command = Callable[[refold.Memory], object]


class Area(NamedTuple):
    """A page of a file."""

    file: str
    kind: str
    """What lies on it: a table or an index, and which part of its tree."""
    begin: int
    end: int
    gap: range
    """Bytes between the cells and what points to them."""


class Flip(NamedTuple):
    """One bit, and the command that comes after it."""

    area: Area
    bit: int
    """Counted from the beginning of the file."""
    command: str


class Outcome(NamedTuple):
    """What a command gave after a flip."""

    flip: Flip
    kind: str
    detail: str = ""


def opened(folder: Path) -> refold.Memory:
    """The memory in a folder, with an embedder."""
    return refold.open(folder / LOG, window=20_000, telemetry=False, embedder=DigestEmbedder())


def make_store(folder: Path) -> Path:
    """A closed store with pages of every kind in its derived files."""
    place = folder / "store"
    place.mkdir()
    with opened(place) as memory:
        one, two = memory.conversation("one"), memory.conversation("two")
        _talk(one, 30)
        one.append({"role": "user", "content": "a long text " * 2_500})
        assert one.compact().outcome == "performed"
        one.label("servers")
        _talk(two, 3)
        answers(memory)
        one.append({"role": "user", "content": "the newest of all"})
        answers(memory)
    return place


def _talk(conversation: refold.ConversationMemory, turns: int) -> None:
    for number in range(turns):
        secret = f" {SECRET}" if (conversation.thread_id, number) == ("one", SECRET_AT // 2) else ""
        conversation.append(
            [
                {"role": "user", "content": f"server {number} has port {number * 17}{secret}"},
                {"role": "assistant", "content": f"noted: {number}, " + f"word{number} " * 20},
            ]
        )


def _messages(memory: refold.Memory) -> object:
    return [memory.conversation(t).messages() for t in ("one", "two")]


def _summaries(memory: refold.Memory) -> object:
    conversation = memory.conversation("one")
    return [
        tuple(conversation.summaries()),
        tuple(conversation.compactions()),
        conversation.topics(),
    ]


def _search(memory: refold.Memory) -> object:
    found = memory.search(QUESTION, limit=9)
    if found.notice is not None:  # It says itself that it is of a part only: vectors are missing.
        memory.embed()
        found = memory.search(QUESTION, limit=9)
    return found


READING: Mapping[str, Command] = {
    "conversations": lambda memory: memory.conversations(),
    "messages": _messages,
    "read": lambda memory: memory.conversation("one").read(3),
    "summaries": _summaries,
    "notes": lambda memory: memory.notes(),
    "recall": lambda memory: memory.conversation("one").recall(QUESTION, mode="keyword"),
    "search": _search,
    "embed": lambda memory: (memory.embed(), _search(memory))[1],
}


def answers(memory: refold.Memory) -> Mapping[str, object]:
    """What each reading command gives."""
    memory.embed()
    return {name: read(memory) for name, read in READING.items()}


class Judge:
    """Knows what is right."""

    def __init__(self, store: Path, folder: Path) -> None:
        self.store = store
        whole = Path(shutil.copytree(store, folder / "whole"))
        for name in FILES:
            (whole / name).unlink()
        with opened(whole) as memory:
            self.right = answers(memory)
            self.replayed = memory.replay()

    def outcome(self, flip: Flip, folder: Path) -> Outcome:
        """Turn the bit over in a copy of the store, and give the command."""
        copy = Path(shutil.copytree(self.store, folder / "copy"))
        try:
            turn(copy / flip.area.file, flip.bit)
            return Outcome(flip, *self._judged(copy, flip))
        finally:
            shutil.rmtree(copy)

    def _judged(self, copy: Path, flip: Flip) -> tuple[str, str]:
        try:
            with opened(copy) as memory:
                found = self._found(memory, flip)
        except LogError as error:
            return REFUSED, repr(error)
        except Exception as error:  # Whatever it is: it is what is looked for.
            return UNTYPED, repr(error)
        if found[0] == RIGHT and flip.command == "erase":
            left = [f.name for f in copy.iterdir() if ERASED in f.read_bytes()]
            return (LEFT, ", ".join(left)) if left else found
        return found

    def _found(self, memory: refold.Memory, flip: Flip) -> tuple[str, str]:
        match flip.command:
            case "ask":
                return self._asked(memory, flip.bit)
            case "erase":
                report = memory.conversation("one").erase(SECRET_AT)
                return (RIGHT, "") if report.complete else (WRONG, f"{report}")
            case "replay":
                replayed = memory.replay()
                return (RIGHT, "") if replayed == self.replayed else (WRONG, f"{replayed}")
            case "verify":
                return _verified(memory.verify())
            case _:
                found = memory.verify(repair=True)
                if not found.ok:
                    return WRONG, f"{found.damage}"
                return self._asked(memory, flip.bit)

    def _asked(self, memory: refold.Memory, number: int) -> tuple[str, str]:
        """All questions, each time another one first: it meets the damage."""
        names = list(READING)
        first = number % len(names)
        for name in (*names[first:], *names[:first]):
            found = READING[name](memory)
            if found != self.right[name]:
                return WRONG, f"{name}: {found}"[:300]
        return RIGHT, ""


def _verified(found: Verification) -> tuple[str, str]:
    """Wrong is only to call damaged what is not: the log, or a file of ours that of somebody else."""
    wrong = [d for d in found.damage if d.place in OF_LOG or d.kind == "foreign"]
    return (WRONG, f"{wrong}") if wrong else (RIGHT, "")


UNREAD = 97
COMMANDS = ("ask", "verify", "repair", "replay", "erase")


def turn(path: Path, bit: int) -> None:
    """Turn one bit of a file over."""
    with path.open("r+b") as file:
        file.seek(bit // 8)
        [byte] = file.read(1)
        file.seek(bit // 8)
        file.write(bytes([byte ^ (1 << bit % 8)]))


def areas(store: Path) -> Iterator[Area]:
    """The schema page of each file, and one page of each other kind."""
    for name in FILES:
        with closing(sqlite3.connect(store / name)) as connection:
            (size,) = connection.execute("PRAGMA page_size").fetchone()
            (count,) = connection.execute("PRAGMA page_count").fetchone()
            rows = connection.execute("SELECT pageno, name, pagetype FROM dbstat ORDER BY pageno")
            pages = {page: f"{table} {part}" for page, table, part in rows}
        kinds: dict[str, int] = {}
        for page in range(2, count + 1):
            kinds.setdefault(pages.get(page, "free list"), page)
        content = (store / name).read_bytes()
        for kind, page in {SCHEMA: 1, **kinds}.items():
            begin = (page - 1) * size
            yield Area(
                name, kind, begin, begin + size, gap_of(content, begin, 100 if page == 1 else 0)
            )


def gap_of(content: bytes, begin: int, header: int) -> range:
    """The bytes of a page of a tree that belong to no cell; none of any other page."""
    kind = content[begin + header]
    if kind not in (2, 5, 10, 13):
        return range(0)
    cells, first = (int.from_bytes(content[begin + header + at :][:2], "big") for at in (3, 5))
    length = 8 if kind in (10, 13) else 12
    return range(begin + header + length + 2 * cells, begin + first)


def flips(store: Path, every: int, *, schema: int, others: int) -> Iterator[Flip]:
    """Every so-manieth bit of the schema pages and of the others, before each command."""
    turned = 0
    for area in areas(store):
        step = schema if area.kind == SCHEMA else others
        read = [bit for bit in range(area.begin * 8, area.end * 8) if bit // 8 not in area.gap]
        gap = range(area.gap.start * 8, area.gap.stop * 8, UNREAD)
        for bit in (*read[::step], *gap):
            for command in COMMANDS:
                turned += 1
                if turned % every == 0:
                    yield Flip(area, bit, command)


def _judge_all(store: Path, wanted: Sequence[Flip]) -> list[Outcome]:
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        judge = Judge(store, Path(name))
        return [judge.outcome(flip, Path(name)) for flip in wanted]


def run(wanted: Sequence[Flip], store: Path, jobs: int = 1) -> Iterator[Outcome]:
    """What each of them gave."""
    parts = [wanted[at : at + 500] for at in range(0, len(wanted), 500)]
    judge = partial(_judge_all, store)
    if jobs == 1:
        for part in parts:
            yield from judge(part)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for outcomes in pool.imap_unordered(judge, parts):
            yield from outcomes


def main() -> int:
    """Print what came of the flips, by file and kind of page; the exit code says whether any was bad."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="of all flips, only every so-manieth")
    parser.add_argument(
        "--schema", type=int, default=1, help="every so-manieth bit of a schema page"
    )
    parser.add_argument("--others", type=int, default=7, help="the same of the other pages")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    counts = collections.Counter[tuple[str, str, str]]()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        store = make_store(Path(name))
        wanted = list(flips(store, given.every, schema=given.schema, others=given.others))
        print(f"{len(wanted)} flips", flush=True)
        for outcome in run(wanted, store, given.jobs):
            area = outcome.flip.area
            counts[area.file, area.kind, outcome.kind] += 1
            if outcome.kind in BAD:
                print(outcome, flush=True)
    for (file, kind, came), count in sorted(counts.items()):
        print(f"{file:18} {kind:40} {came:34} {count:7}")
    bad = sum(count for (_, _, came), count in counts.items() if came in BAD)
    print(f"{sum(counts.values())} flips, {bad} of them bad")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
