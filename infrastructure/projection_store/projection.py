"""Tables that are derived from the log: their fold, and the kind of file that stores them."""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, Protocol

from refold.application.ports.conversation_log import Damage, LoggedEvent
from refold.application.runtime.plain_lines import plain_logger
from refold.infrastructure.files.log_place import MEMORY, derived_path
from refold.infrastructure.sqlite.sqlite_connection import declared_in, open_sqlite

from .checkpoint import (
    FoldOutdated,
    Left,
    Progress,
    Projections,
    create_positions,
    create_reading_from,
    has_earlier_fold,
    nowhere,
    write_progress,
)
from .database_file import DatabaseFile, FileKind
from .row_checksums import FoldDamaged
from .tables import SQLiteTables, Tables


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
    where: str = "true"
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
    def schemas(self) -> frozenset[str]:
        """Digests of the SQL that files of this fold have, before and after ``finish``.

        A file with another one is compared object by object.
        """
        ...

    @property
    def compared(self) -> Sequence[Comparable]:
        """All tables that a replay reproduces row by row."""
        ...

    @property
    def late(self) -> frozenset[str]:
        """Names of the objects that ``finish`` creates. A file without them is complete."""
        ...

    def create(self, db: Tables) -> None:
        """Create every table except that of checkpoints, in the open transaction."""
        ...

    def fold(
        self, db: Tables, progress: Progress, events: Iterator[LoggedEvent], left: Left
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

    def finish(self, db: Tables) -> None:
        """Create the objects that slow a bulk load down, in the open transaction."""
        ...

    @property
    def counts(self) -> str:
        """Name of the items that ``count`` counts, such as ``events``."""
        ...

    def count(self, db: Tables) -> int:
        """Return the number of folded items, which a rebuild reports."""
        ...

    def forget(self, db: Tables) -> None:
        """Empty the tables with final rows and their indexes, after a check has compared these rows."""
        ...

    def damage(self, db: Tables) -> Iterator[Damage]:
        """Yield damage outside the compared rows. ``db`` is not changed."""
        ...


CACHE_KIB = 16_384
"""Size of a connection's page cache. A batch of a bulk load stays in memory until it is committed."""

_PRAGMAS = (
    # A crash of the process loses nothing. A power loss may damage the file, but every read detects
    # that and the rows are folded again. Syncs would only slow down rebuilds and catching up.
    "PRAGMA synchronous=OFF",
    f"PRAGMA cache_size=-{CACHE_KIB}",
)


def _begin_file(content: Content, connection: sqlite3.Connection) -> None:
    begin(content, SQLiteTables(connection))


@cache
def kind_of(content: Content) -> FileKind:
    """Return the kind of the files that store this fold."""
    return FileKind(
        content.name,
        content.title,
        _PRAGMAS,
        begin=partial(_begin_file, content),
        declared=partial(expected_schema, content),
        check=partial(_check_tables, content),
    )


def create_tables(content: Content, db: Tables) -> None:
    """Create all tables of a fold without rows, in the open transaction."""
    content.create(db)
    create_positions(db)
    create_reading_from(db)


def begin(content: Content, db: Tables) -> None:
    """Create the tables of an empty fold, in the open transaction."""
    create_tables(content, db)
    write_progress(db, content.projections, nowhere(content.projections))


@cache
def expected_schema(content: Content) -> Mapping[str, str]:
    """Return the SQL of every object in a file by name, including those that ``finish`` creates."""
    with closing(open_sqlite(":memory:", isolation_level=None)) as connection:
        db = SQLiteTables(connection)
        begin(content, db)
        content.finish(db)
        return declared_in(connection)


_known: dict[Content, Mapping[str, str]] = {}
"""The last declared objects of each content that were as expected."""


def digest_of_schema(declared: Mapping[str, str]) -> str:
    """Return a digest of the SQL of every object in a file."""
    return sha256(json.dumps(sorted(declared.items())).encode()).hexdigest()


def _is_known(content: Content, found: Mapping[str, str]) -> bool:
    """Return whether these are the objects of a file that this version makes.

    Making them in memory to compare would load what only new files need, and take longer than most queries.
    """
    if _known.get(content) != found:
        if digest_of_schema(found) not in content.schemas:
            return False
        _known[content] = found
    return True


def _check_tables(content: Content, connection: sqlite3.Connection) -> None:
    """Check that the file has exactly the expected tables.

    Raises:
        FoldDamaged: the file has other tables.
        FoldOutdated: an earlier version filled the tables.
    """
    found = declared_in(connection)
    if _is_known(content, found):
        return
    differing = dict(expected_schema(content).items() ^ found.items()).keys()
    if differing - content.late:
        if has_earlier_fold(SQLiteTables(connection), content.projections):
            raise FoldOutdated("an earlier version of refold filled it")
        raise FoldDamaged(f"the tables differ: {', '.join(sorted(differing))}")


logger = plain_logger(__name__)


def place_of(log: str | Path, kind: FileKind, *, encrypted: bool) -> str | Path:
    """Return the path of a file. For an encrypted log, return memory and delete an earlier file."""
    place = derived_path(log, kind.name)
    if not encrypted or place == MEMORY:
        return place
    try:
        with closing(DatabaseFile(Path(place).absolute(), kind, of=Path(log))) as file:
            file.drop(any_file=True)
    except OSError as error:
        logger.warning("%s is not encrypted and cannot be removed (%s)", place, error)
    return MEMORY
