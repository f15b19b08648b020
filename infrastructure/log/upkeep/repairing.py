"""Repairing what is kept with the events: snapshots, the index of keys, the anchor; never the events."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from refold.application.errors import LogError, TargetExists
from refold.application.event_log import Damage
from refold.application.upkeep.log_keeping import Checked
from refold.application.upkeep.verifying import AnchorState
from refold.infrastructure.log.anchor import Mark, read_exported, write_anchor
from refold.infrastructure.log.checks.checking import Held
from refold.infrastructure.log.checks.key_checks import KEYS
from refold.infrastructure.log.checks.snapshot_checks import SNAPSHOTS
from refold.infrastructure.log.checks.stream_checks import LOG
from refold.infrastructure.log.snapshots import drop_snapshots
from refold.infrastructure.log.store import SQLiteLog
from refold.infrastructure.log.upkeep.unopened import beside
from refold.infrastructure.new_files import new_file
from refold.infrastructure.own_files import refuse_own

ANCHOR = "anchor"
"""The place of damage that is of the anchor."""


def check(log: SQLiteLog, exported: Path | None) -> Checked:
    """Everything that is wrong with a log, its snapshots and its anchor."""
    others: list[Held] = []
    if exported is not None:
        try:
            lines = {line.fingerprint: line for line in read_exported(exported)}
        except (OSError, ValueError) as error:
            raise LogError(str(error)) from error
        others.append(Held(lines, f"the anchor {exported}"))
    _, damaged = log.held.anchor.lines()
    checked = log.held.check(log.parts()[1], *others)
    if damaged:
        detail = f"{damaged} lines of {log.held.anchor.path} are damaged"
        found = Damage(ANCHOR, "", 0, "unreadable", detail)
        checked = checked._replace(damage=(*checked.damage, found))
    return checked if str(log.path) == ":memory:" else beside(log.path, checked)


def repair(log: SQLiteLog, damage: Sequence[Damage]) -> Iterator[str]:
    """Repair what can be without the events being touched; says what was done."""
    snapshots = [(d.thread_id, d.version) for d in damage if d.place == SNAPSHOTS]
    if snapshots:
        drop_snapshots(log.parts()[0], snapshots)
        yield f"{len(snapshots)} damaged snapshots were removed; loads read the events instead"
    if any(d.place == KEYS for d in damage):
        if any(d.place == LOG for d in damage):
            return  # The index may know of what the log lacks.
        log.renew_keys()
        yield "the index of keys was made anew from the messages"
    if any(d.place == ANCHOR for d in damage):
        if any(d.place == LOG for d in damage):
            return  # The log may lack what the other lines of the anchor know.
        renew(log)
        yield "the anchor was made anew from the log"


def renew(log: SQLiteLog) -> None:
    """Make the anchor anew from the log as it is.

    Raises:
        LogError: it cannot be written.
    """
    with log.writing():
        try:
            log.held.renew()
        except OSError as error:
            raise LogError(
                f"the anchor {log.held.anchor.path} cannot be written: {error}"
            ) from error


def _export(out: Path, marks: Sequence[Mark]) -> None:
    """Write an anchor into a new file, which is there and whole also after a loss of power."""
    if out.exists():
        raise TargetExists(out, "is there already; give another path")
    try:
        with new_file(out, replace=False) as made:
            write_anchor(made, marks)
    except OSError as error:
        raise LogError(f"the anchor {out} cannot be written: {error}") from error


def anchor(log: SQLiteLog, *, out: Path | None, accept: bool) -> AnchorState:
    """Say what the anchor knows; write it into a file of its own; make it anew from the log.

    Raises:
        LogBehindAnchor: the log lacks what was stored, and that is not accepted.
        TargetExists: there is a file at ``out``.
    """
    if out is not None:
        refuse_own(out, log.path)
    if accept:
        renew(log)
    with log.writing(or_reading=True):
        log.held.admit()
        marks = list(log.held.marks())
    if out is not None:
        _export(out, marks)
    path = log.held.anchor.path
    known = len(log.held.anchor.lines()[0]) if out is None else len(marks)
    return AnchorState(path=out or path, conversations=known, accepted=accept)
