"""The keeper of a log on SQLite: what is done with the file as a whole, and the repair of what can be rebuilt."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from refold.application.errors import LogError, TargetExists
from refold.application.maintenance.maintenance_results import (
    AnchorState,
    BackedUp,
    Compressed,
    KnownErasures,
    Salvaged,
    Sizes,
)
from refold.application.ports.conversation_log import Damage
from refold.application.ports.log_keeper import Checked
from refold.infrastructure.event_store.anchor import Mark, read_exported, write_anchor
from refold.infrastructure.event_store.encryption import KeySource
from refold.infrastructure.event_store.snapshots import drop_snapshots
from refold.infrastructure.event_store.store import SQLiteLog
from refold.infrastructure.files.private_files import new_file
from refold.infrastructure.sqlite.second_look import translated
from refold.infrastructure.write_ahead.damaged_copies import damaged_copies

from . import log_keeper as repairing
from .backup import back_up
from .check import Held
from .mended_log import beside, is_to_be_mended, salvage_file
from .own_files import refuse_own
from .recorded_erasures import erasures_in
from .replacement import earlier_logs
from .salvage import salvage
from .sizes import measure
from .stream_checks import LOG
from .table_checks import KEYS, SNAPSHOTS

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


class SQLiteKeeper:
    """A ``LogKeeper`` of one SQLite file."""

    def __init__(self, log: SQLiteLog, key: KeySource | None = None) -> None:
        """``key``: what a new log that is made of it is encrypted with."""
        self._log = log
        self._key = key

    def check(self, exported: Path | None) -> Checked:
        """See ``LogKeeper``."""
        with translated(self._log.path):
            checked = repairing.check(self._log, exported)
        for found in checked.damage:
            if found.place == LOG and found.thread_id:
                self._log.known.note_event(found.thread_id, found.version)
        return checked

    def repair(self, damage: Sequence[Damage]) -> Sequence[str]:
        """See ``LogKeeper``."""
        with translated(self._log.path):
            return tuple(repairing.repair(self._log, damage))

    def anchor(self, *, out: Path | None, accept: bool) -> AnchorState:
        """See ``LogKeeper``."""
        with translated(self._log.path):
            return repairing.anchor(self._log, out=out, accept=accept)

    def salvage(self, to: Path) -> Salvaged:
        """See ``LogKeeper``."""
        refuse_own(to, self._log.path)
        datastore, mapper = self._log.parts()
        lines, _ = self._log.held.anchor.lines()
        held = Held(lines, f"the anchor {self._log.held.anchor.path}")
        if is_to_be_mended(self._log.path):
            with translated(self._log.path):
                return salvage_file(self._log.path, to, held, key=self._key)
        with translated(self._log.path), datastore.transaction(commit=False) as c:
            connection = c.sqlite_cursor.connection
            usual = connection.text_factory
            try:
                return salvage(connection, mapper, to, held, key=self._key)
            finally:
                connection.text_factory = usual

    def backup(self, to: Path, *, replace: bool) -> BackedUp:
        """See ``LogKeeper``."""
        datastore, mapper = self._log.parts()
        return back_up(datastore, mapper, to, path=self._log.path, replace=replace)

    def erasures_in(self, other: Path) -> KnownErasures:
        """See ``LogKeeper``."""
        return erasures_in(other, self._log.parts()[1])

    def compress(self, *, keep: int) -> Compressed:
        """See ``LogKeeper``."""
        return self._log.compress(keep)

    def damaged_copies(self) -> Sequence[Path]:
        """See ``LogKeeper``."""
        return damaged_copies(self._log.path)

    def earlier_logs(self) -> Sequence[Path]:
        """See ``LogKeeper``."""
        return earlier_logs(self._log.path)

    def sizes(self) -> Sizes:
        """See ``LogKeeper``."""
        return measure(self._log)
