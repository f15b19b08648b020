"""The port of the keeper: what is done with a log as a whole, outside of any conversation."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from refold.application.maintenance.maintenance_results import (
    AnchorState,
    BackedUp,
    Compressed,
    KnownErasures,
    Salvaged,
    Sizes,
)

from .conversation_log import Damage


class Checked(NamedTuple):
    """What a check saw, and what was wrong with that."""

    events: int
    conversations: int
    damage: tuple[Damage, ...]
    notices: tuple[str, ...] = ()
    """What is to be known of the files, and is no damage."""


class LogKeeper(Protocol):
    """Keeps a log: its anchor, its repair, its backups, its sizes. May raise ``LogError``."""

    def check(self, exported: Path | None) -> Checked:
        """Read everything and report what is damaged in the log, its snapshots and its anchor.

        ``exported``: an anchor that was exported, to hold the log against as well.
        """
        ...

    def repair(self, damage: Sequence[Damage]) -> Iterable[str]:
        """Repair snapshots and the anchor, as far as the events allow it; says what was done."""
        ...

    def anchor(self, *, out: Path | None, accept: bool) -> AnchorState:
        """What the anchor knows. ``out``: write it there as well. ``accept``: make it anew from the log.

        Raises:
            LogBehindAnchor: the log lacks what was stored, and that is not accepted.
            TargetExists: there is a file at ``out``.
        """
        ...

    def salvage(self, to: Path) -> Salvaged:
        """Copy every intact event into a new log; the old one is only read.

        Raises:
            TargetExists: there is something at ``to``.
        """
        ...

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

    def compress(self, *, keep: int) -> Compressed:
        """Compress the payloads that lie before the live part of each conversation; see ``Memory``."""
        ...

    def damaged_copies(self) -> Sequence[Path]:
        """Return the copies of damaged write-ahead logs that lie beside the log."""
        ...

    def earlier_logs(self) -> Sequence[Path]:
        """Return the logs that restorations moved aside, the newest last."""
        ...

    def sizes(self) -> Sizes:
        """How large the log is, and what of."""
        ...
