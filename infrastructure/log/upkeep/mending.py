"""Reading a log as it would be without the damage of its write-ahead log; the files are only read."""

import sqlite3
from collections import defaultdict
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from filecmp import cmp
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from refold.application.upkeep.salvaging import Salvaged
from refold.infrastructure.log.checks.checking import Held
from refold.infrastructure.log.checks.rows import DAMAGE, RawRow, RowReader, lenient
from refold.infrastructure.log.stored.encryption import KeySource
from refold.infrastructure.log.stored.mapper import EventMapper
from refold.infrastructure.log.write_ahead.breaks import stored_frames
from refold.infrastructure.log.write_ahead.carving import Carved, carve
from refold.infrastructure.log.write_ahead.copies import damaged_copies
from refold.infrastructure.log.write_ahead.examining import (
    WriteAheadDamage,
    examine,
    read_write_ahead,
    write_ahead_path,
)
from refold.infrastructure.log.write_ahead.images import PageImages
from refold.infrastructure.log.write_ahead.main_file import Extent, MainFile, extent_if_cut
from refold.infrastructure.log.write_ahead.mended_rows import MendedRows, RowsOf
from refold.infrastructure.new_files import refuse
from refold.infrastructure.private_files import open_private
from refold.infrastructure.sqlite_connection import open_sqlite

from .salvaging import refuse_target, salvage
from .unopened import mapper_of, read_only


class Mended(NamedTuple):
    """A log as it can be read."""

    connection: sqlite3.Connection
    """Reads the pages; those of a damaged write-ahead log as their newest proved images say."""
    found: Carved
    kept: Carved
    is_whole: bool
    """Whether every page image is proved."""

    def rows_with(self, mapper: EventMapper) -> RowsOf:
        """Return what reads the rows of the log."""
        if not self.found and not self.kept:
            return RowReader
        return partial(MendedRows, mapper=mapper, found=self.found, kept=self.kept)


def is_to_be_mended(log: Path) -> bool:
    """Return whether page images can say more of a log than SQLite does."""
    return examine(log) is not None or bool(damaged_copies(log))


@contextmanager
def mended(log: Path, scratch: Path) -> Generator[Mended]:
    """Read a log, through its page images where its write-ahead log is damaged.

    ``scratch``: a folder in which the pages lie together meanwhile, in a private file.

    Raises:
        OSError: a file cannot be read, or the pages cannot be written.
        sqlite3.Error: SQLite cannot open it at all.
    """
    damage = examine(log)
    kept = _kept(log, damage)
    if damage is None and (extent := extent_if_cut(log)):
        with _completed(log, extent, scratch) as connection:
            yield Mended(connection, {}, kept, is_whole=False)
        return
    if damage is None:
        with read_only(log) as connection:
            yield Mended(connection, {}, kept, is_whole=True)
        return
    with ExitStack() as files:
        file = files.enter_context(write_ahead_path(log).open("rb"))
        images = PageImages(file, damage.chain, damage.frames)
        main = MainFile(log, images.page_size)
        folder = files.enter_context(TemporaryDirectory(prefix=".pages.", dir=scratch))
        made = Path(folder) / "pages.db"
        _put_together(images, main, made, images.pages or main.pages)
        connection = files.enter_context(closing(_opened(made)))
        yield Mended(connection, carve(images, main), kept, is_whole=not images.unproved)


def salvage_file(path: Path, to: Path, *held: Held, key: KeySource | None = None) -> Salvaged:
    """Make the new log ``to`` of all that is intact in the files of a log, which are only read.

    Raises:
        TargetExists: there is something at ``to``.
        OSError: a file cannot be read or written.
        sqlite3.Error: SQLite cannot read it at all.
    """
    refuse_target(to)
    refuse(to, replace=False)
    with mended(path, to.absolute().parent) as log:
        mapper = mapper_of(log.connection, key)
        rows = log.rows_with(mapper)
        return salvage(log.connection, mapper, to, *held, key=key, rows=rows)


@contextmanager
def _completed(log: Path, extent: Extent, scratch: Path) -> Generator[sqlite3.Connection]:
    """A connection to the pages of a file that lost its end: SQLite refuses to read such a file."""
    main = MainFile(log, extent.page_size)
    with ExitStack() as files:
        folder = files.enter_context(TemporaryDirectory(prefix=".pages.", dir=scratch))
        made, images, pages = Path(folder) / "pages.db", None, extent.pages
        if chain := read_write_ahead(write_ahead_path(log)):
            file = files.enter_context(write_ahead_path(log).open("rb"))
            images = PageImages(file, chain, stored_frames(chain))
            pages = images.pages or pages
        _put_together(images, main, made, pages)
        yield files.enter_context(closing(_opened(made)))


def _put_together(images: PageImages | None, main: MainFile, made: Path, pages: int) -> None:
    with open_private(made, "xb") as file:
        for number in range(1, pages + 1):
            newest = images.newest(number, images.frames - 1) if images else None
            page = images.image(newest) if images and newest is not None else main.page(number)
            file.write(page.ljust(main.page_size, b"\0"))


def _opened(made: Path) -> sqlite3.Connection:
    """Return a connection to pages; to nothing at all where the page with the schema is lost."""
    uri = f"{made.absolute().as_uri()}?mode=ro&immutable=1"
    connection = open_sqlite(uri, uri=True, isolation_level=None)
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except DAMAGE:
        connection.close()
        connection = open_sqlite(":memory:", isolation_level=None)
    connection.execute("PRAGMA temp_store=MEMORY")
    return lenient(connection)


def _kept(log: Path, damage: WriteAheadDamage | None) -> Carved:
    """Return what the copies of earlier write-ahead logs hold, the newest copy first."""
    found: dict[int, list[RawRow]] = defaultdict(list)
    for copy in reversed(damaged_copies(log)):
        if damage is not None and cmp(copy, write_ahead_path(log), shallow=False):
            continue
        chain = read_write_ahead(copy)
        if chain is None:
            continue
        with copy.open("rb") as file:
            images = PageImages(file, chain, stored_frames(chain))
            for number, rows in carve(images, MainFile(log, images.page_size)).items():
                found[number] += [row for row in rows if row not in found[number]]
    return found
