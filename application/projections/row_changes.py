"""What a projection does to its table for one event, as data: rows that are new, rows that change."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import NamedTuple

from refold.application.event_log import LoggedEvent
from refold.domain.value import Value

Cell = str | int | None
"""What a column holds; truth values are stored as 0 and 1."""


class Added(NamedTuple):
    """A new row; its key was not there before."""

    row: Value


class Changed(NamedTuple):
    """Every row whose columns equal ``where`` (there may be none) gets new values."""

    where: Mapping[str, Cell]
    to: Mapping[str, Cell]
    more: Mapping[str, int] = MappingProxyType({})
    """By how much numbers in the row grow."""


Change = Added | Changed
Changes = Callable[[LoggedEvent], Sequence[Change]]
"""A projection's fold: pure, so that replay gives the same rows as following live."""


def utc(moment: datetime) -> str:
    """The moment as the log writes times: ISO 8601, UTC, microseconds. Without a zone it is UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
