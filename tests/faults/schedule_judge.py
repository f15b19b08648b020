"""Judges a schedule: every acknowledged append is there once and in order, and no process hung or was refused."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import refold

from .children import run_apart
from .reading_back import MARK, problems_of
from .sample_store import LOG
from .schedule_drawing import Step

STORING = ("append", "begin", "use old")
Files = dict[str, tuple[int, ...]]


@dataclass
class Done:
    """A step that a process did, and what it answered."""

    step: Step
    mark: str
    files_before: Files
    answer: dict[str, Any] = field(default_factory=dict[str, Any])
    files_after: Files = field(default_factory=dict[str, tuple[int, ...]])

    def __str__(self) -> str:
        return f"{self.step}: {self.answer}"


def faults_of(folder: Path, done: Sequence[Done]) -> Iterator[str]:
    """Everything that is not as it must be."""
    for number, one in enumerate(done):
        yield from (f"step {number}, {one.step}: {what}" for what in _wrong(one, done[:number]))
    if not (folder / LOG).exists():
        return
    ended = run_apart(lambda: _read(folder))
    yield from (f"reading it afterwards: {problem}" for problem in problems_of(ended))
    if ended.answer is not None:
        yield from ended.answer["wrong"]
        yield from _stored(done, ended.answer["stored"])


def _wrong(one: Done, before: Sequence[Done]) -> Iterator[str]:
    answer, what = one.answer, one.step.what
    if "hangs" in answer:
        yield "HANGS"
    if "untyped" in answer:
        yield f"UNTYPED: {answer['untyped']}"
    if "ended" in answer and what not in ("exit", "_exit", "kill", "exec"):
        yield "the process died"
    if "error" in answer and not _may_be_refused(one, before):
        yield f"REFUSED: {answer['error']}: {answer['text'][:200]}"
    if what == "use old" and "positions" in answer:
        yield "an inherited memory stored a message"
    if what in ("close old", "collect old") and one.files_before != one.files_after:
        yield f"TOUCHED files: {_changed(one)}"


def _may_be_refused(one: Done, before: Sequence[Done]) -> bool:
    """Whether an error is what was to come: of an inherited memory, or of a fork in the middle of a commit."""
    if one.step.what == "use old":
        return one.answer["error"] not in ("LogGone", "LogDamaged", "LogBehindAnchor")
    return one.answer["error"] == "OpenedBeforeFork" and any(d.answer.get("paused") for d in before)


def _changed(one: Done) -> list[str]:
    names = {*one.files_before, *one.files_after}
    return sorted(n for n in names if one.files_before.get(n) != one.files_after.get(n))


def _stored(done: Sequence[Done], stored: dict[str, list[str]]) -> Iterator[str]:
    tried = {one.mark: one for one in done if one.step.what in STORING}
    resumed = {_begun(done, number).mark: one for number, one in enumerate(done) if _is_end(one)}
    acknowledged = {
        mark: one
        for mark, one in tried.items()
        if "positions" in one.answer or "positions" in resumed.get(mark, one).answer
    }
    there = [mark for marks in stored.values() for mark in marks]
    for mark, one in acknowledged.items():
        if (count := there.count(mark)) != 1:
            yield f"{'LOST' if not count else 'DOUBLED'}: {one.step} was acknowledged and is there {count} times"
    for mark in set(there) - set(acknowledged):
        if there.count(mark) > 1 or mark not in tried:
            yield f"DOUBLED or foreign: {mark}"
    for thread_id, marks in stored.items():
        steady = [m for m, one in acknowledged.items() if one.step.what != "begin"]
        order = [m for m in steady if m in marks]
        if [m for m in marks if m in order] != order:
            yield f"{thread_id}: not in the order of the acknowledgements"


def _is_end(one: Done) -> bool:
    return one.step.what == "resume" and bool(one.answer)


def _begun(done: Sequence[Done], number: int) -> Done:
    actor = done[number].step.actor
    begun = [d for d in done[:number] if d.step.actor == actor and d.step.what == "begin"]
    return begun[-1] if begun else done[number]


def _read(folder: Path) -> dict[str, Any]:
    stored: dict[str, list[str]] = {}
    wrong: list[str] = []
    try:
        with refold.open(folder / LOG, telemetry=False) as memory:
            wrong += [f"verify: {d.place} {d.kind} {d.detail}" for d in memory.verify().damage]
            for thread_id in (*"ABCDGH", "common"):
                messages = memory.conversation(thread_id).messages()
                stored[thread_id] = [MARK.findall(str(m.message.content))[0] for m in messages]
    except refold.RefoldError as error:
        wrong.append(f"opening it afterwards: {type(error).__name__}: {str(error)[:300]}")
    with closing(sqlite3.connect(folder / LOG)) as connection:
        found = connection.execute("PRAGMA integrity_check").fetchall()
        wrong += [] if found == [("ok",)] else [f"integrity check: {found[:3]}"]
    return {"stored": stored, "wrong": wrong}
