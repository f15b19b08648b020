"""Changes that a projection makes to its table, as data."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import NamedTuple, cast

from refold.application.ports.conversation_log import LoggedEvent, MessageFields
from refold.domain.events import Event, MessageAppended
from refold.domain.value import Value

Cell = str | int | None
"""Value of a column; booleans are stored as 0 and 1."""


class Added(NamedTuple):
    """A new row with a new key."""

    row: Value


class Appended(NamedTuple):
    """New rows of one conversation that never change, as values in column order."""

    rows: Sequence[tuple[Cell | bytes, ...]]
    utf8: int | None = None
    """Index of the column whose texts may be given as UTF-8, because that is how they are stored."""


class Changed(NamedTuple):
    """New values for every row whose columns equal ``where``; there may be none."""

    where: Mapping[str, Cell]
    to: Mapping[str, Cell]
    more: Mapping[str, int] = MappingProxyType({})
    """Amounts to add to numeric columns."""
    once: Mapping[str, Cell] = MappingProxyType({})
    """Values to set if all of these columns are still empty."""
    spans: Mapping[str, str] = MappingProxyType({})
    """Times that widen the range from ``created_at`` to ``last_activity``."""
    joined: Mapping[str, str] = MappingProxyType({})
    """Texts to append to those of columns."""


class Removed(NamedTuple):
    """The removal of every row whose columns equal ``where``, because its content was erased."""

    where: Mapping[str, Cell]


class Replaced(NamedTuple):
    """A replacement for the appended row with the same key, if there is one."""

    row: tuple[Cell, ...]


Change = Added | Appended | Changed | Removed | Replaced
Changes = Callable[[LoggedEvent], Sequence[Change]]
"""The fold of a projection. It is pure, so replay gives the same rows as live updates."""
RunChanges = Callable[[Sequence[LoggedEvent]], Sequence[Change]]
"""The fold of a run of successive events of one conversation, with the same result at less cost."""


def fold_each(changes: Changes, *kinds: type[Event]) -> RunChanges:
    """Return a fold of runs that applies ``changes`` to events of these kinds only."""
    wanted = frozenset(kinds)

    def changes_of_run(run: Sequence[LoggedEvent]) -> Sequence[Change]:
        seen = [one for one in run if not one.is_unread and one.kind in wanted]
        return [change for logged in seen for change in changes(logged)]

    return changes_of_run


def message_time(logged: LoggedEvent, event: MessageAppended) -> str:
    """Return when a message was written or, if unknown, logged: ISO 8601, UTC."""
    return utc(event.written_at) if event.written_at else logged.at


def listed_time(logged: LoggedEvent, message: MessageFields) -> str:
    """Return the same of a message that is given by its fields."""
    written_at = message.get("written_at")
    try:
        return utc_text(written_at) if written_at else logged.at
    except (TypeError, ValueError):  # The event says what is damaged.
        return message_time(logged, cast("MessageAppended", logged.event))


def utc_text(stored: str) -> str:
    """Return a stored time in the format of the log. Most times are stored almost like that."""
    size = len(stored)
    if size == _TO_MICROSECONDS and stored[-1] == "Z" and stored[10] == "T":
        return stored
    if size == _TO_SECONDS and stored[-1] == "Z" and stored[10] == "T":
        return f"{stored[:-1]}.000000Z"
    return utc(datetime.fromisoformat(stored))


_TO_SECONDS, _TO_MICROSECONDS = len("2026-01-02T03:04:05Z"), len("2026-01-02T03:04:05.000000Z")


def utc(moment: datetime) -> str:
    """Return a time in the format of the log: ISO 8601, UTC, microseconds. A naive time is UTC."""
    return in_utc(moment).isoformat(timespec="microseconds").replace("+00:00", "Z")


def in_utc(moment: datetime) -> datetime:
    """Return a time in UTC. A naive time is UTC.

    At the ends of the calendar, a time may have no equal in UTC. It is then taken without its zone.
    """
    if moment.tzinfo is UTC:
        return moment
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:
        return moment.replace(tzinfo=UTC)
