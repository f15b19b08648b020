"""What can be wrong with a file that is derived from the log, and what helps: a rebuild or another place."""

import os
import sqlite3
import zlib
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path

from refold.application.projections.row_changes import Cell
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


CHECKSUM = "checksum"

Sealed = tuple[*tuple[Cell, ...], int]
"""The values of a row and their checksum."""


def sealed(values: tuple[Cell, ...]) -> Sealed:
    """The values of a row and their checksum, ready to be stored."""
    try:
        return (*values, checksum(values))
    except UnicodeEncodeError:
        clean = tuple(storable(value) for value in values)
        return (*clean, checksum(clean))


def opened(table: str, row: Sequence[Cell]) -> tuple[Cell, ...]:
    """The values of a stored row without its checksum.

    Raises:
        FoldDamaged: the row was changed since it was stored.
    """
    values = tuple(row[:-1])
    try:
        if checksum(values) == row[-1]:
            return values
    except UnicodeEncodeError:
        pass
    raise FoldDamaged(f"a row of {table} was changed: {shown(values)}")


def checksum(values: tuple[Cell, ...]) -> int:
    """Of all values in their order; meant for accidents, not against attackers."""
    *first, last = map(str, values)
    # The count tells an absent value from the text "None". The last value is by itself: joining a
    # long text to the others would copy it.
    begun = zlib.crc32("\x1f".join((*first, "")).encode(), values.count(None))
    return zlib.crc32(last.encode(), begun)


def storable(value: Cell) -> Cell:
    """The value with lone surrogates, for which SQLite has no bytes, replaced by U+FFFD."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return value


def shown(values: Iterable[Cell]) -> str:
    """The values in short, for people: of texts their length, for what people said stands in no log line."""
    # What a damaged row holds may be bytes.
    return ", ".join(
        repr(v) if v is None or isinstance(v, int | float) else f"{len(v):,} characters"
        for v in values
    )
