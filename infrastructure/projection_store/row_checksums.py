"""Damage of derived files, checksums of their rows, and the choice between a rebuild and another place."""

import os
import sqlite3
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast
from zlib import crc32

from refold.application.projections.row_changes import Cell
from refold.domain.errors import RefoldError


class FoldDamaged(Exception):
    """Stored content differs from a replay. This error never leaves the infrastructure layer."""


class MemoryShort(FoldDamaged):
    """Memory is short. The cause is a damaged size or a busy machine."""


BROKEN = (FoldDamaged, sqlite3.Error, OSError)
"""Errors that ``blamed_on_file`` raises if a file cannot be used."""


# Content is not damaged: this process cannot use the file now or at all.
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
    """Convert all errors of reading a derived file to those in ``BROKEN``.

    Damaged bytes can raise any error: a size may not be a number, a text may not be text, and Python
    cannot decode some messages of SQLite. Three kinds of errors pass unchanged: those of refold, which
    concern the log, an embedder or a setting, those that end a program, and ``RecursionError``, which
    says that the caller has too many calls open.
    """
    try:
        yield
    except (RefoldError, RecursionError, *BROKEN):
        raise
    except MemoryError as error:
        raise MemoryShort("there is not enough memory") from error
    except Exception as error:
        raise FoldDamaged(f"{type(error).__name__}: {error}") from error


def is_unusable(error: Exception, path: Path | None = None) -> bool:
    """Return whether a rebuild in the same place cannot help: no permission, no space, in use by others."""
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", None)
        if code == sqlite3.SQLITE_READONLY and path is not None and _may_be_replaced(path):
            return False  # The file itself is write-protected.
        return code is not None and code & 0xFF in _UNUSABLE
    return isinstance(error, OSError)


def _may_be_replaced(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


CHECKSUM = "checksum"

Sealed = tuple[*tuple[Cell, ...], int]
"""Values of a row and their checksum."""
SealedUtf8 = tuple[*tuple[Cell | bytes, ...], int]
"""The same of a row with a text that may be UTF-8."""


def seal_row(values: tuple[Cell, ...]) -> Sealed:
    """Return the values of a row and their checksum, ready to be stored."""
    try:
        return (*values, checksum(values))
    except UnicodeEncodeError:
        clean = tuple(storable(value) for value in values)
        return (*clean, checksum(clean))


def seal_full(rows: Sequence[tuple[Cell, ...]]) -> list[Sealed]:
    """Return the same of rows without missing values, at less cost."""
    form = "\x1f".join(["%s"] * len(rows[0])) if rows else ""
    sealed: list[Sealed] = []
    for values in rows:
        try:
            sealed.append((*values, crc32((form % values).encode())))
        except UnicodeEncodeError:
            sealed.append(seal_row(values))
    return sealed


def seal_utf8(rows: Sequence[tuple[Cell | bytes, ...]], at: int) -> list[SealedUtf8]:
    """Return the same of rows whose text at an index may be UTF-8. Such a text is not encoded or copied again."""
    before, after = "%s\x1f" * at, "\x1f%s" * (len(rows[0]) - at - 1)
    sealed: list[SealedUtf8] = []
    for values in rows:
        text = values[at]
        try:
            if isinstance(text, bytes):
                begun = crc32((before % values[:at]).encode(), values.count(None))
                rest = (after % values[at + 1 :]).encode()
                sealed.append((*values, crc32(rest, crc32(text, begun))))
                continue
        except UnicodeEncodeError:
            values = (*values[:at], cast("bytes", text).decode(), *values[at + 1 :])
        sealed.append(seal_row(cast("tuple[Cell, ...]", values)))
    return sealed


def open_row(table: str, row: Sequence[Cell]) -> tuple[Cell, ...]:
    """Return the values of a stored row without its checksum.

    Raises:
        FoldDamaged: the row was changed after it was stored.
    """
    values = tuple(row[:-1])
    try:
        if checksum(values) == row[-1]:
            return values
    except UnicodeEncodeError:
        pass
    raise FoldDamaged(f"a row of {table} was changed: {show_values(values)}")


def checksum(values: tuple[Cell, ...]) -> int:
    """Return a checksum of all values in their order. It detects accidents, not attacks."""
    # The count distinguishes a missing value from the text "None". The last value is added
    # separately, because joining a long text to the others would copy it.
    texts = "%s\x1f" * (len(values) - 1) % values[:-1]
    return crc32(str(values[-1]).encode(), crc32(texts.encode(), values.count(None)))


def storable(value: Cell) -> Cell:
    """Replace lone surrogates, which SQLite cannot store, with U+FFFD."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return value


def show_values(values: Iterable[Cell]) -> str:
    """Summarise the values for messages. Texts appear as their length, because logs must not contain what
    people said.
    """
    # A damaged row may contain bytes.
    return ", ".join(
        repr(v) if v is None or isinstance(v, int | float) else f"{len(v):,} characters"
        for v in values
    )
