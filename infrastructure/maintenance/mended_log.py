"""Read a log without the damage of its write-ahead log. The files are never changed."""

import sqlite3
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from filecmp import cmp
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

from eventsourcing.sqlite import SQLiteDatastore

from refold.application.maintenance.maintenance_results import (
    KnownErasures,
    RecordedErasure,
    Salvaged,
)
from refold.application.ports.conversation_log import Damage
from refold.application.ports.log_keeper import Checked
from refold.domain.events import ConversationErased, MessageErased
from refold.infrastructure.event_store.anchor import Anchor, anchor_path
from refold.infrastructure.event_store.encodings import Encodings
from refold.infrastructure.event_store.encryption import Keys, KeySource
from refold.infrastructure.event_store.envelope import (
    LONGEST_FRAME,
    EnvelopeError,
    EventMapper,
    Place,
    parse_frame,
)
from refold.infrastructure.event_store.plain_shapes import CodecError
from refold.infrastructure.event_store.shelf import SQLiteShelf
from refold.infrastructure.files.private_files import open_private, private_folder, refuse
from refold.infrastructure.sqlite.read_only import connect_read_only
from refold.infrastructure.sqlite.sqlite_connection import open_sqlite, write_ahead_path
from refold.infrastructure.write_ahead.damaged_copies import (
    damaged_copies,
    finding,
    notices_of_copies,
)
from refold.infrastructure.write_ahead.examination import (
    MendedRows,
    RowsOf,
    WriteAheadDamage,
    examine,
    read_write_ahead,
    stored_frames,
)
from refold.infrastructure.write_ahead.frames import (
    Extent,
    MainFile,
    extent_if_cut,
    is_without_pages,
)
from refold.infrastructure.write_ahead.page_images import Carved, PageImages, carve

from .check import Held, check_connection, once_for_all
from .row_proof import DAMAGE, RawRow, RowReader, lenient, refuse_trouble
from .salvage import refuse_target, salvage
from .table_checks import LOG


@contextmanager
def read_only(path: Path) -> Generator[sqlite3.Connection]:
    """Yield a connection that changes nothing, even on close.

    Raises:
        sqlite3.Error: SQLite cannot open the file.
    """
    with closing(connect_read_only(path)) as connection:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        yield lenient(connection)


def mapper_of(connection: sqlite3.Connection, key: KeySource | None) -> EventMapper:
    """Return a mapper for the events of a connection."""
    return EventMapper(Encodings(Keys(key), shelf_of(connection)))


def shelf_of(connection: sqlite3.Connection) -> SQLiteShelf:
    """Return the shelf in the database of a connection."""
    return SQLiteShelf(cast("SQLiteDatastore", _OneConnection(connection)))


def known_outside(path: Path) -> list[Held]:
    """Return the events that the anchor next to a log records."""
    lines, _ = Anchor(anchor_path(path)).lines()
    return [Held(lines, f"the anchor {anchor_path(path)}")] if lines else []


def check_file(path: Path, *held: Held, key: KeySource | None = None) -> Checked:
    """Check a log file and report all damage. Damage never raises an error.

    Raises:
        sqlite3.Error, OSError: the file cannot be read for a reason other than damage.
    """
    found = add_write_ahead_damage(path, Checked(0, 0, ()))
    if found.damage:
        return found  # SQLite would read only a part of it, and the rest would be reported as lost.
    return _check(path, *held, key=key)._replace(notices=found.notices)


def add_write_ahead_damage(path: Path, checked: Checked) -> Checked:
    """Add the damage of the write-ahead log and its copies to the findings."""
    found = finding(path)
    damage = checked.damage if found is None else (found, *checked.damage)
    return checked._replace(damage=damage, notices=notices_of_copies(path))


def _check(path: Path, *held: Held, key: KeySource | None) -> Checked:
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
    """A datastore that consists of one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @contextmanager
    def transaction(self, *, commit: bool) -> Generator[Any]:
        del commit
        yield self._connection.cursor()


class Mended(NamedTuple):
    """A log in readable form."""

    connection: sqlite3.Connection
    """Connection to the pages. Pages of a damaged write-ahead log have their newest proved content."""
    found: Carved
    kept: Carved
    is_whole: bool
    """True if every page image is proved."""

    def rows_with(self, mapper: EventMapper) -> RowsOf:
        """Return a function that creates the reader of the log's rows."""
        if not self.found and not self.kept:
            return RowReader
        return partial(MendedRows, mapper=mapper, found=self.found, kept=self.kept)


def is_to_be_mended(log: Path) -> bool:
    """Return whether page images may contain more of a log than SQLite reads."""
    return examine(log) is not None or bool(damaged_copies(log))


@contextmanager
def open_mended(log: Path, scratch: Path) -> Generator[Mended]:
    """Read a log, using its page images if its write-ahead log is damaged.

    ``scratch`` is a folder for a private file with the pages.

    Raises:
        OSError: a file cannot be read, or the pages cannot be written.
        sqlite3.Error: SQLite cannot open the file.
    """
    damage = examine(log)
    kept = _rows_in_copies(log, damage)
    if damage is None and (extent := extent_if_cut(log)):
        with _open_truncated(log, extent, scratch) as connection:
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
        folder = files.enter_context(private_folder(scratch, "pages"))
        made = folder / "pages.db"
        _put_together(images, main, made, images.pages or main.pages)
        connection = files.enter_context(closing(_open_pages(made)))
        yield Mended(connection, carve(images, main), kept, is_whole=not images.unproved)


def salvage_file(path: Path, to: Path, *held: Held, key: KeySource | None = None) -> Salvaged:
    """Copy every intact event in the files of a log into the new log ``to``. The files are not changed.

    Raises:
        TargetExists: a file exists at ``to``.
        OSError: a file cannot be read or written.
        sqlite3.Error: SQLite cannot read the log.
    """
    refuse_target(to)
    refuse(to, replace=False)
    with open_mended(path, to.absolute().parent) as log:
        mapper = mapper_of(log.connection, key)
        rows = log.rows_with(mapper)
        return salvage(log.connection, mapper, to, *held, key=key, rows=rows)


@contextmanager
def _open_truncated(log: Path, extent: Extent, scratch: Path) -> Generator[sqlite3.Connection]:
    """Yield a connection to the remaining pages of a truncated file, which SQLite refuses to read."""
    main = MainFile(log, extent.page_size)
    with ExitStack() as files:
        folder = files.enter_context(private_folder(scratch, "pages"))
        made, images, pages = folder / "pages.db", None, extent.pages
        if chain := read_write_ahead(write_ahead_path(log)):
            file = files.enter_context(write_ahead_path(log).open("rb"))
            images = PageImages(file, chain, stored_frames(chain))
            pages = images.pages or pages
        _put_together(images, main, made, pages)
        yield files.enter_context(closing(_open_pages(made)))


def _put_together(images: PageImages | None, main: MainFile, made: Path, pages: int) -> None:
    """Write the newest image of each page into the file ``made``, or else the page of the main file.

    Pages that only a header counts become a hole at the end, which takes no space.
    """
    known = max(main.pages, images.pages if images else 0)
    with open_private(made, "xb") as file:
        for number in range(1, min(pages, known) + 1):
            newest = images.newest(number, images.frames - 1) if images else None
            page = images.image(newest) if images and newest is not None else main.page(number)
            file.write(page.ljust(main.page_size, b"\0"))
        with suppress(OSError):  # No file is as long as a damaged header can say.
            file.truncate(pages * main.page_size)


def _open_pages(made: Path) -> sqlite3.Connection:
    """Return a connection to the file of pages.

    If the page with the schema is lost, the connection is to an empty database.
    """
    uri = f"{made.absolute().as_uri()}?mode=ro&immutable=1"
    connection = open_sqlite(uri, uri=True, isolation_level=None)
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except DAMAGE:
        connection.close()
        connection = open_sqlite(":memory:", isolation_level=None)
    connection.execute("PRAGMA temp_store=MEMORY")
    return lenient(connection)


def _rows_in_copies(log: Path, damage: WriteAheadDamage | None) -> Carved:
    """Return the rows in the copies of earlier write-ahead logs, newest copy first."""
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


_NAMES = ("message_erased", "conversation_erased")
_ERASURES = f"""
SELECT originator_id, originator_version, topic, state FROM stored_events WHERE topic IN {_NAMES}
"""
_Row = tuple[str, int, str, object]
_FIRST = """
SELECT substr(state, 1, ?) FROM stored_events WHERE originator_id=? AND originator_version=1
"""


def erasures_in(path: Path, mapper: EventMapper) -> KnownErasures:
    """Return every erasure that the log records, and whether all of them could be read."""
    if is_without_pages(path) and read_write_ahead(write_ahead_path(path)) is None:
        return KnownErasures()
    found: list[RecordedErasure] = []
    try:
        with open_mended(path, path.parent) as log:
            mapper = mapper.reading(shelf_of(log.connection))
            for row in _erasure_rows(log, mapper):
                found.extend(_read(log.connection, row, mapper))
            return KnownErasures(tuple(found), complete=log.is_whole)
    except (sqlite3.Error, OSError, EnvelopeError, CodecError):
        return KnownErasures(tuple(found), complete=False)


def _erasure_rows(log: Mended, mapper: EventMapper) -> Iterator[_Row]:
    if not log.found:
        return log.connection.execute(_ERASURES)
    rows = log.rows_with(mapper)(log.connection).rows()
    return ((r.stream, r.version, r.name, r.state) for r in rows if r.name in _NAMES)


def _read(
    connection: sqlite3.Connection, row: _Row, mapper: EventMapper
) -> Iterator[RecordedErasure]:
    stream, version, name, state = row
    _, event = mapper.open(Place(stream, version, name), state)
    match event:
        case MessageErased(position=position, message_id=message_id):
            yield RecordedErasure(stream, position, message_id, event.reason)
        case ConversationErased():
            yield RecordedErasure(stream, None, _time_of_first(connection, stream), event.reason)
        case _:
            pass


def _time_of_first(connection: sqlite3.Connection, stream: str) -> str:
    """Return the time of the first event. Its frame remains even if its content was erased."""
    row = connection.execute(_FIRST, (LONGEST_FRAME, stream)).fetchone()
    return "" if row is None else parse_frame(row[0]).at
