"""The keeper of a log on SQLite: what is done with the file as a whole."""

from collections.abc import Sequence
from pathlib import Path

from refold.application.event_log import Damage
from refold.application.upkeep.housekeeping import BackedUp, Compressed, KnownErasures, Sizes
from refold.application.upkeep.log_keeping import Checked
from refold.application.upkeep.salvaging import Salvaged
from refold.application.upkeep.verifying import AnchorState
from refold.infrastructure.own_files import refuse_own

from .checks.checking import Held
from .checks.recorded_erasures import erasures_in
from .checks.stream_checks import LOG
from .file.failures import translated
from .store import SQLiteLog
from .stored.encryption import KeySource
from .upkeep import repairing
from .upkeep.backing_up import back_up
from .upkeep.mending import is_to_be_mended, salvage_file
from .upkeep.replacing import earlier_logs
from .upkeep.salvaging import salvage
from .upkeep.sizes import measure
from .write_ahead.copies import damaged_copies


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
