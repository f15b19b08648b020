"""Judges what commands did to a store with a fault in it: is anything lost, doubled, or falsely called damaged?"""

import json
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from .commands import Run, Scene
from .looking_raw import all_rows, marks_in_bytes
from .reading_back import ReadBack, problems_of, read_back
from .sample_store import LOG, Store

ALARMS = ("LogDamaged", "BackupDamaged", "LogBehindAnchor", "NotARefoldLog", "LogGone")


class Before(NamedTuple):
    """What was known before the first command ran."""

    in_bytes: frozenset[str]
    """Words that stood in the bytes of log and WAL."""
    readable: frozenset[str]
    """Words that refold could read or save, tried on a copy."""
    is_whole: bool
    """Whether every row of the log was what had been stored, and SQLite content."""


def look_before(scene: Scene, copy: Scene) -> Before:
    """Look at a store with a fault in it; what opens files works on the copy."""
    return Before(
        marks_in_bytes(scene.folder, scene.store.marks),
        read_back(copy).all,
        _is_whole(scene.store, scene.folder),
    )


def _is_whole(store: Store, folder: Path) -> bool:
    rows = all_rows(folder)
    return rows is not None and rows == all_rows(store.folder) and _is_sound(folder)


def _is_sound(folder: Path) -> bool:
    with tempfile.TemporaryDirectory(prefix="raw-") as place:
        for end in ("", "-wal"):
            if (folder / f"{LOG}{end}").exists():
                shutil.copyfile(folder / f"{LOG}{end}", Path(place, f"{LOG}{end}"))
        try:
            with closing(sqlite3.connect(Path(place, LOG))) as connection:
                found = connection.execute("PRAGMA integrity_check").fetchall()
                raw = connection.execute(
                    "SELECT application_id, user_version FROM pragma_application_id, pragma_user_version"
                ).fetchall()
            return found == [("ok",)] and raw[0][0] == 0x5246_4C44
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            return False


def faults_of(scene: Scene, before: Before, runs: Sequence[Run], zone: str) -> Iterator[str]:
    """Everything that is not as it must be after these commands."""
    for run in runs:
        yield from (f"{run.name}: {problem}" for problem in problems_of(run.ended))
        yield from (f"{run.name}: {problem}" for problem in run.wrong)
        if before.is_whole and not zone.startswith("anchor"):
            yield from _false_alarms(run)
    in_bytes = marks_in_bytes(scene.folder.parent, _all_marks(scene, runs))
    erased = frozenset[str]().union(*(run.erased for run in runs))
    yield from (f"erased, and still in a file: {m}" for m in _left(scene, erased))
    after = read_back(scene)
    yield from after.wrong
    yield from _lost(scene, before, after, runs, in_bytes)
    if before.is_whole and not zone.startswith("anchor"):
        yield from (
            f"intact, and refused afterwards: {e}" for e in after.refused.values() if _is_alarm(e)
        )
    yield from (f"stored more than once: {m}" for m in after.doubled)


def _all_marks(scene: Scene, runs: Sequence[Run]) -> frozenset[str]:
    return scene.store.marks | {a.mark for run in runs for a in run.acknowledged}


def _lost(
    scene: Scene, before: Before, after: ReadBack, runs: Sequence[Run], in_bytes: frozenset[str]
) -> Iterator[str]:
    asked = frozenset[str]().union(*(run.asked_to_erase for run in runs))
    there = after.all | in_bytes
    if gone := sorted(before.readable - there - asked):
        yield f"LOST: {len(gone)} messages could be read before and are nowhere: {gone[:5]}"
    if gone := sorted(before.in_bytes - before.readable - there - asked):
        yield f"DESTROYED: {len(gone)} messages stood in the files before and are nowhere: {gone[:5]}"
    acknowledged = {a.mark for run in runs for a in run.acknowledged}
    if gone := sorted(acknowledged - there):
        yield f"LOST: {gone} were acknowledged just now and are nowhere"
    if any(run.name == "restore" for run in runs):
        return  # What came after the backup lies in the files that were moved aside.
    if gone := sorted((before.readable | acknowledged) - after.all - asked):
        yield f"UNREADABLE: {len(gone)} messages could be read before, not any more: {gone[:5]}"


def _left(scene: Scene, erased: frozenset[str]) -> Iterator[str]:
    for path in scene.folder.iterdir():
        if path.is_file():
            content = path.read_bytes()
            yield from (f"{m} in {path.name}" for m in sorted(erased) if m.encode() in content)


def _false_alarms(run: Run) -> Iterator[str]:
    said = _json_of(run.ended.out)
    if _is_alarm(str(said.get("error", ""))):
        yield f"{run.name}: FALSE ALARM: {said['error']}: {str(said.get('message'))[:200]}"
    for found in said.get("damage", ()) if run.name.startswith("verify") else ():
        if found["place"] == "log":
            yield f"{run.name}: FALSE ALARM: {found}"
    if told := re.search(rf"^({'|'.join(ALARMS)}): .*", run.ended.err, re.MULTILINE):
        yield f"{run.name}: FALSE ALARM: {told[0][:200]}"


def _json_of(text: str) -> dict[str, Any]:
    """The object that a command printed; an empty one where it printed something else."""
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError):
        return {}


def _is_alarm(error: str) -> bool:
    return error.startswith(ALARMS)
