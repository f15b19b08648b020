"""Rows as SQLite holds them: values that it can store, and a checksum that shows a changed one."""

import zlib
from collections.abc import Iterable, Sequence

from refold.application.projections.row_changes import Cell

from .damage import ViewsDamaged

CHECKSUM = "checksum"


def sealed(values: tuple[Cell, ...]) -> tuple[Cell, ...]:
    """The values of a row and their checksum, ready to be stored."""
    try:
        return (*values, checksum(values))
    except UnicodeEncodeError:
        clean = tuple(storable(value) for value in values)
        return (*clean, checksum(clean))


def opened(table: str, row: Sequence[Cell]) -> tuple[Cell, ...]:
    """The values of a stored row without its checksum.

    Raises:
        ViewsDamaged: the row was changed since it was stored.
    """
    values = tuple(row[:-1])
    try:
        if checksum(values) == row[-1]:
            return values
    except UnicodeEncodeError:
        pass
    raise ViewsDamaged(f"a row of {table} was changed: {shown(values)}")


def checksum(values: tuple[Cell, ...]) -> int:
    """Of all values in their order; meant for accidents, not against attackers."""
    joined = "\x1f".join(map(str, values)).encode()
    # The count tells an absent value from the text "None".
    return zlib.crc32(joined, values.count(None))


def storable(value: Cell) -> Cell:
    """The value with lone surrogates, for which SQLite has no bytes, replaced by U+FFFD."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return value


def shown(values: Iterable[Cell]) -> str:
    """The values in short, for people."""
    return ", ".join(repr(v) if len(repr(v)) <= 40 else f"{repr(v)[:37]}…" for v in values)
