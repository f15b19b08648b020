"""Rows as SQLite holds them: values that it can store, and a checksum that shows a changed one."""

import zlib
from collections.abc import Iterable, Sequence

from refold.application.projections.row_changes import Cell

from .projection_damage import FoldDamaged

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
