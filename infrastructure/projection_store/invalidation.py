"""Erasures outdate what was folded from what is erased: it is taken out, or all is folded anew."""

from collections.abc import Callable, Iterator, Sequence

from sqlite_utils import Database

from refold.application.ports.conversation_log import ConversationLog, LoggedEvent
from refold.domain.events import ConversationErased, MessageErased

from .projection_damage import FoldDamaged
from .row_checksums import CHECKSUM, opened, sealed

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
