"""Erasures outdate what was folded from what is erased: it is folded anew."""

from collections.abc import Iterator

from sqlite_utils import Database

from refold.application.event_log import LoggedEvent
from refold.domain.events import ConversationErased, MessageErased

from .damage import FoldDamaged


class FoldOutdated(FoldDamaged):
    """Something that may have been folded in was erased since: the whole is to be folded anew."""


def write_reading_from(db: Database, newest: int) -> None:
    """Note the number of the newest event in the log before anything of it is read for this database."""
    db.conn.execute(f"PRAGMA user_version={newest}")


def reading_from(db: Database) -> int:
    """The number that was noted; everything erased up to it was never read."""
    return int(db.conn.execute("PRAGMA user_version").fetchone()[0])


def still_valid(events: Iterator[LoggedEvent], read_from: int) -> Iterator[LoggedEvent]:
    """The events, as long as none of them says that one before it may have been read too early.

    Raises:
        FoldOutdated: one does.
    """
    for logged in events:
        if _outdates(logged, read_from):
            raise FoldOutdated(f"event {logged.number} erased something that was folded in")
        yield logged


def is_outdated(db: Database, events: Iterator[LoggedEvent]) -> bool:
    """Whether one of these, which the database has not folded in, erased something that it has."""
    read_from = reading_from(db)
    return any(_outdates(logged, read_from) for logged in events)


def _outdates(logged: LoggedEvent, read_from: int) -> bool:
    return logged.number > read_from and isinstance(
        logged.event, MessageErased | ConversationErased
    )
