"""Single bits turned over in the files of a store: what is read then is right, or refused, never else.

python -m tests.support.bit_flips --flips 10000
"""

import argparse
import collections
import logging
import random
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import refold
from refold.application.errors import LogError

from .log_files import rows

LOG, WAL, VIEWS, VIEWS_WAL = "agent.db", "agent.db-wal", "agent.views.db", "agent.views.db-wal"
RECALL, RECALL_WAL = "agent.recall.db", "agent.recall.db-wal"
ANCHOR = "agent.db.anchor"
WEIGHTS = {
    "log": 8,
    "snapshots": 3,
    "wal": 5,
    "views": 4,
    "views wal": 1,
    "recall": 4,
    "recall wal": 1,
    "anchor": 1,
}
"""How often each is hit."""
RIGHT, REPAIRED, REFUSED = (
    "right",
    "right, and said to be repaired",
    "refused with an error of refold",
)
SILENT, UNTYPED = "WRONG AND SILENT", "AN ERROR OF SOMETHING ELSE"
BAD = (SILENT, UNTYPED)
VERSIONS = (3, 17, 40, 43)
QUESTIONS = ("file_7", "which line of file_20.py has 9 faults?", "the newest of all")

logging.getLogger("refold").addHandler(logging.NullHandler())


class Flip(NamedTuple):
    """One bit of one file."""

    area: str
    name: str
    byte: int
    bit: int


class Outcome(NamedTuple):
    """What reading everything gave after a flip."""

    flip: Flip
    kind: str
    detail: str = ""


def make_store(folder: Path) -> Path:
    """The files of a store that was killed: part of it is in the log, the newer part in its WAL."""
    living = folder / "living"
    living.mkdir()
    with _opened(living) as memory:
        _talk(memory, "one", 22)
        _talk(memory, "two", 3)
    with _opened(living) as memory:
        _talk(memory, "one", 2)
        _talk(memory, "three", 22)
        everything(memory)
        memory.conversation("two").append({"role": "user", "content": "the newest of all"})
        everything(memory)
        return Path(shutil.copytree(living, folder / "killed"))


def _talk(memory: refold.Memory, thread_id: str, turns: int) -> None:
    conversation = memory.conversation(thread_id)
    for number in range(turns):
        call = {
            "type": "tool_use",
            "id": f"c{conversation.version}",
            "name": "read",
            "input": {"n": number},
        }
        result = {
            "type": "tool_result",
            "tool_use_id": call["id"],
            "content": f"line {number}\n" * 9,
        }
        conversation.append(
            [
                {"role": "user", "content": f"look at file_{number}.py of {thread_id} " * 3},
                {"role": "assistant", "content": [call]},
                {"role": "user", "content": [result]},
                {"role": "assistant", "content": f"file_{number}.py has {number} faults. " * 3},
            ],
            key=[f"{thread_id}-{conversation.version}-{part}" for part in range(4)],
        )
    if turns > 20:
        conversation.pin("never push to main")
        assert conversation.compact().outcome == "performed"
        conversation.label(f"label of {thread_id}")


@contextmanager
def _opened(folder: Path) -> Generator[refold.Memory]:
    memory = refold.open(folder / LOG, window=20_000, telemetry=False, scrub_megabytes=0)
    try:
        yield memory
    finally:
        with suppress(LogError):
            memory.close()


def everything(memory: refold.Memory) -> list[object]:
    """All that can be read and found: requests now and then, messages, summaries, attempts, pins, lists."""
    found: list[object] = [tuple(memory.conversations())]
    found += [memory.search(asked, limit=20) for asked in QUESTIONS]
    for thread_id in ("one", "two", "three"):
        conversation = memory.conversation(thread_id)
        context = conversation.context()
        found += [conversation.version, context.messages, context.tokens, context.summary]
        then = [v for v in VERSIONS if v <= conversation.version]
        found += [conversation.context(at=version).messages for version in then]
        found += [conversation.recall(asked) for asked in QUESTIONS]
        found += [
            conversation.messages(),
            tuple(conversation.summaries()),
            tuple(conversation.compactions()),
            conversation.pins(),
        ]
    return found


def flips(store: Path, count: int, seed: int) -> Iterator[Flip]:
    """So many flips, drawn by chance."""
    draw = random.Random(seed)
    files = {"log": LOG, "snapshots": LOG, "wal": WAL, "views": VIEWS, "views wal": VIEWS_WAL}
    files |= {"recall": RECALL, "recall wal": RECALL_WAL, "anchor": ANCHOR}
    there = {area: store / name for area, name in files.items() if (store / name).exists()}
    sizes = {area: path.stat().st_size for area, path in there.items()}
    areas = [area for area in WEIGHTS if sizes.get(area)]
    kept = snapshot_bytes(store)
    for area in draw.choices(areas, [WEIGHTS[area] for area in areas], k=count):
        byte = draw.choice(kept) if area == "snapshots" else draw.randrange(sizes[area])
        yield Flip(area, files[area], byte, draw.randrange(8))


def snapshot_bytes(store: Path) -> Sequence[int]:
    """Where the snapshots lie in the file of the log."""
    content = (store / LOG).read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copytree(store, Path(folder) / "copy"))
        states = [state for *_, state in rows(copy / LOG, "stored_snapshots")]
    found: list[int] = []
    for state in states:
        # Parts of a large one lie on pages of their own.
        for start in range(0, len(state), 200):
            at = content.find(state[start : start + 200])
            if at >= 0:
                found += range(at, at + len(state[start : start + 200]))
    return found


def outcome_of(flip: Flip, store: Path, expected: object, folder: Path) -> Outcome:
    """Flip the bit in a copy of the store, and read everything."""
    copy = Path(shutil.copytree(store, folder / "copy"))
    path = copy / flip.name
    content = bytearray(path.read_bytes())
    content[flip.byte] ^= 1 << flip.bit
    path.write_bytes(content)
    try:
        with _warnings() as said:
            kind, detail = _read(copy, expected)
        if kind == RIGHT and said:
            return Outcome(flip, REPAIRED, said[0])
        return Outcome(flip, kind, detail)
    finally:
        shutil.rmtree(copy)


def _read(copy: Path, expected: object) -> tuple[str, str]:
    try:
        with _opened(copy) as memory:
            found = everything(memory)
    except refold.RefoldError as error:
        return REFUSED, type(error).__name__
    except Exception as error:  # Whatever it is: it is what is looked for.
        return UNTYPED, repr(error)
    return (RIGHT, "") if found == expected else (SILENT, "")


@contextmanager
def _warnings() -> Generator[list[str]]:
    logger, said = logging.getLogger("refold"), list[str]()
    handler = _Told(said)
    logger.addHandler(handler)
    try:
        yield said
    finally:
        logger.removeHandler(handler)


class _Told(logging.Handler):
    def __init__(self, said: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._said = said

    def emit(self, record: logging.LogRecord) -> None:
        self._said.append(record.getMessage())


def run(count: int, seed: int, done: Callable[[Outcome], None]) -> None:
    """Flip so many bits, each in a store of its own, and hand over what came of each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = make_store(folder)
        with _opened(Path(shutil.copytree(store, folder / "whole"))) as memory:
            expected = everything(memory)
        for flip in flips(store, count, seed):
            done(outcome_of(flip, store, expected, folder))


def main() -> int:
    """Print what came of the flips, by area; the exit code says whether anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flips", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    counts = collections.Counter[tuple[str, str]]()
    bad: list[Outcome] = []

    def done(outcome: Outcome) -> None:
        counts[outcome.flip.area, outcome.kind] += 1
        if outcome.kind in BAD:
            bad.append(outcome)
            print(outcome, flush=True)

    run(given.flips, given.seed, done)
    for (area, kind), count in sorted(counts.items()):
        print(f"{area:10} {kind:34} {count:6}")
    print(f"{sum(counts.values())} flips, {len(bad)} of them bad")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
