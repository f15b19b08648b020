"""What a projection does to its table for one event, as data: rows that are new, rows that change."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import NamedTuple

from refold.application.ports.conversation_log import LoggedEvent
from refold.domain.events import Event, MessageAppended
from refold.domain.value import Value

Cell = str | int | None
"""What a column holds; truth values are stored as 0 and 1."""


class Added(NamedTuple):
    """A new row; its key was not there before."""

    row: Value


class Appended(NamedTuple):
    """New rows of one conversation that never change: their values in the order of the columns."""

    rows: Sequence[tuple[Cell, ...]]


class Changed(NamedTuple):
    """Every row whose columns equal ``where`` (there may be none) gets new values."""

    where: Mapping[str, Cell]
    to: Mapping[str, Cell]
    more: Mapping[str, int] = MappingProxyType({})
    """By how much numbers in the row grow."""
    once: Mapping[str, Cell] = MappingProxyType({})
    """Values for columns that are all empty yet; else they stay as they are."""
    spans: Mapping[str, str] = MappingProxyType({})
    """Times that ``created_at`` must not be after, and ``last_activity`` not before."""


class Removed(NamedTuple):
    """Every row whose columns equal ``where`` (there may be none) goes: what it said was erased."""

    where: Mapping[str, Cell]


class Replaced(NamedTuple):
    """The row of an ``Appended`` one with the same key, if there is any, gives way to this one."""

    row: tuple[Cell, ...]


Change = Added | Appended | Changed | Removed | Replaced
Changes = Callable[[LoggedEvent], Sequence[Change]]
"""A projection's fold: pure, so that replay gives the same rows as following live."""
RunChanges = Callable[[Sequence[LoggedEvent]], Sequence[Change]]
"""The same for a run, successive events of one conversation: what one by one gives, at less cost."""


def one_by_one(changes: Changes, *kinds: type[Event]) -> RunChanges:
    """The fold of a run by a projection that looks only at events of these kinds."""
    wanted = frozenset(kinds)

    def changes_of_run(run: Sequence[LoggedEvent]) -> Sequence[Change]:
        seen = [logged for logged in run if type(logged.event) in wanted]
        return [change for logged in seen for change in changes(logged)]

    return changes_of_run


def written(logged: LoggedEvent, event: MessageAppended) -> str:
    """When a message was written, or else logged: ISO 8601, UTC."""
    return utc(event.written_at) if event.written_at else logged.at


def utc(moment: datetime) -> str:
    """The moment as the log writes times: ISO 8601, UTC, microseconds. Without a zone it is UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
