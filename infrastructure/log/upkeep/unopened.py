"""A log file as it lies there: read without opening it as a log, which it may not be fit for."""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast

from eventsourcing.sqlite import SQLiteDatastore

from refold.application.event_log import Damage
from refold.application.upkeep.log_keeping import Checked
from refold.infrastructure.log.anchor import Anchor, anchor_path
from refold.infrastructure.log.checks.checking import Held, check_connection, once_for_all
from refold.infrastructure.log.checks.rows import DAMAGE, lenient, refuse_trouble
from refold.infrastructure.log.checks.stream_checks import LOG
from refold.infrastructure.log.file.read_only import connected
from refold.infrastructure.log.stored.encodings import Encodings
from refold.infrastructure.log.stored.encryption import Keys, KeySource
from refold.infrastructure.log.stored.mapper import EventMapper
from refold.infrastructure.log.stored.shelf import SQLiteShelf
from refold.infrastructure.log.write_ahead.copies import notices_of_copies
from refold.infrastructure.log.write_ahead.refusing import finding


@contextmanager
def read_only(path: Path) -> Generator[sqlite3.Connection]:
    """A connection that changes nothing, not even by closing.

    Raises:
        sqlite3.Error: SQLite cannot open it at all.
    """
    with closing(connected(path)) as connection:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        yield lenient(connection)


def mapper_of(connection: sqlite3.Connection, key: KeySource | None) -> EventMapper:
    """What reads the events of a connection."""
    return EventMapper(Encodings(Keys(key), shelf_of(connection)))


def shelf_of(connection: sqlite3.Connection) -> SQLiteShelf:
    """What lies beside the events of a connection."""
    return SQLiteShelf(cast("SQLiteDatastore", _OneConnection(connection)))


def known_outside(path: Path) -> list[Held]:
    """What the anchor beside a log says of it."""
    lines, _ = Anchor(anchor_path(path)).lines()
    return [Held(lines, f"the anchor {anchor_path(path)}")] if lines else []


def check_file(path: Path, *held: Held, key: KeySource | None = None) -> Checked:
    """Everything that is wrong with a log file; never raises for what is wrong with it.

    Raises:
        sqlite3.Error, OSError: it cannot be read for another reason than damage.
    """
    found = beside(path, Checked(0, 0, ()))
    if found.damage:
        return found  # SQLite would read a part of it, and the rest would be called lost.
    return _checked(path, *held, key=key)._replace(notices=found.notices)


def beside(path: Path, checked: Checked) -> Checked:
    """Return what was found with what is to be said of the write-ahead log and its copies."""
    found = finding(path)
    damage = checked.damage if found is None else (found, *checked.damage)
    return checked._replace(damage=damage, notices=notices_of_copies(path))


def _checked(path: Path, *held: Held, key: KeySource | None) -> Checked:
    if not path.exists():
        return _nothing("missing", f"there is no file {path}", *held)
    if not path.stat().st_size:
        return _nothing("empty", f"the file {path} is empty", *held)
    try:
        with read_only(path) as connection:
            return once_for_all(check_connection(connection, mapper_of(connection, key), *held))
    except DAMAGE as error:
        refuse_trouble(error)
        return _nothing("unreadable", f"SQLite cannot read the file at all: {error}", *held)


def _nothing(kind: str, detail: str, *held: Held) -> Checked:
    stored = sum(line.version for known in held[:1] for line in known.lines.values())
    conversations = sum(len(known.lines) for known in held[:1])
    if stored:
        detail += f"; {stored} events of {conversations} conversations were stored"
    return Checked(0, 0, (Damage(LOG, "", 0, kind, detail),))


class _OneConnection:
    """Stands for a data store of which there is just this connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @contextmanager
    def transaction(self, *, commit: bool) -> Generator[Any]:
        del commit
        yield self._connection.cursor()
