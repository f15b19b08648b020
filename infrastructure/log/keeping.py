"""The keeper of a log on SQLite: what is done with the file as a whole."""

from pathlib import Path

from refold.application.housekeeping import BackedUp, KnownErasures, Sizes

from .backing_up import back_up
from .recorded_erasures import erasures_in
from .sizes import measure
from .store import SQLiteLog


class SQLiteKeeper:
    """A ``LogKeeper`` of one SQLite file."""

    def __init__(self, log: SQLiteLog) -> None:
        self._log = log

    def backup(self, to: Path, *, replace: bool) -> BackedUp:
        """See ``LogKeeper``."""
        datastore, mapper = self._log.parts()
        return back_up(datastore, mapper, to, path=self._log.path, replace=replace)

    def erasures_in(self, other: Path) -> KnownErasures:
        """See ``LogKeeper``."""
        return erasures_in(other, self._log.parts()[1])

    def sizes(self) -> Sizes:
        """See ``LogKeeper``."""
        return measure(self._log)
