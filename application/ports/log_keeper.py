"""The port of log maintenance: operations on the log as a whole."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from refold.application.maintenance.maintenance_results import (
    AnchorState,
    BackedUp,
    Compressed,
    ErasedPlace,
    KnownErasures,
    Salvaged,
    Sizes,
)

from .conversation_log import Damage


class Checked(NamedTuple):
    """The result of a check: what was read and what is damaged."""

    events: int
    conversations: int
    damage: tuple[Damage, ...]
    notices: tuple[str, ...] = ()
    """Remarks about files. They do not report damage."""


class LogKeeper(Protocol):
    """Maintenance of a log: anchor, repair, backups, compression, sizes. May raise ``LogError``."""

    def check(self, exported: Path | None) -> Checked:
        """Read everything and report damage of the log, its snapshots and its anchor.

        ``exported``: exported anchor to compare with as well.
        """
        ...

    def repair(self, damage: Sequence[Damage]) -> Iterable[str]:
        """Repair snapshots and the anchor as far as the events allow. Yield a description of each repair."""
        ...

    def anchor(self, *, out: Path | None, accept: bool) -> AnchorState:
        """Return the state of the anchor.

        ``out``: also write the anchor there. ``accept``: rebuild the anchor from the log.

        Raises:
            LogBehindAnchor: the log lacks stored events, and ``accept`` is False.
            TargetExists: there is a file at ``out``.
        """
        ...

    def salvage(self, to: Path) -> Salvaged:
        """Copy every intact event into a new log; the old log is only read.

        Raises:
            TargetExists: there is a file at ``to``.
        """
        ...

    def backup(self, to: Path, *, replace: bool) -> BackedUp:
        """Copy the log into a file and check the copy, without blocking writers.

        Raises:
            TargetExists: there is a file already, and ``replace`` is False.
            BackupDamaged: the log is damaged; no file was written.
            NewerLog: it has an event of a newer refold; no file was written.
        """
        ...

    def erasures_in(self, other: Path) -> KnownErasures:
        """Return the erasures that another file of the same log records; damage never raises."""
        ...

    def compress(self, *, keep: int) -> Compressed:
        """Compress the events before the live part of each conversation, except the newest ``keep``."""
        ...

    def damaged_copies(self) -> Sequence[Path]:
        """Return the copies of damaged write-ahead logs next to the log."""
        ...

    def earlier_logs(self) -> Sequence[Path]:
        """Return the logs that restorations moved, the newest last."""
        ...

    def erased_places(self) -> Sequence[ErasedPlace]:
        """Return where erased content may still be besides the log itself; empty for a log file."""
        ...

    def wait_for_erasures(self, seconds: float) -> bool:
        """Wait until no file that can be reached has erased content. Return whether that was reached."""
        ...

    def sizes(self) -> Sizes:
        """Return the size of the log and of its parts."""
        ...
