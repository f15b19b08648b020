"""The kind of file that stores a fold of the log, and the check of its tables."""

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
from .projection import Content, wrap_connection
from .row_checksums import FoldDamaged

CACHE_KIB = 16_384
"""Size of a connection's page cache. A batch of a bulk load stays in memory until it is committed."""

_PRAGMAS = (
    # A crash of the process loses nothing. A power loss may damage the file, but every read detects
    # that and the rows are folded again. Syncs would only slow down rebuilds and catching up.
    "PRAGMA synchronous=OFF",
    f"PRAGMA cache_size=-{CACHE_KIB}",
)


@cache
def kind_of(content: Content) -> FileKind:
    """Return the kind of the files that store this fold."""
    return FileKind(
        content.name,
        content.title,
        _PRAGMAS,
        begin=partial(begin, content),
        declared=partial(expected_schema, content),
        check=partial(_check_tables, content),
    )


def begin(content: Content, connection: sqlite3.Connection) -> None:
    """Create the tables of an empty fold, in the open transaction."""
    db = wrap_connection(connection)
    content.create(db)
    create_positions(db)
    create_reading_from(db)
    write_progress(db, content.projections, nowhere(content.projections))


@cache
def expected_schema(content: Content) -> Mapping[str, str]:
    """Return the SQL of every object in a file by name, including those that ``finish`` creates."""
    with closing(open_sqlite(":memory:", isolation_level=None)) as connection:
        begin(content, connection)
        content.finish(wrap_connection(connection))
        return declared_in(connection)


def _check_tables(content: Content, connection: sqlite3.Connection) -> None:
    """Check that the file has exactly the expected tables.

    Raises:
        FoldDamaged: the file has other tables.
        FoldOutdated: an earlier version filled the tables.
    """
    found = declared_in(connection)
    differing = dict(expected_schema(content).items() ^ found.items()).keys()
    if differing - content.late:
        if has_earlier_fold(wrap_connection(connection), content.projections):
            raise FoldOutdated("an earlier version of refold filled it")
        raise FoldDamaged(f"the tables differ: {', '.join(sorted(differing))}")


MEMORY = ":memory:"
DERIVED = ("views", "recall", "vectors")
"""Names of all files that are derived from a log, as part of their paths."""

logger = plain_logger(__name__)


def derived_path(log: str | Path, name: str) -> str | Path:
    """Return the path of a file next to a log: ``agent.views.db`` next to ``agent.db``."""
    if str(log) == MEMORY:
        return MEMORY
    path = Path(log)
    return path.with_name(f"{path.stem}.{name}{path.suffix or '.db'}")


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
