"""The content of a file that is derived from the log: its tables and the fold that fills them."""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from sqlite_utils import Database

from refold.application.ports.conversation_log import Damage, LoggedEvent

from .checkpoint import Left, Progress, Projections


class Comparable(NamedTuple):
    """Properties of a table for its comparison with a replay."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    of_event: bool = False
    """True if each row is about one event and has its version."""
    is_final: bool = False
    """True if only an erasure changes a folded row. Such a table grows with the log, so a check does not
    keep all of it in memory.
    """
    where: str = "1"
    """Condition of valid rows. Other rows are placeholders for erased content."""


class Content(Protocol):
    """A fold of the log into tables. One stateless object serves all files of a kind."""

    def __hash__(self) -> int: ...

    @property
    def name(self) -> str:
        """Place name in reports about damage of the whole file, and prefix of event names."""
        ...

    @property
    def title(self) -> str:
        """Name of the content in sentences: ``the read models``."""
        ...

    @property
    def projections(self) -> Projections:
        """Versions of the projections in the file."""
        ...

    @property
    def compared(self) -> Sequence[Comparable]:
        """All tables that a replay reproduces row by row."""
        ...

    @property
    def late(self) -> frozenset[str]:
        """Names of the objects that ``finish`` creates. A file without them is complete."""
        ...

    def create(self, db: Database) -> None:
        """Create every table except that of checkpoints, in the open transaction."""
        ...

    def fold(
        self, db: Database, progress: Progress, events: Iterator[LoggedEvent], left: Left
    ) -> tuple[Progress, bool]:
        """Fold the next batch of events in, and store rows and checkpoint in the open transaction.

        ``left`` returns what an erasure left of the events that it reduced. What was folded from them
        is removed, so that no byte of it stays and the rows equal those of a replay.

        Events up to the checkpoint change nothing. Return the new checkpoint and whether more events
        may follow.

        Raises:
            FoldDamaged: a row to change differs from what was stored.
            FoldOutdated: erased content cannot be removed.
            sqlite3.DatabaseError: SQLite itself detects damage.
        """
        ...

    def finish(self, db: Database) -> None:
        """Create the objects that slow a bulk load down, in the open transaction."""
        ...

    @property
    def counts(self) -> str:
        """Name of the items that ``count`` counts, such as ``events``."""
        ...

    def count(self, db: Database) -> int:
        """Return the number of folded items, which a rebuild reports."""
        ...

    def forget(self, db: Database) -> None:
        """Empty the tables with final rows and their indexes, after a check has compared these rows."""
        ...

    def damage(self, db: Database) -> Iterator[Damage]:
        """Yield damage outside the compared rows. ``db`` has no transaction and is not changed."""
        ...


def wrap_connection(connection: sqlite3.Connection) -> Database:
    """Wrap the connection with sqlite-utils, without the plugins that a user may have installed."""
    return Database(connection, recursive_triggers=False, execute_plugins=False)
