"""Looking again before content is called damaged: a disk that fails for a moment looks the same to SQLite."""

import os
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar

from refold.application.errors import BackupDamaged, LogDamaged, LogError
from refold.application.plain_lines import plain_logger
from refold.infrastructure.reading_at import read_at

from .failures import STORE_ERRORS, is_damage, typed
from .leaving import kept_descriptor
from .read_only import connected

CHUNK = 1 << 20

logger = plain_logger(__name__)
Answer = TypeVar("Answer")


def looked_twice(look: Callable[[], Answer], forget: Callable[[], None]) -> Answer:
    """Return the answer; where content seems damaged, look once more.

    ``forget``: drops what was read and is remembered.

    Raises:
        LogDamaged, BackupDamaged: it is so at the second look as well.
    """
    try:
        return look()
    except (LogDamaged, BackupDamaged, *STORE_ERRORS) as error:
        if isinstance(error, STORE_ERRORS) and not is_damage(error):
            raise
        logger.info("the log seems damaged (%s); looking again", error)
    forget()
    return look()


def judged(path: Path, error: Exception) -> LogError:
    """The error of the log for one of the store below, after a look at the files where it speaks of damage."""
    if not is_damage(error) or not path.is_file() or isinstance(error, UnicodeDecodeError):
        return typed(path, error)
    try:
        _read_all(path)
        sound = _is_sound(path)
    except STORE_ERRORS as failure:
        return typed(path, failure)
    if not sound:
        return typed(path, error)
    return LogError(
        f"the log {path} could not be read for a moment ({error}), and reads well now; check the disk, "
        "then try again with the same key; what was acknowledged before is safe"
    )


def _read_all(path: Path) -> None:
    """Read every byte of the log past SQLite, which calls a read that fails damage; raises ``OSError``."""
    _read_to_end(kept_descriptor(str(path)))
    with suppress(FileNotFoundError):
        ahead = os.open(f"{path}-wal", os.O_RDONLY)
        try:
            _read_to_end(ahead)
        finally:
            os.close(ahead)


def _read_to_end(descriptor: int) -> None:
    at = 0
    while read := read_at(descriptor, CHUNK, at):
        at += len(read)


def _is_sound(path: Path) -> bool:
    """Whether SQLite finds nothing wrong now; raises as it does where the reason is not the content."""
    try:
        with closing(connected(path)) as connection:
            return bool(connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok")
    except STORE_ERRORS as error:
        if is_damage(error):
            return False
        raise
