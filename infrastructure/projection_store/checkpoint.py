"""The checkpoint of a fold, and its invalidation when folded content is erased."""

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from refold.application.ports.conversation_log import ConversationLog, LoggedEvent
from refold.domain.events import ConversationErased, MessageErased

from .row_checksums import CHECKSUM, FoldDamaged, open_row, seal_row
from .tables import SQLiteTables, Tables

READING_FROM = "reading_from"
Left = Callable[[LoggedEvent], Sequence[LoggedEvent]]
"""A function that returns what is left of the events that an erasure reduced, or an empty sequence if all
of them were read after the erasure.
"""


class FoldOutdated(FoldDamaged):
    """Content that may have been folded in was erased, so the whole log must be folded again."""


def create_reading_from(db: Tables) -> None:
    """Create the table of the starting position, in the open transaction."""
    columns: dict[str, type] = {"id": int, "number": int, CHECKSUM: int}
    db.create_table(READING_FROM, columns, ("id",), columns)


def write_reading_from(db: Tables, newest: int) -> None:
    """Store the newest log position before the log is read for this database, or that of the newest
    erasure that was folded in.
    """
    # Sealed, because a wrong position would keep erased content.
    db.replace(READING_FROM, [seal_row((0, newest))])


def reading_from(db: Tables) -> int:
    """Return the stored position. The database has no content that was erased before it.

    Raises:
        FoldDamaged: the position was changed or is missing.
    """
    rows = db.execute(f"SELECT * FROM {{{READING_FROM}}}").fetchall()
    if len(rows) != 1:
        raise FoldDamaged(f"{len(rows)} rows record where reading began")
    _, number = open_row(READING_FROM, rows[0])
    return int(number or 0)


def was_made_before(db: SQLiteTables) -> bool:
    """Return whether an earlier version created the file. It stored the position in the header."""
    query = "SELECT count(*) FROM sqlite_schema WHERE name = ?"
    if db.execute(query, (READING_FROM,)).fetchone()[0]:
        return False
    return bool(db.execute("PRAGMA user_version").fetchone()[0])


def nothing_left(erasure: LoggedEvent) -> Sequence[LoggedEvent]:
    """Return an empty sequence: the ``Left`` of a fold that reads no event before its erasure."""
    del erasure
    return ()


def left_in(log: ConversationLog, read_from: int) -> Left:
    """Return the ``Left`` of a fold that has read the log from this position on."""

    def left(logged: LoggedEvent) -> Sequence[LoggedEvent]:
        event = logged.event if _outdates(logged, read_from) else None
        if not isinstance(event, MessageErased):
            return ()
        versions = [one.version for one in event.rewritten]
        remains = log.read_at(logged.thread_id, versions)
        if not all(one.erased for one in remains):
            raise FoldOutdated(
                f"event {logged.number} erased an event that is not marked as erased"
            )
        return remains

    return left


def still_valid(events: Iterator[LoggedEvent], read_from: int) -> Iterator[LoggedEvent]:
    """Yield the events until one erases a whole conversation that was folded in.

    Raises:
        FoldOutdated: such an event was found.
    """
    for logged in events:
        if _outdates(logged, read_from) and logged.kind is ConversationErased:
            raise FoldOutdated(f"event {logged.number} erased a conversation that was folded in")
        yield logged


def unerased(events: Iterator[LoggedEvent], read_from: int) -> Iterator[LoggedEvent]:
    """Yield the events until one erases something that was read before.

    Raises:
        FoldOutdated: such an event was found.
    """
    for logged in events:
        if _outdates(logged, read_from):
            raise FoldOutdated(f"event {logged.number} erased content during the rebuild")
        yield logged


def is_outdated(db: Tables, events: Iterator[LoggedEvent]) -> bool:
    """Return whether one of these new events erases content that the database has."""
    read_from = reading_from(db)
    return any(_outdates(logged, read_from) for logged in events)


def _outdates(logged: LoggedEvent, read_from: int) -> bool:
    return logged.number > read_from and not logged.is_unread and logged.kind in _ERASURES


_ERASURES = frozenset({MessageErased, ConversationErased})


POSITIONS = "positions"
POSITION_COLUMNS: Mapping[str, type] = {
    "projection": str,
    "version": int,
    "number": int,
    "mark": str,
    "row_count": int,
    "checksums": int,
    CHECKSUM: int,
}
"""Columns of a projection's checkpoint: log position, mark of the event, number of rows and their sum."""

Projections = Mapping[str, int]
"""Version of each projection by name. Rows of another version are deleted and replayed."""


class Total(NamedTuple):
    """Number of rows and the sum of their checksums."""

    rows: int = 0
    checksums: int = 0

    def plus(self, more: "Total") -> "Total":
        """Return the sum of both totals."""
        return Total(self.rows + more.rows, self.checksums + more.checksums)


class Progress(NamedTuple):
    """The checkpoint of a fold."""

    number: int
    """Log position of the last folded event, or 0 at the start."""
    mark: str
    """Mark of the last folded event. It detects a log that was restored from a backup."""
    totals: Mapping[str, Total]
    """Total of each projection."""


def nowhere(projections: Projections) -> Progress:
    """Return the checkpoint of an empty fold."""
    return Progress(0, "", {name: Total() for name in projections})


def mark_of(logged: LoggedEvent) -> str:
    """Return a mark that differs for events at the same log position in different histories."""
    content = zlib.crc32(repr(logged.event).encode("utf-8", "surrogatepass"))
    return f"{_place_of(logged)} {content:08x}"


def thread_of_mark(mark: str) -> str:
    """Return the conversation of the event with this mark."""
    return mark.rsplit(" ", 3)[0]


def is_marked(logged: LoggedEvent, mark: str) -> bool:
    """Return whether the mark belongs to this event. For a reduced event, only place and time are
    compared.
    """
    return mark == mark_of(logged) or (
        logged.erased and mark.rpartition(" ")[0] == _place_of(logged)
    )


def _place_of(logged: LoggedEvent) -> str:
    return f"{logged.thread_id} {logged.version} {logged.at}"


def create_positions(db: Tables) -> None:
    """Create the table of checkpoints, in the open transaction."""
    db.create_table(POSITIONS, POSITION_COLUMNS, ("projection",), POSITION_COLUMNS)


def read_progress(db: Tables, projections: Projections) -> Progress:
    """Return the stored checkpoint.

    Raises:
        FoldDamaged: the checkpoint was changed, is missing, or a projection has a new version.
    """
    return progress_in(db.execute(f"SELECT * FROM {{{POSITIONS}}}").fetchall(), projections)


def progress_in(stored: Iterable[Sequence[Any]], projections: Projections) -> Progress:
    """Return the checkpoint in the rows of ``POSITIONS``; errors as in ``read_progress``."""
    totals: dict[str, Total] = {}
    places: set[tuple[int, str]] = set()
    for row in stored:
        name, version, number, mark, rows, checksums = open_row(POSITIONS, row)
        if isinstance(version, int) and version < projections.get(str(name), 0):
            raise FoldOutdated("an earlier version of refold filled it")
        if projections.get(str(name)) != version:
            raise FoldDamaged(f"projection {name} has version {version}, which is not this one's")
        totals[str(name)] = Total(int(rows or 0), int(checksums or 0))
        places.add((int(number or 0), str(mark)))
    if len(places) != 1 or len(totals) != len(projections):
        raise FoldDamaged("the positions of the projections are missing or differ")
    return Progress(*places.pop(), totals)


def has_earlier_fold(db: SQLiteTables, projections: Projections) -> bool:
    """Return whether an earlier version of refold filled the tables. They are not damaged, but folded
    again.
    """
    query = "SELECT count(*) FROM sqlite_schema WHERE name = ?"
    if not db.execute(query, (POSITIONS,)).fetchone()[0]:
        return False
    rows = db.execute(f"SELECT * FROM {{{POSITIONS}}}").fetchall()
    with suppress(FoldDamaged, ValueError):
        found = {str(name): version for name, version, *_ in (open_row(POSITIONS, r) for r in rows)}
        return any(isinstance(v, int) and v < projections.get(n, 0) for n, v in found.items())
    return False


def write_progress(db: Tables, projections: Projections, progress: Progress) -> None:
    """Store the checkpoint, in the open transaction."""
    place = (progress.number, progress.mark)
    rows = [
        seal_row((name, version, *place, *progress.totals[name]))
        for name, version in projections.items()
    ]
    db.replace(POSITIONS, rows)


def events_after(log: ConversationLog, progress: Progress) -> Iterator[LoggedEvent]:
    """Yield the events after the checkpoint.

    Raises:
        FoldDamaged: the log lacks the last folded event, because it is another log or an older one.
    """
    if not progress.number:
        return iter(log.scan())
    events = iter(log.scan(progress.number - 1))
    last = next(events, None)
    if last is None or last.number != progress.number or not is_marked(last, progress.mark):
        raise FoldDamaged(f"event {progress.number} of the log is not the one folded in last")
    return events


def up_to(number: int, events: Iterable[LoggedEvent]) -> Iterator[LoggedEvent]:
    """Yield the events up to a log position."""
    for logged in events:
        if logged.number > number:
            return
        yield logged
