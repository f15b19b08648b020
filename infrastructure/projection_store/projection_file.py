"""The kind of file that a fold of the log lies in: its tables, and whether it has them."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from functools import cache, partial
from pathlib import Path

from refold.application.runtime.plain_lines import plain_logger
from refold.infrastructure.sqlite.sqlite_connection import open_sqlite

from .checkpoint import (
    FoldOutdated,
    create_positions,
    create_reading_from,
    has_earlier_fold,
    nowhere,
    write_progress,
)
from .database_file import DatabaseFile, FileKind
from .ownership import declared_in
from .projection import Content, wrapped
from .row_checksums import FoldDamaged

CACHE_KIB = 16_384
"""Page cache of a connection: a batch of a bulk load stays in memory until it is committed."""

_PRAGMAS = (
    # A crash of the process loses nothing. A power loss may damage the file: every read notices, and
    # the rows are folded again. Syncs would only make rebuilding and following slower.
    "PRAGMA synchronous=OFF",
    f"PRAGMA cache_size=-{CACHE_KIB}",
)


@cache
def kind_of(content: Content) -> FileKind:
    """Return the kind of the files that hold this fold."""
    return FileKind(
        content.name,
        content.title,
        _PRAGMAS,
        begin=partial(begin, content),
        declared=partial(expected_schema, content),
        check=partial(_check_tables, content),
    )


def begin(content: Content, connection: sqlite3.Connection) -> None:
    """Make the tables of an empty fold, in the transaction that is open."""
    db = wrapped(connection)
    content.create(db)
    create_positions(db)
    create_reading_from(db)
    write_progress(db, content.projections, nowhere(content.projections))


@cache
def expected_schema(content: Content) -> Mapping[str, str]:
    """Return what a file declares by name, with what is made late."""
    with closing(open_sqlite(":memory:", isolation_level=None)) as connection:
        begin(content, connection)
        content.finish(wrapped(connection))
        return declared_in(connection)


def _check_tables(content: Content, connection: sqlite3.Connection) -> None:
    """Check that there are exactly the tables that there should be.

    Raises:
        FoldDamaged: there are other tables.
        FoldOutdated: an earlier version filled them.
    """
    found = declared_in(connection)
    differing = dict(expected_schema(content).items() ^ found.items()).keys()
    if differing - content.late:
        if has_earlier_fold(wrapped(connection), content.projections):
            raise FoldOutdated("an earlier version of refold filled it")
        raise FoldDamaged(f"the tables differ: {', '.join(sorted(differing))}")


MEMORY = ":memory:"
DERIVED = ("views", "recall", "vectors")
"""The names of all such files, as they stand in their paths."""

logger = plain_logger(__name__)


def derived_path(log: str | Path, name: str) -> str | Path:
    """Where a file beside a log lies: ``agent.views.db`` beside ``agent.db``."""
    if str(log) == MEMORY:
        return MEMORY
    path = Path(log)
    return path.with_name(f"{path.stem}.{name}{path.suffix or '.db'}")


def place_of(log: str | Path, kind: FileKind, *, encrypted: bool) -> str | Path:
    """Return the place of a file: memory for an encrypted log, whose file of before is removed."""
    place = derived_path(log, kind.name)
    if not encrypted or place == MEMORY:
        return place
    try:
        with closing(DatabaseFile(Path(place).absolute(), kind, of=Path(log))) as file:
            file.drop(any_file=True)
    except OSError as error:
        logger.warning("%s is not encrypted and cannot be removed (%s)", place, error)
    return MEMORY
