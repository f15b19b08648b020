"""The port of the keeper: what is done with a log as a whole, outside of any conversation."""

from pathlib import Path
from typing import Protocol

from .housekeeping import BackedUp, KnownErasures, Sizes


class LogKeeper(Protocol):
    """Keeps a log: its anchor, its repair, its backups, its sizes. May raise ``LogError``."""

    def backup(self, to: Path, *, replace: bool) -> BackedUp:
        """Copy the log as it is now into a file, and check the copy; nobody's writing has to wait.

        Raises:
            TargetExists: there is a file already, and replacing it was not asked for.
            BackupDamaged: the log is damaged; no file was made.
        """
        ...

    def erasures_in(self, other: Path) -> KnownErasures:
        """What another file of the same log records as erased; never raises for what is damaged."""
        ...

    def sizes(self) -> Sizes:
        """How large the log is, and what of."""
        ...
