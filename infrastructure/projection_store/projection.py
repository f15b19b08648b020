"""What a file that is derived from the log consists of: its tables, and the fold that fills them."""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from sqlite_utils import Database

from refold.application.ports.conversation_log import Damage, LoggedEvent

from .checkpoint import Left, Progress, Projections


class Comparable(NamedTuple):
    """What a comparison needs to know of a table."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    of_event: bool = False
    """Whether each row is about one event, whose version it has."""
    is_final: bool = False
    """Whether a row changes only by an erasure once it is folded: such a table grows with the log, and a
    check needs not hold all of it."""
    where: str = "1"
    """Which rows there are: others only stand in the place of what was erased."""


class Content(Protocol):
    """A fold of the log in tables. One object for all files of a kind; it keeps nothing."""

    def __hash__(self) -> int: ...

    @property
    def name(self) -> str:
        """The place of damage that is of the file as a whole; notices begin with it."""
        ...

    @property
    def title(self) -> str:
        """What sentences call it: ``the read models``."""
        ...

    @property
    def projections(self) -> Projections:
        """What is folded."""
        ...

    @property
    def compared(self) -> Sequence[Comparable]:
        """Every table that replay gives row by row."""
        ...

    @property
    def late(self) -> frozenset[str]:
        """The names of what ``finish`` makes: a file without them is whole."""
        ...

    def create(self, db: Database) -> None:
        """Make every table but that of positions, in the transaction that is open."""
        ...

    def fold(
        self, db: Database, progress: Progress, events: Iterator[LoggedEvent], left: Left
    ) -> tuple[Progress, bool]:
        """Fold the next events in, a batch at most: rows and position in the transaction that is open.

        ``left`` tells of an erasure what is left of the events that lost content: what was folded from
        them before is taken out, so that no byte of it stays, and the rows are those of a replay.

        Events at or before the position change nothing. Returns the new position, and whether there
        may be more.

        Raises:
            FoldDamaged: a row that is to be changed is not as it was stored.
            FoldOutdated: what was erased cannot be taken out.
            sqlite3.DatabaseError: the same for what the database notices by itself.
        """
        ...

    def finish(self, db: Database) -> None:
        """Make what a bulk load is quicker without, in the transaction that is open."""
        ...

    @property
    def counts(self) -> str:
        """What ``count`` counts: ``events``."""
        ...

    def count(self, db: Database) -> int:
        """How much was folded in: what a rebuild tells."""
        ...

    def forget(self, db: Database) -> None:
        """Empty the tables with final rows, and what leads to them: a check has compared these rows."""
        ...

    def damage(self, db: Database) -> Iterator[Damage]:
        """What is damaged besides the rows that are compared; ``db``, in no transaction, stays as it is."""
        ...


def wrapped(connection: sqlite3.Connection) -> Database:
    """The connection behind sqlite-utils, without the plugins that a user may have installed."""
    return Database(connection, recursive_triggers=False, execute_plugins=False)
