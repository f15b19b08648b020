"""The files that a log uses itself: nothing else may be written in their places."""

import os
from pathlib import Path

from refold.application.errors import TargetExists
from refold.infrastructure.event_store.anchor import anchor_path
from refold.infrastructure.projection_store.derived_places import DERIVED, derived_path
from refold.infrastructure.write_ahead.damaged_copies import is_damaged_copy

from .known_damage import checked_path

_BESIDE = ("", "-wal", "-shm", "-journal", ".lock")


def refuse_own(to: Path, log: Path) -> None:
    """Refuse a place that the log at ``log`` uses, whether there is a file now or not.

    Raises:
        TargetExists: it is one.
    """
    own = files_of(log)
    linked = to.exists() and log.exists() and to.samefile(log)
    if linked or os.path.realpath(to) in own or is_damaged_copy(Path(os.path.realpath(to)), log):
        raise TargetExists(to, "is a file of the log itself; give another path")


def files_of(log: Path) -> set[str]:
    """The paths of all files that a log uses, whether there are such files now or not."""
    place = Path(os.path.realpath(log))
    files = (place, *(derived_path(place, name) for name in DERIVED))
    beside = (str(anchor_path(place)), str(checked_path(place)))
    return {*beside, *(f"{file}{suffix}" for file in files for suffix in _BESIDE)}


def real_place(path: str | Path) -> str | Path:
    """Return where a link to a log leads: locks and derived files lie beside the log itself."""
    return Path(path).resolve() if os.path.islink(path) else path  # noqa: PTH114
