"""Representations for people: what a value is, never all that it holds."""

from collections.abc import Iterable
from typing import Any

from refold.domain.text_cuts import beginning

LONGEST = 80


class ShortRepr:
    """A base for values whose long fields are cut where they are represented."""

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """What pydantic represents: the fields, long ones in short."""
        return [(name, _Short(value)) for name, value in vars(self).items()]


class _Short:
    def __init__(self, value: object) -> None:
        self._value = value

    def __repr__(self) -> str:
        return beginning(repr(self._value), LONGEST)
