"""What can be wrong with a file that is derived from the log, and what helps: a rebuild or another place."""

import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from refold.domain.errors import RefoldError


class FoldDamaged(Exception):
    """What is stored is not what replay would give. Never leaves the infrastructure."""


class MemoryShort(FoldDamaged):
    """There was not enough memory: a damaged size asks for any amount, and so does a busy machine."""


BROKEN = (FoldDamaged, sqlite3.Error, OSError)
"""What is raised inside ``blamed_on_file`` where a file cannot be used."""


# Nothing is wrong with the content: this process cannot use the file, now or at all.
_UNUSABLE = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_AUTH,
    }
)


@contextmanager
def blamed_on_file() -> Generator[None]:
    """Turn everything that reading a derived file raises into one of ``BROKEN``.

    Damaged bytes raise whatever the code that meets them raises: a size that is no number, a text that
    is none, a message of SQLite that Python cannot decode. Only errors of refold, which are about the
    log, an embedder or a setting, and what ends a program pass as they are.
    """
    try:
        yield
    except (RefoldError, *BROKEN):
        raise
    except MemoryError as error:
        raise MemoryShort("there is not enough memory") from error
    except Exception as error:
        raise FoldDamaged(f"{type(error).__name__}: {error}") from error


def is_unusable(error: Exception, path: Path | None = None) -> bool:
    """Whether a rebuild in the same place cannot help: no permission, no space, in use by others."""
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", None)
        if code == sqlite3.SQLITE_READONLY and path is not None and _may_be_replaced(path):
            return False  # The file itself says that nobody may write to it.
        return code is not None and code & 0xFF in _UNUSABLE
    return isinstance(error, OSError)


def _may_be_replaced(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
