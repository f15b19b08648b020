"""What can be wrong with a file that is derived from the log, and what helps: a rebuild or another place."""

import sqlite3


class FoldDamaged(Exception):
    """What is stored is not what replay would give. Never leaves the infrastructure."""


BROKEN = (FoldDamaged, sqlite3.Error, OSError, UnicodeDecodeError)
"""What is raised where a file cannot be used. Python cannot even say what SQLite says of some."""


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


def is_unusable(error: Exception) -> bool:
    """Whether a rebuild in the same place cannot help: no permission, no space, in use by others."""
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", None)
        return code is not None and code & 0xFF in _UNUSABLE
    # Python cannot even say what SQLite says of some damaged files.
    return not isinstance(error, FoldDamaged | UnicodeDecodeError)
