"""Erasures outdate what was folded from what is erased: it is taken out, or all is folded anew."""

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from sqlite_utils import Database

from refold.application.ports.conversation_log import ConversationLog, LoggedEvent
from refold.domain.events import ConversationErased, MessageErased

from .row_checksums import CHECKSUM, FoldDamaged, opened, sealed

READING_FROM = "reading_from"
Left = Callable[[LoggedEvent], Sequence[LoggedEvent]]
"""Of an erasure of a message: what is left of the events that lost content for it; nothing where all
of them were read when they had lost it."""


class FoldOutdated(FoldDamaged):
    """Something that may have been folded in was erased since: the whole is to be folded anew."""


def create_reading_from(db: Database) -> None:
    """Make the table of the number that is noted, in the transaction that is open."""
    columns: dict[str, type] = {"id": int, "number": int, CHECKSUM: int}
    db.table(READING_FROM).create(columns, pk=("id",), not_null=set(columns), strict=True)


def write_reading_from(db: Database, newest: int) -> None:
    """Note the number of the newest event in the log before anything of it is read for this database, or
    of the newest erasure that was folded in.
    """
    # Sealed: with a wrong number here, what was erased would stay.
    db.conn.execute(f"INSERT OR REPLACE INTO {READING_FROM} VALUES (?, ?, ?)", sealed((0, newest)))


def reading_from(db: Database) -> int:
    """The number that was noted; nothing that was erased up to it is there.

    Raises:
        FoldDamaged: it was changed, or is missing.
    """
    rows = db.conn.execute(f"SELECT * FROM {READING_FROM}").fetchall()
    if len(rows) != 1:
        raise FoldDamaged(f"{len(rows)} rows say from where on the log was read")
    _, number = opened(READING_FROM, rows[0])
    return int(number or 0)


def was_made_before(db: Database) -> bool:
    """Whether an earlier version made the file: it noted the number in the header."""
    query = "SELECT count(*) FROM sqlite_schema WHERE name = ?"
    if db.conn.execute(query, (READING_FROM,)).fetchone()[0]:
        return False
    return bool(db.conn.execute("PRAGMA user_version").fetchone()[0])


def nothing_left(erasure: LoggedEvent) -> Sequence[LoggedEvent]:
    """``Left`` of a fold that never read anything before it was erased."""
    del erasure
    return ()


def left_in(log: ConversationLog, read_from: int) -> Left:
    """``Left`` of a fold for which the log was read from this number on."""

    def left(logged: LoggedEvent) -> Sequence[LoggedEvent]:
        if not _outdates(logged, read_from) or not isinstance(logged.event, MessageErased):
            return ()
        versions = [one.version for one in logged.event.rewritten]
        remains = log.read_at(logged.thread_id, versions)
        if not all(one.erased for one in remains):
            raise FoldOutdated(f"event {logged.number} erased what is not marked as that")
        return remains

    return left


def still_valid(events: Iterator[LoggedEvent], read_from: int) -> Iterator[LoggedEvent]:
    """The events, as long as none of them says that a whole conversation was erased that was folded in.

    Raises:
        FoldOutdated: one does.
    """
    for logged in events:
        if _outdates(logged, read_from) and isinstance(logged.event, ConversationErased):
            raise FoldOutdated(f"event {logged.number} erased a conversation that was folded in")
        yield logged


def is_outdated(db: Database, events: Iterator[LoggedEvent]) -> bool:
    """Whether one of these, which the database has not folded in, erased something that it has."""
    read_from = reading_from(db)
    return any(_outdates(logged, read_from) for logged in events)


def _outdates(logged: LoggedEvent, read_from: int) -> bool:
    return logged.number > read_from and isinstance(
        logged.event, MessageErased | ConversationErased
    )


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
"""Per projection: how far it is, at which event, and how many rows with which sum there must be."""

Projections = Mapping[str, int]
"""The version of each projection by its name: rows of another version are dropped and replayed."""


class Total(NamedTuple):
    """How many rows there are, and the sum of their checksums."""

    rows: int = 0
    checksums: int = 0

    def plus(self, more: "Total") -> "Total":
        """Both together."""
        return Total(self.rows + more.rows, self.checksums + more.checksums)


class Progress(NamedTuple):
    """Where a fold stands."""

    number: int
    """Of the last event that was folded in; 0 before the first."""
    mark: str
    """What that event was; the log may have been restored from a backup since."""
    totals: Mapping[str, Total]
    """Per projection."""


def nowhere(projections: Projections) -> Progress:
    """Where an empty fold stands."""
    return Progress(0, "", {name: Total() for name in projections})


def mark_of(logged: LoggedEvent) -> str:
    """Tells an event from any other that could have the same number in another history."""
    content = zlib.crc32(repr(logged.event).encode("utf-8", "surrogatepass"))
    return f"{_place_of(logged)} {content:08x}"


def is_marked(logged: LoggedEvent, mark: str) -> bool:
    """Whether the mark is of this event; of one that lost content since, its place and time have to do."""
    return mark == mark_of(logged) or (
        logged.erased and mark.rpartition(" ")[0] == _place_of(logged)
    )


def _place_of(logged: LoggedEvent) -> str:
    return f"{logged.thread_id} {logged.version} {logged.at}"


def create_positions(db: Database) -> None:
    """Make the table of positions, in the transaction that is open."""
    columns = dict(POSITION_COLUMNS)
    db.table(POSITIONS).create(columns, pk=("projection",), not_null=set(columns), strict=True)


def read_progress(db: Database, projections: Projections) -> Progress:
    """What is stored about the position.

    Raises:
        FoldDamaged: it was changed, is missing, or a projection has another version now.
    """
    totals: dict[str, Total] = {}
    places: set[tuple[int, str]] = set()
    for row in db.conn.execute(f"SELECT * FROM {POSITIONS}").fetchall():
        name, version, number, mark, rows, checksums = opened(POSITIONS, row)
        if isinstance(version, int) and version < projections.get(str(name), 0):
            raise FoldOutdated("an earlier version of refold filled it")
        if projections.get(str(name)) != version:
            raise FoldDamaged(f"projection {name} has version {version}, which is not this one's")
        totals[str(name)] = Total(int(rows or 0), int(checksums or 0))
        places.add((int(number or 0), str(mark)))
    if len(places) != 1 or len(totals) != len(projections):
        raise FoldDamaged("the positions of the projections are missing or differ")
    return Progress(*places.pop(), totals)


def has_earlier_fold(db: Database, projections: Projections) -> bool:
    """Return whether an earlier version of refold filled the tables: they are folded again, not damaged."""
    query = "SELECT count(*) FROM sqlite_schema WHERE name = ?"
    if not db.conn.execute(query, (POSITIONS,)).fetchone()[0]:
        return False
    rows = db.conn.execute(f"SELECT * FROM {POSITIONS}").fetchall()
    with suppress(FoldDamaged, ValueError):
        found = {str(name): version for name, version, *_ in (opened(POSITIONS, r) for r in rows)}
        return any(isinstance(v, int) and v < projections.get(n, 0) for n, v in found.items())
    return False


def write_progress(db: Database, projections: Projections, progress: Progress) -> None:
    """Store the position, in the transaction that is open."""
    place = (progress.number, progress.mark)
    rows = [
        sealed((name, version, *place, *progress.totals[name]))
        for name, version in projections.items()
    ]
    db.conn.executemany(f"INSERT OR REPLACE INTO {POSITIONS} VALUES (?,?,?,?,?,?,?)", rows)


def events_after(log: ConversationLog, progress: Progress) -> Iterator[LoggedEvent]:
    """The events that are not folded in yet.

    Raises:
        FoldDamaged: the log does not hold what was folded in last; it is another log, or an older one.
    """
    if not progress.number:
        return iter(log.scan())
    events = iter(log.scan(progress.number - 1))
    last = next(events, None)
    if last is None or last.number != progress.number or not is_marked(last, progress.mark):
        raise FoldDamaged(f"event {progress.number} of the log is not the one folded in last")
    return events


def up_to(number: int, events: Iterable[LoggedEvent]) -> Iterator[LoggedEvent]:
    """The events up to a position in the log."""
    for logged in events:
        if logged.number > number:
            return
        yield logged
