"""How far the read models are: a position in the log, proved by a mark of the event that is there."""

import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sqlite_utils import Database

from refold.application.event_log import ConversationLog, LoggedEvent

from .cells import opened, sealed
from .damage import ViewsDamaged
from .tables import POSITIONS, TABLES


class Total(NamedTuple):
    """How many rows there are, and the sum of their checksums."""

    rows: int = 0
    checksums: int = 0

    def plus(self, more: "Total") -> "Total":
        """Both together."""
        return Total(self.rows + more.rows, self.checksums + more.checksums)


class Progress(NamedTuple):
    """Where the read models stand."""

    number: int
    """Of the last event that was folded in; 0 before the first."""
    mark: str
    """What that event was; the log may have been restored from a backup since."""
    totals: dict[str, Total]
    """Per table."""


def nowhere() -> Progress:
    """Where empty read models stand."""
    return Progress(0, "", {table.name: Total() for table in TABLES})


def mark_of(logged: LoggedEvent) -> str:
    """Tells an event from any other that could have the same number in another history."""
    content = zlib.crc32(repr(logged.event).encode("utf-8", "surrogatepass"))
    return f"{logged.thread_id} {logged.version} {logged.at} {content:08x}"


def read_progress(db: Database) -> Progress:
    """What is stored about the position.

    Raises:
        ViewsDamaged: it was changed, is missing, or a projection has another version now.
    """
    totals: dict[str, Total] = {}
    places: set[tuple[int, str]] = set()
    for row in db.conn.execute(f"SELECT * FROM {POSITIONS}").fetchall():
        name, version, number, mark, rows, checksums = opened(POSITIONS, row)
        if (name, version) not in {(table.name, table.version) for table in TABLES}:
            raise ViewsDamaged(f"projection {name} has version {version}, which is not this one's")
        totals[str(name)] = Total(int(rows or 0), int(checksums or 0))
        places.add((int(number or 0), str(mark)))
    if len(places) != 1 or len(totals) != len(TABLES):
        raise ViewsDamaged("the positions of the projections are missing or differ")
    return Progress(*places.pop(), totals)


def write_progress(db: Database, progress: Progress) -> None:
    """Store the position, in the transaction that is open."""
    rows = [
        sealed(
            (
                table.name,
                table.version,
                progress.number,
                progress.mark,
                *progress.totals[table.name],
            )
        )
        for table in TABLES
    ]
    db.conn.executemany(f"INSERT OR REPLACE INTO {POSITIONS} VALUES (?,?,?,?,?,?,?)", rows)


def events_after(log: ConversationLog, progress: Progress) -> Iterator[LoggedEvent]:
    """The events that are not folded in yet.

    Raises:
        ViewsDamaged: the log does not hold what was folded in last; it is another log, or an older one.
    """
    if not progress.number:
        return iter(log.scan())
    events = iter(log.scan(progress.number - 1))
    last = next(events, None)
    if last is None or last.number != progress.number or mark_of(last) != progress.mark:
        raise ViewsDamaged(f"event {progress.number} of the log is not the one folded in last")
    return events


def up_to(number: int, events: Iterable[LoggedEvent]) -> Iterator[LoggedEvent]:
    """The events up to a position in the log."""
    for logged in events:
        if logged.number > number:
            return
        yield logged
