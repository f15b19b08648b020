"""Everything that refold can still give of a store: by reading it, and by saving what is intact."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import refold

from .children import Ended, run_apart
from .commands import Scene, new_place, run_program
from .sample_store import LOG, open_store

MARK = re.compile(r"mk[0-9]{5}[0-9a-f]{4}z")


class ReadBack(NamedTuple):
    """What could be read, and what went wrong on the way."""

    read: frozenset[str]
    """Words of messages that were read."""
    saved: frozenset[str]
    """Words of messages in a log that was salvaged."""
    doubled: tuple[str, ...]
    """Words that stand in more than one message of a conversation."""
    refused: dict[str, str]
    """By conversation, the error of refold that reading it gave."""
    wrong: tuple[str, ...]

    @property
    def all(self) -> frozenset[str]:
        return self.read | self.saved


def read_back(scene: Scene, *, salvage: bool = True) -> ReadBack:
    """Read every conversation by the interface, then salvage the log and read what was saved."""
    reading = run_apart(lambda: _read(scene.folder, scene.store.name))
    wrong = [*_wrong("reading it", reading)]
    saved: frozenset[str] = frozenset()
    if salvage:
        saved, problems = _salvaged(scene)
        wrong += problems
    answer: dict[str, Any] = reading.answer or {"marks": [], "doubled": [], "refused": {}}
    return ReadBack(
        frozenset(answer["marks"]),
        saved,
        tuple(answer["doubled"]),
        answer["refused"],
        tuple(wrong),
    )


def _read(folder: Path, name: str, log: str = LOG) -> dict[str, Any]:
    found: list[str] = []
    doubled: list[str] = []
    refused: dict[str, str] = {}
    try:
        memory = open_store(folder, log=log, encrypted="encrypted" in name)
    except refold.RefoldError as error:
        return {"marks": [], "doubled": [], "refused": {"": f"{type(error).__name__}: {error}"}}
    for thread_id in _threads(memory, refused):
        try:
            texts = [m.message.model_dump_json() for m in memory.conversation(thread_id).messages()]
        except refold.RefoldError as error:
            refused[thread_id] = f"{type(error).__name__}: {error}"
            continue
        marks = [set[str](MARK.findall(text)) for text in texts]
        own = set[str]().union(*marks)
        found += own
        doubled += [mark for mark in own if sum(mark in each for each in marks) > 1]
    return {"marks": sorted(set(found)), "doubled": doubled, "refused": refused}


def _threads(memory: refold.Memory, refused: dict[str, str]) -> list[str]:
    known = ["one", "two", "three", "four", "copy", "imported", "played"]
    try:
        return sorted({*known, *(row.thread_id for row in memory.conversations())})
    except refold.RefoldError as error:
        refused["*"] = f"{type(error).__name__}: {error}"
        return known


def _salvaged(scene: Scene) -> tuple[frozenset[str], list[str]]:
    to = new_place(scene.out, "judged")
    words = ["salvage", str(to), "--db", str(scene.folder / LOG), "--json"]
    run = run_apart(lambda: run_program(scene, words))
    problems = [*_wrong("salvage", run)]
    if not to.exists():
        return frozenset(), problems
    reading = run_apart(lambda: _read(to.parent, scene.store.name, to.name))
    problems += _wrong("reading what was salvaged", reading)
    answer: dict[str, Any] = reading.answer or {"marks": []}
    return frozenset(answer["marks"]), problems


def _wrong(what: str, ended: Ended) -> list[str]:
    return [f"{what}: {problem}" for problem in problems_of(ended)]


def problems_of(ended: Ended) -> list[str]:
    """What must never come of any command: a hang, a crash, a traceback."""
    if ended.hung:
        return [f"it hangs: {_frames(ended.err)}"]
    if ended.status < 0:
        return [f"it was killed by signal {-ended.status}: {ended.err[-300:]}"]
    if "Traceback (most recent call last)" in ended.err or ended.status not in (0, 1, 2):
        return [f"exit code {ended.status}: {ended.err.strip()[-700:]}"]
    return []


def _frames(text: str) -> str:
    return " < ".join(re.findall(r'File "[^"]*/([\w/]+\.py)", line (?:\d+) in (?:\w+)', text)[:6])
