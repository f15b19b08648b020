"""Where the files lie that are derived from a log, and what becomes of them beside an encrypted one."""

from contextlib import closing
from pathlib import Path

from refold.application.runtime.plain_lines import plain_logger

from .database_file import DatabaseFile, FileKind

MEMORY = ":memory:"
DERIVED = ("views", "recall", "vectors")
"""The names of all such files, as they stand in their paths."""

logger = plain_logger(__name__)


def derived_path(log: str | Path, name: str) -> str | Path:
    """Where a file beside a log lies: ``agent.views.db`` beside ``agent.db``."""
    if str(log) == MEMORY:
        return MEMORY
    path = Path(log)
    return path.with_name(f"{path.stem}.{name}{path.suffix or '.db'}")


def place_of(log: str | Path, kind: FileKind, *, encrypted: bool) -> str | Path:
    """Return the place of a file: memory for an encrypted log, whose file of before is removed."""
    place = derived_path(log, kind.name)
    if not encrypted or place == MEMORY:
        return place
    try:
        with closing(DatabaseFile(Path(place).absolute(), kind, of=Path(log))) as file:
            file.drop(any_file=True)
    except OSError as error:
        logger.warning("%s is not encrypted and cannot be removed (%s)", place, error)
    return MEMORY
