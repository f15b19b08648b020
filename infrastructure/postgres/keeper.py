"""Maintenance of a log on a server: check it; what PostgreSQL's own tools do is refused with their names."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from refold.application.maintenance.maintenance_results import (
    AnchorState,
    BackedUp,
    Compressed,
    ErasedPlace,
    KnownErasures,
    Salvaged,
    Sizes,
)
from refold.application.ports.conversation_log import Damage
from refold.application.ports.log_keeper import Checked
from refold.infrastructure.files.log_place import not_on_a_server

from .log import PostgresLog


class PostgresKeeper:
    """A ``LogKeeper`` of a log on a server."""

    def __init__(self, log: PostgresLog) -> None:
        self._log = log

    def check(self, exported: Path | None) -> Checked:
        """Report all damage of the log and its snapshots."""
        if exported is not None:
            raise not_on_a_server("verify --anchor")
        return self._log.checked()

    def repair(self, damage: Sequence[Damage]) -> Iterable[str]:
        """Repair snapshots and keys from the events. Yield a description of each repair."""
        return self._log.repair(damage)

    def anchor(self, *, out: Path | None, accept: bool) -> AnchorState:
        """Refuse: an anchor is a file next to a log file."""
        del out, accept
        raise not_on_a_server("anchor")

    def salvage(self, to: Path) -> Salvaged:
        """Refuse: a damaged server is restored by its own tools."""
        del to
        raise not_on_a_server("salvage")

    def backup(self, to: Path, *, replace: bool) -> BackedUp:
        """Refuse: a server has tools for backups."""
        del to, replace
        raise not_on_a_server("backup")

    def erasures_in(self, other: Path) -> KnownErasures:
        """Refuse: nothing is restored over a log on a server."""
        del other
        raise not_on_a_server("restore")

    def compress(self, *, keep: int) -> Compressed:
        """Refuse: sealed bytes cannot be compressed."""
        del keep
        raise not_on_a_server("compress")

    def damaged_copies(self) -> Sequence[Path]:
        """Return nothing: there are no files next to the log."""
        return ()

    def earlier_logs(self) -> Sequence[Path]:
        """Return nothing: there are no files next to the log."""
        return ()

    def erased_places(self) -> Sequence[ErasedPlace]:
        """Return where keys of erased content may still be."""
        return self._log.erased_places()

    def wait_for_erasures(self, seconds: float) -> bool:
        """Switch and checkpoint the write-ahead log until it has no keys of erased content."""
        return self._log.wait_for_erasures(seconds)

    def sizes(self) -> Sizes:
        """Measure the sizes of the log."""
        return self._log.sizes()
